"""Kills runs at every durable step and recovers each: a process of its own, which forks one for each life.

`python durable_matrix.py SCENARIO DIRECTORY [EVERY]` prints one JSON line for each fault point: how often the
process was killed, the answer in the end, what each tool did, and what was uncertain on the way. The store is in
an audit log's file; of `own_SCENARIO` it has a file of its own, and there is no log.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import ptc
from ptc.store import SQLiteRunStore
from ptc.testing import Peer

RUN = "r1"
SAMPLES = Path(__file__).parents[2] / "samples"
Item = dict[str, Any]


class FaultyStore(SQLiteRunStore):
    """Kills its process at its n-th durable step, before or after it: the fault points of a run."""

    def __init__(self, *arguments: Any, at: int = 0, when: str = "before", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steps, self._at, self._when = 0, at, when

    async def _around(self, step: Callable[[], Any]) -> Any:
        self.steps += 1
        here = self.steps == self._at
        if here and self._when == "before":
            die()
        result = await step()
        if here:
            die()
        return result

    async def create(self, *arguments: Any) -> Any:
        return await self._around(lambda: super(FaultyStore, self).create(*arguments))

    async def append(self, *arguments: Any, **options: Any) -> None:
        await self._around(lambda: super(FaultyStore, self).append(*arguments, **options))

    async def append_with(self, *arguments: Any, **options: Any) -> Any:
        return await self._around(lambda: super(FaultyStore, self).append_with(*arguments, **options))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class World:
    """What tools did: one line for each effect, in files that outlive the process."""

    def __init__(self, directory: Path, kill_in_tool: str = "") -> None:
        self.directory = directory
        self._kill_in_tool = kill_in_tool

    def effect(self, name: str, what: object) -> None:
        with (self.directory / f"{name}.txt").open("a") as file:
            file.write(f"{json.dumps(what)}\n")
            file.flush()
        if self._kill_in_tool == f"{name}:{len(self.lines(name))}":
            die()

    def lines(self, name: str) -> list[str]:
        path = self.directory / f"{name}.txt"
        return path.read_text().splitlines() if path.exists() else []

    def tools(self) -> list[ptc.AnyTool]:
        world = self
        both: Any = {"allowed_callers": ["direct", "programmatic"]}

        @ptc.tool(effects="read", **both)
        def look(x: int) -> int:
            """A read."""
            world.effect("look", x)
            return x + 1

        @ptc.tool(effects="write", idempotency=ptc.Idempotency("protocol"), **both)
        def put(x: int, context: ptc.ToolContext) -> int:
            """An idempotent mutation."""
            world.effect("put", [x, context.idempotency_key, context.attempt])
            return x * 2

        @ptc.tool(effects="write", **both)
        def note(x: int) -> int:
            """A mutation that is not idempotent, and has no read that tells."""
            world.effect("note", x)
            return x * 3

        @ptc.tool(effects="write", reconciliation=ptc.Reconciliation("sent", {"x": "x"}), **both)
        def send(x: int) -> int:
            """A mutation whose read tells what came of it."""
            world.effect("send", x)
            return x * 5

        @ptc.tool(effects="read", **both)
        def sent(x: int) -> dict[str, Any]:
            """Whether a thing was sent."""
            return {"happened": str(x) in world.lines("send"), "result": x * 5}

        @ptc.tool(effects="write", approval="always", **both)
        def drop(x: int) -> int:
            """A mutation that somebody approves."""
            world.effect("drop", x)
            return -x

        return [look, put, note, send, sent, drop]


def call(name: str, call_id: str, x: int) -> Item:
    arguments = json.dumps({"x": x})
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def message(text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": content,
    }


PROGRAM = """
import asyncio, random
key = random.randrange(10**9)
a = await look(x=1)
b, c = await asyncio.gather(note(x=a), put(x=3))
try:
    d = await send(x=key)
except ToolError as error:
    d = 0
e = await look(x=c)
[a, b, c, d == key * 5, e]
"""

APPROVED = """
import time
before = time.time()
try:
    told = await drop(x=7)
except ToolError as error:
    told = "denied"
[await look(x=1), told, time.time() - before < 3600]
"""

SCENARIOS: dict[str, list[list[Item]]] = {
    "direct": [
        [call("look", "a", 1), call("note", "b", 2), call("put", "c", 3), call("send", "d", 4)],
        [call("note", "e", 5)],
    ],
    "program": [
        [
            {
                "type": "function_call",
                "id": "fc",
                "call_id": "p",
                "name": "run_program",
                "arguments": json.dumps({"code": PROGRAM}),
            }
        ]
    ],
    "approval": [[call("look", "a", 1), call("drop", "b", 7)], [call("note", "c", 2)]],
    "program_approval": [
        [
            {
                "type": "function_call",
                "id": "fc",
                "call_id": "p",
                "name": "run_program",
                "arguments": json.dumps({"code": APPROVED}),
            }
        ]
    ],
}
SCENARIOS["stream"] = SCENARIOS["direct"]
_OWNER = {"caller": {"type": "program", "caller_id": "cp"}}
_HOSTED: Item = {"type": "program", "id": "pg", "call_id": "cp", "code": "…", "fingerprint": "f"}
SCENARIOS["hosted"] = [
    [_HOSTED, call("look", "a", 1) | _OWNER, call("note", "b", 2) | _OWNER],
    [call("put", "c", 3) | _OWNER, call("send", "d", 4) | _OWNER],
    [
        {"type": "program_output", "id": "po", "call_id": "cp", "result": "1", "status": "completed"},
        call("look", "e", 5),
    ],
]


class Model:
    """A service without memory: what it says next is told by what it is sent."""

    def __init__(self, turns: Sequence[list[Item]]) -> None:
        self._turns = turns

    def _response(self, body: Item) -> Item:
        outputs = [item for item in body["input"] if item.get("type") == "function_call_output"]
        said = {item["call_id"] for item in outputs}
        for number, turn in enumerate(self._turns):
            if not {item["call_id"] for item in turn if item["type"] == "function_call"} <= said:
                return _response(number, turn)
        text = json.dumps([[item["call_id"], item["output"]] for item in outputs])
        return _response(len(self._turns), [message(text)])

    async def create(self, body: Item, *, timeout: float | None = None) -> Item:
        return self._response(body)

    async def stream(self, body: Item, *, timeout: float | None = None) -> Any:
        response = self._response(body)
        yield {"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}}
        for index, item in enumerate(response["output"]):
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.completed", "response": response}

    async def retrieve(self, response_id: str) -> Item:
        """One of its turns again; it keeps none that is still running."""
        number = int(response_id.removeprefix("resp_"))
        return _response(number, self._turns[number])

    async def cancel(self, response_id: str) -> Item:
        return await self.retrieve(response_id)


def _response(number: int, output: list[Item]) -> Item:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": usage,
    }


def runner_for(scenario: str, world: World, store: SQLiteRunStore, audit: ptc.AuditLog | None) -> ptc.Runner:
    if scenario == "sample":
        return _sample_runner(store, audit)
    return ptc.Runner(
        client=Model(SCENARIOS[scenario]),
        model="m",
        tools=world.tools(),
        programs="local" if scenario.startswith("program") else "hosted" if scenario == "hosted" else None,
        approver=ptc.PauseForApproval(),
        audit=audit,
        store=store,
    )


def _sample() -> Any:
    spec = spec_from_file_location("inventory_demand", SAMPLES / "inventory_demand.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["inventory_demand"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sample_runner(store: SQLiteRunStore, audit: ptc.AuditLog | None) -> ptc.Runner:
    import openai

    sample = _sample()
    client = openai.AsyncOpenAI(base_url=os.environ["PEER"], api_key="test")
    tools = [sample.get_inventory, sample.get_demand]
    return ptc.Runner(client=client, model="m", tools=tools, programs="hosted", audit=audit, store=store)


async def live(scenario: str, directory: Path, fault: str, decisions: dict[str, Any] | None) -> Item:
    """One life of a run: begun, or recovered with decisions. What came of it, as JSON."""
    step, when, in_tool = 0, "", fault.removeprefix("tool:") if fault.startswith("tool:") else ""
    if fault and not in_tool and not fault.startswith("after:"):
        number, _, when = fault.partition(":")
        step = int(number)
    world = World(directory, in_tool)
    own, scenario = scenario.startswith("own_"), scenario.removeprefix("own_")
    with ExitStack() as stack:
        log = None if own else stack.enter_context(ptc.AuditLog(directory / "audit.db", levels="full"))
        async with FaultyStore(log or directory / "runs.db", at=step, when=when) as store:
            runner = runner_for(scenario, world, store, log)
            if decisions is not None:
                result = await runner.recover(RUN, decisions=decisions)
            elif scenario == "stream":
                async with runner.stream("go", run_id=RUN) as events:
                    result = await events.finish()
            else:
                result = await runner.run("go", run_id=RUN)
    return {
        "status": result.status,
        "text": result.output_text,
        "approvals": [
            {
                "call_id": request.call_id,
                "name": request.name,
                "x": request.arguments.get("x"),
                "uncertain": request.uncertain,
            }
            for request in result.approvals
        ],
        "uncertain": [
            [item.call.name, item.call.call_id, item.resolution, item.attempt] for item in result.uncertain
        ],
        "calls": [[report.call.name, report.call.call_id, report.outcome.status] for report in result.calls],
        "requests": result.requests,
        "usage": result.usage.total_tokens,
        "steps": store.steps,
    }


def fork(scenario: str, directory: Path, fault: str, decisions: dict[str, Any] | None) -> Item | None:
    """The life in a process of its own; None where it was killed."""
    told = directory / "told.json"
    told.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            result = asyncio.run(live(scenario, directory, fault, decisions))
            told.write_text(json.dumps(result))
            code = 0
        except BaseException:  # noqa: BLE001 - this process ends here, and says why
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    if fault.startswith("after:"):
        time.sleep(float(fault.removeprefix("after:")))
        os.kill(pid, signal.SIGKILL)  # a process that has ended meanwhile is still there, as a zombie
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return None
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{scenario} {fault}: the process failed")
    return dict(json.loads(told.read_text()))


def decide(world: World, approval: Item) -> Any:
    """What somebody says who looks at the world: an approval, or what became of an uncertain call."""
    if not approval["uncertain"]:
        return ptc.Approve(by="ann")
    if approval["name"] not in ("note", "drop"):
        return ptc.Approve()  # of the sample: its tools say nothing of their effects, and only read
    factor = {"note": 3, "drop": -1}[approval["name"]]
    if str(approval["x"]) in world.lines(approval["name"]):
        return ptc.Happened(approval["x"] * factor)
    return ptc.Approve()


def story(scenario: str, directory: Path, fault: str, faults_later: str = "") -> Item:
    """A run with one fault, recovered until it is over."""
    directory.mkdir(parents=True)
    world = World(directory)
    kills, uncertain, decisions = 0, [], None
    result = fork(scenario, directory, fault, None)
    for _ in range(10):
        if result is None:
            kills += 1
            decisions = {}
        elif result["status"] != "paused":
            break
        else:
            decisions = {item["call_id"]: decide(world, item) for item in result["approvals"]}
        later, faults_later = faults_later, ""
        if not exists(directory):
            result = fork(scenario, directory, "", None)  # killed before the run was there: begun again
        else:
            result = fork(scenario, directory, later, decisions)
        uncertain += [] if result is None else result["uncertain"]
    assert result is not None
    effects = {name: world.lines(name) for name in ("look", "put", "note", "send", "drop")}
    return {
        **result,
        "fault": fault,
        "kills": kills,
        "uncertain": uncertain,
        "effects": effects,
        "disagreements": disagreements(directory),
    }


def file_of(directory: Path) -> Path:
    own = directory / "runs.db"
    return own if own.exists() else directory / "audit.db"


def exists(directory: Path) -> bool:
    path = file_of(directory)
    if not path.exists():
        return False
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT 1 FROM runs WHERE run = ?", (RUN,)).fetchone() is not None
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()


def disagreements(directory: Path) -> list[str]:
    """Where the log and the store say different things about calls: never."""
    if not (directory / "audit.db").exists():
        return []
    db = sqlite3.connect(directory / "audit.db")
    try:
        started = [row[0] for row in db.execute("SELECT count(*) FROM records WHERE type = 'tool.started'")]
        finished = [row[0] for row in db.execute("SELECT count(*) FROM records WHERE type = 'tool.finished'")]
        admitted = [row[0] for row in db.execute("SELECT count(*) FROM steps WHERE kind = 'admitted'")]
        settled = (
            "SELECT count(*) FROM steps WHERE kind = 'outcome' AND json_extract(data, '$.found') IS NULL"
        )
        outcomes = [row[0] for row in db.execute(settled)]
    finally:
        db.close()
    return [
        f"{what}: {a} in the log, {b} in the store"
        for what, a, b in (("started", started, admitted), ("finished", finished, outcomes))
        if a != b
    ]


def main(scenario: str, directory: str, every: str = "1") -> None:
    """`twice` kills `direct` in a tool, and then its recovery at every step; `anytime` kills it by the clock."""
    if scenario.removeprefix("own_") == "sample":
        import openai  # noqa: F401 - before the forks

        with Peer(f"{SAMPLES / 'inventory_script.py'}:model") as peer:
            os.environ["PEER"] = peer.base_url
            kill_everywhere(scenario, Path(directory), int(every))
    elif scenario == "anytime":
        base = Path(directory)
        began = time.monotonic()
        print(json.dumps(story("direct", base / "whole", "")), flush=True)
        whole_run = time.monotonic() - began
        for n in range(100 // int(every)):
            fault = f"after:{whole_run * random.Random(n).random():.6f}"
            told = story(
                "direct", base / str(n), fault, f"after:{whole_run * random.Random(-n).random():.6f}"
            )
            print(json.dumps(told), flush=True)
    elif scenario == "twice":
        base = Path(directory)
        print(json.dumps(story("direct", base / "whole", "")), flush=True)
        for n in range(1, 40, int(every)):
            told = story("direct", base / str(n), "tool:note:1", f"{n}:{'after' if n % 2 else 'before'}")
            if told["kills"] < 2:
                break
            print(json.dumps(told), flush=True)
    else:
        kill_everywhere(scenario, Path(directory), int(every))


def kill_everywhere(scenario: str, base: Path, every: int) -> None:
    whole = story(scenario, base / "whole", "")
    print(json.dumps(whole), flush=True)
    faults = [f"{n}:{when}" for n in range(1, whole["steps"] + 20) for when in ("before", "after")]
    effects = [f"tool:{name}:{n + 1}" for name, lines in whole["effects"].items() for n in range(len(lines))]
    for index, fault in enumerate([*effects, *faults]):
        if index % every == 0:
            told = story(scenario, base / fault.replace(":", "_"), fault)
            if not told["kills"] and not fault.startswith("tool"):
                if fault.endswith("after"):
                    break  # past the last step
                continue
            print(json.dumps(told), flush=True)
    if "approval" in scenario:
        kill_what_goes_on(scenario, base, every)


def kill_what_goes_on(scenario: str, base: Path, every: int) -> None:
    """The same with the process that goes on once somebody has approved."""
    faults = [f"{n}:{when}" for n in range(1, 40) for when in ("before", "after")]
    for index, fault in enumerate(["tool:drop:1", *faults]):
        if index % every == 0:
            told = story(scenario, base / f"later_{fault.replace(':', '_')}", "", fault)
            if not told["kills"]:
                break  # past the last step
            print(json.dumps({**told, "fault": f"later {fault}"}), flush=True)


def one_life(scenario: str, directory: str, decision: str, moved_seconds: str) -> None:
    """`--life SCENARIO DIRECTORY none|approve|deny SECONDS`: one process, its clock moved by so much."""
    real, moved = time.time_ns, int(moved_seconds) * 1_000_000_000
    time.time_ns = lambda: real() + moved
    made: Any = {"approve": ptc.Approve(by="ann"), "deny": ptc.Deny("not today")}
    waiting = "p:1" if "program" in scenario else "b"
    decisions = None if decision == "none" else {waiting: made[decision]}
    print(json.dumps(asyncio.run(live(scenario, Path(directory), "", decisions))))


if __name__ == "__main__":
    if sys.argv[1] == "--life":
        one_life(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
