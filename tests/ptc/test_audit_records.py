"""What stands in the log about a call, when, and at which level."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptc.audit import Levels, Rule
from ptc.audit.errors import AuditClosed, AuditLocked, InvalidAuditConfig
from ptc.audit.values import canonical
from ptc_tools.call import Call
from ptc_tools.context import RunContext, ToolContext, idempotency_key
from ptc_tools.invoke import Invoker
from ptc_tools.middleware import Retry
from ptc_tools.mutation import Idempotency, TransportError
from ptc_tools.outcome import Cancelled, Denied, Failure, Success
from ptc_tools.tool import tool
from tests.ptc.audit_support import (
    FORMS,
    INVENTORY,
    KEYS,
    RUN,
    call,
    contract,
    fill,
    of_type,
    open_log,
    raw_lines,
    read,
    record_call,
)


@pytest.mark.parametrize("form", FORMS)
async def test_a_start_is_on_disk_before_the_tool_runs(tmp_path: Path, form: str) -> None:
    """Whoever finds the tool's effect must find the call in the log, however the process ended."""
    path = tmp_path / f"a.{form}"
    async with open_log(path) as log:
        token = await log.started(call(), INVENTORY, {"sku": "a"}, RUN)
        on_disk = read(path)
        assert [r["type"] for r in on_disk] == ["audit.opened", "tool.started"]
        await log.finished(token, Success({"units": 1}), 5)
        assert read(path)[-1]["type"] == "tool.finished"
        assert read(path)[-1]["start"] == on_disk[-1]["seq"]


@pytest.mark.parametrize("form", FORMS)
async def test_every_line_is_canonical_json_in_a_chain(tmp_path: Path, form: str) -> None:
    """A hash of a record means something only if the record has one form."""
    from ptc.audit.lines import GENESIS, leaf_hash

    path = tmp_path / f"a.{form}"
    await fill(path)
    previous = GENESIS
    for number, line in enumerate(raw_lines(path), 1):
        record = json.loads(line)
        assert canonical(record) == line
        assert (record["seq"], record["prev"], record["v"]) == (number, previous, 1)
        assert isinstance(record["at"], int)
        previous = leaf_hash(line).hex()


async def test_a_record_says_who_what_and_on_whose_authority(tmp_path: Path) -> None:
    """These are the questions an auditor asks, and each has its place."""
    path = tmp_path / "a.jsonl"
    run = RunContext("run_9", "bob", {"tenant": "acme", "trace": "t1", "span": "s1"})
    of = contract("charge", namespace="billing", effects="write", risk_level="high", version="2")
    async with open_log(path) as log:
        await log.event("request.sent", {"request": 2}, run)
        await log.event("response.received", {"request": 2, "response_id": "resp_7"}, run)
        await log.event("program.started", {"call_id": "prog_1", "code": "x"}, run)
        made = Call("c1", "charge", "{}", call().caller, "billing", 4)
        await record_call(log, made=made, of=of, run=run)
    started = of_type(read(path), "tool.started")[0]
    assert started["identity"] == {
        "actor": "bob",
        "attempt": 1,
        "call": "c1",
        "idempotency_key": KEYS.active("digest").digest(idempotency_key(run, made)),
        "response": "resp_7",
        "run": "run_9",
        "span": "s1",
        "tenant": "acme",
        "trace": "t1",
        "turn": 2,
    }
    program = of_type(read(path), "program.started")[0]
    assert started["origin"] == {
        "caller": "program",
        "line": 4,
        "program": "prog_1",
        "program_digest": program["data"]["code_digest"],
    }
    tool = started["tool"]
    assert tool.pop("fingerprint") == of.fingerprint()
    assert tool == {
        "name": "charge",
        "namespace": "billing",
        "effects": "write",
        "risk": "high",
        "version": "2",
    }
    finished = of_type(read(path), "tool.finished")[0]
    assert finished["outcome"] == {"status": "success", "duration_us": 1001}
    assert finished["identity"] == started["identity"]


async def test_each_attempt_says_which_it_is_and_what_its_service_knows_it_by(tmp_path: Path) -> None:
    """Two starts of one call are told apart, and one operation's attempts have one key."""
    path = tmp_path / "a.jsonl"
    seen: list[tuple[int, str]] = []

    @tool(effects="write", idempotency=Idempotency("protocol"))
    def put(sku: str, ctx: ToolContext) -> str:
        """Puts it there."""
        seen.append((ctx.attempt, ctx.idempotency_key))
        if len(seen) < 3:
            raise TransportError("no answer")
        return sku

    @tool(effects="write", idempotency=Idempotency("operation_id", "operation"))
    def post(operation: str) -> str:
        """Posts it."""
        return operation

    async with open_log(path) as log:
        invoker = Invoker([put, post], recorder=log, middleware=[Retry(delay=0)])
        assert isinstance(await invoker.invoke(Call("c1", "put", '{"sku":"a"}'), RUN), Success)
        await invoker.invoke(Call("c2", "post", '{"operation":"op-7"}'), RUN)
    tools = [r for r in read(path) if r["type"].startswith("tool.")]
    told = [(r["type"], r["identity"]["attempt"]) for r in tools if r["identity"]["call"] == "c1"]
    assert sorted(told) == [(type, n) for type in ("tool.finished", "tool.started") for n in (1, 2, 3)]
    assert [attempt for attempt, _ in seen] == [1, 2, 3]
    digest = KEYS.active("digest").digest
    keys = {(r["identity"]["call"], r["identity"]["idempotency_key"]) for r in tools}
    assert keys == {("c1", digest(seen[0][1])), ("c2", digest("op-7"))}


async def test_arguments_that_a_middleware_changed_are_told_from_those_asked_for(tmp_path: Path) -> None:
    """What the program asked and what the tool got are two things, and the log has both."""
    path = tmp_path / "a.jsonl"
    async with open_log(path) as log:
        await record_call(log, made=call(1, arguments={"sku": "asked"}), arguments={"sku": "given"})
        await record_call(log, made=call(2, arguments={"sku": "same"}), arguments={"sku": "same"})
    digest = KEYS.active("digest").digest
    starts = of_type(read(path), "tool.started")
    assert [r["content"].get("asked_digest") for r in starts] == [digest({"sku": "asked"}), None]
    assert starts[0]["content"]["arguments_digest"] == digest({"sku": "given"})


async def test_how_a_call_ended_is_told_apart(tmp_path: Path) -> None:
    """Denied, failed and cancelled are different answers to "did it run?"."""
    path = tmp_path / "a.jsonl"
    async with open_log(path) as log:
        await record_call(log, 1, outcome=Failure("timeout", "too slow"))
        await record_call(log, 2, outcome=Cancelled())
        await log.denied(call(3), INVENTORY, Denied("invalid_arguments", "no"), RUN)
    ends = [r["outcome"] for r in read(path) if "outcome" in r]
    assert ends == [
        {"code": "timeout", "duration_us": 1001, "status": "failure"},
        {"code": "cancelled", "duration_us": 1002, "status": "cancelled"},
        {"code": "invalid_arguments", "status": "denied"},
    ]


@pytest.mark.parametrize(
    ("level", "arguments", "result"),
    [
        ("metadata", {"$redacted": "level", "bytes": 11}, {"$redacted": "level", "bytes": 11}),
        ("request", {"sku": "a"}, {"$redacted": "level", "bytes": 11}),
        ("full", {"sku": "a"}, {"units": 1}),
    ],
)
async def test_a_level_shows_what_it_says_and_no_more(
    tmp_path: Path, level: str, arguments: object, result: object
) -> None:
    """The operator decides what content is kept; everything else is named and measured."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels=level) as log:
        await record_call(log, 1, arguments={"sku": "a"})
    records = read(path)
    assert of_type(records, "tool.started")[0]["content"]["arguments"] == arguments
    assert of_type(records, "tool.finished")[0]["content"]["result"] == result


async def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    """Rules are read in order, as a firewall's are; what no rule names is at metadata."""
    path = tmp_path / "a.jsonl"
    levels = Levels(
        Rule("none", tool="clock"),
        Rule("full", tool="bill*", effects="write"),
        Rule("request", caller="direct"),
        Rule("full", tenant="other*"),
    )
    other = RunContext("run_2", None, {"tenant": "other-1"})
    async with open_log(path, levels=levels) as log:
        await record_call(log, 1, of=contract("clock"))
        await record_call(log, 2, of=contract("billing", effects="write"))
        await record_call(log, 3, of=contract("billing"))
        await record_call(log, 4, made=call(4, program=None))
        await record_call(log, 5, run=other)
    records = read(path)
    levels_told = {r["identity"]["call"]: r["content"]["level"] for r in of_type(records, "tool.started")}
    assert levels_told == {"call_2": "full", "call_3": "metadata", "call_4": "request", "call_5": "full"}
    assert of_type(records, "audit.counted")[0]["data"] == {"calls": {"clock": 1}}
    assert of_type(records, "audit.opened")[0]["data"]["levels"] == levels.to_json()


def test_a_policy_without_rules_is_refused(tmp_path: Path) -> None:
    """Nobody means "no rules" to say "record nothing"."""
    with pytest.raises(InvalidAuditConfig, match="at least one rule"):
        Levels()
    with pytest.raises(InvalidAuditConfig, match="level is one of"):
        Rule("everything")  # type: ignore[arg-type]
    with pytest.raises(InvalidAuditConfig, match="read, write, destructive"):
        Rule("full", effects="wrte")
    with pytest.raises(InvalidAuditConfig, match="suffix"):
        open_log(tmp_path / "a.txt")


async def test_denials_are_recorded_even_at_level_none(tmp_path: Path) -> None:
    """An attempt that was refused is what an auditor looks for first."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels=Levels(Rule("none"))) as log:
        await log.denied(call(1), INVENTORY, Denied("not_authorized", "no"), RUN)
    assert of_type(read(path), "tool.denied")[0]["outcome"]["code"] == "not_authorized"


async def test_hostile_names_stay_inside_their_field(tmp_path: Path) -> None:
    """A model chooses the name of a call; it must not write records, break lines, or fill the disk."""
    path = tmp_path / "a.jsonl"
    names = ['x","type":"audit.closed","v":1}\n{"seq":99', "\ud800", "n" * 100_000, "a\u2028b\x00\x1b[2J", ""]
    async with open_log(path) as log:
        for number, name in enumerate(names):
            await log.denied(call(number, name), None, Denied("unknown_tool", name), RUN)
    records = read(path)
    denied = of_type(records, "tool.denied")
    assert [r["tool"]["name"] for r in denied] == [
        names[0],
        "\\ud800",
        "n" * 512 + "… (100000 characters)",
        names[3],
        "",
    ]
    assert [r["seq"] for r in records] == list(range(1, len(records) + 1))


async def test_values_that_are_not_json_are_said_to_be_so(tmp_path: Path) -> None:
    """The log never refuses to record because a value is odd, and never writes NaN."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels="full") as log:
        await record_call(log, 1, arguments={"sku": float("nan")})
        await record_call(log, 2, arguments={"sku": "\ud800"})
        await record_call(log, 3, arguments={"sku": 9007199254740993})
    shown = [r["content"]["arguments"] for r in of_type(read(path), "tool.started")]
    assert shown == [{"$redacted": "unencodable", "bytes": 0}, {"sku": "\\ud800"}, {"sku": 9007199254740993}]


async def test_unclassified_events_show_nothing_below_full(tmp_path: Path) -> None:
    """What nobody put into the table may hold anything."""
    path = tmp_path / "a.jsonl"
    async with open_log(path) as log:
        await log.event("custom.thing", {"field": "secret words"}, RUN)
        await log.event("run.started", {"model": "m", "unknown": "secret words"}, RUN)
        with pytest.raises(ValueError, match="dotted"):
            await log.event('x","v":2', {}, RUN)
    assert b"secret words" not in path.read_bytes()
    assert of_type(read(path), "run.started")[0]["data"]["model"] == "m"


async def test_a_run_id_used_by_somebody_else_is_another_run(tmp_path: Path) -> None:
    """The actor is the one whose call it was, not the one who had the run id first."""
    path = tmp_path / "a.jsonl"
    async with open_log(path) as log:
        await record_call(log, 1, run=RunContext("run_1", "alice"))
        await record_call(log, 2, run=RunContext("run_1", "mallory"))
    assert [r["identity"]["actor"] for r in of_type(read(path), "tool.started")] == ["alice", "mallory"]


@pytest.mark.parametrize("form", FORMS)
async def test_many_waiters_share_a_group(tmp_path: Path, form: str) -> None:
    """Each waiter is answered for its own record, whichever group carried it."""
    path = tmp_path / f"a.{form}"
    async with open_log(path) as log:
        tokens = await asyncio.gather(
            *(log.started(call(n), INVENTORY, {"sku": "a"}, RUN) for n in range(500))
        )
        await asyncio.gather(*(log.finished(token, Success(None), 1) for token in tokens))
    records = read(path)
    by_seq = {r["seq"]: r for r in records}
    assert len(of_type(records, "tool.finished")) == 500
    for end in of_type(records, "tool.finished"):
        assert by_seq[end["start"]]["identity"]["call"] == end["identity"]["call"]


@pytest.mark.parametrize("sync", ["each", "group", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_several_event_loops_write_one_log(tmp_path: Path, form: str, sync: str) -> None:
    """A host may have a loop for each thread, and `run_sync` makes its own."""
    from concurrent.futures import ThreadPoolExecutor

    path = tmp_path / f"a.{form}"
    with open_log(path, sync=sync) as log, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: asyncio.run(record_call(log, n)), range(20)))
    assert len(of_type(read(path), "tool.finished")) == 20
    from ptc.audit.verify import verify

    assert verify(path).verdict == "intact"


@pytest.mark.parametrize("form", FORMS)
async def test_a_log_has_one_writer(tmp_path: Path, form: str) -> None:
    """Two writers would fork the chain; the second is told who holds it."""
    path = tmp_path / f"a.{form}"
    async with open_log(path):
        with pytest.raises(AuditLocked, match="one writer"):
            open_log(path)
    open_log(path).close()


async def test_a_closed_log_records_nothing(tmp_path: Path) -> None:
    """A call after the end has no record and must not run."""
    log = open_log(tmp_path / "a.jsonl")
    log.close()
    log.close()
    with pytest.raises(AuditClosed):
        await log.started(call(), INVENTORY, {"sku": "a"}, RUN)


async def test_a_cancelled_waiter_does_not_lose_its_record(tmp_path: Path) -> None:
    """Who stops waiting for the disk has not taken anything back."""
    path = tmp_path / "a.jsonl"
    async with open_log(path) as log:
        waiting = [asyncio.create_task(log.started(call(n), INVENTORY, {"sku": "a"}, RUN)) for n in range(20)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert len(of_type(read(path), "tool.started")) == 20


async def test_calls_of_level_none_are_counted_with_every_checkpoint(tmp_path: Path) -> None:
    """A process that dies later has said by then how many there were."""
    path = tmp_path / "a.jsonl"
    async with open_log(path, levels=Levels(Rule("none"))) as log:
        await record_call(log, 1)
        await record_call(log, 2)
        log.checkpoint()
        types = [r["type"] for r in read(path)]
        assert types[-2:] == ["audit.counted", "audit.checkpoint"]
        assert read(path)[-2]["data"] == {"calls": {"get_inventory": 2}}
        log.checkpoint()
    assert len(of_type(read(path), "audit.counted")) == 1


async def test_what_a_store_adds_is_written_at_every_level(tmp_path: Path) -> None:
    """A call that is only counted is still a step of its run: a store in the log's file must not miss it."""
    import sqlite3
    from contextlib import closing

    path = tmp_path / "a.db"
    insert = "INSERT INTO steps VALUES (?)"
    async with open_log(path, levels=Levels(Rule("none"))) as log:
        create = ("CREATE TABLE steps (word TEXT)", ())
        await log.event("run.started", {}, RUN, also=(create,))
        token = await log.started(call(), INVENTORY, {"sku": "a"}, RUN, also=((insert, ("started",)),))
        await log.finished(token, Success(1), 1, also=((insert, ("finished",)),))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT word FROM steps").fetchall() == [("started",), ("finished",)]
    assert next(r["data"] for r in of_type(read(path), "audit.counted")) == {"calls": {"get_inventory": 1}}


def run_python(program: str) -> str:
    import subprocess
    import sys

    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_nobody_closes_is_closed_when_the_interpreter_ends(tmp_path: Path, form: str) -> None:
    """Short programs forget; their logs still end in order."""
    from ptc.audit.verify import verify

    path = tmp_path / f"a.{form}"
    run_python(
        "import asyncio\nfrom tests.ptc.audit_support import *\n"
        f"log = open_log(Path({str(path)!r}))\nasyncio.run(record_call(log))\n"
    )
    assert of_type(read(path), "audit.closed")
    report = verify(path)
    assert (report.verdict, report.live) == ("intact", False)


@pytest.mark.parametrize("form", FORMS)
def test_a_forked_child_leaves_the_log_to_its_parent(tmp_path: Path, form: str) -> None:
    """It may neither record into it nor close it: two writers would fork the chain."""
    from ptc.audit.verify import verify

    path = tmp_path / f"a.{form}"
    told = run_python(
        "import asyncio, os, sys, warnings\nwarnings.simplefilter('ignore')\n"
        "from tests.ptc.audit_support import *\n"
        f"log = open_log(Path({str(path)!r}))\n"
        "wait, gate = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.close(gate)\n    sys.stdin = os.fdopen(wait)\n"
        "    try:\n"
        "        asyncio.run(record_call(log, 1))\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, flush=True)\n"
        "    log.close()\n"
        "    sys.stdin.readline()\n"
        "    sys.exit(0)\n"
        "asyncio.run(record_call(log, 2))\n"
        "log.close()\n"
        f"open_log(Path({str(path)!r})).close()\n"
        "os.close(gate)\n"
        "os.waitpid(child, 0)\n"
    )
    assert told == "AuditClosed\n"
    assert [r["identity"]["call"] for r in of_type(read(path), "tool.started")] == ["call_2"]
    assert verify(path).verdict == "intact"


async def test_a_runs_tenant_is_recorded_and_decides_the_level(tmp_path: Path) -> None:
    """The field is the application's word with authority; a label of that name stands in where it is not set."""
    path = tmp_path / "a.jsonl"
    rules = Levels(Rule("full", tenant="acme"), Rule("metadata"))
    async with open_log(path, levels=rules) as log:
        await record_call(log, 1, run=RunContext("r1", "alice", {"tenant": "other"}, tenant="acme"))
        await record_call(log, 2, run=RunContext("r2", "alice", {"tenant": "acme"}, tenant="other"))
    first, second = of_type(read(path), "tool.finished")
    assert (first["identity"]["tenant"], first["content"]["result"]) == ("acme", {"units": 1})
    assert (second["identity"]["tenant"], "$redacted" in second["content"]["result"]) == ("other", True)


def test_the_log_can_be_written_as_the_documents_write_it() -> None:
    """`import ptc` is enough for `ptc.audit.Sensitive`, whatever has been loaded before."""
    code = "import ptc; print(ptc.audit.Sensitive.__name__, ptc.audit.TracedRecorder.__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["Sensitive", "TracedRecorder"]


async def test_a_closed_log_keeps_no_journal(tmp_path: Path) -> None:
    """A file that no record links to would lie beside the log for ever."""
    path = tmp_path / "a.jsonl"
    log = open_log(path, journals=True)
    log.close()
    with pytest.raises(AuditClosed):
        await log.event("program.finished", {"call_id": "p", "replay": {"code": "1"}}, RUN)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".journals")]
