"""Programs that run here: the code tool in the loop, on the same path, under the same limits."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in


@ptc.tool(allowed_callers=["programmatic"])
async def get_units(sku: str) -> int:
    """Units of a SKU."""
    if sku == "bad":
        raise ValueError("no such SKU")
    return len(sku)


@ptc.tool
def note(text: str) -> str:
    """Write a note."""
    return text


def run_program(code: str, call_id: str = "c1") -> dict[str, Any]:
    return function_call("run_program", call_id, {"code": code})


def runner(endpoint: FakeEndpoint, *tools: Any, **options: Any) -> ptc.Runner:
    options = {"programs": "local", "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=tools or (get_units, note), **options)


async def run(code: str, *tools: Any, **options: Any) -> tuple[Any, Any]:
    """(the code tool's output, the run's result)."""
    endpoint = FakeEndpoint([run_program(code)], [answer()])
    result = await runner(endpoint, *tools, **options).run("go")
    return outputs_in(endpoint.bodies[1])["c1"], result


async def test_the_model_sees_the_code_tool_and_not_what_only_programs_may_call() -> None:
    """And nothing of the hosted runtime's own fields."""
    endpoint = FakeEndpoint([answer()])
    await runner(endpoint).run("go")
    names = [tool["name"] for tool in endpoint.bodies[0]["tools"]]
    assert names == ["note", "run_program"]
    assert "get_units" in endpoint.bodies[0]["tools"][1]["description"]
    assert not any("allowed_callers" in tool for tool in endpoint.bodies[0]["tools"])


async def test_a_local_program_and_its_calls_are_in_the_result() -> None:
    """With the code tool's call as their caller."""
    code = "a, b = await asyncio.gather(get_units(sku='x'), get_units(sku='yy'))\na + b"
    output, result = await run("import asyncio\n" + code)
    assert output == {"status": "completed", "value": 3}
    assert [(report.call.name, report.call.caller) for report in result.calls] == [
        ("run_program", ptc.Direct()),
        ("get_units", ptc.Program("c1")),
        ("get_units", ptc.Program("c1")),
    ]
    (program,) = result.programs
    assert (program.call_id, program.language, program.result, program.status) == (
        "c1",
        "python",
        "3",
        "completed",
    )


async def test_calls_of_a_local_program_pass_middleware_and_limits() -> None:
    """The one path, whatever the caller."""
    seen: list[str] = []

    async def watch(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        seen.append(f"{invocation.call.name} {invocation.caller.kind}")
        return await next(invocation)

    code = "\n".join(
        (
            "done = 0",
            "try:",
            "    for n in range(5):",
            "        await get_units(sku='x')",
            "        done += 1",
            "except ToolDenied as error:",
            "    print(error)",
            "done",
        )
    )
    output, _ = await run(code, middleware=[watch], limits=ptc.Limits(max_calls_per_program=2))
    assert output["value"] == 2
    assert "one program may make 2 calls" in output["output"]
    assert seen == ["run_program direct", "get_units programmatic", "get_units programmatic"]


CATCHING = "try:\n    await get_units(sku='bad')\nexcept ToolError:\n    caught = 1\ncaught"


async def test_a_failing_tool_is_an_exception_that_the_program_can_catch() -> None:
    """As in any Python program; the run goes on."""
    output, _ = await run(CATCHING)
    assert output == {"status": "completed", "value": 1}


async def test_a_failing_tool_ends_the_program_where_the_application_wants_an_exception() -> None:
    """`on_tool_error="raise"` means the same wherever programs run: the program does not get to hide it."""
    with pytest.raises(ptc.ToolCallError) as error:
        await run(CATCHING, on_tool_error="raise")
    assert isinstance(error.value, ptc.ToolCallFailed)
    assert (error.value.call.name, error.value.call.caller.kind) == ("get_units", "programmatic")
    assert [item["type"] for item in error.value.items] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert not error.value.safe_to_retry


async def test_what_a_local_program_may_not_call_is_denied() -> None:
    """A tool for the model alone is not a function of the program."""
    output, result = await run("await note(text='x')")
    assert output["status"] in ("raised", "denied")
    assert [report.call.name for report in result.calls] == ["run_program"]


@pytest.mark.filterwarnings("ignore::ptc.ExperimentalWarning")
async def test_the_tools_of_a_run_cannot_be_changed_from_a_local_program() -> None:
    """Not by the program, and not by a tool that it called."""
    told: list[str] = []

    @ptc.tool(allowed_callers=["programmatic"])
    def widen(context: ptc.ToolContext) -> int:
        """Try to get more."""
        try:
            context.add_tools(note)
        except RuntimeError as error:
            told.append(str(error))
        return 1

    code = "await widen()\ntry:\n    add_tools([])\nexcept RuntimeError:\n    refused = 1\nrefused"
    endpoint = FakeEndpoint([run_program(code)], [answer()])
    await runner(endpoint, widen).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"] == {"status": "completed", "value": 1}
    assert "the tools of a local program are fixed" in told[0]
    assert endpoint.bodies[0]["tools"] == endpoint.bodies[1]["tools"]


async def test_a_forced_program_is_the_code_tool_here() -> None:
    """The same choice means the same, wherever programs run."""
    endpoint = FakeEndpoint([run_program("1")], [answer()])
    await runner(endpoint, tool_choice={"type": "programmatic_tool_calling"}).run("go")
    assert endpoint.bodies[0]["tool_choice"] == {"type": "function", "name": "run_program"}


async def test_cancelling_a_run_ends_its_program() -> None:
    """The call inside it too."""
    began, ended = asyncio.Event(), asyncio.Event()

    @ptc.tool(allowed_callers=["programmatic"])
    async def hang() -> int:
        """Hang."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    endpoint = FakeEndpoint([run_program("await hang()")])
    task = asyncio.create_task(runner(endpoint, hang).run("go"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_one_sandbox_serves_many_runs() -> None:
    """The application owns it, and one run more costs no process of its own."""
    async with ptc.Sandbox() as sandbox:
        endpoint = FakeEndpoint(*[turn for _ in range(3) for turn in ([run_program("1 + 1")], [answer()])])
        face = runner(endpoint, sandbox=sandbox)
        for _ in range(3):
            result = await face.run("go")
            assert result.programs[0].result == "2"


def test_local_programs_run_for_callers_without_a_loop() -> None:
    """The sample's way."""
    endpoint = FakeEndpoint([run_program("await get_units(sku='abc')")], [answer()])
    assert runner(endpoint).run_sync("go").programs[0].result == "3"


def named(name: str, **options: Any) -> Any:
    def anything() -> int:
        return 1

    return ptc.tool(anything, name=name, description="Anything.", **options)


@pytest.mark.parametrize("programs", ["local", "auto"])
@pytest.mark.parametrize(
    ("name", "search"), [("run_program", None), ("search_tools", "lexical"), ("load", "lexical")]
)
def test_a_tool_cannot_have_the_name_of_the_loops_own(name: str, search: Any, programs: Any) -> None:
    """The model would mean one and get the other; in a namespace it is another name."""
    options: dict[str, Any] = {"programs": programs, "search": search, "max_output_tokens": 1000}
    if search is None:
        del options["max_output_tokens"]
    with pytest.raises(ptc.ConfigurationError, match="namespace"):
        runner(FakeEndpoint(), named(name), **options)
    assert runner(FakeEndpoint(), named(name, namespace="mine"), **options)


async def test_a_tool_of_the_code_tools_name_cannot_be_added() -> None:
    """It is refused there, and does not end the run at its next request."""
    tried: list[str] = []

    @ptc.tool
    def add(context: ptc.ToolContext) -> str:
        """Add a tool."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptc.ExperimentalWarning)
            with pytest.raises(ptc.ConfigurationError, match="run_program"):
                context.add_tools([named("other"), named("run_program")])
        tried.append("refused")
        return "done"

    endpoint = FakeEndpoint([function_call("add", "a", {})], [run_program("1 + 1")], [answer()])
    result = await runner(endpoint, add).run("go")
    assert (tried, result.output_text) == (["refused"], "done")
    assert [tool["name"] for tool in endpoint.bodies[1]["tools"]] == ["add", "run_program"]
