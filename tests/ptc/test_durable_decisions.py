"""Decisions about runs in a store: who may go on with them, what a decision is worth, and what stays waiting."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.audit.query import Filter, select
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in

RAN: list[Any] = []
MINUTE = 60 * 10**9


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="write", approval="always", allowed_callers=["direct", "programmatic"])
def drop(x: int) -> int:
    """Drop."""
    RAN.append(("drop", x))
    return -x


@ptc.tool(name="drop", effects="destructive", allowed_callers=["direct", "programmatic"])
def that_asks_nobody(x: int) -> int:
    """Drop."""
    RAN.append(("unasked", x))
    return x


@ptc.tool(name="drop", effects="write", allowed_callers=["direct", "programmatic"])
def the_same_unasked(x: int) -> int:
    """Drop."""
    RAN.append(("unasked", x))
    return x


@ptc.tool(effects="read")
def look(x: int) -> int:
    """Look."""
    return x


class Died(BaseException):
    """Where a process would end."""


def runner(endpoint: Any, store: ptc.RunStore | None, *tools: Any, **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools or (drop,), store=store, **options)


async def status(store: ptc.RunStore) -> str:
    (info,) = await store.runs()
    assert not info.held
    return info.status


class SaysYes:
    """An approver that decides at once."""

    async def approve(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("approver", [None, SaysYes()])
@pytest.mark.parametrize("decisions", [{}, {"c1": ptc.Approve(by="ann")}, {"c1": ptc.Deny("no")}])
async def test_a_run_that_waits_goes_on_only_where_somebody_can_be_asked(
    tmp_path: Path, approver: Any, decisions: Any
) -> None:
    """A runner without the approver that pauses would deny a call for good that somebody may have approved."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint([function_call("drop")]), store).run("go", run_id="r1")
        other = runner(FakeEndpoint(), store, approver=approver)
        with pytest.raises(ptc.ConfigurationError, match="PauseForApproval"):
            await other.recover("r1", decisions=decisions)
        assert paused.state is not None
        with pytest.raises(ptc.ConfigurationError, match="PauseForApproval"):
            await other.resume(paused.state, decisions=decisions)
        assert (await status(store), RAN) == ("paused", [])
        able = runner(FakeEndpoint([answer("dropped")]), store)
        done = await able.recover("r1", decisions={"c1": ptc.Approve()})
        told = await other.recover("r1")  # nothing waits any more
    assert (done.output_text, told.output_text, RAN) == ("dropped", "dropped", [("drop", 1)])


@pytest.mark.parametrize("decisions", [{}, {"c1": ptc.Approve()}])
@pytest.mark.parametrize("kept", ["file", "log"])
async def test_a_run_that_could_not_go_on_waits_as_before(tmp_path: Path, decisions: Any, kept: str) -> None:
    """Whoever looks for what waits must find it, however many runners could not take it up."""
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(ptc.AuditLog(tmp_path / "a.db"))
        where = log if kept == "log" else tmp_path / "runs.db"
        store = await stack.enter_async_context(ptc.SQLiteRunStore(where))
        await runner(FakeEndpoint([function_call("drop")]), store, audit=log).run("go", run_id="r1")
        for tools in ((that_asks_nobody,), (look,)):
            with pytest.raises(ptc.ContractChanged):
                await runner(FakeEndpoint(), store, *tools, audit=log).recover("r1", decisions=decisions)
            assert await status(store) == "paused"
        with pytest.raises(ptc.ConfigurationError):
            await ptc.Runner(client=FakeEndpoint(), model="other", store=store).recover("r1")
        with pytest.raises(ptc.InvalidInput):
            await runner(FakeEndpoint(), store).recover("r1", decisions={"c9": ptc.Approve()})
        assert await status(store) == "paused"
        able = runner(FakeEndpoint([answer("dropped")]), store, audit=log)
        done = await able.recover("r1", decisions={"c1": ptc.Approve()})
        assert (done.output_text, RAN, await status(store)) == ("dropped", [("drop", 1)], "completed")


@pytest.mark.parametrize("changed", [that_asks_nobody, the_same_unasked])
@pytest.mark.parametrize("kept", [True, False])
async def test_a_call_can_be_denied_whatever_its_tool_has_become(
    tmp_path: Path, changed: Any, kept: bool
) -> None:
    """A no needs no contract; and it holds where the tool of now would not even be asked about."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as file:
        store = file if kept else None
        paused = await runner(FakeEndpoint([function_call("drop")]), store).run("go", run_id="r1")
        assert paused.state is not None
        endpoint = FakeEndpoint([answer("left")])
        done = await runner(endpoint, store, changed).resume(
            paused.state, decisions={"c1": ptc.Deny("not today")}
        )
    assert (done.output_text, RAN) == ("left", [])
    assert "not today" in str(outputs_in(endpoint.bodies[-1]))


async def test_who_approved_what_cannot_run_here_may_deny_it(tmp_path: Path) -> None:
    """A yes that has had no effect may be taken back."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        await runner(FakeEndpoint([function_call("drop")]), store).run("go", run_id="r1")
        with pytest.raises(ptc.ContractChanged):
            await runner(FakeEndpoint(), store, that_asks_nobody).recover(
                "r1", decisions={"c1": ptc.Approve()}
            )
        able = runner(FakeEndpoint([answer("left")]), store)
        done = await able.recover("r1", decisions={"c1": ptc.Deny("no")})
    assert (done.output_text, RAN) == ("left", [])


async def test_an_approval_in_time_stays_good_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is when somebody decided, not when the process that was told came back."""
    rule = ptc.PauseForApproval(expires_after=60)
    path = tmp_path / "runs.db"
    async with ptc.SQLiteRunStore(path) as store:
        await runner(FakeEndpoint([function_call("drop")]), store, approver=rule).run("go", run_id="r1")
        with pytest.raises(ptc.ContractChanged):  # the decision is durable, and its process went no further
            await runner(FakeEndpoint(), store, that_asks_nobody, approver=rule).recover(
                "r1", decisions={"c1": ptc.Approve(by="ann")}
            )
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 1440 * MINUTE)
    async with ptc.SQLiteRunStore(path) as store:
        done = await runner(FakeEndpoint([answer("dropped")]), store, approver=rule).recover("r1")
    assert (done.output_text, RAN) == ("dropped", [("drop", 1)])


@pytest.mark.parametrize("kept", ["store", "state"])
async def test_an_expiry_is_not_put_off_by_going_on_without_a_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Whether a call beside it was decided about, or nothing was: who says yes too late has said nothing."""
    rule, key = ptc.PauseForApproval(expires_after=60), b"k" * 32
    path = tmp_path / "runs.db"
    calls = [function_call("drop", f"c{x}", {"x": x}) for x in range(3)]

    async def go_on(state: Any, decisions: Any, *turns: Any) -> Any:
        store = ptc.SQLiteRunStore(path) if kept == "store" else None
        able = runner(FakeEndpoint(*turns), store, approver=rule)
        if state is None:
            paused = await able.run("go", run_id="r1")
        else:
            paused = await able.resume(ptc.RunState.unseal(state, key), decisions=decisions)
        if store is not None:
            store.close()
        return paused, paused.state.seal(key) if paused.state is not None else None

    paused, state = await go_on(None, None, calls)
    expiries = {request.call_id: request.expires_us for request in paused.approvals}
    paused, state = await go_on(state, {"c0": ptc.Approve()})
    assert {request.call_id: request.expires_us for request in paused.approvals} == {
        call_id: at for call_id, at in expiries.items() if call_id != "c0"
    }
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 2 * MINUTE)
    paused, state = await go_on(state, {})
    assert [request.expires_us for request in paused.approvals] == [expiries["c1"], expiries["c2"]]
    done, _ = await go_on(state, {"c1": ptc.Approve(), "c2": ptc.Approve({"x": 5})}, [answer("over")])
    assert (done.output_text, RAN) == ("over", [("drop", 0)])


async def test_a_no_that_is_kept_stands(tmp_path: Path) -> None:
    """Its process ended before the call was answered; who decides later does not overrule it unseen."""
    path = tmp_path / "a.db"
    async with ptc.AuditLog(path, levels="full") as log, ptc.SQLiteRunStore(log) as store:
        await runner(FakeEndpoint([function_call("drop")]), store, audit=log).run("go", run_id="r1")

        steps = store.append_with

        async def dies(lease: Any, given: Any, write: Any, **more: Any) -> Any:
            done = await steps(lease, given, write, **more)
            if any(step.kind == "decided" for step in given):
                raise Died
            return done

        store.append_with = dies  # type: ignore[method-assign]
        with pytest.raises(Died):
            await runner(FakeEndpoint(), store, audit=log).recover(
                "r1", decisions={"c1": ptc.Deny("no", by="ann")}
            )
        store.append_with = steps  # type: ignore[method-assign]
        endpoint = FakeEndpoint([answer("left")])
        done = await runner(endpoint, store, audit=log).recover("r1", decisions={"c1": ptc.Approve(by="bob")})
    assert (done.output_text, RAN) == ("left", [])
    assert [record["data"]["by"] for record in select(path, Filter(type="approval.decided"))] == ["ann"]


@pytest.mark.parametrize("kept", ["store", "state", "text"])
async def test_a_call_id_that_is_used_again_waits_anew(tmp_path: Path, kept: str) -> None:
    """Some services number the calls of each response from one; every one of them is a call of its own."""
    key = b"a key of at least 16 bytes"
    asked = [[function_call("drop", "c1", {"x": x})] for x in (1, 2, 3)]
    endpoint = FakeEndpoint(*asked, [answer("dropped")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as file:
        able = runner(endpoint, file if kept == "store" else None)
        result: Any = await able.run("go", run_id="r1")
        for x in (1, 2, 3):
            (request,) = result.approvals
            assert (request.arguments, len(RAN)) == ({"x": x}, x - 1)
            state = result.state if kept != "text" else ptc.RunState.unseal(result.state.seal(key), key)
            result = await able.resume(state, decisions={"c1": ptc.Approve()})
    assert (result.output_text, RAN) == ("dropped", [("drop", 1), ("drop", 2), ("drop", 3)])
    assert [getattr(report.outcome, "value", None) for report in result.calls] == [-1, -2, -3]


@pytest.mark.parametrize(
    "wrong",
    [
        ["c1"],
        "c1",
        {"c1": True},
        {"c1": ptc.Approve({"x": float("nan")})},
        {"c1": ptc.Approve({"x": object()})},  # type: ignore[dict-item]
        {"c1": ptc.Approve([1])},  # type: ignore[arg-type]
        {"c1": ptc.Approve(by=object())},  # type: ignore[arg-type]
        {"c1": ptc.Deny(reason=None)},  # type: ignore[arg-type]
        {"c1": ptc.Deny(by=7)},  # type: ignore[arg-type]
        {7: ptc.Approve(), "c2": ptc.Approve()},
    ],
)
@pytest.mark.parametrize("kept", [True, False])
async def test_what_is_no_decision_is_refused_before_anything_changes(
    tmp_path: Path, wrong: Any, kept: bool
) -> None:
    """A decision is kept and recorded; what cannot be is said at once, and the call goes on waiting."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as file:
        store = file if kept else None
        paused = await runner(FakeEndpoint([function_call("drop")]), store).run("go", run_id="r1")
        assert paused.state is not None
        with pytest.raises(ptc.InvalidInput):
            await runner(FakeEndpoint(), store).resume(paused.state, decisions=wrong)
        if kept:
            assert await status(file) == "paused"
        able = runner(FakeEndpoint([answer("dropped")]), store)
        done = await able.resume(paused.state, decisions={"c1": ptc.Approve()})
    assert (done.output_text, RAN) == ("dropped", [("drop", 1)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_after": "x"},
        {"expires_after": -1},
        {"expires_after": 0},
        {"expires_after": float("nan")},
        {"when": 3},
        {"ask": "all"},
    ],
)
def test_a_rule_that_asks_nobody_is_refused(wrong: Any) -> None:
    """Found when it is made, not when the first call needs an approval."""
    with pytest.raises(ptc.ConfigurationError, match=next(iter(wrong))):
        ptc.PauseForApproval(**wrong)


@pytest.mark.parametrize(
    ("text", "key"), [("{}", "a key of at least 16 bytes"), (5, b"k" * 16), (None, b"k" * 16)]
)
def test_what_cannot_be_a_state_or_its_key_is_said(text: Any, key: Any) -> None:
    """A typed error, whatever was mixed up."""
    with pytest.raises(ptc.StateUnreadable):
        ptc.RunState.unseal(text, key)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kept", [True, False])
async def test_a_decision_is_about_the_call_that_was_shown_though_another_has_its_id(
    tmp_path: Path, kept: bool, turned: bool
) -> None:
    """A model may give a call of its own the id of a program's; each is asked about, and neither waits for ever."""
    code = "try:\n    got = await drop(x=1)\nexcept ToolError as error:\n    got = str(error)\ngot"
    calls = [function_call("run_program", "p", {"code": code}), function_call("drop", "p:1", {"x": 999})]
    endpoint = FakeEndpoint(calls[::-1] if turned else calls, [answer("done")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as file:
        able = runner(endpoint, file if kept else None, programs="local")
        result: Any = await able.run("go", run_id="r1")
        for _ in range(2):
            (request,) = result.approvals
            decision = ptc.Approve() if request.arguments == {"x": 1} else ptc.Deny("not that one")
            result = await able.resume(result.state, decisions={"p:1": decision})
    assert (result.output_text, RAN) == ("done", [("drop", 1)])
