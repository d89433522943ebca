"""CodeAct: one code tool, typed stubs, and a set of tools that only the application changes, between runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from ptc_sandbox import CodeAct, Sandbox, code_tool
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext, ToolContext
from ptc_tools.contract import Contract
from ptc_tools.errors import DuplicateTool
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Denied, Outcome, Success
from ptc_tools.tool import tool
from tests.sandbox.granted import INTEGER, TOOLS, programmatic


class Stock(BaseModel):
    """What is there."""

    sku: str
    units: int = Field(description="units on the shelf")
    place: Literal["front", "back"] | None = None


@tool(allowed_callers=["programmatic"])
def get_stock(sku: str, place: Literal["front", "back"]) -> Stock:
    """Return the stock of an article."""
    return Stock(sku=sku, units=7, place=place)


async def test_the_code_tool_runs_a_program_on_the_one_path() -> None:
    """The model calls one tool; the program's calls are its own, with the code tool's call as their caller."""
    async with Sandbox() as sandbox:
        catalog = Catalog([code_tool(sandbox, [get_stock]), get_stock])
        call = Call(
            "call_1", "run_program", "{\"code\": \"(await get_stock(sku='a', place='back'))['units'] * 2\"}"
        )
        outcome = await Invoker(catalog).invoke(call, RunContext("run_1"))
    assert isinstance(outcome, Success)
    assert outcome.value == {"status": "completed", "value": 14}


async def test_a_program_that_fails_is_a_result_that_a_model_can_use() -> None:
    """How a program failed is a value: where, why, what it printed, how many calls were done."""
    async with Sandbox() as sandbox:
        catalog = Catalog([code_tool(sandbox, TOOLS), *TOOLS])
        call = Call("c", "run_program", '{"code": "print(1)\\nawait get(i=1)\\n1/0"}')
        outcome = await Invoker(catalog).invoke(call, RunContext("run_1"))
    assert isinstance(outcome, Success)
    told: Any = outcome.value
    assert told["status"] == "raised"
    assert told["output"] == "1\n"
    assert told["calls_completed"] == 1
    assert (told["error"]["type"], told["error"]["line"]) == ("ZeroDivisionError", 3)


def test_stubs_show_parameters_and_returns() -> None:
    """The model sees types both ways, enumerations as literals, optional fields, and the docs."""
    text = CodeAct(tools=[get_stock]).instructions
    assert "async def get_stock(*, sku: str, place: Literal['front', 'back']) -> " in text
    assert "Return the stock of an article." in text
    assert "units: int  # units on the shelf" in text
    assert "place: Literal['front', 'back'] | None" in text


def test_stubs_are_the_same_whatever_the_order_of_the_tools() -> None:
    """A prompt that changes with the order of registration would defeat caching."""
    assert CodeAct(tools=TOOLS).instructions == CodeAct(tools=reversed(TOOLS)).instructions


def test_stubs_keep_to_their_budget() -> None:
    """What does not fit is named, not dropped in silence."""
    many = [programmatic(f"tool_{n}", {"i": INTEGER}, lambda i: i, INTEGER) for n in range(300)]
    catalog = Catalog(many)
    text = code_tool(Sandbox(), catalog, budget=2000).contract.description
    assert len(text) < 10_000
    assert "left out for size" in text
    assert "tool_299" in text


@pytest.mark.parametrize("count", [60, 200, 1000])
@pytest.mark.parametrize("direct", [0, 3000])
def test_any_number_of_tools_fits_into_a_description(count: int, direct: int) -> None:
    """A catalog that is too large to be told is told in part, and does not make the code tool impossible."""
    many = [programmatic(f"tool_{n}", {"i": INTEGER}, lambda i: i, INTEGER) for n in range(count)]
    names = [f"direct_{n}" for n in range(direct)]
    text = code_tool(Sandbox(), Catalog(many), only_direct=names).contract.description
    assert "async def tool_0(" in text
    assert len(text) <= 16_384
    assert f"tool_{min(count, 200) - 1}" in text, "named, where it is not described"
    assert (" more" in text) == (count == 1000 or direct > 0)


def test_a_description_cannot_break_out_of_its_stub() -> None:
    """A tool's text comes from elsewhere; it stays inside its docstring."""
    nasty = programmatic(
        "nasty", {"i": {"type": "integer", "description": 'x"""\nimport os'}}, lambda i: i, INTEGER
    )
    assert '"""\nimport os' not in CodeAct(tools=[nasty]).instructions


async def test_tools_change_between_programs() -> None:
    """The application adds and removes; the next program sees it."""
    act = CodeAct(tools=TOOLS[:1])
    act.add_tools(*TOOLS[1:3])
    assert [item.contract.name for item in act.get_tools()] == ["get", "echo", "add"]
    with pytest.raises(DuplicateTool):
        act.add_tools(TOOLS[3], programmatic("get", {"i": INTEGER}, lambda i: i, INTEGER))
    assert len(act.get_tools()) == 3
    act.remove_tool("echo")
    act.remove_tool(TOOLS[0])
    with pytest.raises(KeyError, match="nothing"):
        act.remove_tool("nothing")
    assert (await act.run("await add(a=1, b=2)")).value == 3
    act.clear_tools()
    assert act.get_tools() == ()
    await act.aclose()


class Events:
    """A recorder that keeps the events of a program."""

    def __init__(self) -> None:
        self.told: list[tuple[str, JsonObject]] = []
        self.more = asyncio.Event()

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> object:
        return None

    async def finished(self, token: object, outcome: Outcome, duration_us: int) -> None: ...

    async def denied(
        self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext
    ) -> None: ...

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        self.told.append((type, data))
        self.more.set()

    @property
    def violations(self) -> list[str]:
        """What was refused to somebody who tried to change the tools, in order."""
        return [
            str(data["detail"])
            for kind, data in self.told
            if kind == "sandbox.violation" and data["rule"] == "tools_are_fixed"
        ]


async def test_a_tool_that_a_program_called_cannot_change_the_tools() -> None:
    """From the program, from a tool that it called, and from a thread of that tool: RuntimeError, nothing changed,
    and each attempt is in the record."""
    errors: list[str] = []

    def attempt(context: ToolContext) -> None:
        for change in (
            lambda: act.add_tools(TOOLS[0]),
            lambda: act.remove_tool("change"),
            act.clear_tools,
            lambda: context.add_tools(TOOLS[0]),
            lambda: context.remove_tools("change"),
        ):
            try:
                change()
            except RuntimeError as error:
                errors.append(str(error))

    @tool(allowed_callers=["programmatic"])
    def change(i: int, context: ToolContext) -> int:
        """Try to change what the program has."""
        attempt(context)
        thread = threading.Thread(target=attempt, args=(context,))
        thread.start()
        thread.join()
        return i

    events = Events()
    act = CodeAct(tools=[change])
    before = act.get_tools()
    result = await act.run(
        "r = await change(i=1)\ntry:\n    add_tools([r])\nexcept RuntimeError as e:\n    m = str(e)\nm",
        recorder=events,
    )
    assert "between runs" in str(result.value)
    assert len(errors) == 10
    assert all("between runs" in text for text in errors)
    assert act.get_tools() == before
    assert len(events.violations) == 11
    assert events.violations[0] == "add_tools() was refused"
    call_id = result.calls[0].call_id
    assert sum(call_id in text for text in events.violations) == 4
    await act.aclose()


async def test_a_context_that_was_kept_changes_no_tools_later() -> None:
    """A tool may keep its context; the program's tools are as fixed for it after the call."""
    kept: list[ToolContext] = []

    @tool(allowed_callers=["programmatic"])
    def keep(context: ToolContext) -> int:
        """Keep the context."""
        kept.append(context)
        return 1

    async with Sandbox() as sandbox:
        await sandbox.run("await keep()", tools=[keep])
    with pytest.raises(RuntimeError, match="fixed"):
        kept[0].add_tools(TOOLS[0])
    with pytest.raises(RuntimeError, match="fixed"):
        kept[0].remove_tools("keep")


async def test_removals_from_many_threads_all_hold() -> None:
    """A tool that one thread has removed is not put back by another that removes the next one."""
    many = [programmatic(f"tool_{n}", {"i": INTEGER}, lambda i: i, INTEGER) for n in range(24)]
    for _ in range(10):
        act = CodeAct(tools=many)
        threads = [threading.Thread(target=act.remove_tool, args=(f"tool_{n}",)) for n in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert act.get_tools() == ()
        await act.aclose()


async def eventually(events: Events, count: int) -> list[str]:
    """What was recorded, once there is so much."""
    async with asyncio.timeout(10):
        while len(events.violations) < count:
            events.more.clear()
            await events.more.wait()
    return events.violations


async def test_what_a_kept_context_tries_after_the_program_is_recorded_too() -> None:
    """A thread that outlives its program asks when nobody records for the program any more."""
    kept: list[ToolContext] = []

    @tool(allowed_callers=["programmatic"])
    def keep(context: ToolContext) -> int:
        """Keep the context."""
        kept.append(context)
        return 1

    def attempt() -> None:
        for change in (kept[0].add_tools, kept[0].remove_tools):
            with pytest.raises(RuntimeError, match="fixed"):
                change("keep")

    events = Events()
    act = CodeAct(tools=[keep])
    result = await act.run("await keep()", recorder=events)
    assert events.violations == []
    await asyncio.to_thread(attempt)
    told = await eventually(events, 2)
    call_id = result.calls[0].call_id
    assert told == [f"{name}() was refused in the call {call_id}" for name in ("add_tools", "remove_tools")]
    await act.aclose()


async def test_attempts_without_end_are_counted_for_each_program() -> None:
    """The record says how many there were, and one program's noise does not hide another's attempt."""

    @tool(allowed_callers=["programmatic"])
    def attempts(count: int, context: ToolContext) -> int:
        """Try so often."""
        for _ in range(count):
            with pytest.raises(RuntimeError):
                context.add_tools(TOOLS[0])
        return count

    events = Events()
    run = RunContext("run_1")
    async with Sandbox() as sandbox:
        noisy = "try:\n    await attempts(count=150)\nfinally:\n    await attempts(count=1)"
        waits = [sandbox.run(code, tools=[attempts], run=run, recorder=events) for code in (noisy, noisy)]
        await asyncio.gather(*waits)
        single = [text for text in events.violations if "more" not in text]
        assert len(single) == 202
        assert [text for text in events.violations if "more" in text] == [
            "50 more changes of the tools were refused"
        ] * 2
        loop = "for _ in range(130):\n    try:\n        add_tools([])\n    except RuntimeError:\n        pass"
        events.told.clear()
        await sandbox.run(loop, recorder=events)
        assert len(events.violations) == 101
        assert events.violations[-1] == "30 more changes of the tools were refused"
