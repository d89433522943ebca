"""Replay as proof: it proves what is true, and finds a log in which one thing was changed."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ptc
from ptc.audit import journals
from ptc.audit.journals import folder_of
from ptc.audit.keys import Keyring
from ptc.audit.lines import leaf_hash
from ptc.audit.replay import Proof, overall, replay
from ptc.audit.values import canonical
from ptc.testing import ScriptedModel, in_process, run_code, say
from ptc_sandbox.limits import Limits
from ptc_sandbox.sandbox import Sandbox
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.middleware import Invocation, Next, Retry
from ptc_tools.mutation import TransportError
from ptc_tools.outcome import Outcome
from ptc_tools.tool import tool
from tests.ptc.audit_support import KEYS, of_type, open_log, raw_lines, read

RUN_ID = "run_1"


@tool(allowed_callers=["programmatic"])
def get_inventory(sku: str) -> dict[str, int]:
    """Units in stock."""
    if sku == "none":
        raise KeyError(sku)
    return {"units": 42 if sku == "a" else 31}


@tool(allowed_callers=["programmatic"])
async def slow(ms: int) -> int:
    """Answers after a while."""
    await asyncio.sleep(ms / 1000)
    return ms


PROGRAMS = {
    "calls at once": """
a, b = await asyncio.gather(get_inventory(sku="a"), get_inventory(sku="b"))
print("left", a["units"] - b["units"])
a["units"] - b["units"]
""",
    "a call that fails": """
try:
    await get_inventory(sku="none")
except Exception as error:
    print(type(error).__name__)
"done"
""",
    "clock, chance and order": """
import random, time, datetime
marks = [random.random(), time.time(), str(datetime.datetime.now(datetime.timezone.utc))]
done = await asyncio.gather(slow(ms=9), slow(ms=1), slow(ms=5))
await asyncio.sleep(0.01)
print(marks, time.monotonic() > 0)
[done, marks, random.randint(1, 10**9)]
""",
    "a denied call": """
try:
    await get_inventory(sku=5)
except Exception as error:
    print(error)
1
""",
    "an exception": "x = await get_inventory(sku='a')\nprint(x)\n1 / 0",
    "nothing asked": "sum(range(100))",
    "a call given up": """
try:
    await asyncio.wait_for(slow(ms=3000), 0.02)
except asyncio.TimeoutError:
    print("too slow")
await slow(ms=1)
""",
}


async def record(path: Path, code: str, *, limits: Limits | None = None, **options: Any) -> None:
    async with (
        open_log(path, **{"journals": True, **options}) as log,
        Sandbox(limits=limits, ahead=1) as sandbox,
    ):
        run = RunContext(RUN_ID)
        await sandbox.run(code, tools=[get_inventory, slow], run=run, recorder=log, caller_id="prog_1")


def prove(path: Path, keys: Keyring = KEYS) -> Proof:
    (proof,) = asyncio.run(replay(path, RUN_ID, keys))
    return proof


@pytest.mark.parametrize("level", ["metadata", "full"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_proven_to_have_given_what_the_log_says(tmp_path: Path, name: str, level: str) -> None:
    """Run again against the recorded answers it gives the same output and value: the log explains them."""
    path = tmp_path / "a.jsonl"
    asyncio.run(record(path, PROGRAMS[name], levels=level))
    proof = prove(path)
    assert proof.verdict == "proven", proof


def test_a_journal_whose_hash_looks_like_a_card_number_is_still_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest run is proven whatever digits its hashes happen to hold."""
    digest = "4111111111111111" + "-" + "5555555555554444" + "0" * 31
    monkeypatch.setattr(journals, "hashlib", SimpleNamespace(sha256=lambda data: _Digest(digest)))
    asyncio.run(record(tmp_path / "audit.jsonl", "1 + 1", levels="full"))
    assert prove(tmp_path / "audit.jsonl").verdict == "proven"


@dataclass(frozen=True)
class _Digest:
    text: str

    def hexdigest(self) -> str:
        return self.text


def test_replaying_calls_no_tool(tmp_path: Path) -> None:
    """A proof must have no effect: every answer comes from the journal."""
    path = tmp_path / "a.db"
    ran: list[str] = []

    @tool(allowed_callers=["programmatic"])
    def charge(amount: int) -> int:
        """Takes money."""
        ran.append("charge")
        return amount

    async def once() -> None:
        async with open_log(path, journals=True) as log, Sandbox(ahead=1) as sandbox:
            await sandbox.run("await charge(amount=5)", tools=[charge], run=RunContext(RUN_ID), recorder=log)

    asyncio.run(once())
    assert prove(path).verdict == "proven"
    assert ran == ["charge"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A proven log of each form, to be copied and changed."""
    folders = {form: tmp_path_factory.mktemp(form) for form in ("jsonl", "db")}
    for form, folder in folders.items():
        asyncio.run(record(folder / f"a.{form}", PROGRAMS["calls at once"], levels="full", signed=False))
        assert prove(folder / f"a.{form}").verdict == "proven"
    return folders


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes records and recomputes the chain, as somebody who may write to the file can."""
    lines: list[bytes] = []
    previous = "0" * 64
    for line in raw_lines(path):
        record = json.loads(line)
        change(record)
        record["prev"] = previous
        lines.append(canonical(record))
        previous = leaf_hash(lines[-1]).hex()
    if path.suffix == ".jsonl":
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return
    with closing(sqlite3.connect(path)) as db:
        db.executemany(
            "UPDATE records SET record = ? WHERE seq = ?",
            [(line.decode(), n) for n, line in enumerate(lines, 1)],
        )
        db.commit()


def change_result(record: dict[str, Any]) -> None:
    if record["type"] == "tool.finished" and record["content"].get("result") == {"units": 42}:
        record["content"]["result"] = {"units": 43}


def change_result_and_digest(record: dict[str, Any]) -> None:
    """By somebody who has the digest key as well."""
    if record["type"] == "tool.finished" and record["content"].get("result") == {"units": 42}:
        record["content"]["result"] = {"units": 43}
        record["content"]["result_digest"] = KEYS.active("digest").digest({"units": 43})


def change_arguments(record: dict[str, Any]) -> None:
    if record["type"] == "tool.started":
        record["content"]["arguments"] = {"sku": "z"}


def change_output(record: dict[str, Any]) -> None:
    if record["type"] == "program.finished":
        record["data"]["output"] = "left 12\n"


def change_value_digest(record: dict[str, Any]) -> None:
    if record["type"] == "program.finished":
        record["data"]["value_digest"] = KEYS.active("digest").digest(12)


def change_code(record: dict[str, Any]) -> None:
    if record["type"] == "program.started":
        record["data"]["code"] = "12"


def change_status(record: dict[str, Any]) -> None:
    if record["type"] == "tool.finished" and record["start"] == 4:
        record["outcome"] = {"status": "failure", "code": "tool_error", "duration_us": 1}


def change_tool(record: dict[str, Any]) -> None:
    if record["type"].startswith("tool."):
        record["tool"]["name"] = "harmless"


def forget_a_call(record: dict[str, Any]) -> None:
    if record["type"].startswith("tool.") and record["identity"]["call"].endswith(":2"):
        record["origin"]["program"] = "another"


def pretend_a_redaction(record: dict[str, Any]) -> None:
    """A mark beside a changed value, so that the whole of it cannot be compared as it stands."""
    if record["type"] == "tool.finished" and record["content"].get("result") == {"units": 42}:
        record["content"]["result"] = {"units": 43, "x": {"$redacted": "level", "bytes": 3}}


def redact_another_value(record: dict[str, Any]) -> None:
    if record["type"] == "tool.finished" and record["content"].get("result") == {"units": 42}:
        mark = {"$redacted": "name", "bytes": 2, "hmac": KEYS.active("digest").digest(43)}
        record["content"]["result"] = {"units": mark}


def change_arguments_digest_at_the_end(record: dict[str, Any]) -> None:
    if record["type"] == "tool.finished":
        record["content"]["arguments_digest"] = KEYS.active("digest").digest({"sku": "z"})


def change_limits(record: dict[str, Any]) -> None:
    if record["type"] == "program.started":
        record["data"]["limits"] = {"memory": -1, "time": "x"}


def change_line(record: dict[str, Any]) -> None:
    if record["type"] == "tool.started":
        record["origin"]["line"] += 1


def change_seed(record: dict[str, Any]) -> None:
    if record["type"] == "program.started":
        record["data"]["seed"] += 1


@pytest.mark.parametrize("form", ["jsonl", "db"])
@pytest.mark.parametrize(
    "change",
    [
        change_result,
        change_result_and_digest,
        change_arguments,
        change_output,
        change_value_digest,
        change_code,
        change_status,
        change_tool,
        forget_a_call,
        pretend_a_redaction,
        redact_another_value,
        change_arguments_digest_at_the_end,
        change_limits,
        change_seed,
        change_line,
    ],
)
def test_a_log_changed_with_its_chain_recomputed_is_found(
    tmp_path: Path, form: str, change: Callable[[dict[str, Any]], None], recorded: dict[str, Path]
) -> None:
    """The chain holds again, and still the log does not explain what the program gave."""
    shutil.copytree(recorded[form], tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"a.{form}"
    rewrite(path, change)
    proof = prove(path)
    assert proof.verdict == "diverged", proof


def repeat(path: Path, chosen: Callable[[dict[str, Any]], bool]) -> None:
    """Writes the records that are chosen a second time, behind the first, and recomputes the chain."""
    write_chain(path, [again for one in read(path) for again in ([one, one] if chosen(one) else [one])])


def write_chain(path: Path, records: list[dict[str, Any]]) -> None:
    """A JSON lines log of these records, as somebody who may write to the file can make it."""
    lines: list[bytes] = []
    previous, moved = "0" * 64, dict[int, int]()
    for number, record in enumerate(records, 1):
        moved[record["seq"]] = number
        written = {**record, "seq": number, "prev": previous}
        if "start" in written:
            written["start"] = moved[written["start"]]
        lines.append(canonical(written))
        previous = leaf_hash(lines[-1]).hex()
    path.write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.mark.parametrize("type", ["tool.started", "tool.finished", "program.finished"])
def test_a_second_story_of_one_call_or_program_is_found(
    tmp_path: Path, type: str, recorded: dict[str, Path]
) -> None:
    """What the log says twice it may say differently, and a reader sees the one that was meant for him."""
    shutil.copytree(recorded["jsonl"], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "a.jsonl"
    repeat(path, lambda record: record["type"] == type)
    assert prove(path).verdict == "diverged"


def test_a_changed_message_of_a_failed_call_is_found(tmp_path: Path) -> None:
    """What a program was told of a failure is as much evidence as a result."""
    path = tmp_path / "a.jsonl"
    asyncio.run(record(path, PROGRAMS["a call that fails"], levels="full", signed=False))
    assert prove(path).verdict == "proven"

    def change(record: dict[str, Any]) -> None:
        if record["type"] == "tool.finished":
            record["content"]["message"] = "nothing bad"

    rewrite(path, change)
    assert prove(path).verdict == "diverged"


@tool(allowed_callers=["programmatic"])
def find_customer(customer: str) -> dict[str, Any]:
    """A result in which much is redacted."""
    return {
        "password": "correct horse",
        "mail ada@example.org": [{"card": "4111 1111 1111 1111"}, 1.0, None, True],
        "$redacted": "a member of the tool's own",
        "name": customer,
    }


def test_a_redacted_log_is_proven_too(tmp_path: Path) -> None:
    """Each mark is compared by its digest, and everything else as it stands."""
    path = tmp_path / "a.jsonl"

    async def once() -> None:
        async with open_log(path, levels="full", journals=True) as log, Sandbox(ahead=1) as sandbox:
            code = "x = await find_customer(customer='ada')\nprint(x)\nx"
            await sandbox.run(
                code, tools=[find_customer], run=RunContext(RUN_ID), recorder=log, caller_id="prog_1"
            )

    asyncio.run(once())
    proof = prove(path)
    assert proof.verdict == "proven", proof


def test_a_journal_that_was_changed_or_moved_is_refused(tmp_path: Path) -> None:
    """Its hash is in the log, and it is bound to its program."""
    path = tmp_path / "a.jsonl"
    asyncio.run(record(path, PROGRAMS["nothing asked"]))
    (file,) = folder_of(path).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    sealed = file.read_bytes()
    assert b"range(100)" not in sealed
    file.write_bytes(sealed[:-1] + bytes([sealed[-1] ^ 1]))
    assert prove(path).verdict == "diverged"
    file.unlink()
    assert prove(path).verdict == "not provable"


def test_what_cannot_be_proven_is_said_to_be_so(tmp_path: Path) -> None:
    """No journal at this level, a key that is not ours, a program ended from outside, one without an end."""
    path = tmp_path / "none.jsonl"
    asyncio.run(record(path, "1", journals=None))
    assert "level" in prove(path).why
    assert prove(path).verdict == "not provable"
    path = tmp_path / "key.jsonl"
    asyncio.run(record(path, "1"))
    assert prove(path, Keyring.generate()).verdict == "not provable"
    path = tmp_path / "killed.jsonl"
    asyncio.run(record(path, "while True: pass", limits=Limits(wall_seconds=1)))
    assert prove(path).verdict == "not provable"
    path = tmp_path / "open.jsonl"

    async def unfinished() -> None:
        async with open_log(path) as log:
            data = {"call_id": "p", "code": "1", "where": "local"}
            await log.event("program.started", data, RunContext(RUN_ID))

    asyncio.run(unfinished())
    assert "indeterminate" in prove(path).why


def test_one_word_for_a_run() -> None:
    """The worst of its programs decides; without a program there is nothing to prove."""
    proven, diverged, unknown = (Proof("p", v, "") for v in ("proven", "diverged", "not provable"))  # type: ignore[arg-type]
    assert overall([proven, proven]) == "proven"
    assert overall([proven, unknown]) == "not provable"
    assert overall([proven, unknown, diverged]) == "diverged"
    assert overall([]) == "not provable"


def test_the_code_tools_programs_are_proven_too(tmp_path: Path) -> None:
    """CodeAct: the model's call of the code tool, and in it the program's calls, are one story."""
    from ptc_sandbox.codeact import code_tool
    from ptc_tools.call import Call
    from ptc_tools.invoke import Invoker

    path = tmp_path / "a.jsonl"

    async def main() -> None:
        async with open_log(path, journals=True) as log, Sandbox(ahead=1) as sandbox:
            runner = code_tool(sandbox, [get_inventory])
            invoker = Invoker([runner, get_inventory], recorder=log)
            arguments = {"code": PROGRAMS["calls at once"]}
            await invoker.invoke(Call("call_7", "run_program", arguments), RunContext(RUN_ID))

    asyncio.run(main())
    assert prove(path) == Proof("call_7", "proven", "run again, it gave the same output and value", None, 2)
    assert [r["type"] for r in read(path)][1:4] == ["tool.started", "program.started", "tool.started"]


async def recorded_by(path: Path, code: str, *middleware: Any, tools: tuple[Any, ...] = ()) -> None:
    """A program whose calls go through middleware."""
    async with open_log(path, journals=True, levels="full") as log, Sandbox(ahead=1) as sandbox:
        offered = [get_inventory, slow, *tools]
        invoker = Invoker(offered, recorder=log, middleware=middleware)
        await sandbox.run(
            code,
            tools=offered,
            run=RunContext(RUN_ID),
            invoke=invoker.invoke,
            recorder=log,
            caller_id="prog_1",
        )


def test_a_call_that_was_attempted_again_is_proven(tmp_path: Path) -> None:
    """An honest retry has two starts and two ends; the program was told the last."""
    failures = [TransportError("no answer"), TransportError("no answer")]

    @tool(allowed_callers=["programmatic"], effects="read")
    def shaky(x: int) -> int:
        """Answers the third time."""
        if failures:
            raise failures.pop()
        return x

    path = tmp_path / "a.db"
    code = "print(await shaky(x=5))\nawait get_inventory(sku='a')"
    asyncio.run(recorded_by(path, code, Retry(delay=0), tools=(shaky,)))
    assert [r["identity"]["attempt"] for r in read(path) if r["type"] == "tool.started"] == [1, 2, 3, 1]
    assert prove(path).verdict == "proven", prove(path)


def test_a_call_whose_arguments_a_middleware_changed_is_proven(tmp_path: Path) -> None:
    """The program asked for one thing and the tool was given another: the log says so, and is not wrong."""

    async def always_b(invocation: Invocation, next: Next) -> Outcome:
        return await next(invocation.with_arguments({"sku": "b"}))

    path = tmp_path / "a.db"
    asyncio.run(recorded_by(path, "await get_inventory(sku='a')", always_b))
    assert [r["content"]["arguments"] for r in read(path) if r["type"] == "tool.started"] == [{"sku": "b"}]
    assert prove(path).verdict == "proven", prove(path)


def test_two_programs_with_one_id_are_two_programs(tmp_path: Path) -> None:
    """A model may use an id again; the second program's calls are no second story of the first's."""
    path = tmp_path / "a.jsonl"
    for code in ("await get_inventory(sku='a')", "await get_inventory(sku='b')"):
        asyncio.run(record(path, code))
    proofs = asyncio.run(replay(path, RUN_ID, KEYS))
    assert [proof.verdict for proof in proofs] == ["proven", "proven"]


def test_a_call_put_before_its_program_is_found(tmp_path: Path) -> None:
    """Not only between start and end: a call of this program anywhere in the run belongs to its story."""
    path = tmp_path / "a.jsonl"
    asyncio.run(record(path, "await get_inventory(sku='a')"))
    records = read(path)
    first = next(i for i, r in enumerate(records) if r["type"] == "program.started")
    forged = json.loads(json.dumps(next(r for r in records if r["type"] == "tool.started")))
    forged["identity"]["call"] = "prog_1:9"
    write_chain(path, [*records[:first], forged, *records[first:]])
    assert (prove(path).verdict, prove(path).why) == (
        "diverged",
        "the log has a call prog_1:9 that the program never made",
    )


@pytest.mark.parametrize("changed", [False, True])
def test_a_program_that_a_recovered_run_ran_to_its_end_again_is_one_story(
    tmp_path: Path, changed: bool
) -> None:
    """A process may die right after a program's end: it is begun again from its journal, and no call is made."""
    path = tmp_path / "a.jsonl"

    async def twice() -> None:
        run = RunContext(RUN_ID)
        told: dict[str, Any] = {"tools": [get_inventory], "run": run, "caller_id": "prog_1"}
        async with open_log(path, journals=True, levels="full") as log, Sandbox(ahead=1) as sandbox:
            code = "await get_inventory(sku='a')"
            first = await sandbox.run(code, recorder=log, **told)
            await log.event("run.recovered", {"steps": 3, "status": "running"}, run)
            await sandbox.run(code, recorder=log, journal=first.journal, **told)

    asyncio.run(twice())
    (before,) = asyncio.run(replay(path, RUN_ID, KEYS))
    assert before.verdict == "proven", before
    if changed:
        ends = iter([{"units": 42}, {"units": 43}])

        def change(record: dict[str, Any]) -> None:
            if record["type"] == "program.finished":
                record["data"]["value"] = next(ends)

        rewrite(path, change)
        assert prove(path).verdict == "diverged"


async def record_behind_others(path: Path) -> None:
    """A program behind eight records of another run, which a forger can put others in the place of."""
    async with open_log(path, journals=True, levels="full") as log, Sandbox(ahead=1) as sandbox:
        for number in range(8):
            await log.event("request.sent", {"request": number, "model": "m"}, RunContext("another"))
        run = RunContext(RUN_ID)
        await sandbox.run(
            PROGRAMS["calls at once"], tools=[get_inventory], run=run, recorder=log, caller_id="prog_1"
        )


def an_earlier_attempt(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A call that was never made, whose result nobody was told."""
    start, end = (
        json.loads(json.dumps(of_type(records, f"tool.{type}")[0])) for type in ("started", "finished")
    )
    for record in (start, end):
        record["identity"]["attempt"] = 7
    start["seq"], end["seq"], end["start"] = 900, 901, 900
    end["content"]["result"] = {"units": 666}
    end["content"]["result_digest"] = KEYS.active("digest").digest({"units": 666})
    return [start, end]


def an_earlier_time(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begun = {**of_type(records, "program.started")[0], "seq": 899}
    recovered = {**begun, "seq": 902, "type": "run.recovered", "data": {"steps": 3, "status": "running"}}
    return [begun, *an_earlier_attempt(records), recovered]


def an_earlier_whole_time(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begun, *_, recovered = an_earlier_time(records)
    return [begun, {**of_type(records, "program.finished")[0], "seq": 901}, recovered]


def an_earlier_suspension(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begun, end, _ = an_earlier_whole_time(records)
    return [begun, {**end, "data": {**end["data"], "status": "suspended"}}]


@pytest.mark.parametrize(
    "story", [an_earlier_attempt, an_earlier_time, an_earlier_whole_time, an_earlier_suspension]
)
def test_a_story_from_before_a_program_began_is_found(
    tmp_path: Path, story: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """In the place of records of others, so that not one record of the program itself is changed."""
    path = tmp_path / "a.jsonl"
    asyncio.run(record_behind_others(path))
    assert prove(path).verdict == "proven"
    records = read(path)
    told = story(records)
    first = next(n for n, one in enumerate(records) if one["type"] == "program.started")
    write_chain(path, [*records[: first - len(told)], *told, *records[first:]])
    assert [one["seq"] for one in of_type(read(path), "tool.started")][-2:] == [
        one["seq"] for one in of_type(records, "tool.started")
    ]
    assert prove(path).verdict == "diverged"


@pytest.mark.parametrize(
    "change",
    [
        {"calls": 0},
        {"cpu_us": 1},
        {"peak_memory": 1},
        {"wall": "language"},
        {"line": 3},
        {"more": 1},
    ],
)
def test_every_word_about_a_programs_end_is_held_to_what_was_told(
    tmp_path: Path, change: dict[str, Any], recorded: dict[str, Path]
) -> None:
    """How much it called and used cannot be run again, so the sealed journal says what was recorded."""
    shutil.copytree(recorded["jsonl"], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "a.jsonl"

    def edit(record: dict[str, Any]) -> None:
        if record["type"] == "program.finished":
            record["data"].update(change)

    rewrite(path, edit)
    assert prove(path).verdict == "diverged"


def test_whose_program_ended_is_held_to_whose_began(tmp_path: Path, recorded: dict[str, Path]) -> None:
    """The end of one actor's program must not be put to another's account."""
    shutil.copytree(recorded["jsonl"], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "a.jsonl"

    def edit(record: dict[str, Any]) -> None:
        if record["type"] == "program.finished":
            record["identity"]["actor"] = "mallory"

    rewrite(path, edit)
    assert prove(path).verdict == "diverged"


@tool(allowed_callers=["programmatic"], approval="always")
async def order(sku: str) -> str:
    """Orders it."""
    return f"ordered {sku}"


async def pause_and_resume(path: Path, times: int = 1) -> str:
    """A run with a program that waits for an approval, which is gone on with; its id."""
    code = "a = await get_inventory(sku='a')\nb = await order(sku='a')\n[a, b]"
    model = ScriptedModel(run_code(code), say("."))
    async with open_log(path, levels="full") as log, in_process(model) as client:
        runner = ptc.Runner(
            client=client,
            model="m",
            tools=[get_inventory, order],
            programs="local",
            audit=log,
            approver=ptc.PauseForApproval(),
        )
        paused = await runner.run("Order it.")
        assert isinstance(paused.state, ptc.RunState)
        decisions = {request.call_id: ptc.Approve(by="bob") for request in paused.approvals}
        for _ in range(times):
            assert (await runner.resume(paused.state, decisions=decisions)).status == "completed"
        return paused.run_id


def test_a_program_that_waited_for_an_approval_is_one_story(tmp_path: Path) -> None:
    """It is suspended, and goes on from its journal when somebody has decided: what it was told before counts."""
    path = tmp_path / "a.db"
    run_id = asyncio.run(pause_and_resume(path))
    (proof,) = asyncio.run(replay(path, run_id, KEYS))
    assert (proof.verdict, proof.calls) == ("proven", 2), proof
    assert not of_type(read(path), "sandbox.violation"), "waiting is nothing that a wall refused"
    before = iter([True])

    def change(record: dict[str, Any]) -> None:
        """Of a call that ended before it waited, a word that no answer depends on."""
        if record["type"] == "tool.finished" and "start" in record and next(before, False):
            record["outcome"]["duration_us"] += 1

    rewrite(path, change)
    (proof,) = asyncio.run(replay(path, run_id, KEYS))
    assert proof.verdict == "diverged", proof


FORGING = """
import os, struct
frame = b'["call",1,"delete_all",{"i":1},1,null]'
os.write(3, struct.pack("<I", len(frame)) + frame)
while True: pass
"""


@pytest.mark.parametrize("invented", [False, True])
def test_a_program_that_forged_a_call_is_proven_to_have_been_refused(tmp_path: Path, invented: bool) -> None:
    """The host refused it before any path, so its journal has no such call; the log has, and it is genuine."""
    path = tmp_path / "a.jsonl"

    async def once() -> list[Proof]:
        async with Sandbox(language_wall=False, ahead=1) as sandbox:
            async with open_log(path, journals=True) as log:
                run = RunContext(RUN_ID)
                result = await sandbox.run(FORGING, run=run, recorder=log, caller_id="prog_1")
            assert (result.status, result.error and result.error.wall) == ("denied", "host")
            records = read(path)
            (refusal,) = of_type(records, "tool.denied")
            if invented:
                end = records.index(refusal)
                identity = {**refusal["identity"], "call": "prog_1:2"}
                write_chain(
                    path, [*records[:end], {**refusal, "identity": identity, "seq": 99}, *records[end:]]
                )
            return await replay(path, RUN_ID, KEYS, sandbox)

    (proof,) = asyncio.run(once())
    assert proof.verdict == ("diverged" if invented else "proven"), proof


def test_a_paused_run_that_was_resumed_twice_is_no_forgery(tmp_path: Path) -> None:
    """The second time went on from what the log tells of the first: that cannot be proven, and is no lie."""
    path = tmp_path / "a.db"
    first, second = asyncio.run(replay(path, asyncio.run(pause_and_resume(path, 2)), KEYS))
    assert (first.verdict, second.verdict) == ("proven", "not provable"), second
    assert "resumed twice" in second.why
