"""One program in a Monty worker: the driver between the interpreter's snapshots and whoever answers its calls.

It speaks to `Serving` as an `Execution` of ours does, so calls go the same path with the same bounds. What
comes out of the interpreter is checked here before anybody sees it; it never looks tools up or runs them.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pydantic_monty as monty

from ptc_sandbox import ending
from ptc_sandbox.engines.monty_worker import Worker
from ptc_sandbox.events import Blocked, CallRequested, ChangeRefused, ProgramEvent
from ptc_sandbox.journal import Answer, CallAnswered, CallMade, Entry, Journal, JournalHeader
from ptc_sandbox.limits import Limits
from ptc_sandbox.printed import Printed
from ptc_sandbox.result import ProgramError, ProgramResult, Status
from ptc_sandbox.stubs import Stubs, ToolStub
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.outcome import Outcome

Snapshot: TypeAlias = (
    monty.AsyncFunctionSnapshot
    | monty.AsyncNameLookupSnapshot
    | monty.AsyncFutureSnapshot
    | monty.MontyComplete
)
Reply: TypeAlias = dict[str, Any]

RESERVED: Final = ("add_tools", "remove_tools")
_FUTURE: Final[Reply] = {"future": ...}
_SOURCE: Final = "<python-input-1>"
"""How the interpreter calls the program's text: the second that a session is fed, after `PRELUDE`."""
PRELUDE: Final = (
    "ToolError = Exception\nToolDenied = PermissionError\n"
    "ToolTimeout = TimeoutError\nToolUncertain = NotImplementedError\n"
)
"""The names by which programs catch what tools do. The host can raise only what the interpreter has, so each
is one of its exceptions, and one that no other outcome of a tool is."""
_KINDS: Final = {"timeout": "TimeoutError", "uncertain": "NotImplementedError"}
_REFUSALS: Final = 100
_SIGNAL: Final = re.compile(r"signal: (\d+)")


class MontyProgram:
    """A running program. `sink` is called with each of its calls; `answer` lets it go on."""

    def __init__(
        self,
        worker: Worker,
        code: str,
        stubs: Stubs,
        header: JournalHeader,
        limits: Limits,
        sink: Callable[[MontyProgram, ProgramEvent], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = worker
        self._code = code
        self._source = code.encode()
        self._stubs = stubs
        self._header = header
        self._limits = limits
        self._sink = sink
        self._entries: list[Entry] = []
        self._printed = Printed(limits.output_bytes)
        self._ticks = self._refusals = self._made = 0
        self._numbers: dict[int, int] = {}
        self._waiting: dict[int, str] = {}
        self._replies: dict[int, Reply] = {}
        self._moved = asyncio.Event()
        self._refused_os: str | None = None
        self._started_ns = time.monotonic_ns()
        self._deadline = self._loop.call_later(limits.wall_seconds, self._out_of_time)
        self.ended: asyncio.Future[ProgramResult] = self._loop.create_future()
        self._over = False
        self._driving = self._loop.create_task(self._drive())

    # -- for whoever answers -------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the program has ended, or is being ended: nothing of it may start any more."""
        return self._over

    def answer(self, number: int, outcome: Outcome) -> None:
        """Answer a call."""
        if self._over:
            return
        answer = Answer.of(outcome)
        if answer.ok:
            try:
                self._checked(answer.value, self._limits.answer_bytes, "the result")
            except InvalidJson as error:
                message = f"the result cannot enter the program: {error.message}"
                answer = Answer(False, {"status": "failure", "code": "invalid_result", "message": message})
        del self._waiting[number]
        self._entries.append(CallAnswered(number, answer, self._now_us()))
        self._reply(number, {"return_value": answer.value} if answer.ok else _exception(answer.value))

    def kill(self, status: Status, message: str) -> None:
        """End the program from outside, at once."""
        self._stop(status, ProgramError("Killed", message, wall="host"), ending.by_host(status))

    async def aclose(self) -> None:
        """End it if it still runs, and wait until its process is gone."""
        self.kill("cancelled", "the program was given up")
        await asyncio.shield(self._driving)

    # -- driving -------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        try:
            snapshot: Snapshot = await self._worker.session.feed_start(self._code, print_callback=self._print)
            while not self._over and not isinstance(snapshot, monty.MontyComplete):
                snapshot = await self._step(snapshot)
            if isinstance(snapshot, monty.MontyComplete):
                self._complete(snapshot)
        except monty.MontyCrashedError as crash:
            self._stop(*self._of_crash(crash))
        except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
            self._stop(*self._of_error(error))
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            self.kill("cancelled", "the event loop gave the program up")
            raise
        except BaseException as error:  # noqa: BLE001 -- whatever a hostile worker made of its client, panics too
            message = f"the worker sent what cannot be read ({type(error).__name__})"
            self._stop("killed:protocol", ProgramError("Killed", message, wall="host"), str(error)[:200])
        finally:
            await self._worker.aclose()

    async def _step(
        self,
        snapshot: monty.AsyncFunctionSnapshot | monty.AsyncNameLookupSnapshot | monty.AsyncFutureSnapshot,
    ) -> Snapshot:
        match snapshot:
            case monty.AsyncNameLookupSnapshot():
                return await self._look_up(snapshot)
            case monty.AsyncFutureSnapshot():
                return await snapshot.resume(await self._settled(snapshot.pending_call_ids))  # type: ignore[arg-type]
        if snapshot.is_os_function:
            return await self._on_os_call(snapshot)
        return await snapshot.resume(self._on_call(snapshot))  # type: ignore[arg-type]

    async def _look_up(self, snapshot: monty.AsyncNameLookupSnapshot) -> Snapshot:
        """A name that the program did not define: a tool by name, or nothing."""
        name = snapshot.variable_name
        known = self._stubs.get(name) is not None or name in RESERVED
        if snapshot.object_id is not None or not known:
            return await snapshot.resume()

        def tool() -> None:
            """Stands for the tool inside the interpreter; only its name crosses, and it is never called here."""

        tool.__name__ = tool.__qualname__ = name
        return await snapshot.resume(value=tool)

    async def _on_os_call(self, snapshot: monty.AsyncFunctionSnapshot) -> Snapshot:
        """Sleeping is waited for here; all else that the interpreter would ask of the system is refused."""
        name = str(snapshot.function_name)
        if name not in ("asyncio.sleep", "time.sleep"):
            if name != "import":
                self._refused_os = name
            return await snapshot.resume_not_handled()
        self._ticks += 1
        if self._ticks > self._limits.ticks:
            self.kill("killed:calls", f"the program waited for more than {self._limits.ticks} timers")
        seconds = float(snapshot.args[0]) if snapshot.args else 0.0
        self._loop.call_later(
            min(max(seconds, 0.0), self._limits.wall_seconds * 2),
            self._settle,
            snapshot.call_id,
            {"return_value": None},
        )
        if name == "asyncio.sleep":
            return await snapshot.resume(_FUTURE)  # type: ignore[arg-type]
        return await snapshot.resume((await self._settled([snapshot.call_id]))[snapshot.call_id])  # type: ignore[arg-type]

    def _on_call(self, snapshot: monty.AsyncFunctionSnapshot) -> Reply:
        """A call of a name. A granted tool becomes a call for the host; the program gets a future for it."""
        name, line = str(snapshot.function_name), self._line(snapshot.position)
        stub = self._stubs.get(name) if snapshot.object_id is None else None
        if stub is None:
            if name in RESERVED:
                return self._refuse_change(name, line)
            return {"exc_type": "NameError", "message": f"name '{name}' is not defined"}
        self._made += 1
        number = self._made
        if number > self._limits.calls:
            self.kill("killed:calls", f"the program made more than {self._limits.calls} calls")
            return _FUTURE
        try:
            arguments = self._arguments(name, stub, snapshot.args, snapshot.kwargs)
        except (TypeError, InvalidJson) as error:
            self._made -= 1  # it was never a call
            return {"exc_type": "TypeError", "message": str(error)[:1000]}
        self._numbers[snapshot.call_id] = number
        self._waiting[number] = stub.name
        self._entries.append(CallMade(number, stub.namespace, stub.name, arguments, line))
        self._sink(self, CallRequested(number, stub.namespace, stub.name, arguments, line))
        return _FUTURE

    def _arguments(
        self, name: str, stub: ToolStub, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> JsonObject:
        if len(positional) > len(stub.parameters):
            raise TypeError(
                f"{name}() takes {len(stub.parameters)} arguments but {len(positional)} were given"
            )
        bound = dict(zip(stub.parameters, positional, strict=False))
        for key in named:
            if key in bound:
                raise TypeError(f"{name}() got two values for the argument {key!r}")
        given = self._checked({**bound, **named}, self._limits.argument_bytes, f"the arguments of {name}")
        assert isinstance(given, dict)
        return given

    def _refuse_change(self, name: str, line: int | None) -> Reply:
        self._refusals += 1
        if self._refusals <= _REFUSALS:
            self._sink(self, ChangeRefused(name, line))
        message = (
            f"{name}() is not available inside a program: tools are changed by the application between runs"
        )
        return {"exc_type": "RuntimeError", "message": message}

    async def _settled(self, pending: list[int]) -> dict[int, Reply]:
        """Wait until one of these is answered, or the program is ended; give all that are."""
        while not self._over:
            ready = {call: self._replies.pop(call) for call in pending if call in self._replies}
            if ready:
                return ready
            self._moved.clear()
            if not self._over and self._waiting:
                self._sink(self, Blocked(tuple(self._waiting), None))
            await self._moved.wait()
        return {call: {"exc_type": "RuntimeError", "message": "the program is over"} for call in pending}

    def _reply(self, number: int, reply: Reply) -> None:
        for call, known in self._numbers.items():
            if known == number:
                del self._numbers[call]
                self._settle(call, reply)
                return

    def _settle(self, call: int, reply: Reply) -> None:
        self._replies[call] = reply
        self._moved.set()

    def _print(self, _stream: str, text: str) -> None:
        """Called in a thread of the pool's."""
        if not self._printed.add(text.encode("utf-8", "replace").decode()):
            message = f"the program printed more than {self._limits.output_bytes} bytes"
            self._loop.call_soon_threadsafe(self.kill, "killed:output", message)

    # -- what crosses --------------------------------------------------------------------------------

    def _checked(self, value: object, most: int, what: str) -> JsonValue:
        """The value as JSON would carry it: tuples are arrays, and nothing else is anything else."""
        self._count(value, what)
        text = strict_json.dumps(value, max_depth=self._limits.depth)
        size = len(text.encode())
        if size > most:
            raise InvalidJson(f"{what} takes {size} bytes; at most {most}")
        return strict_json.loads(text, max_depth=self._limits.depth)

    def _count(self, value: object, what: str) -> None:
        left, level = self._limits.values, [value]
        while level:
            left -= len(level)
            if left < 0:
                raise InvalidJson(f"{what} holds more than {self._limits.values} values")
            inner: list[object] = []
            for item in level:
                if isinstance(item, (list, tuple)):
                    inner += item
                elif isinstance(item, dict):
                    inner += item.values()
                if len(inner) > left:
                    raise InvalidJson(f"{what} holds more than {self._limits.values} values")
            level = inner

    def _line(self, position: monty.SourceRange) -> int | None:
        if position.filename != _SOURCE:
            return None
        return self._source.count(b"\n", 0, position.start) + 1

    # -- the end -------------------------------------------------------------------------------------

    def _complete(self, complete: monty.MontyComplete) -> None:
        try:
            value = self._checked(complete.output, self._limits.result_bytes, "the result")
        except (InvalidJson, ValueError, RecursionError) as error:
            message = f"the result of the program is not JSON: {getattr(error, 'message', error)}"[:1000]
            self._stop("raised", ProgramError("TypeError", message, code="not_json"), "the value was refused")
            return
        self._stop("completed", None, "the interpreter's result", value)

    def _of_error(
        self, error: monty.MontyRuntimeError | monty.MontySyntaxError
    ) -> tuple[Status, ProgramError, str]:
        """What the interpreter says of its program: a claim, but one that can only hurt the program."""
        raised = error.exception()
        kind, message = type(raised).__name__[:100], error.display("msg")[:4000]
        frames = [frame for frame in error.traceback()[-50:] if frame.filename == _SOURCE]
        line = frames[-1].line if frames else None
        excerpt = (frames[-1].source_line or "")[:2000] or None if frames else None
        if isinstance(raised, MemoryError):
            message = (
                f"the program needed more than its {self._limits.memory_bytes // (1024 * 1024)} MiB of memory"
            )
            found = ProgramError("MemoryError", message, line, excerpt, wall="language")
            return "killed:memory", found, "MemoryError under the interpreter's memory limit"
        if isinstance(raised, PermissionError) and self._refused_os is not None:
            found = ProgramError(kind, message, line, excerpt, "forbidden_call", "language")
            return "denied", found, f"{self._refused_os} was refused"
        return "raised", ProgramError(kind, message, line, excerpt), "the interpreter's exception"

    def _of_crash(self, crash: monty.MontyCrashedError) -> tuple[Status, ProgramError, str]:
        """The worker went without telling. The pool has reaped it and says by which signal."""
        found = _SIGNAL.search(str(crash))
        number = int(found[1]) if found else None
        evidence = f"the worker ended: {str(crash)[-100:]}"
        match number:
            case signal.SIGSYS:
                message = "the worker made a system call that the kernel wall forbids"
                return "killed:syscall", ProgramError("Killed", message, wall="kernel"), evidence
            case signal.SIGXCPU:
                message = f"the program used more than {self._limits.cpu_seconds} s of CPU time"
                return "killed:cpu", ProgramError("Killed", message, wall="kernel"), evidence
        message = "the program's process ended without a result; nothing but the program was harmed"
        return "crashed", ProgramError("Crashed", message, wall="kernel"), evidence

    def _out_of_time(self) -> None:
        waiting = ", ".join(self._waiting.values())
        doing = f"while it waited for {waiting}" if waiting else "while it computed"
        self.kill("killed:time", f"the program took longer than {self._limits.wall_seconds:g} s, {doing}")

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 1000

    def _stop(
        self, status: Status, error: ProgramError | None, evidence: str, value: JsonValue = None
    ) -> None:
        if self._over:
            return
        self._over = True
        self._deadline.cancel()
        result = ProgramResult(
            status=status,
            value=value,
            output=self._printed.text,
            error=error,
            calls=(),
            journal=Journal(self._header, tuple(self._entries)),
            duration_us=self._now_us(),
            cpu_us=self._worker.cpu_us(),
            peak_memory=self._worker.peak_bytes(),
            evidence=evidence,
        )
        self._worker.kill()
        self._moved.set()
        if self._refusals > _REFUSALS:
            self._sink(self, ChangeRefused("add_tools", None, more=self._refusals - _REFUSALS))
        if not self.ended.done():
            self.ended.set_result(result)


def _exception(answer: JsonValue) -> Reply:
    """A tool's failure, as an exception that the interpreter has: it knows no classes of ours."""
    assert isinstance(answer, dict)
    kind = _KINDS.get(str(answer["code"]), "RuntimeError")
    if answer["status"] == "denied":
        kind = "PermissionError"
    return {"exc_type": kind, "message": str(answer["message"])}
