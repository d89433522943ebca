"""Durable runs in one process: leases, contracts, cancellation, what is given again, and one truth with the log."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.audit.verify import verify
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    function_call,
    outputs_in,
    program,
    program_output,
    reasoning,
)

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="read", allowed_callers=["direct", "programmatic"])
def look(x: int) -> int:
    """Look."""
    RAN.append(("look", x))
    return x


@ptc.tool(effects="write")
def note(x: int) -> int:
    """A mutation that is not idempotent."""
    RAN.append(("note", x))
    return x


class Crash(BaseException):
    """Ends a run as a kill would: nothing is tidied up."""


class CrashingStore(ptc.SQLiteRunStore):
    """Stops taking steps after so many: as if the process had ended there."""

    def __init__(self, *arguments: Any, after: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._left = after

    async def append(self, *arguments: Any, **options: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise Crash
        await super().append(*arguments, **options)


def runner(endpoint: Any, store: ptc.RunStore, *tools: Any, **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools or (look, note), store=store, **options)


async def crashed(
    path: Path, after: int, *turns: Any, tools: Any = (look, note), **options: Any
) -> FakeEndpoint:
    """A run that ended after so many steps; the endpoint that it talked to."""
    endpoint = FakeEndpoint(*turns)
    store = CrashingStore(path, after=after)
    with pytest.raises(Crash):
        await runner(endpoint, store, *tools, **options).run("go", run_id="r1")
    store.close()
    RAN.clear()
    return endpoint


def said(output: Any) -> Any:
    """A call's result, or the type of its error."""
    if isinstance(output, dict):
        return output["error"]["type"] if "error" in output else output["result"]
    return output


async def test_a_finished_run_is_told_again_and_nothing_runs(tmp_path: Path) -> None:
    """The store has the answer."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        endpoint = FakeEndpoint([reasoning(), function_call("note")], [answer("noted")])
        first = await runner(endpoint, store).run("go", run_id="r1")
        again = await runner(FakeEndpoint(), store).recover("r1")
        assert (again.output_text, again.items, again.usage) == (first.output_text, first.items, first.usage)
        assert [report.reused for report in again.calls] == [True]
        assert RAN == [("note", 1)]
        (info,) = await store.runs()
        assert (info.run_id, info.status, info.held) == ("r1", "completed", False)


async def test_of_two_that_recover_one_run_one_wins_and_the_other_is_told(tmp_path: Path) -> None:
    """The lease decides; the loser does nothing."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @ptc.tool(effects="read")
    async def wait(x: int) -> int:
        """Wait for the test."""
        RAN.append("wait")
        begun.set()
        await go_on.wait()
        return x

    await crashed(tmp_path / "runs.db", 1, [function_call("wait")], tools=(look, wait))
    first, second = (ptc.SQLiteRunStore(tmp_path / "runs.db") for _ in range(2))
    async with first, second:
        endpoint = FakeEndpoint([function_call("wait")], [answer("won")])
        winner = asyncio.create_task(runner(endpoint, first, look, wait).recover("r1"))
        await begun.wait()
        with pytest.raises(ptc.RunLeased):
            await runner(FakeEndpoint(), second, look, wait).recover("r1")
        go_on.set()
        assert (await winner).output_text == "won"
        assert RAN == ["wait"]


async def test_who_lost_the_lease_starts_nothing_more(tmp_path: Path) -> None:
    """A process that was believed dead comes back: its next call does not run, and it is told."""
    path = tmp_path / "runs.db"

    @ptc.tool(effects="read")
    def lose(x: int) -> int:
        """Another process takes the run over."""
        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE runs SET epoch = epoch + 1, holder = 'another'")
        db.close()
        return x

    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([function_call("lose")], [function_call("note", "c2")], [answer()])
        with pytest.raises(ptc.LeaseLost):
            await runner(endpoint, store, lose, note).run("go", run_id="r1")
    assert RAN == []
    assert len(endpoint.bodies) == 1


async def test_an_uncertain_call_of_a_contract_that_changed_is_not_run_again(tmp_path: Path) -> None:
    """What was admitted under one contract is not aimed at another."""

    @ptc.tool(name="look", effects="read")
    def changed(x: str) -> str:
        """Look."""
        RAN.append("changed")
        return x

    await crashed(tmp_path / "runs.db", 3, [function_call("look")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ptc.ContractChanged):
            await runner(FakeEndpoint(), store, changed, note).recover("r1")
        assert RAN == []
        result = await runner(FakeEndpoint([answer("found")]), store).recover("r1")
    assert (result.output_text, RAN) == ("found", [("look", 1)])


@pytest.mark.parametrize(
    ("decision", "ran", "told"),
    [
        (ptc.Approve(), [("note", 1)], 1),
        (ptc.Happened(7), [], 7),
        (ptc.Deny("ask the customer"), [], "uncertain"),
    ],
)
async def test_an_uncertain_mutation_waits_for_somebody(
    tmp_path: Path, decision: Any, ran: list[Any], told: object
) -> None:
    """Run again, done already, or nobody knows: said by a person, never guessed."""
    await crashed(tmp_path / "runs.db", 3, [function_call("note")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        endpoint = FakeEndpoint([answer("well")])
        paused = await runner(endpoint, store, approver=None).recover("r1")
        assert (paused.status, RAN, endpoint.bodies) == ("paused", [], [])
        (request,) = paused.approvals
        assert (request.call_id, request.uncertain, request.arguments) == ("c1", True, {"x": 1})
        assert [(item.call.name, item.resolution) for item in paused.uncertain] == [("note", "waiting")]
        result = await runner(endpoint, store, approver=None).recover("r1", decisions={"c1": decision})
    assert (result.output_text, ran) == ("well", RAN)
    output = outputs_in(endpoint.bodies[0])["c1"]
    assert said(output) == told


async def test_what_somebody_says_happened_fits_the_tools_schema(tmp_path: Path) -> None:
    """A decision is trusted as a decision, not as a result of any shape."""
    await crashed(tmp_path / "runs.db", 3, [function_call("note")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        endpoint = FakeEndpoint([answer("well")])
        paused = await runner(endpoint, store).recover("r1")
        assert paused.status == "paused"
        await runner(endpoint, store).recover("r1", decisions={"c1": ptc.Happened("many")})
    assert outputs_in(endpoint.bodies[0])["c1"]["error"]["type"] == "uncertain"
    assert RAN == []


async def test_happened_is_no_answer_to_an_approval(tmp_path: Path) -> None:
    """A call that waits for an approval has not run."""

    @ptc.tool(effects="write", approval="always")
    def drop(x: int) -> int:
        """Drop."""
        return x

    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint([function_call("drop")]), store, drop).run("go")
        with pytest.raises(ptc.InvalidInput):
            await runner(FakeEndpoint(), store, drop).recover(
                paused.run_id, decisions={"c1": ptc.Happened(1)}
            )
        assert (await store.acquire(paused.run_id)).status == "paused"  # and it is free again, and waits


async def test_a_paused_run_is_resumed_once_whoever_holds_its_state(tmp_path: Path) -> None:
    """With a store the state only names the run: the second resumption is told what came of the first."""

    @ptc.tool(effects="write", approval="always")
    def drop(x: int) -> int:
        """Drop."""
        RAN.append("drop")
        return x

    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        endpoint = FakeEndpoint([function_call("drop")], [answer("dropped")])
        paused = await runner(endpoint, store, drop).run("go")
        assert paused.state is not None
        for _ in range(2):
            result = await runner(endpoint, store, drop).resume(paused.state, decisions={"c1": ptc.Approve()})
            assert result.output_text == "dropped"
    assert RAN == ["drop"]


async def test_an_expiry_goes_on_while_nobody_is_there(tmp_path: Path) -> None:
    """Recovering a paused run does not give its approval more time."""

    @ptc.tool(effects="write", approval="always")
    def drop(x: int) -> int:
        """Drop."""
        return x

    rule = ptc.PauseForApproval(expires_after=3600)
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint([function_call("drop")]), store, drop, approver=rule).run("go")
        again = await runner(FakeEndpoint(), store, drop, approver=rule).recover(paused.run_id)
    assert again.status == "paused"
    assert again.approvals == paused.approvals


async def test_a_cancelled_run_goes_on(tmp_path: Path) -> None:
    """Its read runs again; its mutation that was broken off waits for somebody."""
    begun, changing = asyncio.Event(), asyncio.Event()
    block = True

    @ptc.tool(effects="read")
    async def slow(x: int) -> int:
        """Takes its time."""
        RAN.append("slow")
        if block:
            begun.set()
            await asyncio.Event().wait()
        return x

    @ptc.tool(effects="write")
    async def change(x: int) -> int:
        """Changes something, slowly."""
        RAN.append("change")
        changing.set()
        await asyncio.Event().wait()
        return x

    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        calls = [function_call("slow", "b"), function_call("change", "c")]
        endpoint = FakeEndpoint(calls, [answer("done")])
        task = asyncio.create_task(runner(endpoint, store, look, slow, change).run("go", run_id="r1"))
        await begun.wait()
        await changing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (info,) = await store.runs()
        assert (info.status, info.held) == ("cancelled", False)
        RAN.clear()
        block = False
        paused = await runner(endpoint, store, look, slow, change).recover("r1")
        assert RAN == ["slow"]
        assert [request.call_id for request in paused.approvals] == ["c"]
        decisions = {"c": ptc.Happened(3)}
        result = await runner(endpoint, store, look, slow, change).recover("r1", decisions=decisions)
    assert (result.output_text, RAN) == ("done", ["slow"])
    assert said(outputs_in(endpoint.bodies[1])["c"]) == 3


@pytest.mark.parametrize("steps", [4, 5])
async def test_tools_that_the_run_had_added_are_offered_again(tmp_path: Path, steps: int) -> None:
    """What a call changed stays changed, though it does not run again."""

    @ptc.tool(effects="read")
    def open_drawer(context: ptc.ToolContext) -> str:
        """Offer one more."""
        RAN.append("open")
        context.add_tools(note)
        return "open"

    opening = [function_call("open_drawer", "c1", {})]
    path = tmp_path / "runs.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptc.ExperimentalWarning)
        await crashed(path, steps, opening, [function_call("note", "c2")], tools=(look, open_drawer))
    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([function_call("note", "c2")], [answer("noted")])
        with pytest.raises(ptc.ContractChanged):
            await runner(endpoint, store, look, open_drawer).recover("r1")
        result = await runner(endpoint, store, look, open_drawer).recover("r1", tools=[note])
    assert (result.output_text, RAN) == ("noted", [("note", 1)])
    assert "note" in [tool.get("name") for tool in endpoint.bodies[-1]["tools"]]


async def test_a_cut_history_stays_as_it_was_cut(tmp_path: Path) -> None:
    """The application's function is not asked again about what it decided."""
    asked: list[int] = []

    def compact(items: Any) -> Any:
        asked.append(len(items))
        return ptc.trim(items, keep=2)

    turns = [[function_call("look", "a")], [function_call("look", "b")], [answer("short")]]
    await crashed(tmp_path / "runs.db", 7, *turns, compact=compact)
    before = len(asked)
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        result = await runner(FakeEndpoint(turns[2]), store, compact=compact).recover("r1")
        whole = await runner(FakeEndpoint(*turns), store, compact=compact).run("go")
    assert result.items == whole.items
    assert before >= 1


async def test_a_request_that_may_be_in_a_kept_conversation_is_not_sent_blindly(tmp_path: Path) -> None:
    """Its items could be there twice then."""
    endpoint = FakeEndpoint([answer("hello")])
    store = CrashingStore(tmp_path / "runs.db", after=1)
    options: Any = {"history": "conversation"}
    with pytest.raises(Crash):
        await runner(endpoint, store, **options).run("go", run_id="r1", conversation_id="conv_1")
    store.close()
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as kept:
        endpoint = FakeEndpoint([answer("hello")])
        with pytest.raises(ptc.RequestUncertain):
            await runner(endpoint, kept, **options).recover("r1")
        assert endpoint.bodies == []
        result = await runner(endpoint, kept, **options).recover("r1", resend=True)
    assert result.output_text == "hello"


async def test_a_recovered_run_tells_the_log_once_what_happened_once(tmp_path: Path) -> None:
    """Programs of the past are not told again; that a process took the run up is."""
    log = ptc.AuditLog(tmp_path / "audit.db", levels="full")
    turns = [
        [program("cp"), function_call("look", "a", caller=by_program("cp"))],
        [program_output("cp"), answer("done")],
    ]
    async with log, ptc.SQLiteRunStore(log) as store:
        await runner(FakeEndpoint(*turns), store, audit=log, programs="hosted").run("go", run_id="r1")
        again = await runner(FakeEndpoint(), store, audit=log, programs="hosted").recover("r1")
        assert (again.output_text, [p.status for p in again.programs]) == ("done", ["completed"])
    db = sqlite3.connect(tmp_path / "audit.db")
    types = [row[0] for row in db.execute("SELECT type FROM records WHERE run = 'r1' ORDER BY seq")]
    db.close()
    assert types.count("program.started") == types.count("program.finished") == 1
    assert types.count("tool.started") == types.count("run.started") == types.count("run.finished") == 1
    assert types.count("run.recovered") == 1
    assert verify(tmp_path / "audit.db").verdict == "intact"


async def test_a_call_and_its_record_are_one_transaction(tmp_path: Path) -> None:
    """As long as the tool runs, another reader of the file sees both or neither."""
    seen: list[tuple[int, int]] = []

    @ptc.tool(effects="read")
    def peek(x: int) -> int:
        """Look into the file."""
        db = sqlite3.connect(tmp_path / "audit.db")
        seen.append(
            (
                db.execute("SELECT count(*) FROM steps WHERE kind = 'admitted'").fetchone()[0],
                db.execute("SELECT count(*) FROM records WHERE type = 'tool.started'").fetchone()[0],
            )
        )
        db.close()
        return x

    async with ptc.AuditLog(tmp_path / "audit.db") as log, ptc.SQLiteRunStore(log) as store:
        await runner(FakeEndpoint([function_call("peek")], [answer()]), store, peek, audit=log).run("go")
    assert seen == [(1, 1)]


async def test_calls_that_the_log_only_counts_are_durable_all_the_same(tmp_path: Path) -> None:
    """The log's levels say what it shows, not what a run can recover."""
    async with ptc.AuditLog(tmp_path / "audit.db", levels="none") as log, ptc.SQLiteRunStore(log) as store:
        endpoint = FakeEndpoint([function_call("note")], [answer("noted")])
        await runner(endpoint, store, audit=log).run("go", run_id="r1")
        assert (await runner(FakeEndpoint(), store, audit=log).recover("r1")).output_text == "noted"
    assert RAN == [("note", 1)]


def test_a_log_that_cannot_hold_runs_says_so(tmp_path: Path) -> None:
    """Lines, rotation and a log that may lose records are no place for steps."""
    rotation = ptc.audit.Rotation(bytes=1 << 20)
    options: list[dict[str, Any]] = [{"path": "a.jsonl"}, {"path": "b.db", "rotate": rotation}]
    for option in [*options, {"path": "c.db", "fail": "open"}]:
        path = tmp_path / option.pop("path")
        with ptc.AuditLog(path, **option) as log, pytest.raises(ptc.ConfigurationError):
            ptc.SQLiteRunStore(log)


async def test_a_program_that_cannot_go_on_here_is_told_to_the_host(tmp_path: Path) -> None:
    """Another Python, say: its calls have run, so the model is told nothing, and the run waits for the right one."""

    @ptc.tool(effects="write", approval="always", allowed_callers=["programmatic"])
    def drop(x: int) -> int:
        """Drop."""
        RAN.append("drop")
        return x

    path = tmp_path / "runs.db"
    code = function_call("run_program", "p", {"code": "await drop(x=1)"})
    async with ptc.SQLiteRunStore(path) as store:
        paused = await runner(FakeEndpoint([code]), store, drop, programs="local").run("go", run_id="r1")
        assert paused.status == "paused"
    decisions = {"p:1": ptc.Approve()}
    replace = "UPDATE steps SET data = replace(data, ?, ?) WHERE kind = 'journal'"
    here = f'"python":"{sys.version_info.major}.{sys.version_info.minor}"'
    for found, put, error in ((here, '"python":"2.7"', True), ('"python":"2.7"', here, False)):
        db = sqlite3.connect(path)
        with db:
            db.execute(replace, (found, put))
        db.close()
        async with ptc.SQLiteRunStore(path) as store:
            endpoint = FakeEndpoint([answer("dropped")])
            again = runner(endpoint, store, drop, programs="local")
            if error:
                with pytest.raises(ptc.PtcError) as refused:
                    await again.recover("r1", decisions=decisions)
                assert (refused.value.code, endpoint.bodies, RAN) == ("replay_incompatible", [], [])
            else:
                assert (await again.recover("r1", decisions=decisions)).output_text == "dropped"
    assert RAN == ["drop"]


async def test_a_run_that_is_not_there_and_a_runner_without_a_store_say_so(tmp_path: Path) -> None:
    """Typed errors, before anything is sent."""
    with pytest.raises(ptc.ConfigurationError):
        await ptc.Runner(client=FakeEndpoint(), model="m").recover("r1")
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ptc.RunUnknown):
            await runner(FakeEndpoint(), store).recover("nobody")
        await runner(FakeEndpoint([answer()]), store).run("go", run_id="r1")
        with pytest.raises(ptc.RunExists):
            await runner(FakeEndpoint([answer()]), store).run("go", run_id="r1")
        with pytest.raises(ptc.ConfigurationError):
            await ptc.Runner(client=FakeEndpoint(), model="other", store=store).recover("r1")
        assert json.dumps([info.run_id for info in await store.runs()]) == '["r1"]'
