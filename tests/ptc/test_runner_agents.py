"""A runner as a tool of another: a call like every other, with a run of its own inside."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pydantic
import pytest

import ptc
from ptc.agents import MAX_DEPTH
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    function_call,
    outputs_in,
    program,
    refusal,
)


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


ASK = {"input": "How many?"}


async def test_an_agent_answers_as_a_tool() -> None:
    """It has its own history, and takes principal and labels of the run that called it."""
    seen: list[ptc.RunContext] = []

    @ptc.tool
    def look(context: ptc.ToolContext) -> int:
        """Look."""
        seen.append(context.run)
        return 7

    inner = FakeEndpoint([function_call("look", arguments="{}")], [answer("seven")])
    outer = FakeEndpoint([function_call("expert", "c1", ASK)], [answer("It is seven.")])
    tool = runner(inner, look).as_tool("expert", "Knows how many.")
    result = await runner(outer, tool).run("go", principal="ann", labels={"tenant": "t1"}, run_id="outer")
    assert outputs_in(outer.bodies[1])["c1"] == "seven"
    assert inner.inputs[0] == [{"type": "message", "role": "user", "content": "How many?"}]
    (context,) = seen
    assert context.principal == "ann"
    assert dict(context.labels) == {"tenant": "t1", "parent_run_id": "outer", "parent_call_id": "c1"}
    assert context.run_id != "outer"
    assert [report.call.name for report in result.calls] == ["expert"]


async def test_an_agent_gives_data_where_a_schema_asks_for_it() -> None:
    """To a program as well, which reads it by its schema."""
    schema: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    inner = FakeEndpoint([answer('{"n": 7}')])
    call = function_call("expert", "c1", ASK, caller=by_program())
    outer = FakeEndpoint([program(), call], [answer()])
    tool = runner(inner).as_tool("expert", "Knows.", schema, allowed_callers=["programmatic"])
    await runner(outer, tool, programs="hosted").run("go")
    assert outputs_in(outer.bodies[1])["c1"] == {"n": 7}
    assert inner.bodies[0]["text"]["format"]["schema"] == schema


@pytest.mark.parametrize("turn", [[refusal("No.")], ptc.RequestRejected("not today")])
async def test_an_agent_that_fails_is_a_failed_call(turn: Any) -> None:
    """The outer model is told, and goes on."""
    outer = FakeEndpoint([function_call("expert", "c1", ASK)], [answer("sorry")])
    tool = runner(FakeEndpoint(turn)).as_tool("expert", "Knows.")
    result = await runner(outer, tool).run("go")
    assert outputs_in(outer.bodies[1])["c1"]["error"]["type"] == "tool_error"
    assert result.output_text == "sorry"


async def test_cancelling_the_outer_run_cancels_the_inner_one() -> None:
    """Nothing goes on behind the application's back."""
    began, ended = asyncio.Event(), asyncio.Event()

    @ptc.tool
    async def hang() -> int:
        """Hang."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    tool = runner(FakeEndpoint([function_call("hang", arguments="{}")]), hang).as_tool("expert", "Knows.")
    task = asyncio.create_task(runner(FakeEndpoint([function_call("expert", "c1", ASK)]), tool).run("go"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_the_inner_run_has_limits_of_its_own() -> None:
    """A loop in there ends there."""
    inner = FakeEndpoint(*[[] for _ in range(5)])
    outer = FakeEndpoint([function_call("expert", "c1", ASK)], [answer("gave up")])
    tool = runner(inner, max_requests=2).as_tool("expert", "Knows.")
    assert (await runner(outer, tool).run("go")).output_text == "gave up"
    assert len(inner.bodies) == 2


async def test_an_agent_that_would_wait_for_an_approval_fails_the_call() -> None:
    """Nobody could decide inside another run: no empty answer stands for one."""
    danger = ptc.tool(lambda: 1, name="danger", description="D.", approval="always")
    inner = FakeEndpoint([function_call("danger", arguments="{}")])
    outer = FakeEndpoint([function_call("expert", "c1", ASK)], [answer()])
    tool = runner(inner, danger, approver=ptc.PauseForApproval()).as_tool("expert", "Knows.")
    await runner(outer, tool).run("go")
    error = outputs_in(outer.bodies[1])["c1"]["error"]
    assert error["type"] == "tool_error"
    assert "danger" in error["message"]


class Count(pydantic.BaseModel):
    """How many."""

    n: int


@pytest.mark.parametrize(("form", "text", "value"), [(Count, '{"n": 7}', {"n": 7}), (int, '{"value": 7}', 7)])
async def test_an_agents_answer_may_be_of_a_type(form: type, text: str, value: Any) -> None:
    """Its schema is the tool's, and what the outer model gets is plain JSON."""
    outer = FakeEndpoint([function_call("expert", "c1", ASK)], [answer()])
    inner = FakeEndpoint([answer(text)])
    tool = runner(inner).as_tool("expert", "Knows.", form)
    await runner(outer, tool).run("go")
    assert outputs_in(outer.bodies[1])["c1"] == value
    assert tool.contract.output_schema is not None
    assert tool.contract.output_schema["type"] == ("object" if form is Count else "integer")


async def test_a_runner_that_comes_to_call_itself_has_an_end() -> None:
    """A model must not be able to run agents inside agents until the process has no memory left."""

    @ptc.tool
    def meet(context: ptc.ToolContext) -> str:
        """Offer the runner itself."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptc.ExperimentalWarning)
            context.add_tools(me)
        return "met"

    def say_next(body: Any) -> Any:
        if len(body["input"]) == 1:
            return [function_call("meet", "m", "{}")]
        return [function_call("me", "c", ASK)] if len(body["input"]) == 3 else [answer("enough")]

    endless = FakeEndpoint(*[say_next] * 100)
    itself = runner(endless, meet)
    me = itself.as_tool("me", "Myself.")
    result = await itself.run("go")
    assert result.output_text == "enough"
    assert len(endless.bodies) == 3 * (1 + MAX_DEPTH)
    innermost = endless.bodies[-1 - MAX_DEPTH]
    assert "would stand inside more than" in outputs_in(innermost)["c"]["error"]["message"]
