"""Whether a call ran is what the path knows, not what its outcome says: a middleware may deny what was done."""

from __future__ import annotations

from typing import Any

import pytest

import ptc
from ptc.errors import RequestRejected
from ptc_tools.outcome import Denied
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    function_call,
    outputs_in,
    program,
    program_output,
)

RAN: list[int] = []
KEY = b"k" * 32


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def pay(x: int) -> int:
    """Pay, and say nothing of what that does."""
    RAN.append(x)
    return x


@ptc.tool(approval="always")
async def ship() -> str:
    """Wait for somebody."""
    return "shipped"


async def deny_afterwards(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
    outcome = await next(invocation)
    return Denied("not_authorized", "hidden") if invocation.tool.contract.name == "pay" else outcome


def runner(endpoint: FakeEndpoint, **options: Any) -> ptc.Runner:
    options = {"tools": [pay, ship], "programs": "hosted", "middleware": [deny_afterwards]} | options
    return ptc.Runner(client=endpoint, model="m", retry=AT_ONCE, **options)


@pytest.mark.parametrize("by", [None, "program"])
async def test_a_call_that_ran_and_was_denied_afterwards_is_not_run_again(by: str | None) -> None:
    """An executed call is never executed again, whatever is told of it."""
    caller = {} if by is None else {"caller": by_program()}
    before, after = ([], []) if by is None else ([program()], [program_output()])
    call = function_call("pay", "c1", **caller)
    endpoint = FakeEndpoint([*before, call], [call], [*after, answer()])
    result = await runner(endpoint).run("go")
    assert RAN == [1]
    assert [(report.outcome.status, report.ran, report.reused) for report in result.calls] == [
        ("denied", True, False),
        ("denied", False, True),
    ]


async def test_a_call_that_was_denied_before_it_ran_may_be_made_again() -> None:
    """A refusal alone repeats nothing."""
    denials = [Denied("not_authorized", "not yet")]

    async def deny_once(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        return denials.pop() if denials else await next(invocation)

    endpoint = FakeEndpoint([function_call("pay", "c1")], [function_call("pay", "c1")], [answer()])
    result = await runner(endpoint, middleware=[deny_once]).run("go")
    assert RAN == [1]
    assert [report.ran for report in result.calls] == [False, True]


@pytest.mark.parametrize(("early", "safe"), [(True, True), (False, False)])
async def test_a_run_is_safe_to_repeat_only_if_no_tool_was_let_in(early: bool, safe: bool) -> None:
    """Who repeats a run on that word must not pay twice."""

    async def deny(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if not early:
            await next(invocation)
        return Denied("not_authorized", "hidden")

    endpoint = FakeEndpoint([function_call("pay", "c1")], RequestRejected("no", status=400))
    with pytest.raises(ptc.RunError) as caught:
        await runner(endpoint, middleware=[deny], programs=None).run("go")
    assert caught.value.safe_to_retry is safe


async def test_a_resumed_run_does_not_run_again_what_was_denied_after_it_ran() -> None:
    """The state carries what ran."""
    call = function_call("pay", "c1")
    first = FakeEndpoint([call, function_call("ship", "s", "{}")])
    paused = await runner(first, approver=ptc.PauseForApproval(), programs=None).run("go")
    assert paused.state is not None
    state = ptc.RunState.unseal(paused.state.seal(KEY), KEY)
    second = FakeEndpoint([call], [answer()])
    resumed = runner(second, approver=ptc.PauseForApproval(), programs=None)
    await resumed.resume(state, decisions={"s": ptc.Approve()})
    assert RAN == [1]


@pytest.mark.parametrize("stop", [ptc.TerminateRun("bye"), ptc.FailRun("bye")])
async def test_the_transcript_says_that_a_call_ran_which_then_ended_the_run(stop: Exception) -> None:
    """A model that reads of a cancelled call would make it again."""

    async def end(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        await next(invocation)
        raise stop

    endpoint = FakeEndpoint([function_call("pay", "c1")])
    try:
        items = (await runner(endpoint, middleware=[end], programs=None).run("go")).items
    except ptc.RunError as error:
        items = error.items
    said = outputs_in({"input": items})["c1"]["error"]
    assert said["type"] == "cancelled"
    assert "the tool had run" in said["message"]
