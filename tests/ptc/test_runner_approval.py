"""Approvals in a run: calls that wait, what a decision is worth, and a paused run that goes on elsewhere."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.history import orphans
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

KEY = b"a key of at least 16 bytes"
RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
def look(x: int) -> int:
    """Look."""
    RAN.append(("look", x))
    return x


@ptc.tool(approval="always", allowed_callers=["direct", "programmatic"])
def drop(x: int) -> int:
    """Drop something."""
    RAN.append(("drop", x))
    return -x


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools or (look, drop), **options)


def elsewhere(state: ptc.RunState | None) -> ptc.RunState:
    """The state as another process gets it."""
    assert state is not None
    return ptc.RunState.unseal(state.seal(KEY), KEY)


async def test_a_call_that_needs_an_approval_pauses_the_run() -> None:
    """Its siblings finish; nothing is sent until somebody has decided."""
    endpoint = FakeEndpoint([reasoning(), function_call("look", "a"), function_call("drop", "b")])
    result = await runner(endpoint).run("go")
    assert (result.status, result.output_text, RAN) == ("paused", "", [("look", 1)])
    (request,) = result.approvals
    assert (request.call_id, request.name, request.arguments) == ("b", "drop", {"x": 1})
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize("travel", [False, True])
async def test_an_approved_call_runs_and_the_run_goes_on(travel: bool) -> None:
    """In this process or another; what ran before does not run again."""
    endpoint = FakeEndpoint(
        [reasoning(), function_call("look", "a"), function_call("drop", "b")], [answer("dropped")]
    )
    paused = await runner(endpoint).run("go", run_id="r1")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    result = await runner(endpoint).resume(state, decisions={"b": ptc.Approve(by="ann")})
    assert (result.run_id, result.status, result.output_text) == ("r1", "completed", "dropped")
    assert RAN == [("look", 1), ("drop", 1)]
    assert outputs_in(endpoint.bodies[1]) == {"a": 1, "b": -1}
    assert endpoint.inputs[1][:4] == [*endpoint.inputs[0], *result.items[1:4]]
    assert result.requests == 2
    assert result.usage.total_tokens == 30


async def test_a_denied_call_is_answered_with_the_reason() -> None:
    """The model can do something else."""
    endpoint = FakeEndpoint([function_call("drop")], [answer("well")])
    paused = await runner(endpoint).run("go")
    result = await runner(endpoint).resume(
        elsewhere(paused.state), decisions={"c1": ptc.Deny("not on a Friday")}
    )
    error = outputs_in(endpoint.bodies[1])["c1"]["error"]
    assert error == {"type": "not_approved", "message": "not on a Friday"}
    assert (RAN, result.output_text) == ([], "well")


async def test_approved_changes_are_validated_like_the_models_arguments() -> None:
    """An approver is trusted with a decision, not with the schema."""
    for changed, ran in (({"x": 5}, [("drop", 5)]), ({"x": "five"}, [])):
        RAN.clear()
        endpoint = FakeEndpoint([function_call("drop")], [answer()])
        paused = await runner(endpoint).run("go")
        assert paused.state is not None
        await runner(endpoint).resume(paused.state, decisions={"c1": ptc.Approve(arguments=changed)})
        assert ran == RAN
        assert ("error" in str(outputs_in(endpoint.bodies[1])["c1"])) is not bool(ran)


async def test_an_approval_that_comes_too_late_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world has moved on."""
    endpoint = FakeEndpoint([function_call("drop")], [answer()])
    rule = ptc.PauseForApproval(expires_after=60)
    paused = await runner(endpoint, approver=rule).run("go")
    assert paused.state is not None
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 61 * 10**9)
    await runner(endpoint, approver=rule).resume(paused.state, decisions={"c1": ptc.Approve()})
    assert RAN == []
    assert "expired" in outputs_in(endpoint.bodies[1])["c1"]["error"]["message"]


async def test_a_call_without_a_decision_goes_on_waiting() -> None:
    """The run pauses again, with the other answered."""
    endpoint = FakeEndpoint([function_call("drop", "a"), function_call("drop", "b", {"x": 2})], [answer()])
    paused = await runner(endpoint).run("go")
    assert [request.call_id for request in paused.approvals] == ["a", "b"]
    again = await runner(endpoint).resume(elsewhere(paused.state), decisions={"b": ptc.Approve()})
    assert (again.status, [request.call_id for request in again.approvals]) == ("paused", ["a"])
    assert RAN == [("drop", 2)]
    done = await runner(endpoint).resume(elsewhere(again.state), decisions={"a": ptc.Approve()})
    assert done.status == "completed"
    assert RAN == [("drop", 2), ("drop", 1)]
    assert list(outputs_in(endpoint.bodies[1])) == ["a", "b"]


async def test_a_decision_binds_to_one_call() -> None:
    """The same id with other arguments, later in the run, needs its own."""
    endpoint = FakeEndpoint([function_call("drop")], [function_call("drop", arguments={"x": 99})])
    paused = await runner(endpoint).run("go")
    assert paused.state is not None
    again = await runner(endpoint).resume(paused.state, decisions={"c1": ptc.Approve()})
    assert again.status == "paused"
    assert RAN == [("drop", 1)]
    assert again.approvals[0].arguments == {"x": 99}


async def test_a_rule_says_which_calls_somebody_has_to_see() -> None:
    """A function of call, contract, arguments and run."""
    rule = ptc.PauseForApproval(when=lambda call, contract, arguments, run: int(str(arguments["x"])) > 10)
    endpoint = FakeEndpoint([function_call("drop", "a"), function_call("drop", "b", {"x": 11})])
    paused = await runner(endpoint, approver=rule).run("go")
    assert [request.call_id for request in paused.approvals] == ["b"]
    assert RAN == [("drop", 1)]


async def test_a_hosted_program_waits_at_its_pending_call() -> None:
    """And goes on from there, its caller unchanged."""
    call = function_call("drop", caller=by_program(extra=1))
    endpoint = FakeEndpoint([program(), call], [program_output(), answer("done")])
    paused = await runner(endpoint, programs="hosted").run("go")
    assert paused.approvals[0].caller == ptc.Program("cp")
    result = await runner(endpoint, programs="hosted").resume(
        elsewhere(paused.state), decisions={"c1": ptc.Approve()}
    )
    assert result.output_text == "done"
    assert endpoint.inputs[1][-1]["caller"] == by_program(extra=1)
    assert orphans(result.items) == []


CODE = """
import asyncio, random
first = await look(x=1)
lucky = random.random()
try:
    a, b = await asyncio.gather(drop(x=2), look(x=3))
    out = [first, a, b]
except ToolDenied as error:
    out = [first, str(error)]
[out, lucky == random.Random and 0 or len(str(lucky)) > 0]
"""


@pytest.mark.parametrize(
    ("decision", "value"), [(ptc.Approve(), [1, -2, 3]), (ptc.Deny("no way"), [1, "no way"])]
)
async def test_a_local_program_is_suspended_and_resumed_by_replay(decision: Any, value: Any) -> None:
    """In another process: its finished calls do not run again, and a denial is an exception that it sees."""
    call = function_call("run_program", "p1", {"code": CODE})
    endpoint = FakeEndpoint([call], [answer("done")])
    paused = await runner(endpoint, programs="local").run("go")
    assert paused.status == "paused"
    assert RAN in ([("look", 1)], [("look", 1), ("look", 3)])
    (request,) = paused.approvals
    assert (request.name, request.arguments, request.caller) == ("drop", {"x": 2}, ptc.Program("p1"))
    result = await runner(endpoint, programs="local").resume(
        elsewhere(paused.state), decisions={request.call_id: decision}
    )
    assert result.output_text == "done"
    assert Counter(RAN) <= Counter([("look", 1), ("look", 3), ("drop", 2)])
    assert (("drop", 2) in RAN) is isinstance(decision, ptc.Approve)
    output = outputs_in(endpoint.bodies[1])["p1"]
    assert output["status"] == "completed"
    assert output["value"][0] == value or value[1] in output["value"][0][1]


async def test_a_program_is_not_suspended_while_a_call_of_it_is_half_done() -> None:
    """What ran to its end is in the journal; nothing is cut off and run again."""
    entered = asyncio.Event()

    @ptc.tool(allowed_callers=["programmatic"])
    async def slow() -> int:
        """Take a while."""
        entered.set()
        for _ in range(50):
            await asyncio.sleep(0)
        RAN.append("slow")
        return 7

    code = "import asyncio\nsum(await asyncio.gather(slow(), drop(x=1)))"
    endpoint = FakeEndpoint([function_call("run_program", "p1", {"code": code})], [answer()])
    paused = await runner(endpoint, slow, drop, programs="local").run("go")
    assert (paused.status, RAN) == ("paused", ["slow"])
    await runner(endpoint, slow, drop, programs="local").resume(
        elsewhere(paused.state), decisions={paused.approvals[0].call_id: ptc.Approve()}
    )
    assert RAN == ["slow", ("drop", 1)]
    assert outputs_in(endpoint.bodies[1])["p1"] == {"status": "completed", "value": 6}


async def test_tools_added_in_a_run_survive_its_pause() -> None:
    """In this process by themselves; in another they are given again."""

    @ptc.tool
    def extra() -> str:
        """Something more."""
        return "extra"

    @ptc.tool
    def load(context: ptc.ToolContext) -> str:
        """Load it."""
        context.add_tools(extra)
        return "loaded"

    endpoint = FakeEndpoint(
        [function_call("load", "a", "{}"), function_call("drop", "b")], [answer()], [answer()]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptc.ExperimentalWarning)
        paused = await runner(endpoint, load, drop).run("go")
    assert paused.state is not None
    await runner(endpoint, load, drop).resume(paused.state, decisions={"b": ptc.Approve()})
    assert [tool["name"] for tool in endpoint.bodies[1]["tools"]] == ["load", "drop", "extra"]
    with pytest.raises(ptc.ContractChanged, match="extra"):
        await runner(endpoint, load, drop).resume(elsewhere(paused.state), decisions={"b": ptc.Approve()})
    await runner(endpoint, load, drop).resume(
        elsewhere(paused.state), decisions={"b": ptc.Approve()}, tools=[extra]
    )


async def test_a_waiting_call_runs_under_the_contract_that_it_was_asked_for_with() -> None:
    """A tool that got wider meanwhile is not what somebody approved."""

    @ptc.tool(name="drop", approval="always", allowed_callers=["direct", "programmatic"])
    def wider(x: int, everything: bool = False) -> int:
        """Drop something, or everything."""
        return x

    endpoint = FakeEndpoint([function_call("drop")])
    paused = await runner(endpoint).run("go")
    with pytest.raises(ptc.ContractChanged, match="drop"):
        await runner(endpoint, look, wider).resume(elsewhere(paused.state), decisions={"c1": ptc.Approve()})
    with pytest.raises(ptc.ContractChanged):
        await runner(endpoint, look).resume(elsewhere(paused.state), decisions={"c1": ptc.Approve()})


def mcp_server(label: str, effects: Any) -> Any:
    return ptc.client_tool(
        {"type": "mcp", "server_label": label, "server_url": "https://m"},
        lambda request: True,
        effects=effects,
    )


@pytest.mark.parametrize(("now", "changed"), [("write", False), ("destructive", True), (None, True)])
async def test_a_waiting_request_of_an_mcp_server_is_compared_with_its_own_contract(
    now: Any, changed: bool
) -> None:
    """Not with the first server's: a server of that name that may do more is not what somebody approved."""
    asked: Any = {
        "id": "a",
        "type": "mcp_approval_request",
        "server_label": "b",
        "name": "n",
        "arguments": "{}",
    }
    approver = ptc.PauseForApproval(ask=ptc.ask_for(effects=["write", "destructive"]))
    endpoint = FakeEndpoint([asked], [answer()])
    first = mcp_server("a", "read")
    paused = await runner(endpoint, first, mcp_server("b", "write"), approver=approver).run("go")
    assert paused.state is not None
    here = [first, *([] if now is None else [mcp_server("b", now)])]
    going_on = runner(endpoint, *here, approver=approver).resume(
        elsewhere(paused.state), decisions={"a": ptc.Approve()}
    )
    if changed:
        with pytest.raises(ptc.ContractChanged):
            await going_on
    else:
        assert (await going_on).status == "completed"
        assert endpoint.inputs[1][-1]["approve"] is True


async def test_a_decision_about_nothing_is_refused() -> None:
    """A typing mistake must not pass for a decision."""
    endpoint = FakeEndpoint([function_call("drop")])
    paused = await runner(endpoint).run("go")
    assert paused.state is not None
    with pytest.raises(ptc.InvalidInput, match="c9"):
        await runner(endpoint).resume(paused.state, decisions={"c9": ptc.Approve()})


async def test_a_state_that_was_changed_in_any_byte_is_refused() -> None:
    """It decides what runs."""
    paused = await runner(FakeEndpoint([function_call("drop")])).run("go")
    assert paused.state is not None
    sealed = paused.state.seal(KEY)
    assert ptc.RunState.unseal(sealed, KEY) == paused.state
    assert ptc.RunState.unseal(sealed.encode(), KEY) == paused.state
    for index in range(len(sealed)):
        for put in {chr(ord(sealed[index]) ^ bit) for bit in (1, 0x20)}:
            with pytest.raises(ptc.StateError):
                ptc.RunState.unseal(sealed[:index] + put + sealed[index + 1 :], KEY)
    with pytest.raises(ptc.StateForged):
        ptc.RunState.unseal(sealed, b"another key of 16 bytes")
    with pytest.raises(ptc.StateUnreadable, match="16 bytes"):
        paused.state.seal(b"short")


async def test_a_state_holds_nothing_of_who_and_for_whom() -> None:
    """Trusted context is given again, by who resumes."""
    paused = await runner(FakeEndpoint([function_call("drop")]), principal="ann-secret").run(
        "go", labels={"token": "hidden-label"}
    )
    assert paused.state is not None
    text = paused.state.seal(KEY)
    assert "ann-secret" not in text
    assert "hidden-label" not in text
    assert json.loads(text)["version"] == 1


def test_a_state_of_another_version_is_refused() -> None:
    """Written by a later library, it may say what this one does not understand."""
    from ptc.state import _mac

    body: Any = {"format": "ptc-run-state", "version": 2, "state": {}}
    with pytest.raises(ptc.StateUnreadable, match="version 2"):
        ptc.RunState.unseal(json.dumps({**body, "mac": _mac(body, KEY)}), KEY)


async def test_the_audit_record_tells_of_requests_and_decisions() -> None:
    """Who decided what, and why."""
    told: list[tuple[str, Any]] = []

    class Log:
        async def started(self, *_: Any) -> object:
            return None

        async def finished(self, *_: Any) -> None: ...

        async def denied(self, *_: Any) -> None: ...

        async def event(self, type: str, data: Any, run: Any) -> None:
            if type.startswith("approval."):
                told.append((type, data))

    endpoint = FakeEndpoint([function_call("drop")], [answer()])
    paused = await runner(endpoint, audit=Log()).run("go")
    assert paused.state is not None
    await runner(endpoint, audit=Log()).resume(paused.state, decisions={"c1": ptc.Deny("no", by="bob")})
    assert told == [
        ("approval.requested", {"call_id": "c1", "tool": "drop", "reason": "the tool asks for an approval"}),
        ("approval.decided", {"call_id": "c1", "decision": "denied", "by": "bob", "reason": "no"}),
    ]


async def test_a_run_goes_on_only_where_it_was() -> None:
    """One model and deployment for a run, and a runner that can pause."""
    endpoint = FakeEndpoint([function_call("drop")])
    paused = await runner(endpoint).run("go")
    assert paused.state is not None
    other = ptc.Runner(client=endpoint, model="other", tools=[look, drop], approver=ptc.PauseForApproval())
    with pytest.raises(ptc.ConfigurationError, match="goes on there only"):
        await other.resume(paused.state, decisions={})
    with pytest.raises(ptc.ConfigurationError, match="PauseForApproval"):
        await runner(endpoint, approver=None).resume(paused.state, decisions={})


async def test_middleware_that_ends_the_run_ends_it_for_waiting_calls_too() -> None:
    """They are answered as cancelled."""

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.call.name == "look":
            await asyncio.sleep(0)
            raise ptc.TerminateRun("enough")
        return await next(invocation)

    endpoint = FakeEndpoint([function_call("drop", "a"), function_call("look", "b")])
    result = await runner(endpoint, middleware=[stop]).run("go")
    assert result.status == "terminated"
    assert orphans(result.items) == []


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_the_result_of_a_resumed_run_tells_of_all_of_it(programs: Any) -> None:
    """What was called before the pause, in another process, was called by this run; and each call once."""
    if programs == "hosted":
        owner = {"type": "program", "caller_id": "p1"}
        first = [
            {"type": "program", "id": "pg", "call_id": "p1", "code": "x", "fingerprint": "f"},
            function_call("look", "a", {"x": 1}, caller=owner),
            function_call("drop", "b", {"x": 2}, caller=owner),
        ]
        last = [{"type": "program_output", "id": "po", "call_id": "p1", "result": "1", "status": "completed"}]
    else:
        first = [function_call("run_program", "p1", {"code": "await look(x=1)\nawait drop(x=2)"})]
        last = []
    endpoint = FakeEndpoint([function_call("look", "z", {"x": 0})], first, [*last, answer("done")])
    paused = await runner(endpoint, programs=programs).run("go")
    (request,) = paused.approvals
    result = await runner(endpoint, programs=programs).resume(
        elsewhere(paused.state), decisions={request.call_id: ptc.Approve()}
    )
    names = Counter(report.call.name for report in result.calls)
    assert names == Counter(look=2, drop=1, **({"run_program": 1} if programs == "local" else {}))
    assert all(isinstance(report.outcome, ptc.Success) for report in result.calls)
    assert [(program.call_id, program.status) for program in result.programs] == [("p1", "completed")]
    assert result.calls[0] == paused.calls[0]


async def test_a_call_from_before_the_pause_is_given_again_as_it_was() -> None:
    """Rule 14 over a pause: it does not run again, and a result that stood in an object stands in one only."""
    again = function_call("look", "a", {"x": 1})
    endpoint = FakeEndpoint([again, function_call("drop", "b", {"x": 2})], [again], [answer("done")])
    paused = await runner(endpoint, programs="hosted").run("go")
    before = paused.state.answers["a"]["output"]
    (request,) = paused.approvals
    await runner(endpoint, programs="hosted").resume(
        elsewhere(paused.state), decisions={request.call_id: ptc.Approve()}
    )
    assert before == '{"result":1}'
    assert [
        item["output"] for item in endpoint.inputs[2] if item.get("call_id") == "a" and "output" in item
    ] == [
        before,
        before,
    ]
    assert Counter(RAN) == Counter([("look", 1), ("drop", 2)])


@pytest.mark.parametrize("travel", [False, True])
async def test_a_choice_of_tools_outlives_the_pause(travel: bool) -> None:
    """What the run was not allowed before it is not allowed after it, whatever the runner's own choice."""
    endpoint = FakeEndpoint([function_call("drop", "a")], [function_call("look", "b")], [answer()])
    choice = {"mode": "auto", "allowed_tools": ["drop"]}
    paused = await runner(endpoint).run("go", tool_choice=choice)
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    await runner(endpoint).resume(state, decisions={"a": ptc.Approve()})
    assert RAN == [("drop", 1)]
    assert outputs_in(endpoint.bodies[2])["b"]["error"]["type"] == "not_admitted"


@pytest.mark.parametrize("travel", [False, True])
async def test_a_call_that_failed_before_the_pause_does_not_run_again_under_its_identity(
    travel: bool,
) -> None:
    """It gets the outcome that it had, as without the pause."""
    endpoint = FakeEndpoint(
        [function_call("fail", "a", "{}"), function_call("drop", "b")],
        [function_call("fail", "a", "{}")],
        [answer()],
    )

    @ptc.tool
    def fail() -> int:
        """Fail."""
        RAN.append("fail")
        raise ValueError("no")

    face = runner(endpoint, fail, drop)
    paused = await face.run("go")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    result = await face.resume(state, decisions={"b": ptc.Approve()})
    assert RAN == ["fail", ("drop", 1)]
    assert [report.outcome.status for report in result.calls] == ["failure", "success", "failure"]


def taking_away(name: str) -> Any:
    @ptc.tool(allowed_callers=["direct", "programmatic"])
    def take(context: ptc.ToolContext) -> str:
        """Take a tool away."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptc.ExperimentalWarning)
            context.remove_tools(name)
        return "taken"

    return take


@pytest.mark.parametrize("travel", [False, True])
async def test_a_call_that_waits_runs_though_a_sibling_removed_its_tool(travel: bool) -> None:
    """Calls already in the batch still run; the next request does not offer it."""
    calls = [function_call("take", "a", "{}"), function_call("drop", "b")]
    endpoint = FakeEndpoint(calls, [function_call("drop", "c")], [answer()])
    face = runner(endpoint, taking_away("drop"), drop)
    paused = await face.run("go")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    await face.resume(state, decisions={"b": ptc.Approve()})
    assert outputs_in(endpoint.bodies[1])["b"] == -1
    assert [tool["name"] for tool in endpoint.bodies[1]["tools"]] == ["take"]
    assert outputs_in(endpoint.bodies[2])["c"]["error"]["type"] == "unknown_tool"


@pytest.mark.parametrize("travel", [False, True])
async def test_a_local_program_that_waits_keeps_what_a_sibling_removed(travel: bool) -> None:
    """Its tools are fixed: it goes on from where it was."""
    code = "a = await drop(x=1)\na + await look(x=2)"
    calls = [function_call("run_program", "p", {"code": code}), function_call("take", "a", "{}")]
    endpoint = FakeEndpoint(calls, [answer()])
    face = runner(endpoint, taking_away("look"), look, drop, programs="local")
    paused = await face.run("go")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    (request,) = paused.approvals
    await face.resume(state, decisions={request.call_id: ptc.Approve()})
    assert outputs_in(endpoint.bodies[1])["p"]["value"] == 1
    assert "look" not in [tool["name"] for tool in endpoint.bodies[1]["tools"]]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("travel", [False, True])
async def test_a_local_program_that_waits_goes_on_without_what_a_sibling_added(
    travel: bool, stored: bool, tmp_path: Path
) -> None:
    """Its tools are fixed when it starts; the model has the new one from the next request on."""
    code = "a = await drop(x=1)\nb = await drop(x=2)\ntry:\n    later\nexcept NameError:\n    a + b"

    @ptc.tool(allowed_callers=["direct", "programmatic"])
    def later() -> int:
        """Come later."""
        return 7

    @ptc.tool
    def give(context: ptc.ToolContext) -> str:
        """Give a tool."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptc.ExperimentalWarning)
            context.add_tools(later)
        return "given"

    calls = [function_call("run_program", "p", {"code": code}), function_call("give", "a", "{}")]
    endpoint = FakeEndpoint(calls, [answer()])
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(ptc.SQLiteRunStore(tmp_path / "runs.db")) if stored else None
        face = runner(endpoint, give, drop, programs="local", store=store)
        result = await face.run("go")
        for _ in range(2):
            state = elsewhere(result.state) if travel else result.state
            assert state is not None
            (request,) = result.approvals
            result = await face.resume(state, decisions={request.call_id: ptc.Approve()}, tools=[later])
    assert result.status == "completed"
    assert outputs_in(endpoint.bodies[1])["p"]["status"] == "completed"
    assert [report.outcome.status for report in result.calls].count("success") == 4
    assert "later" in [tool["name"] for tool in endpoint.bodies[1]["tools"]]


@pytest.mark.parametrize("travel", [False, True])
async def test_a_waiting_call_of_an_open_program_runs_though_a_sibling_removed_its_tool(travel: bool) -> None:
    """The tool is needed by the call that waits, and is told to the service still: it is one tool."""
    calls = [
        function_call(name, name, arguments, caller=by_program())
        for name, arguments in (("take", "{}"), ("drop", '{"x": 1}'))
    ]
    endpoint = FakeEndpoint([program(), *calls], [program_output(), answer()])
    face = runner(endpoint, taking_away("drop"), look, drop, programs="hosted")
    paused = await face.run("go")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    result = await face.resume(state, decisions={"drop": ptc.Approve()})
    assert [report.outcome.status for report in result.calls] == ["success", "success"]
    assert [tool.get("name") for tool in endpoint.bodies[1]["tools"]].count("drop") == 1


@pytest.mark.parametrize("travel", [False, True])
async def test_what_an_open_program_could_call_stays_on_the_wire_after_a_pause(travel: bool) -> None:
    """The service has told its program of it; a call of it is denied."""
    calls = [
        function_call(name, name, arguments, caller=by_program())
        for name, arguments in (("take", "{}"), ("drop", '{"x": 1}'))
    ]
    again = function_call("look", "c", caller=by_program())
    endpoint = FakeEndpoint([program(), *calls], [again], [program_output(), answer()])
    face = runner(endpoint, taking_away("look"), look, drop, programs="hosted")
    paused = await face.run("go")
    state = elsewhere(paused.state) if travel else paused.state
    assert state is not None
    await face.resume(state, decisions={"drop": ptc.Approve()})
    for body in endpoint.bodies[1:]:
        assert "look" in [tool.get("name") for tool in body["tools"]]
    assert outputs_in(endpoint.bodies[2])["c"]["error"]["type"] == "unknown_tool"


async def test_what_an_open_program_could_call_stays_on_the_wire_after_a_recovery(tmp_path: Path) -> None:
    """The run goes on from its store, where no tool is run again that could take another away again."""
    calls = [
        function_call(name, name, arguments, caller=by_program())
        for name, arguments in (("take", "{}"), ("drop", '{"x": 1}'))
    ]
    again = function_call("look", "c", caller=by_program())
    endpoint = FakeEndpoint([program(), *calls], [again], [program_output(), function_call("look", "d")])
    endpoint.turns.append([answer()])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        face = runner(endpoint, taking_away("look"), look, drop, programs="hosted", store=store)
        paused = await face.run("go")
        assert paused.state is not None
        await face.resume(paused.state, decisions={"drop": ptc.Approve()})
    offered = [[tool.get("name") for tool in body["tools"]] for body in endpoint.bodies]
    assert ["look" in names for names in offered] == [True, True, True, False]
    assert outputs_in(endpoint.bodies[2])["c"]["error"]["type"] == "unknown_tool"


@pytest.mark.parametrize("wrong", [True, "yes", None, {"approve": True}, ptc.Approve(arguments="x")])  # type: ignore[arg-type]
async def test_what_is_no_decision_is_refused(wrong: Any) -> None:
    """It must not pass for silence, which would pause the run again."""
    face = runner(FakeEndpoint([function_call("drop", "b")]))
    paused = await face.run("go")
    assert paused.state is not None
    with pytest.raises(ptc.InvalidInput, match="b"):
        await face.resume(paused.state, decisions={"b": wrong})
    assert RAN == []
