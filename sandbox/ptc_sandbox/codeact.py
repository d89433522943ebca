"""CodeAct: the model sees one tool that runs a program, and the program calls the application's tools.

`code_tool` makes that one tool for a fixed set of tools; `CodeAct` keeps a set that the application changes
between runs. A program cannot change it, nor can a tool that a program called.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from secrets import token_hex
from typing import Any

from ptc_sandbox.engines.engine import Engine
from ptc_sandbox.rendering import named, render_stubs
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.sandbox import Sandbox, programmatic_catalog
from ptc_tools.call import JsonObject
from ptc_tools.catalog import Catalog
from ptc_tools.context import RefusedChange, RunContext, ToolContext
from ptc_tools.contract import MAX_DESCRIPTION
from ptc_tools.tool import AnyTool, Tool, define_tool

PROGRAM_TOOL = "run_program"
_GRACE_SECONDS = 30.0
_DIRECT = 4_000
"""Characters for the names of tools that programs do not have."""

_INSTRUCTIONS = """\
Run a Python program and get what it prints and the value of its last expression.
Do the whole job in one program where you can: loops, filters and sums belong in it, and only what you need to \
know belongs in its output.
- Tools are async functions with keyword arguments; use await, and asyncio.gather for several at once.
- A tool that fails raises ToolError (ToolDenied, ToolTimeout, ToolUncertain) at its await; catch it if you can.
- The program's value must be JSON: None, bool, int, float, str, list, dict with string keys.
- No files, network, environment or subprocesses. Modules: json, math, re, datetime, collections, itertools, \
functools, statistics, random, decimal, fractions, heapq, bisect, string, textwrap, csv, io, enum, dataclasses, \
typing, operator, uuid, hashlib, base64, copy, time, asyncio.
- Nothing is kept between programs."""


def instructions(
    catalog: Catalog, *, budget: int = 24_000, only_direct: Iterable[str] = (), searchable: bool = False
) -> str:
    """What the model reads about the code tool: the rules, then a typed stub for each tool of `catalog`.

    `only_direct` names tools that it has and that are not for programs: a program finds no such name.
    `searchable`: more tools can be loaded before a program starts.
    """
    rules = _INSTRUCTIONS
    if searchable:
        rules += (
            "\n- There are more tools than are described here: search and load them before you run a program, which"
            " cannot. What was loaded is there under the name in its signature."
        )
    if names := list(only_direct):
        words = "\n- Not in programs, where these names do not exist; call them yourself, directly: "
        rules += f"{named(words, names, _DIRECT)}."
    stubs = render_stubs(
        ((name, tool.contract) for name, tool in catalog.program_names.items()),
        budget=budget,
        most=MAX_DESCRIPTION - len(rules) - len("\n\nTools:\n\n"),
    )
    none = "No tool is there but those that you load." if searchable else "There are no tools."
    return f"{rules}\n\nTools:\n\n{stubs}" if stubs else f"{rules}\n\n{none}"


def code_tool(
    sandbox: Engine,
    tools: Iterable[Tool[..., Any] | Callable[..., Any]],
    *,
    name: str = PROGRAM_TOOL,
    budget: int = 24_000,
    only_direct: Iterable[str] = (),
    loaded: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
    searchable: bool = False,
    grants: bool = True,
) -> AnyTool:
    """The tool `name(code)` that runs a program with `tools` in `sandbox`.

    `loaded`: tools that programs have as well, and that the model was told of elsewhere: the description stays
    as it is when one is loaded. `only_direct`, `searchable`: see `instructions`.

    The program's calls take the path that called the code tool, as calls of a program whose `caller_id` is
    that call's id. `grants`: that path need not know the tools itself; False leaves all to its own catalog. The
    tool succeeds however the program ended: its result says how (`describe`).
    """
    catalog = programmatic_catalog(tools)
    text = instructions(catalog, budget=budget, only_direct=only_direct, searchable=searchable)
    if loaded := list(loaded):
        catalog = programmatic_catalog([*catalog, *loaded])
    return _code_tool(sandbox.run, catalog, name, text, sandbox.limits.wall_seconds, grants=grants)


def _code_tool(
    run: Callable[..., Awaitable[ProgramResult]],
    catalog: Catalog,
    name: str,
    description: str,
    wall_seconds: float,
    *,
    grants: bool,
) -> AnyTool:
    async def run_program(code: str, context: ToolContext) -> dict[str, Any]:
        if grants:
            context.run.programs.grant(context.call.call_id, catalog.resolve)
        result = await run(
            code,
            tools=catalog,
            run=context.run,
            invoke=context.invoke,
            recorder=context.recorder,
            caller_id=context.call.call_id,
        )
        return describe(result)

    definition: JsonObject = {
        "type": "function",
        "name": name,
        "description": description,
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The program, in Python."}},
            "required": ["code"],
            "additionalProperties": False,
        },
    }
    return define_tool(definition, run_program, timeout=wall_seconds + _GRACE_SECONDS)


def describe(result: ProgramResult) -> JsonObject:
    """A program's end as the model reads it: status, value and output, or what went wrong and where."""
    told: JsonObject = {"status": result.status}
    if result.ok:
        told["value"] = result.value
    if result.output:
        told["output"] = result.output
    if result.error is not None:
        error = {key: value for key, value in asdict(result.error).items() if value is not None}
        told["error"] = error
        told["calls_completed"] = sum(call.outcome is not None for call in result.calls)
    return told


class CodeAct:
    """A sandbox and a set of tools that the application may change between programs.

    While a program of this CodeAct runs, `add_tools`, `remove_tool` and `clear_tools` raise RuntimeError,
    whoever calls them: a tool that the program called, or a thread of that tool, must not widen what the
    program can reach. `tool()` gives the code tool for the set as it is now; that set then stays as it is.
    """

    def __init__(
        self,
        *,
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
        sandbox: Engine | None = None,
        name: str = PROGRAM_TOOL,
    ) -> None:
        self.sandbox: Engine = sandbox or Sandbox()
        self.name = name
        self._catalog = programmatic_catalog(tools)
        self._running: list[tuple[RunContext, str]] = []
        self._lock = threading.Lock()

    def get_tools(self) -> tuple[AnyTool, ...]:
        """The tools that the next program gets."""
        return tuple(self._catalog)

    def add_tools(self, *tools: Tool[..., Any] | Callable[..., Any]) -> None:
        """Add tools for the programs to come: all of them, or none where one is refused (DuplicateTool)."""
        self._change("add_tools", lambda: programmatic_catalog([*self._catalog, *tools]))

    def remove_tool(self, tool: AnyTool | str) -> None:
        """Remove a tool, by itself or by the name that programs use. Raises KeyError for one that is not there."""

        def without() -> Catalog:
            there = self._catalog.program_names.items()
            kept = [item for name, item in there if item is not tool and name != tool]
            if len(kept) == len(there):
                raise KeyError(f"there is no tool {tool!r} to remove")
            return programmatic_catalog(kept)

        self._change("remove_tool", without)

    def clear_tools(self) -> None:
        """Remove every tool."""
        self._change("clear_tools", lambda: programmatic_catalog(()))

    def _change(self, what: str, make: Callable[[], Catalog]) -> None:
        with self._lock:
            refusals = [  # whoever asks: it is recorded with every program that runs
                run.programs.refuse_change(RefusedChange(what, caller_id)) for run, caller_id in self._running
            ]
            if refusals:
                raise refusals[0]
            self._catalog = make()

    @property
    def instructions(self) -> str:
        """What the model would read about the code tool now."""
        return instructions(self._catalog)

    def tool(self) -> AnyTool:
        """The code tool for a run, with the tools as they are now."""
        return _code_tool(
            self._run,
            self._catalog,
            self.name,
            self.instructions,
            self.sandbox.limits.wall_seconds,
            grants=True,
        )

    async def run(self, code: str, **options: Any) -> ProgramResult:
        """Run one program with the tools as they are now; the options of `Sandbox.run`."""
        return await self._run(code, tools=self._catalog, **options)

    async def _run(
        self, code: str, *, run: RunContext | None = None, caller_id: str | None = None, **options: Any
    ) -> ProgramResult:
        """`Sandbox.run`, and while it runs nobody changes the tools."""
        run = run or RunContext(f"run_{token_hex(16)}")
        caller_id = caller_id or f"program_{token_hex(16)}"
        with self._lock:
            self._running.append((run, caller_id))
        try:
            return await self.sandbox.run(code, run=run, caller_id=caller_id, **options)
        finally:
            with self._lock:
                self._running.remove((run, caller_id))

    async def aclose(self) -> None:
        """Close the sandbox."""
        await self.sandbox.aclose()
