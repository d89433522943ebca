"""A second engine: `pydantic-monty`, an interpreter of its own in a worker process behind our kernel wall.

Each program gets a fresh worker, confined before it is executed and used once. The host's limits are ours, and
every call goes the one path. What it cannot keep of the conformance suite is in `EXCEPTIONS`, with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from secrets import randbits, token_hex
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from ptc_sandbox import ending
from ptc_sandbox.confine import Confinement, LayerReport
from ptc_sandbox.engines.engine import Invoke
from ptc_sandbox.engines.native import Launcher
from ptc_sandbox.errors import EngineUnavailable, SandboxBroken, SandboxClosed
from ptc_sandbox.journal import JournalHeader, digest
from ptc_sandbox.limits import Limits
from ptc_sandbox.recording import Recording
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.sandbox import programmatic_catalog
from ptc_sandbox.serving import Serving
from ptc_sandbox.stubs import Stubs
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.record import Recorder
from ptc_tools.tool import AnyTool

if TYPE_CHECKING:
    import pydantic_monty

    from ptc_sandbox.engines.monty_program import MontyProgram
    from ptc_sandbox.engines.monty_worker import Worker

EXCEPTIONS: Final = MappingProxyType(
    {
        "two failing tools are both catchable": (
            "the interpreter's gather() does not know return_exceptions; await each call in a try of its own"
        ),
        "code from text": (
            "the interpreter has eval() and exec() of its own; what they run is as confined as the program"
        ),
        "a value that holds itself": (
            "a cycle leaves the interpreter as the text '[...]', which the host cannot tell from a string"
        ),
    }
)
"""The cases of `ptc_sandbox.engines.conformance` that this engine cannot keep, each with its reason."""

_OTHER_SUSPENSIONS: Final = 100_000
"""Lookups of names and waits, which the pool counts together with calls. The wall clock bounds them too."""


_GRACE_SECONDS: Final = 10.0
"""Beyond the wall clock of a program, until a worker that does not even take one is given up by the pool."""


class MontyEngine:
    """Runs programs in `pydantic-monty` workers, each in a process of its own.

    limits         bounds for each program
    confinement    what the kernel must enforce around a worker; see docs/engines.md for what each layer is here
    ahead          workers kept started and confined, waiting for a program
    concurrency    programs at once; more wait their turn
    binary         the worker's executable, when it is not where `pydantic-monty` finds it

    Use it as an async context manager, or call `aclose()`. Raises EngineUnavailable without the extra `monty`.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        confinement: Confinement | None = None,
        ahead: int = 2,
        concurrency: int = 16,
        binary: str | None = None,
    ) -> None:
        self._monty = _package()
        self.limits = limits or Limits()
        self.confinement = confinement or Confinement.default()
        self.layers: tuple[LayerReport, ...] = ()
        """What holds around a worker; known after the first program or `warm_up`."""
        self._ahead = ahead
        self._concurrency = concurrency
        self._binary = binary
        self._policy = f"monty {self._monty.__version__}"
        self._launcher: Launcher | None = None
        self._pool: pydantic_monty.AsyncMonty | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._turns = asyncio.Semaphore(concurrency)
        self._ready: deque[Worker] = deque()
        self._spawning: set[asyncio.Task[None]] = set()
        self._running: set[MontyProgram] = set()
        self._closed = False

    async def run(
        self,
        code: str,
        *,
        tools: Iterable[AnyTool | Callable[..., Any]] = (),
        run: RunContext | None = None,
        invoke: Invoke | None = None,
        recorder: Recorder | None = None,
        caller_id: str | None = None,
    ) -> ProgramResult:
        """Run `code` with `tools` and say how it ended. As `Sandbox.run`, but nothing can be replayed.

        Raises ConfinementUnavailable, SandboxClosed, SandboxBroken; what the program did wrong is in the result.
        """
        catalog = programmatic_catalog(tools)
        stubs = Stubs.of(catalog)
        context = run or RunContext(run_id=f"run_{token_hex(16)}")
        recording = Recording(recorder, context, caller_id or f"program_{token_hex(16)}")
        path = invoke or Invoker(catalog, recorder=recorder).invoke
        serving = Serving(path, catalog, recording, self.limits.calls_in_flight)
        await self._open()
        async with self._turns:
            worker = await self._take()
            try:
                header = JournalHeader.new(
                    seed=worker.seed, policy=self._policy, stubs=stubs.digest, code=digest(code)
                )
                context.programs.open(recording.caller_id, local=True)
                try:
                    await recording.started(code, header, self.limits, self.confinement.name, stubs.listed)
                    result = ending.of_source(code, header, self.limits)
                    if result is None:
                        result = await self._serve(worker, code, stubs, header, serving)
                    await recording.finished(result)
                    await recording.listen()
                    return result
                finally:
                    context.programs.close(recording.caller_id)
            finally:
                await worker.aclose()

    async def _serve(
        self, worker: Worker, code: str, stubs: Stubs, header: JournalHeader, serving: Serving
    ) -> ProgramResult:
        from ptc_sandbox.engines.monty_program import MontyProgram

        program = MontyProgram(worker, code, stubs, header, self.limits, serving.on_event)
        self._running.add(program)
        try:
            return await serving.until_end(program)
        finally:
            await program.aclose()
            self._running.discard(program)

    # -- workers -------------------------------------------------------------------------------------

    async def _take(self) -> Worker:
        """A worker that waits, or a new one. Another is started in its place."""
        worker: Worker | None = None
        while worker is None:
            worker = self._ready.popleft() if self._ready else await self._spawn()
            if not worker.alive:
                await worker.aclose()
                worker = None
        if self._closed:  # while it was started
            await worker.aclose()
            raise SandboxClosed("the engine was closed")
        self._refill()
        return worker

    def _refill(self) -> None:
        while not self._closed and len(self._ready) + len(self._spawning) < self._ahead:
            task = asyncio.get_running_loop().create_task(self._spawn_ahead())
            self._spawning.add(task)
            task.add_done_callback(self._spawning.discard)

    async def _spawn_ahead(self) -> None:
        with contextlib.suppress(SandboxBroken, SandboxClosed):  # whoever needs one is told
            self._ready.append(await self._spawn())

    async def _spawn(self) -> Worker:
        from ptc_sandbox.engines.monty_program import PRELUDE
        from ptc_sandbox.engines.monty_worker import Worker

        if self._pool is None:
            raise SandboxClosed("the engine is closed: make a new one")
        seed = randbits(63)
        suspensions = 2 * self.limits.calls + 2 * self.limits.ticks + _OTHER_SUSPENSIONS
        session = self._pool.checkout(
            limits={"max_memory": self.limits.memory_bytes, "max_suspensions": suspensions},
            os_policy={"sleep": "call_host", "random_start": {"seed": seed}},
        )
        try:
            await session.__aenter__()
        except (self._monty.MontyError, OSError, RuntimeError) as error:
            raise SandboxBroken(f"no worker can be started: {error}") from None
        try:
            await session.feed_run(PRELUDE)
            return Worker(session, seed)
        except BaseException as error:
            await session.__aexit__(None, None, None)
            if isinstance(error, (self._monty.MontyError, OSError)):
                raise SandboxBroken(f"a worker ended before its program: {error}") from None
            raise

    # -- life ----------------------------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise SandboxClosed("this engine belongs to another event loop: make one for each loop")
        self._loop = loop
        async with self._opening:
            if self._closed:
                raise SandboxClosed("the engine is closed: make a new one")
            if self._pool is not None:
                return
            binary = self._binary or _find_binary()
            launcher = await asyncio.to_thread(
                Launcher,
                binary,
                self.confinement,
                memory=self.limits.memory_bytes,
                cpu_s=self.limits.cpu_seconds,
            )
            try:
                await asyncio.to_thread(launcher.rehearse)
                pool = self._monty.AsyncMonty(
                    binary_path=launcher.path,
                    min_processes=1,
                    max_processes=self._concurrency + self._ahead,
                    max_checkouts_per_worker=1,
                    request_timeout=self.limits.wall_seconds + _GRACE_SECONDS,
                )
                await pool.__aenter__()
            except BaseException:
                launcher.close()
                raise
            self._launcher, self._pool, self.layers = launcher, pool, launcher.layers

    async def warm_up(self) -> None:
        """Start the workers that wait. Raises what a first program would have raised."""
        await self._open()
        self._ready.append(await self._take())

    async def aclose(self) -> None:
        """End everything; programs that still run end as cancelled. Nothing is left afterwards."""
        self._closed = True
        for program in tuple(self._running):
            program.kill("cancelled", "the engine was closed")
        for program in tuple(self._running):
            await program.aclose()
        while self._spawning:
            await asyncio.wait(self._spawning)
        while self._ready:
            await self._ready.popleft().aclose()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)
        if self._launcher is not None:
            self._launcher.close()

    async def __aenter__(self) -> Self:
        await self.warm_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _package() -> Any:
    try:
        import pydantic_monty
    except ImportError:
        raise EngineUnavailable(
            "the engine needs the package pydantic-monty: install it by `pip install 'ptc-runner[monty]'`"
        ) from None
    return pydantic_monty


def _find_binary() -> str:
    from pydantic_monty import _binary

    try:
        return _binary.find_monty_binary()
    except FileNotFoundError as error:
        raise EngineUnavailable(f"{error}; or pass MontyEngine(binary=…)") from None
