"""What became of a call that was cut off, found out instead of seen: it takes the way that its result would."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in

RAN: list[Any] = []
BOTH: Any = ["direct", "programmatic"]
CODE = function_call("run_program", "p", {"code": "await send(x=1)"})
TOLD: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()
    TOLD[:] = [{"happened": True, "result": "SSN 1"}]


def sending(*, reconciled: bool, read_asks: bool = False) -> list[Any]:
    """A mutation that nobody saw the end of, and the read that tells of it."""
    read = ptc.Reconciliation("sent", {"x": "x"}) if reconciled else None

    @ptc.tool(effects="write", allowed_callers=BOTH, reconciliation=read)
    def send(x: int) -> str:
        """Send."""
        RAN.append("send")
        return "SSN 1"

    @ptc.tool(effects="read", strict=False, allowed_callers=BOTH, approval="always" if read_asks else "never")
    def sent(x: int) -> ptc.JsonValue:
        """Whether it was sent."""
        RAN.append("sent")
        told: ptc.JsonValue = TOLD[-1]
        return told

    return [send, sent]


def runner(endpoint: Any, store: ptc.RunStore, tools: list[Any], **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools, store=store, **options)


async def cut_off(path: Path, *, reconciled: bool, asked: Any, **options: Any) -> None:
    """A run whose process ended when `send` had begun."""
    endpoint = FakeEndpoint([asked], [answer("never said")])
    async with ptc.SQLiteRunStore(path) as store:
        await runner(endpoint, store, sending(reconciled=reconciled), **options).run("go", run_id="r1")
    RAN.clear()
    db = sqlite3.connect(path)
    with db:
        wanted = "SELECT max(n) FROM steps WHERE kind = 'admitted' AND data LIKE '%\"name\":\"send\"%'"
        ((n,),) = db.execute(wanted)
        db.execute("DELETE FROM steps WHERE n > ?", (n,))
        db.execute("UPDATE runs SET status = 'running'")
    db.close()


async def redact(invocation: Any, next: Any) -> Any:
    """A layer that no model sees through."""
    outcome = await next(invocation)
    return ptc.Success("REDACTED") if isinstance(outcome, ptc.Success) else outcome


@pytest.mark.parametrize("asked", [function_call("send"), CODE], ids=["direct", "local"])
@pytest.mark.parametrize("reconciled", [True, False])
async def test_what_is_found_out_passes_the_layers(tmp_path: Path, asked: Any, reconciled: bool) -> None:
    """A layer that redacts a tool's results redacts this one, whoever told it."""
    options: dict[str, Any] = {"programs": "local" if asked is CODE else None}
    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=reconciled, asked=asked, **options)
    async with ptc.SQLiteRunStore(path) as store:
        tools = sending(reconciled=reconciled)
        options |= {"middleware": [ptc.only_for(redact, "send")]}
        endpoint = FakeEndpoint([answer("done")])
        result = await runner(endpoint, store, tools, **options).recover("r1")
        if not reconciled:
            (request,) = result.approvals
            decisions = {request.call_id: ptc.Happened("SSN 1")}
            result = await runner(endpoint, store, tools, **options).recover("r1", decisions=decisions)
        assert result.output_text == "done"
        told = str(endpoint.bodies) + str(result.calls[-1].outcome if asked is not CODE else "")
        assert "REDACTED" in told
        assert "SSN" not in told.replace(str(CODE), "")
        (item,) = result.uncertain
        assert item.resolution == ("reconciled" if reconciled else "decided")
        assert len(RAN) == int(reconciled)
        again = await runner(FakeEndpoint(), store, tools, **options).recover("r1")
    assert "SSN" not in str(again.items)


async def test_what_a_layer_makes_of_it_is_held_to_the_schema(tmp_path: Path) -> None:
    """No way around the checks: what breaks the tool's promise is no result of it."""

    async def breaks(invocation: Any, next: Any) -> Any:
        await next(invocation)
        return ptc.Success({"not": "a text"})

    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=True, asked=function_call("send"))
    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([answer("done")])
        tools = sending(reconciled=True)
        layers = [ptc.only_for(breaks, "send")]
        result = await runner(endpoint, store, tools, middleware=layers).recover("r1")
    assert outputs_in(endpoint.bodies[0])["c1"]["error"]["type"] == "uncertain"
    assert [report.outcome.status for report in result.calls if report.call.name == "send"] == ["uncertain"]


@pytest.mark.parametrize("before", [True, False])
async def test_a_layer_that_refuses_does_not_undo_what_happened(tmp_path: Path, before: bool) -> None:
    """The call took effect; that a layer keeps its result back must not read as if it had not."""

    async def refuses(invocation: Any, next: Any) -> Any:
        if not before:
            await next(invocation)
        return ptc.Denied("not_authorized", "not for your eyes")

    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=True, asked=function_call("send"))
    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([answer("done")])
        tools = sending(reconciled=True)
        await runner(endpoint, store, tools, middleware=[ptc.only_for(refuses, "send")]).recover("r1")
    error = outputs_in(endpoint.bodies[0])["c1"]["error"]
    assert error["type"] == "uncertain"
    assert "not for your eyes" in error["message"]
    assert "SSN" not in str(endpoint.bodies)


@pytest.mark.parametrize("asked", [function_call("send"), CODE], ids=["direct", "local"])
@pytest.mark.parametrize("happened", [True, False])
async def test_a_read_that_needs_an_approval_is_asked_about(
    tmp_path: Path, asked: Any, happened: bool
) -> None:
    """The run pauses for it, so somebody has to be told what for, and which call it is about."""
    options: dict[str, Any] = {"programs": "local" if asked is CODE else None}
    TOLD[:] = [{"happened": True, "result": "sent before"} if happened else {"happened": False}]
    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=True, asked=asked, **options)
    async with ptc.SQLiteRunStore(path) as store:
        tools = sending(reconciled=True, read_asks=asked is not CODE)
        if asked is CODE:  # its journal pins its tools
            options |= {"approver": ptc.PauseForApproval(ask=ptc.ask_for(tools=["sent"]))}
        endpoint = FakeEndpoint([answer("done")])
        for _ in range(2):
            paused = await runner(endpoint, store, tools, **options).recover("r1")
            (request,) = paused.approvals
            assert (paused.status, request.name, request.arguments) == ("paused", "sent", {"x": 1})
            assert [(item.call.name, item.resolution) for item in paused.uncertain] == [("send", "waiting")]
            assert paused.state is not None
            assert (paused.state.approvals, RAN) == (paused.approvals, [])
        decisions = {request.call_id: ptc.Approve()}
        done = await runner(endpoint, store, tools, **options).recover("r1", decisions=decisions)
    assert (done.output_text, RAN) == ("done", ["sent"] if happened else ["sent", "send"])
    assert ("sent before" if happened else "SSN 1") in str(endpoint.bodies[-1])


async def test_where_the_read_is_denied_somebody_decides_about_the_call(tmp_path: Path) -> None:
    """Nobody may look, so somebody has to say."""
    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=True, asked=function_call("send"))
    async with ptc.SQLiteRunStore(path) as store:
        tools = sending(reconciled=True, read_asks=True)
        able = runner(FakeEndpoint([answer("done")]), store, tools)
        (request,) = (await able.recover("r1")).approvals
        paused = await able.recover("r1", decisions={request.call_id: ptc.Deny("no")})
        (request,) = paused.approvals
        assert (request.call_id, request.uncertain, RAN) == ("c1", True, [])
        done = await able.recover("r1", decisions={"c1": ptc.Happened("sent before")})
    assert (done.output_text, RAN) == ("done", [])


async def test_a_call_that_was_cut_off_runs_again_as_it_was_or_not_at_all(tmp_path: Path) -> None:
    """Other arguments would be another call: whoever gives some is told, instead of having them passed over."""
    path = tmp_path / "runs.db"
    await cut_off(path, reconciled=False, asked=function_call("send"))
    async with ptc.SQLiteRunStore(path) as store:
        able = runner(FakeEndpoint([answer("done")]), store, sending(reconciled=False))
        assert (await able.recover("r1")).status == "paused"
        with pytest.raises(ptc.InvalidInput, match="the arguments that it had"):
            await able.recover("r1", decisions={"c1": ptc.Approve({"x": 5})})
        assert RAN == []
        done = await able.recover("r1", decisions={"c1": ptc.Approve()})
    assert (done.output_text, RAN) == ("done", ["send"])
