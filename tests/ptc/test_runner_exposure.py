"""Progressive exposure: a tool changes what its run offers, and the exact rules of doing so."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ptc
import ptc_tools.experimental
from ptc.exposure import LiveExposure
from ptc.toolbox import as_entry
from ptc_tools.call import Call
from ptc_tools.context import RunContext
from ptc_tools.outcome import Outcome
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


@pytest.fixture(autouse=True)
def _warned_before() -> Iterator[None]:
    """The once-per-process warnings have their own test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptc.ExperimentalWarning)
        yield


@ptc.tool
def extra(x: int) -> int:
    """Something more."""
    return x + 1


def plain(x: int) -> int:
    """Something plain."""
    return x


def changer(change: Callable[[ptc.ToolContext], object], **options: Any) -> Any:
    """A tool `change` that does something to its run's tools."""

    async def run(context: ptc.ToolContext) -> str:
        change(context)
        return "changed"

    return ptc.tool(run, name="change", description="Change the tools.", **options)


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


def change_call(call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return function_call("change", call_id, "{}", **fields)


def offered(body: dict[str, Any]) -> list[str]:
    return [tool.get("name") or tool["type"] for tool in body.get("tools", [])]


async def run_once(
    change: Callable[[ptc.ToolContext], object], *more: Any, **options: Any
) -> tuple[Any, list[str]]:
    """(the call's output, what the request after it offered)."""
    endpoint = FakeEndpoint([change_call()], [answer()])
    await runner(endpoint, changer(change), *more, **options).run("go")
    return outputs_in(endpoint.bodies[1])["c1"], offered(endpoint.bodies[1])


async def test_an_added_tool_is_offered_from_the_next_request_of_the_same_run() -> None:
    """And can be called then."""
    endpoint = FakeEndpoint([change_call()], [function_call("extra", "c2", {"x": 1})], [answer()])
    await runner(endpoint, changer(lambda ctx: ctx.add_tools(extra))).run("go")
    assert [offered(body) for body in endpoint.bodies] == [
        ["change"],
        ["change", "extra"],
        ["change", "extra"],
    ]
    assert outputs_in(endpoint.bodies[2])["c2"] == 2


async def test_calls_already_in_the_batch_still_run() -> None:
    """The model asked for them when they were offered."""
    done = asyncio.Event()

    @ptc.tool
    async def later(x: int) -> int:
        """Wait until the tool was removed."""
        await done.wait()
        return x

    def remove(ctx: ptc.ToolContext) -> None:
        ctx.remove_tools("later")
        done.set()

    endpoint = FakeEndpoint([function_call("later", "a"), change_call("b")], [answer()])
    await runner(endpoint, changer(remove), later).run("go")
    assert outputs_in(endpoint.bodies[1])["a"] == 1
    assert offered(endpoint.bodies[1]) == ["change"]


async def test_a_call_in_the_batch_to_a_tool_that_is_only_now_added_does_not_run() -> None:
    """It was not offered when the model asked."""
    endpoint = FakeEndpoint([change_call("a"), function_call("extra", "b")], [answer()])
    await runner(endpoint, changer(lambda ctx: ctx.add_tools(extra))).run("go")
    assert outputs_in(endpoint.bodies[1])["b"]["error"]["type"] == "unknown_tool"


async def test_a_batch_with_a_duplicate_adds_nothing() -> None:
    """All or nothing."""
    twin = ptc.tool(lambda: None, name="extra", description="Another.")
    output, tools = await run_once(lambda ctx: ctx.add_tools([plain, extra, twin]))
    assert output["error"]["type"] == "tool_error"
    assert tools == ["change"]


async def test_the_same_object_again_is_no_change() -> None:
    """A tool, and a plain callable too."""

    def twice(ctx: ptc.ToolContext) -> None:
        ctx.add_tools([extra, plain])
        ctx.add_tools(extra)
        ctx.add_tools([plain, plain])
        assert ctx.tools is not None
        assert len(ctx.tools) == 3

    output, tools = await run_once(twice)
    assert output == "changed"
    assert tools == ["change", "extra", "plain"]


async def test_a_plain_callable_of_the_runner_is_known_again() -> None:
    """It became a tool when the runner was made; adding it once more is still the same."""
    output, tools = await run_once(lambda ctx: ctx.add_tools(plain), plain)
    assert (output, tools) == ("changed", ["change", "plain"])


async def test_another_object_of_a_name_that_is_taken_is_a_value_error() -> None:
    """The model could not tell them apart."""

    def clash(ctx: ptc.ToolContext) -> None:
        with pytest.raises(ValueError, match="extra"):
            ctx.add_tools(ptc.tool(lambda: None, name="extra"))

    assert await run_once(clash, extra) == ("changed", ["change", "extra"])


async def test_tools_are_removed_by_name_tool_or_callable() -> None:
    """And what is not offered is passed over."""

    def remove(ctx: ptc.ToolContext) -> None:
        ctx.remove_tools("nobody")
        ctx.remove_tools(["one", extra, plain])

    one = ptc.tool(lambda: None, name="one")
    assert await run_once(remove, one, extra, plain) == ("changed", ["change"])


async def test_a_tool_is_removed_by_its_own_function() -> None:
    """The callable that the tool was made from names it."""
    assert await run_once(lambda ctx: ctx.remove_tools(extra.function), extra) == ("changed", ["change"])


@pytest.mark.parametrize("thing", [7, None, object()])
async def test_what_is_not_a_tool_is_a_type_error(thing: Any) -> None:
    """In both helpers."""

    def wrong(ctx: ptc.ToolContext) -> None:
        with pytest.raises(TypeError):
            ctx.add_tools(thing)
        with pytest.raises(TypeError):
            ctx.add_tools([extra, thing])
        with pytest.raises(TypeError):
            ctx.remove_tools(thing)

    assert await run_once(wrong) == ("changed", ["change"])


async def test_a_change_of_a_tool_that_fails_is_rolled_back() -> None:
    """Additions and removals, each to its place; changes of others stay."""

    def change(ctx: ptc.ToolContext) -> None:
        ctx.remove_tools("one")
        ctx.add_tools(extra)
        raise ValueError("too bad")

    @ptc.tool
    def other(context: ptc.ToolContext) -> str:
        """Change too."""
        context.add_tools(plain)
        return ""

    one = ptc.tool(lambda: None, name="one", description="One.")
    endpoint = FakeEndpoint([change_call("a"), function_call("other", "b", "{}")], [answer()])
    await runner(endpoint, changer(change), one, other).run("go")
    assert offered(endpoint.bodies[1]) == ["change", "one", "other", "plain"]


async def test_parallel_changes_lose_nothing() -> None:
    """From threads as well: sync tools run in them."""
    many = {n: ptc.tool(lambda: None, name=f"t{n}", description="One of many.") for n in range(30)}

    @ptc.tool
    def load(n: int, context: ptc.ToolContext) -> int:
        """Load one."""
        context.add_tools(many[n])
        return n

    calls = [function_call("load", f"c{n}", {"n": n}) for n in many]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, load).run("go")
    assert sorted(offered(endpoint.bodies[1])) == sorted(["load", *(f"t{n}" for n in many)])


async def test_each_run_starts_from_the_initial_set_and_the_list_of_the_caller_is_left_alone() -> None:
    """One run's changes are nobody else's."""
    tools = [changer(lambda ctx: ctx.add_tools(extra))]
    endpoint = FakeEndpoint([change_call()], [answer()], [answer()])
    face = runner(endpoint, *tools)
    await face.run("go")
    await face.run("go")
    assert offered(endpoint.bodies[2]) == ["change"]
    assert len(tools) == 1


async def test_the_live_list_shows_every_change_at_once() -> None:
    """By whoever made it."""
    seen: list[Any] = []

    def change(ctx: ptc.ToolContext) -> None:
        live = ctx.tools
        assert live is not None
        seen.append(len(live))
        ctx.add_tools(extra)
        seen.append(len(live))
        assert extra in live
        assert "extra" in live

    await run_once(change)
    assert seen == [1, 2]


async def test_outside_a_run_there_is_no_list_and_both_helpers_refuse() -> None:
    """An invoker alone has no model to offer anything to."""
    told: list[Any] = []

    def change(ctx: ptc.ToolContext) -> None:
        told.append(ctx.tools)
        for helper in (ctx.add_tools, ctx.remove_tools):
            with pytest.raises(RuntimeError, match="inside a run"):
                helper(extra)

    await ptc.Invoker([changer(change)]).invoke(Call("c1", "change", "{}"), RunContext("run_1"))
    assert told == [None]


def test_each_helper_warns_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a class and an id that can be filtered."""
    monkeypatch.setattr(ptc_tools.experimental, "_warned", set())
    exposure = LiveExposure([], programs=None)
    call = Call("c1", "change", "{}")
    context = ptc.ToolContext(RunContext("r", exposure=exposure), call, lambda *_: None)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            context.add_tools(extra)
            context.remove_tools(extra)
    assert [warning.category for warning in caught] == [ptc.ExperimentalWarning] * 2
    assert issubclass(ptc.ExperimentalWarning, UserWarning)
    assert all("[PROGRESSIVE_TOOLS]" in str(warning.message) for warning in caught)


# Programs


@ptc.tool(allowed_callers=["programmatic"])
def for_programs(x: int) -> int:
    """For programs alone."""
    return x


def local_call(caller_id: str | None = None) -> tuple[LiveExposure, Call]:
    exposure = LiveExposure([as_entry(extra)], programs="local")
    return exposure, Call("c1", "change", "{}", ptc.Program(caller_id) if caller_id else ptc.Direct())


def test_a_tool_that_a_local_program_called_changes_nothing() -> None:
    """The program's tools are fixed, and nothing that it reaches may widen them."""
    exposure, call = local_call("run_program_1")
    run = ptc.RunContext("r1", exposure=exposure)

    async def invoke(call: Call, run: ptc.RunContext) -> Outcome:
        raise AssertionError("nothing is called here")

    context = ptc.ToolContext(run, call, invoke)
    for change in (context.add_tools, context.remove_tools):
        with pytest.raises(RuntimeError, match="local program"):
            change(plain)
    assert len(exposure.entries) == 1
    assert [each.helper for each in run.programs.take_refusals()] == ["add_tools", "remove_tools"]


def test_a_tool_that_only_local_programs_could_call_is_not_added() -> None:
    """It would be offered to nobody."""
    exposure, call = local_call()
    with pytest.raises(RuntimeError, match="only programs could call"):
        exposure.add(call, for_programs)


async def test_a_tool_that_a_hosted_program_called_may_change_tools() -> None:
    """As one that the model called."""
    endpoint = FakeEndpoint([program(), change_call(caller=by_program())], [program_output(), answer()])
    change = changer(lambda ctx: ctx.add_tools(for_programs), allowed_callers=["programmatic"])
    await runner(endpoint, change, programs="hosted").run("go")
    assert offered(endpoint.bodies[1]) == ["change", "for_programs", "programmatic_tool_calling"]


async def test_what_an_open_program_may_call_stays_on_the_wire_and_is_denied() -> None:
    """The service refuses a continuation without it; the removal holds all the same."""
    both = ptc.tool(
        lambda: 1, name="both", allowed_callers=["programmatic"], output_schema={"type": "integer"}
    )
    endpoint = FakeEndpoint(
        [program(), change_call("a")],
        [function_call("both", "b", "{}", caller=by_program())],
        [program_output(), answer("mid", phase="commentary")],
        [answer()],
    )
    await runner(endpoint, changer(lambda ctx: ctx.remove_tools("both")), both, programs="hosted").run("go")
    assert "both" in offered(endpoint.bodies[1])
    assert outputs_in(endpoint.bodies[2])["b"]["error"]["type"] == "unknown_tool"
    assert "both" not in offered(endpoint.bodies[3])


async def test_the_programs_tool_is_not_removed_while_a_program_is_open() -> None:
    """Its continuation would be refused; afterwards it may go, and come back."""
    tool: Any = {"type": "programmatic_tool_calling"}
    told: list[str] = []

    def change(ctx: ptc.ToolContext) -> None:
        try:
            ctx.remove_tools(tool)
        except RuntimeError as error:
            told.append(str(error))

    endpoint = FakeEndpoint([program(), change_call("a")], [program_output(), change_call("b")], [answer()])
    await runner(endpoint, changer(change), programs="hosted").run("go")
    assert told == ["programmatic_tool_calling cannot be removed while a program is open"]
    assert [tool["type"] in offered(body) for body in endpoint.bodies] == [True, True, False]


async def test_other_hosted_tools_are_added_and_removed_too() -> None:
    """By their definition or by their type."""
    search: Any = {"type": "web_search"}

    def change(ctx: ptc.ToolContext) -> None:
        ctx.add_tools({"type": "code_interpreter", "container": {"type": "auto"}})
        ctx.remove_tools("web_search")

    assert await run_once(change, search) == ("changed", ["change", "code_interpreter"])


async def test_removing_every_tool_leaves_no_call_unanswered() -> None:
    """The batch is answered, the next request offers nothing, and a call to what was is denied."""

    def change(ctx: ptc.ToolContext) -> None:
        assert ctx.tools is not None
        ctx.remove_tools(list(ctx.tools))

    calls = [change_call("a"), function_call("extra", "b")]
    endpoint = FakeEndpoint(calls, [function_call("extra", "c")], [answer()])
    await runner(endpoint, changer(change), extra).run("go")
    assert set(outputs_in(endpoint.bodies[1])) == {"a", "b"}
    assert "tools" not in endpoint.bodies[1]
    assert outputs_in(endpoint.bodies[2])["c"]["error"]["type"] == "unknown_tool"


def tools_of(exposure: LiveExposure) -> list[str]:
    assert exposure.tools is not None
    return exposure.tools.names


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("adds", [True, False])
def test_what_two_calls_change_stays_when_one_of_them_fails(adds: bool, first: bool) -> None:
    """In whatever order they changed it and ended."""
    exposure = LiveExposure([] if adds else [as_entry(extra)], programs=None)
    one, two = Call("1", "change", "{}"), Call("2", "change", "{}")
    for call in (one, two):
        (exposure.add if adds else exposure.remove)(call, extra)
    for call in (one, two) if first else (two, one):
        exposure.settle(call, succeeded=call is two)
    assert tools_of(exposure) == (["extra"] if adds else [])


def test_removing_what_a_failed_call_had_added_brings_nothing_back() -> None:
    """Both are taken back: the tool was never there."""
    exposure = LiveExposure([], programs=None)
    one, two = Call("1", "change", "{}"), Call("2", "change", "{}")
    exposure.add(one, extra)
    exposure.remove(two, extra)
    for call in (one, two):
        exposure.settle(call, succeeded=False)
    assert tools_of(exposure) == []


async def test_the_programs_tool_comes_back_when_the_call_that_removed_it_fails() -> None:
    """As every other tool does."""

    def change(context: ptc.ToolContext) -> None:
        context.remove_tools("programmatic_tool_calling")
        raise ValueError("no")

    endpoint = FakeEndpoint([function_call("change", arguments="{}")], [answer()])
    await runner(endpoint, changer(change), programs="hosted").run("go")
    assert endpoint.bodies[1]["tools"][-1] == {"type": "programmatic_tool_calling"}


async def test_without_the_programs_tool_no_tool_for_programs_alone_is_sent() -> None:
    """The service would refuse the request."""

    @ptc.tool(allowed_callers=["programmatic"])
    def only() -> int:
        """Only."""
        return 1

    def change(context: ptc.ToolContext) -> None:
        context.remove_tools("programmatic_tool_calling")

    endpoint = FakeEndpoint([function_call("change", arguments="{}")], [answer()])
    await runner(endpoint, changer(change), only, programs="hosted").run("go")
    assert [tool["name"] for tool in endpoint.bodies[1]["tools"]] == ["change"]


async def test_the_function_of_a_tool_that_is_offered_is_that_tool() -> None:
    """Added again it is no change, and it is found in the list."""
    seen: list[object] = []

    def change(context: ptc.ToolContext) -> None:
        context.add_tools(plain)
        context.add_tools([plain])
        tools = context.tools
        assert tools is not None
        seen.extend([plain in tools, len(tools)])

    for given in (plain, ptc.tool(plain)):
        endpoint = FakeEndpoint([function_call("change", arguments="{}")], [answer()])
        await runner(endpoint, changer(change), given).run("go")
        assert outputs_in(endpoint.bodies[1])["c1"] == "changed"
    assert seen == [True, 2] * 2


async def test_a_callable_that_was_added_before_a_pause_is_known_after_it() -> None:
    """The same plain callable again is no change, in the run that goes on as well."""
    danger = ptc.tool(lambda: 1, name="danger", description="D.", approval="always")
    calls = [function_call("change", "a", "{}"), function_call("danger", "b", "{}")]
    endpoint = FakeEndpoint(calls, [function_call("change", "c", "{}")], [answer()])
    face = runner(
        endpoint, changer(lambda ctx: ctx.add_tools(plain)), danger, approver=ptc.PauseForApproval()
    )
    paused = await face.run("go")
    assert paused.state is not None
    await face.resume(paused.state, decisions={"b": ptc.Approve()})
    assert outputs_in(endpoint.bodies[2])["c"] == "changed"


async def test_all_tools_can_be_removed_by_their_list() -> None:
    """Also the live list itself; the calls are answered all the same."""
    endpoint = FakeEndpoint([function_call("change", arguments="{}")], [answer()])
    await runner(endpoint, changer(lambda ctx: ctx.remove_tools(ctx.tools)), extra).run("go")
    assert "tools" not in endpoint.bodies[1]
    assert outputs_in(endpoint.bodies[1])["c1"] == "changed"


@pytest.mark.parametrize("wrong", [int, object, 3.0, b"extra", None])
def test_what_is_no_tool_cannot_be_removed(wrong: object) -> None:
    """A class is callable and no tool."""
    exposure = LiveExposure([as_entry(extra)], programs=None)
    with pytest.raises(TypeError):
        exposure.remove(Call("1", "change", "{}"), wrong)


async def test_a_context_that_was_kept_changes_nothing_once_its_call_or_run_has_ended() -> None:
    """A thread that its deadline left behind changes no list."""
    kept: list[ptc.ToolContext] = []
    refused: list[str] = []

    def change(context: ptc.ToolContext) -> None:
        kept.append(context)
        if len(kept) == 2:
            with pytest.raises(RuntimeError) as error:
                kept[0].add_tools(extra)
            refused.append(str(error.value))
            context.add_tools(extra)

    calls = [[function_call("change", "a", "{}")], [function_call("change", "b", "{}")], [answer()]]
    await runner(FakeEndpoint(*calls), changer(change)).run("go")
    assert "the call runs" in refused[0]
    for helper in (kept[1].add_tools, kept[1].remove_tools):
        with pytest.raises(RuntimeError, match="has ended"):
            helper(extra)
    assert kept[1].tools is None


async def test_a_call_of_a_local_program_changes_no_tools_in_a_real_run() -> None:
    """Its tools are fixed. The same tool called by the model may, and the next program has what it added."""
    refused: list[str] = []

    @ptc.tool(allowed_callers=["direct", "programmatic"])
    def more() -> int:
        """More."""
        return 7

    @ptc.tool(allowed_callers=["programmatic"])
    def only() -> int:
        """Only."""
        return 8

    def change(context: ptc.ToolContext) -> None:
        for helper, given in (
            (context.add_tools, more),
            (context.remove_tools, "change"),
            (context.add_tools, only),
        ):
            try:
                helper(given)
            except RuntimeError as error:
                refused.append(str(error))

    run = {"code": "await change()"}
    endpoint = FakeEndpoint(
        [function_call("run_program", "p", run)],
        [function_call("add", "a", "{}")],
        [function_call("run_program", "q", {"code": "await more()"})],
        [answer()],
    )

    @ptc.tool
    def add(context: ptc.ToolContext) -> None:
        """Add."""
        with pytest.raises(RuntimeError, match="only programs"):
            context.add_tools(only)
        context.add_tools(more)

    changes = changer(change, allowed_callers=["direct", "programmatic"])
    await runner(endpoint, changes, add, programs="local").run("go")
    assert len(refused) == 3
    names = [[tool["name"] for tool in body["tools"]] for body in endpoint.bodies]
    assert names[1] == ["change", "add", "run_program"]
    assert names[2] == ["change", "add", "more", "run_program"]
    assert outputs_in(endpoint.bodies[3])["q"]["value"] == 7


@pytest.mark.parametrize("loser", ["fails", "is cancelled"])
@pytest.mark.parametrize("winner", ["first", "second"])
async def test_of_attempts_at_one_time_each_takes_back_its_own_changes(loser: str, winner: str) -> None:
    """A layer may hedge: what the attempt that gave the result has changed stays, also where the other one failed
    after it, and what that one changed goes."""
    changed = {"wins": asyncio.Event(), "loses": asyncio.Event()}
    begun: list[str] = []

    @ptc.tool(effects="read")
    async def load(context: ptc.ToolContext) -> str:
        """Load more tools."""
        begun.append("")
        wins = (len(begun) == 1) is (winner == "first")
        context.add_tools(extra if wins else plain)
        changed["wins" if wins else "loses"].set()
        await changed["loses" if wins else "wins"].wait()
        if wins:
            return "loaded"
        if loser == "fails":
            raise ValueError("no")
        await asyncio.Event().wait()
        return ""

    async def hedge(invocation: Any, next: Any) -> Any:
        waiting = {asyncio.create_task(next(invocation)) for _ in range(2)}
        while True:
            done, waiting = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
            outcome = next_good(done)
            if outcome is None:
                continue
            for task in waiting:
                if loser == "is cancelled":
                    task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            return outcome

    def next_good(done: Any) -> Any:
        return next((task.result() for task in done if isinstance(task.result(), ptc.Success)), None)

    endpoint = FakeEndpoint([function_call("load", arguments="{}")], [answer()])
    await runner(endpoint, load, middleware=[hedge]).run("go")
    assert offered(endpoint.bodies[1]) == ["load", "extra"]
