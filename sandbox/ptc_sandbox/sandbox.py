"""The sandbox: runs a program that must not be trusted, in a fresh confined process, with the tools it was granted.

This is the host's API. The program decides what it asks for; each call goes the one path
(`ptc_tools.invoke.Invoker`), and only that decides. How a program ended is a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

from ptc_sandbox import ending
from ptc_sandbox.confine import Confinement, Resources
from ptc_sandbox.errors import SandboxClosed
from ptc_sandbox.events import ProgramEvent
from ptc_sandbox.execution import Execution
from ptc_sandbox.forkserver import Child
from ptc_sandbox.journal import Entry, Journal, JournalHeader, digest
from ptc_sandbox.limits import Limits
from ptc_sandbox.pool import Pool
from ptc_sandbox.portal import Portal
from ptc_sandbox.program import Program
from ptc_sandbox.recording import Recording
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.serving import Serving
from ptc_sandbox.stubs import Stubs, ToolStub
from ptc_tools.call import Call
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.errors import RegistrationError
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Outcome
from ptc_tools.record import Recorder
from ptc_tools.tool import AnyTool, Tool, tool

T = TypeVar("T")
Invoke: TypeAlias = Callable[[Call, RunContext], Awaitable[Outcome]]
_KNOWN = 64
"""Sets of tools that are kept ready."""

POLICY_VERSION = 1
"""Moves when the language wall or the facades change what a program computes: a journal pins it."""


class Sandbox:
    """Runs programs, each in a process of its own.

    limits         bounds for each program; other bounds are another sandbox
    confinement    what the kernel must enforce; a level that this machine cannot reach is an error
    ahead          children kept forked and confined, waiting for a program
    concurrency    programs at once; more wait their turn
    language_wall  False runs plain CPython behind the kernel wall alone: for tests of that wall

    Use it as an async context manager, or call `aclose()`; for code without an event loop there are
    `run_sync` and `close`, which keep a loop of their own in a thread.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        confinement: Confinement | None = None,
        ahead: int = 2,
        concurrency: int = 64,
        language_wall: bool = True,
    ) -> None:
        self.limits = checked(limits, Limits, "limits", "a SandboxLimits") or Limits()
        self.confinement = (
            checked(confinement, Confinement, "confinement", "a Confinement, such as Confinement.strict()")
            or Confinement.default()
        )
        for name, value, least in (("ahead", ahead, 0), ("concurrency", concurrency, 1)):
            if type(value) is not int or value < least:
                raise ValueError(f"Sandbox({name}=…) is a whole number of {least} or more, not {value!r}")
        self._ahead = ahead
        self._concurrency = concurrency
        self._language_wall = language_wall
        self._pool: Pool | None = None
        self._running: set[Execution] = set()
        self._known: dict[int, tuple[object, Catalog, Stubs]] = {}
        wall = "language" if language_wall else f"{self.confinement.name} alone"
        self._policy = f"{wall}:{POLICY_VERSION}"
        self._closed = False
        self._portal = Portal()

    # -- running -------------------------------------------------------------------------------------

    async def run(
        self,
        code: str,
        *,
        tools: Iterable[AnyTool | Callable[..., Any]] = (),
        run: RunContext | None = None,
        invoke: Invoke | None = None,
        recorder: Recorder | None = None,
        caller_id: str | None = None,
        journal: Journal | None = None,
        header: JournalHeader | None = None,
        keep: Callable[[JournalHeader], list[Entry]] | None = None,
    ) -> ProgramResult:
        """Run `code` with `tools` and say how it ended.

        Plain functions become tools that programs may call; a `Tool` must allow programmatic callers.
        `invoke` is the path that calls take (an `Invoker` of these tools unless given), `caller_id` names
        the program in them, `recorder` is told of the program's start and end. `journal` resumes an earlier
        run by replay, `header` pins seed and clock. `keep` is given the journal's header before the program
        starts, and gives the list that its entries are appended to as they happen.

        Raises ConfinementUnavailable, SandboxClosed, SandboxBroken, ReplayDiverged, ReplayIncompatible; what
        the program did wrong is in the result.
        """
        catalog, stubs = self._granted(tools)
        context = run or RunContext(run_id=f"run_{token_hex(16)}")
        recording = Recording(recorder, context, caller_id or f"program_{token_hex(16)}")
        path = invoke or Invoker(catalog, recorder=recorder).invoke
        serving = Serving(path, catalog, recording, self.limits.calls_in_flight)
        program = self._program(code, stubs, journal, header, "real")
        context.programs.open(recording.caller_id, local=True)
        entries = None if keep is None else keep(program.header)
        try:
            recording.resumed = journal is not None
            await recording.started(code, program.header, self.limits, self.confinement.name, stubs.listed)
            result = ending.of_source(program.code, program.header, self.limits)
            if result is None:
                execution = await self._execute(program, journal, serving.on_event, entries)
                result = await serving.until_end(execution)
            await recording.finished(result)
            await recording.listen()
            return result
        finally:
            context.programs.close(recording.caller_id)

    async def start(
        self,
        code: str,
        *,
        tools: Iterable[ToolStub | AnyTool | Callable[..., Any]] = (),
        journal: Journal | None = None,
        header: JournalHeader | None = None,
        clock: Literal["real", "virtual"] = "real",
    ) -> Execution:
        """Start a program whose calls somebody else answers: pull `next_event()`, give `answer(…)`.

        The caller must see the execution to its end or `aclose()` it. Raises as `run` does, and ValueError
        for a program that is longer than `Limits.source_bytes`.
        """
        stubs: list[ToolStub] = []
        functions: list[AnyTool | Callable[..., Any]] = []
        for item in tools:
            if isinstance(item, ToolStub):
                stubs.append(item)
            else:
                functions.append(item)
        stubs += Stubs.of(programmatic_catalog(functions)).listed
        program = self._program(code, Stubs(stubs), journal, header, clock)
        refused = ending.of_source(code, program.header, self.limits)
        if refused is not None:
            raise ValueError(str(refused.error))
        return await self._execute(program, journal, None)

    def _program(
        self,
        code: str,
        stubs: Stubs,
        journal: Journal | None,
        header: JournalHeader | None,
        clock: Literal["real", "virtual"],
    ) -> Program:
        """The program with its header pinned to this machine, or the recorded one checked against it."""
        if not isinstance(code, str):
            raise TypeError(f"a program is a text, not {type(code).__name__}")
        checked(
            journal, Journal, "journal", "a Journal: Journal.from_json(…) makes one, Journal.unseal(…) too"
        )
        checked(header, JournalHeader, "header", "a JournalHeader: JournalHeader.new(…) makes one")
        wanted = journal.header if journal else header
        here = JournalHeader.new(
            seed=wanted.seed if wanted else None,
            epoch_us=wanted.epoch_us if wanted else None,
            policy=self._policy,
            stubs=stubs.digest,
            code=digest(code),
            clock=journal.header.clock if journal else clock,
        )
        if journal is not None:
            journal.header.check(here)
        return Program(code, stubs, here, self._language_wall)

    def _granted(self, tools: Iterable[AnyTool | Callable[..., Any]]) -> tuple[Catalog, Stubs]:
        """The tools as a catalog and as stubs; made once for a tuple or a catalog that comes again."""
        if not isinstance(tools, (tuple, Catalog)):
            catalog = programmatic_catalog(tools)
            return catalog, Stubs.of(catalog)
        known = self._known.get(id(tools))
        if known is None or known[0] is not tools:
            catalog = programmatic_catalog(tools)
            known = (tools, catalog, Stubs.of(catalog))
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[id(tools)] = known
        return known[1], known[2]

    async def _execute(
        self,
        program: Program,
        journal: Journal | None,
        sink: Callable[[Execution, ProgramEvent], None] | None,
        entries: list[Entry] | None = None,
    ) -> Execution:
        pool = self._open_pool()
        held = [await pool.acquire()]

        async def again() -> Child:
            pool.release(held.pop())
            held.append(await pool.acquire())
            return held[0]

        def on_end() -> None:
            self._running.discard(execution)
            for child in held:
                pool.release(child)

        recorded = journal.entries if journal else ()
        execution = Execution(
            held[0],
            program,
            self.limits,
            recorded=recorded,
            sink=sink,
            on_end=on_end,
            entries=entries,
            again=again,
        )
        self._running.add(execution)
        execution.begin()
        return execution

    # -- life ----------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxClosed("the sandbox is closed: make a new one")

    def _open_pool(self) -> Pool:
        self._check_open()
        loop = asyncio.get_running_loop()
        if self._pool is not None and self._pool.foreign:
            self._leave(self._pool)  # this process was forked: the pool is that of the one it was forked from
        if self._pool is not None and self._pool.loop is not loop:
            if not self._pool.loop.is_closed():
                raise SandboxClosed("this sandbox belongs to another event loop: make one for each loop")
            self._leave(self._pool)
        if self._pool is None:
            resources = Resources(
                memory=self.limits.memory_bytes,
                cpu_s=self.limits.cpu_seconds,
                programs=self._concurrency + self._ahead,
            )
            self._pool = Pool(self.confinement, resources, ahead=self._ahead, concurrency=self._concurrency)
        return self._pool

    def _leave(self, pool: Pool) -> None:
        """Be done with a pool whose event loop is not there any more."""
        self._pool = None
        self._running.clear()
        pool.abandon()

    async def warm_up(self) -> None:
        """Start the fork server and the children that wait. Raises what a first program would have raised."""
        await self._open_pool().warm_up()

    async def aclose(self) -> None:
        """End everything; programs that still run end as cancelled. Nothing is left afterwards."""
        self._closed = True
        pool = self._pool
        if pool is not None and (pool.foreign or pool.loop.is_closed()):
            self._leave(pool)
        for execution in tuple(self._running):
            execution.kill("cancelled", "the sandbox was closed")
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    async def __aenter__(self) -> Self:
        await self.warm_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- without an event loop -----------------------------------------------------------------------

    def run_sync(self, code: str, **options: Any) -> ProgramResult:
        """`run` for code without an event loop, from any thread; the same options. Close with `close()`."""
        self._check_open()
        result: ProgramResult = self._portal.call(lambda: self.run(code, **options))
        return result

    def close(self) -> None:
        """End everything that `run_sync` started."""
        self._portal.close(self.aclose)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def checked(value: T | None, kind: type[T], name: str, what: str) -> T | None:
    """`value` where it is of this kind or None. Raises TypeError that says what it should be."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} is {what}, not {type(value).__name__}")
    return value


def programmatic_catalog(tools: Iterable[AnyTool | Callable[..., Any]]) -> Catalog:
    """A catalog of tools that programs may call. A tool that does not say so is refused here, by name."""
    if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
        raise TypeError(f"tools are given as a list of tools or functions, not as {type(tools).__name__}")
    made = [
        item if isinstance(item, Tool) else tool(item, allowed_callers=["programmatic"]) for item in tools
    ]
    for item in made:
        if "programmatic" not in item.contract.allowed_callers:
            raise RegistrationError(
                f"the tool {item.contract.qualified_name!r} does not allow programs to call it:"
                ' register it with allowed_callers=["programmatic"]'
            )
    return Catalog(made)
