"""Approvals of runs in a store: contracts that are held to, programs that ask for several things, and decisions."""

from __future__ import annotations

import sqlite3
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.audit.query import Filter, select
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, by_program, function_call, outputs_in, program

RAN: list[Any] = []
DAY = 86_400 * 10**9
KEY = b"a key of at least 16 bytes"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="read", allowed_callers=["direct", "programmatic"])
def look(x: int) -> int:
    """Look."""
    RAN.append(("look", x))
    return x


@ptc.tool(effects="write", approval="always", allowed_callers=["direct", "programmatic"])
def drop(x: int) -> int:
    """Drop."""
    RAN.append(("drop", x))
    return -x


@ptc.tool(name="drop", effects="write", approval="always", allowed_callers=["direct", "programmatic"])
def of_another_type(x: str) -> str:
    """Drop."""
    RAN.append(("other", x))
    return x


@ptc.tool(name="drop", effects="write", approval="always", allowed_callers=["direct", "programmatic"])
def that_does_more(x: int, everything: bool = True) -> int:
    """Drop."""
    RAN.append(("more", x))
    return x


@ptc.tool(name="drop", effects="destructive", allowed_callers=["direct", "programmatic"])
def that_asks_nobody(x: int) -> int:
    """Drop."""
    RAN.append(("unasked", x))
    return x


def runner(endpoint: Any, store: ptc.RunStore | None, *tools: Any, **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools or (look, drop), store=store, **options)


@pytest.mark.parametrize("changed", [of_another_type, that_does_more, that_asks_nobody, None])
@pytest.mark.parametrize("kept", ["file", "log", "state"])
async def test_a_call_that_waits_runs_under_the_contract_it_was_asked_about(
    tmp_path: Path, changed: Any, kept: str
) -> None:
    """Whoever said yes said it to that tool; another of its name does not get the answer, wherever the run lay."""
    decisions = {"c1": ptc.Approve()}
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(ptc.AuditLog(tmp_path / "a.db")) if kept == "log" else None
        store: ptc.RunStore | None = None
        if kept != "state":
            store = await stack.enter_async_context(ptc.SQLiteRunStore(log or tmp_path / "runs.db"))
        paused = await runner(FakeEndpoint([function_call("drop")]), store, audit=log).run("go", run_id="r1")
        assert paused.state is not None
        state = ptc.RunState.unseal(paused.state.seal(KEY), KEY)
        now = (look,) if changed is None else (look, changed)
        with pytest.raises(ptc.ContractChanged, match="drop"):
            await runner(FakeEndpoint(), store, *now, audit=log).resume(state, decisions=decisions)
        assert RAN == []
        endpoint = FakeEndpoint([answer("dropped")])
        done = await runner(endpoint, store, audit=log).resume(state, decisions=decisions)
    assert (done.output_text, RAN) == ("dropped", [("drop", 1)])


async def test_a_state_resumed_in_its_process_takes_the_tools_of_now(tmp_path: Path) -> None:
    """The state still has the tools that it offered; of two with one name the runner's own counts."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint([function_call("drop")]), store).run("go")
        assert paused.state is not None
        again = runner(FakeEndpoint(), store, look, that_does_more)
        with pytest.raises(ptc.ContractChanged):
            await again.resume(paused.state, decisions={"c1": ptc.Approve()})
    assert RAN == []


@pytest.mark.parametrize("where", ["direct", "hosted", "local"])
async def test_the_contract_is_held_to_whoever_calls(tmp_path: Path, where: str) -> None:
    """The model itself, a hosted program, a local one."""
    code = function_call("run_program", "p", {"code": "await drop(x=1)"})
    turn = {
        "direct": [function_call("drop")],
        "hosted": [program("cp"), function_call("drop", caller=by_program("cp"))],
        "local": [code],
    }[where]
    programs: Any = None if where == "direct" else where
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint(turn), store, programs=programs).run("go", run_id="r1")
        (request,) = paused.approvals
        again = runner(FakeEndpoint(), store, look, that_does_more, programs=programs)
        with pytest.raises(ptc.PtcError) as refused:
            await again.recover("r1", decisions={request.call_id: ptc.Approve()})
    # A local program's journal pins its tools as well, and is asked first.
    assert refused.value.code in ("contract_changed", "replay_incompatible")
    assert RAN == []


FIVE = """
async def one(x):
    try:
        return await drop(x=x)
    except ToolError as error:
        return str(error)
found = await asyncio.gather(one(1), look(x=2), one(3), one(4))
[*found, await look(x=5), await one(6)]
"""


@pytest.mark.parametrize("kept", ["state", "store"])
async def test_a_program_is_suspended_when_nothing_of_it_can_go_on(tmp_path: Path, kept: str) -> None:
    """Whoever decides sees all that there is to decide, and nothing that ran runs again."""
    state: ptc.RunState | None = None
    run: Any = None

    async def step(decisions: dict[str, Any], *turns: Any) -> tuple[ptc.RunResult[Any], FakeEndpoint]:
        nonlocal state, run
        endpoint = FakeEndpoint(*turns)
        async with AsyncExitStack() as stack:
            store: ptc.RunStore | None = None
            if kept == "store":
                store = await stack.enter_async_context(ptc.SQLiteRunStore(tmp_path / "runs.db"))
            able = runner(endpoint, store, programs="local")
            if run is None:
                result = run = await able.run("go", run_id="r1")
            else:
                assert state is not None
                result = await able.resume(state, decisions=decisions)
        state = result.state
        return result, endpoint

    def asked(result: ptc.RunResult[Any]) -> list[str]:
        return [request.call_id for request in result.approvals]

    code = function_call("run_program", "p", {"code": FIVE})
    paused, _ = await step({}, [code])
    assert (asked(paused), RAN) == (["p:1", "p:3", "p:4"], [("look", 2)])
    paused, _ = await step({"p:1": ptc.Approve()})
    assert (asked(paused), RAN) == (["p:3", "p:4"], [("look", 2), ("drop", 1)])
    paused, _ = await step({})
    assert (asked(paused), len(RAN)) == (["p:3", "p:4"], 2)
    paused, _ = await step({"p:3": ptc.Deny("too many"), "p:4": ptc.Approve({"x": 44})})
    assert (asked(paused), RAN[2:]) == (["p:6"], [("drop", 44), ("look", 5)])
    done, endpoint = await step({"p:6": ptc.Approve({"x": "no number"})}, [answer("done")])
    assert (done.status, done.approvals, RAN[4:]) == ("completed", (), [])
    value = outputs_in(endpoint.bodies[-1])["p"]["value"]
    assert value[:2] + value[3:5] == [-1, 2, -44, 5]
    assert "too many" in value[2]
    assert "integer" in value[5]
    told = {report.call.call_id: report.outcome.status for report in done.calls}
    denied = {"p:3": "denied", "p:6": "denied"}  # one here, one in a process before
    assert told == {f"p:{n}": "success" for n in (1, 2, 4, 5)} | denied | {"p": "success"}
    assert len(done.calls) == len(told)


async def test_a_call_that_its_program_gave_up_is_not_asked_about(tmp_path: Path) -> None:
    """As asyncio has it, the end of a program cancels what nobody awaited: then there is nothing to decide."""
    code = function_call(
        "run_program", "p", {"code": "task = asyncio.ensure_future(drop(x=1))\nawait look(x=2)"}
    )
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        endpoint = FakeEndpoint([code], [answer("over")])
        result = await runner(endpoint, store, programs="local").run("go", run_id="r1")
    assert (result.status, result.approvals, RAN) == ("completed", (), [("look", 2)])


async def test_a_program_that_was_killed_asks_for_nothing(tmp_path: Path) -> None:
    """What it asked for has nobody to go to."""
    code = function_call(
        "run_program",
        "p",
        {"code": "task = asyncio.ensure_future(drop(x=1))\nawait look(x=2)\nprint('x' * 9000)"},
    )
    async with (
        ptc.Sandbox(limits=ptc.SandboxLimits(output_bytes=1000)) as sandbox,
        ptc.SQLiteRunStore(tmp_path / "runs.db") as store,
    ):
        able = runner(FakeEndpoint([code], [answer("killed")]), store, programs="local", sandbox=sandbox)
        result = await able.run("go", run_id="r1")
    assert (result.status, result.approvals, RAN) == ("completed", (), [("look", 2)])


async def test_a_decision_is_for_its_own_call_alone(tmp_path: Path) -> None:
    """The same call id with other arguments has to be asked about again, and an id of no request is refused."""
    turns = [
        [function_call("drop", "c1"), function_call("drop", "c2", {"x": 2})],
        [function_call("drop", "c1", {"x": 9})],
        [answer("done")],
    ]
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        able = runner(FakeEndpoint(*turns), store)
        await able.run("go", run_id="r1")
        with pytest.raises(ptc.InvalidInput, match="zz"):
            await able.recover("r1", decisions={"zz": ptc.Approve()})
        first = await able.recover("r1", decisions={"c1": ptc.Approve({"x": 5})})
        assert ([request.call_id for request in first.approvals], RAN) == (["c2"], [("drop", 5)])
        second = await able.recover("r1", decisions={"c2": ptc.Deny("no")})
        assert [(request.call_id, request.arguments) for request in second.approvals] == [("c1", {"x": 9})]
        assert RAN == [("drop", 5)]
        done = await able.recover("r1", decisions={"c1": ptc.Approve()})
    assert (done.output_text, RAN) == ("done", [("drop", 5), ("drop", 9)])


async def test_a_decision_that_comes_a_day_too_late_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time goes on while no process is there."""
    rule = ptc.PauseForApproval(expires_after=3600)
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        await runner(FakeEndpoint([function_call("drop")]), store, approver=rule).run("go", run_id="r1")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + DAY)
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        late = runner(FakeEndpoint([answer("late")]), store, approver=rule)
        done = await late.recover("r1", decisions={"c1": ptc.Approve()})
    (report,) = done.calls
    assert (report.outcome.status, RAN) == ("denied", [])


@pytest.mark.parametrize("decision", [ptc.Approve(), ptc.Deny("changed my mind")])
async def test_a_decision_after_the_call_has_run_is_not_recorded_as_one(
    tmp_path: Path, decision: ptc.Decision
) -> None:
    """The log says who let a call run; it does not say afterwards that somebody else had not."""
    async with ptc.AuditLog(tmp_path / "a.db", levels="full") as log, ptc.SQLiteRunStore(log) as store:
        able = runner(FakeEndpoint([function_call("drop")], [answer("dropped")]), store, audit=log)
        await able.run("go", run_id="r1")
        await able.recover("r1", decisions={"c1": ptc.Approve(by="ann")})
        again = await able.recover("r1", decisions={"c1": decision})
    assert (again.output_text, RAN) == ("dropped", [("drop", 1)])
    decided = select(tmp_path / "a.db", Filter(type="approval.decided"))
    assert [record["data"]["by"] for record in decided] == ["ann"]


@pytest.mark.parametrize("decision", [ptc.Approve(by="ann"), ptc.Approve({"x": 5})])
async def test_a_call_that_is_to_run_again_is_not_asked_about_twice(
    tmp_path: Path, decision: ptc.Decision
) -> None:
    """Its process ended while it ran; who says that it may run again need not approve it a second time."""
    path = tmp_path / "runs.db"
    rule = ptc.PauseForApproval(expires_after=3600)
    async with ptc.SQLiteRunStore(path) as store:
        able = runner(FakeEndpoint([function_call("drop")], [answer("dropped")]), store, approver=rule)
        await able.run("go", run_id="r1")
        await able.recover("r1", decisions={"c1": decision})
    ran = RAN.copy()
    RAN.clear()
    db = sqlite3.connect(path)
    with db:  # as it was when the tool had just begun
        (n,) = db.execute("SELECT max(n) FROM steps WHERE kind = 'admitted'").fetchone()
        db.execute("DELETE FROM steps WHERE n > ?", (n,))
    db.close()
    async with ptc.SQLiteRunStore(path) as store:
        able = runner(FakeEndpoint([answer("dropped")]), store, approver=rule)
        (request,) = (await able.recover("r1")).approvals
        assert (request.uncertain, request.arguments, RAN) == (True, {"x": ran[0][1]}, [])
        done = await able.recover("r1", decisions={"c1": ptc.Approve(by="bob")})
    assert (done.status, RAN) == ("completed", ran)
