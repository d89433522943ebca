"""Middleware in a run: around every call whatever its caller, and able to end the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import ptc
from ptc.history import orphans
from ptc.testing import capture_audit
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
CANCELLED = "the call was given up before its tool ran: forbidden words"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def echo(x: int) -> int:
    """Give x back."""
    RAN.append(x)
    return x


def runner(endpoint: FakeEndpoint, *middleware: Any, **options: Any) -> ptc.Runner:
    options = {"tools": [echo], "programs": "hosted"} | options
    return ptc.Runner(client=endpoint, model="m", middleware=middleware, retry=AT_ONCE, **options)


async def test_middleware_sees_every_call_in_the_documented_order() -> None:
    """The first is the outermost; programs' calls pass like the model's."""
    seen: list[str] = []

    def layer(name: str) -> Any:
        async def pass_on(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
            seen.append(f"{name} in {invocation.call.call_id} {invocation.caller.kind}")
            outcome = await next(invocation)
            seen.append(f"{name} out")
            return outcome

        return pass_on

    endpoint = FakeEndpoint([program(), function_call(caller=by_program())], [program_output(), answer()])
    await runner(endpoint, layer("outer"), layer("inner")).run("go")
    assert seen == ["outer in c1 programmatic", "inner in c1 programmatic", "inner out", "outer out"]


async def test_middleware_may_answer_change_and_override() -> None:
    """Without the tool, with other arguments (validated again), or after it."""

    async def meddle(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        match invocation.arguments["x"]:
            case 1:
                return ptc.Success(100)
            case 2:
                return await next(invocation.with_arguments({"x": 20}))
            case 3:
                return await next(invocation.with_arguments({"x": "three"}))
            case _:
                outcome = await next(invocation)
                assert isinstance(outcome, ptc.Success)
                return replace(outcome, value=400)

    calls = [function_call(call_id=f"c{n}", arguments={"x": n}) for n in (1, 2, 3, 4)]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, meddle).run("go")
    outputs = outputs_in(endpoint.bodies[1])
    assert [outputs[call] for call in ("c1", "c2", "c4")] == [{"result": x} for x in (100, 20, 400)]
    assert outputs["c3"]["error"]["type"] == "invalid_arguments"
    assert sorted(RAN) == [4, 20]


def waiting(entered: asyncio.Event, ended: list[str]) -> Any:
    @ptc.tool
    async def wait() -> str:
        """Wait a moment."""
        entered.set()
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append("finished")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "waited"

    return wait


@pytest.mark.parametrize("outcome", [None, ptc.Success(7)])
async def test_terminating_lets_the_siblings_finish(outcome: Any) -> None:
    """No further request is made, every call has its output, and the run has a result."""
    entered, ended = asyncio.Event(), list[str]()

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.call.name == "echo":
            await entered.wait()
            raise ptc.TerminateRun("that will do", outcome=outcome)
        return await next(invocation)

    endpoint = FakeEndpoint([function_call(call_id="a"), function_call("wait", "b", "{}")])
    result = await runner(endpoint, stop, tools=[echo, waiting(entered, ended)]).run("go")
    assert (result.status, result.output_text) == ("terminated", "that will do")
    assert ended == ["finished"]
    assert len(endpoint.bodies) == 1
    assert orphans(result.items) == []
    outputs = {item["call_id"]: item["output"] for item in result.items if "output" in item}
    assert outputs["b"] == "waited"
    assert outputs["a"] == '{"result":7}' if outcome else "cancelled" in outputs["a"]


async def test_failing_cancels_the_siblings() -> None:
    """They are answered as cancelled, recorded, and the run is an error."""
    entered, ended = asyncio.Event(), list[str]()

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.call.name == "echo":
            await entered.wait()
            raise ptc.FailRun("forbidden words")
        return await next(invocation)

    endpoint = FakeEndpoint([function_call(call_id="a"), function_call("wait", "b", "{}")])
    with pytest.raises(ptc.RunTerminated, match="forbidden words") as error:
        await runner(endpoint, stop, tools=[echo, waiting(entered, ended)]).run("go")
    assert ended == ["cancelled"]
    assert orphans(error.value.items) == []
    outputs = [item["output"] for item in error.value.items if item["type"] == "function_call_output"]
    assert all("cancelled" in str(output) for output in outputs)


async def test_a_tool_may_end_the_run_as_well() -> None:
    """The same two ways, from inside."""

    @ptc.tool
    async def finish(text: str) -> str:
        """Finish with this text."""
        raise ptc.TerminateRun(text, outcome=ptc.Success(text))

    endpoint = FakeEndpoint([function_call("finish", arguments={"text": "the end"})])
    result = await runner(endpoint, tools=[finish]).run("go")
    assert (result.status, result.output_text) == ("terminated", "the end")


async def test_other_control_flow_leaves_the_run_with_its_calls_answered() -> None:
    """An approver may suspend; what it raises comes out as it is."""

    class Suspend(ptc.HostControlFlow):
        pass

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        raise Suspend

    endpoint = FakeEndpoint([function_call(call_id="a"), function_call(call_id="b")])
    with pytest.raises(Suspend):
        await runner(endpoint, stop).run("go")


async def test_a_layer_may_stand_around_some_tools_only() -> None:
    """At its own place in the order, by tool or by name."""
    seen: list[str] = []

    def layer(name: str) -> Any:
        async def pass_on(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
            seen.append(f"{name} {invocation.call.name}")
            return await next(invocation)

        return pass_on

    @ptc.tool(namespace="side")
    def other() -> int:
        """Something else."""
        return 1

    layers = [ptc.only_for(layer("first"), "side.other"), layer("second"), ptc.only_for(layer("third"), echo)]
    endpoint = FakeEndpoint(
        [function_call()], [function_call("other", "c2", "{}", namespace="side")], [answer()]
    )
    await runner(endpoint, *layers, tools=[echo, other]).run("go")
    assert seen == ["second echo", "third echo", "first other", "second other"]
    with pytest.raises(ptc.RegistrationError):
        ptc.only_for(layer("never"))


@pytest.mark.parametrize("at_once", [1, 16])
async def test_failing_answers_and_records_calls_that_had_not_begun(at_once: int) -> None:
    """A call that fails the run in its first step ends it as RunTerminated, whatever the others were at."""

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.arguments["x"] == 1:
            raise ptc.FailRun("forbidden words")
        return await next(invocation)

    calls = [function_call(call_id=name, arguments={"x": n}) for n, name in enumerate("abc", 1)]
    with capture_audit() as audit, pytest.raises(ptc.RunTerminated, match="forbidden words") as error:
        await runner(FakeEndpoint(calls), stop, audit=audit, max_concurrent_calls=at_once).run("go")
    outputs = [item["output"] for item in error.value.items if item["type"] == "function_call_output"]
    assert len(outputs) == 3
    assert all("cancelled" in str(output) for output in outputs)
    assert audit.names("denied") == ["echo"] * 3
    assert {record.outcome for record in audit.records if record.kind == "denied"} == {
        Denied("cancelled", CANCELLED)
    }
    assert RAN == []


async def test_failing_in_a_local_program_cancels_the_siblings_inside_and_beside_it() -> None:
    """At once: none of them runs on until the program has been ended."""
    entered, beside, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.call.name == "echo":
            await entered.wait()
            await beside.wait()
            raise ptc.FailRun("forbidden words")
        return await next(invocation)

    def forever(name: str, event: asyncio.Event) -> Any:
        async def wait() -> str:
            event.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(name)
                raise
            return "waited"

        return ptc.tool(wait, name=name, description="Wait.", allowed_callers=["direct", "programmatic"])

    tools = [echo, forever("inside", entered), forever("beside", beside)]
    code = {"code": "import asyncio\nawait asyncio.gather(inside(), echo(x=1))"}
    calls = [function_call("run_program", "p", code), function_call("beside", "b", "{}")]
    with pytest.raises(ptc.RunTerminated, match="forbidden words") as error:
        await runner(FakeEndpoint(calls), stop, tools=tools, programs="local").run("go")
    assert sorted(ended) == ["beside", "inside"]
    assert orphans(error.value.items) == []


@pytest.mark.parametrize("outcome", [None, ptc.Success(7)])
async def test_a_call_that_middleware_ended_the_run_at_is_on_record(outcome: Any) -> None:
    """As given up before its tool ran, or with what it was answered with."""

    async def stop(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        raise ptc.TerminateRun("that will do", outcome=outcome)

    with capture_audit() as audit:
        result = await runner(FakeEndpoint([function_call()]), stop, audit=audit).run("go")
    (ended,) = [record.outcome for record in audit.records if record.outcome is not None]
    given_up = Denied("cancelled", "the call was given up before its tool ran: that will do")
    assert ended == (outcome or given_up)
    assert [report.outcome.status for report in result.calls] == ["success" if outcome else "cancelled"]


@pytest.mark.parametrize(
    ("outcome", "recorded"),
    [
        (ptc.Success(7), ptc.Success(7)),
        (Denied("limit_exceeded", "closed"), Denied("limit_exceeded", "closed")),
        (None, ptc.Cancelled("the run was ended: bye")),
    ],
)
async def test_a_tool_that_ends_the_run_is_recorded_as_it_is_answered(
    outcome: ptc.Outcome | None, recorded: ptc.Outcome
) -> None:
    """The audit record, the report and the transcript tell of one call, so they say the same."""

    @ptc.tool
    def leave() -> int:
        """End the run."""
        raise ptc.TerminateRun("bye", outcome=outcome)

    endpoint = FakeEndpoint([function_call("leave", "a", "{}")])
    with capture_audit() as audit:
        result = await runner(endpoint, tools=[leave], programs=None, audit=audit).run("go")
    assert result.status == "terminated"
    assert [report.outcome for report in result.calls] == [recorded]
    assert [record.outcome for record in audit.records if record.kind == "finished"] == [recorded]
    said = outputs_in({"input": list(result.items)})["a"]
    wanted = 7 if isinstance(recorded, ptc.Success) else recorded.code
    assert (said if isinstance(said, int) else said["error"]["type"]) == wanted


@ptc.tool(namespace="records")
async def delete() -> str:
    """Delete everything."""
    return "deleted"


@pytest.mark.parametrize(
    ("name", "said"),
    [("delete", "records.delete"), ("records.delte", "not among the tools"), ("", "not among")],
)
@pytest.mark.parametrize("programs", [None, "hosted", "local"])
async def test_a_guard_that_names_no_tool_is_refused(name: str, said: str, programs: Any) -> None:
    """A layer that never runs guards nothing, and nobody would notice."""

    async def deny(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        return Denied("not_authorized", "no")

    with pytest.raises(ptc.ConfigurationError, match=said):
        runner(FakeEndpoint(), ptc.only_for(deny, name), tools=[delete], programs=programs)
    runner(FakeEndpoint(), ptc.only_for(deny, "records.delete"), tools=[delete], programs=programs)
    runner(FakeEndpoint(), ptc.only_for(deny, echo), tools=[delete], programs=programs)  # added later
