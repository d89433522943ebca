"""Hosted programs, served by our sandbox: started, paused at their calls, resumed, rebuilt by replay.

A program is a pure function of its code, its header and the order of its answers, so a paused one need not
live: it is kept for speed alone, in a bounded table that forgets, and is otherwise run again from the
request's own history. It is told nothing but what that history holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from ptc.gateway.definitions import Definition
from ptc.gateway.rejection import Rejected, invalid
from ptc_sandbox.errors import ReplayIncompatible, SandboxError
from ptc_sandbox.events import Blocked, CallCancelled, CallForged, CallRequested, Ended
from ptc_sandbox.execution import Execution
from ptc_sandbox.journal import Journal, JournalHeader
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.sandbox import Sandbox
from ptc_sandbox.stubs import ToolStub
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.names import program_name
from ptc_tools.outcome import Success

ADVANCE_SECONDS = 60.0
CallIds: TypeAlias = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Answered:
    """One call of the program in the history, and the text or content that answers it."""

    call_id: str
    namespace: str | None
    name: str
    arguments: str
    output: JsonValue


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program gave: its text, and whether it came to its end."""

    text: str
    completed: bool


@dataclass(frozen=True, slots=True)
class Step:
    """Where a program is now: the calls that it waits for, in order, or what it gave."""

    calls: tuple[CallRequested, ...] = ()
    finished: Finished | None = None


class _Gone(Exception):
    """The process of a paused program ended while it waited."""


class _Running:
    """A program with a process. `applied` are the answers it was given, in order."""

    def __init__(self, execution: Execution, call_ids: CallIds, tools: Sequence[Definition]) -> None:
        self.execution = execution
        self.applied: list[Answered] = []
        self.touched = 0.0
        self._call_ids = call_ids
        self._tools = {tool.key: tool for tool in tools}
        self._numbers: dict[str, int] = {}
        self._made: dict[int, CallRequested] = {}
        self._settled: set[int] = set()
        self._result: ProgramResult | None = None
        self._at_rest = False

    async def advance(self, answers: Sequence[Answered]) -> Step:
        """Run until the program can do nothing without an answer to a call, or has ended.

        Answers are given one at a time, each after the program has come to rest: so the run depends on
        their order alone, and goes the same way when it is made again.
        """
        await self._settle()
        for answer in answers:
            number = self._numbers.get(answer.call_id)
            if number is None or not _is_same(self._made[number], answer):
                raise _not_this_program(answer)
            self.applied.append(answer)
            if self._result is None and number not in self._settled:
                self._settled.add(number)
                self._at_rest = False
                self.execution.answer(number, Success(self._value(answer)))
                await self._settle()
        if self._result is not None:
            return Step(finished=_finished(self._result))
        waiting = [call for number, call in sorted(self._made.items()) if number not in self._settled]
        last = max((self._numbers[answer.call_id] for answer in self.applied), default=0)
        for call in waiting:
            if call.number < last:  # it was announced with, or before, one that the history has
                raise invalid(
                    "input",
                    f"No tool output found for function call {self._call_ids(call.number)}.",
                    code="missing_tool_output",
                )
        return Step(calls=tuple(waiting))

    async def aclose(self) -> None:
        await self.execution.aclose()

    @property
    def lost(self) -> bool:
        """Whether it ended for a reason that is its process's, and not the program's."""
        return self._result is not None and self._result.status in ("killed:time", "crashed", "cancelled")

    async def _settle(self) -> None:
        while self._result is None and not self._at_rest:
            event = await self.execution.next_event()
            match event:
                case CallForged():  # no program can do this; its process was taken over
                    self.execution.kill("killed:protocol", "the program called a tool it was not given")
                case CallRequested():
                    self._made[event.number] = event
                    self._numbers[self._call_ids(event.number)] = event.number
                case CallCancelled():
                    self._settled.add(event.number)
                case Ended():
                    self._result = event.result
                case Blocked():
                    self._at_rest = True

    def _value(self, answer: Answered) -> JsonValue:
        """What the call gives in the program: JSON where the tool has a schema for it, else its text."""
        tool = self._tools.get((answer.namespace, answer.name))
        if tool is None or tool.output_schema is None or not isinstance(answer.output, str):
            return answer.output
        return strict_json.loads(answer.output)


class HostedPrograms:
    """Runs the programs of one peer. Owns no sandbox: whoever made it closes it.

    `capacity` bounds how many paused programs keep a process, `idle_seconds` for how long they do.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        capacity: int = 32,
        idle_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sandbox = sandbox
        self._capacity = capacity
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._paused: OrderedDict[str, _Running] = OrderedDict()

    @property
    def paused(self) -> int:
        """How many paused programs have a process now."""
        return len(self._paused)

    async def begin(
        self, call_id: str, code: str, tools: Sequence[Definition], call_ids: CallIds
    ) -> tuple[JsonObject, Step]:
        """Start a new program. Returns the header that its fingerprint must seal, and where it is.

        `call_ids` gives the call id of the program's call of that number, the same one each time.
        """
        running = await self._start(code, tools, None, call_ids)
        header: JsonObject = asdict(running.execution.journal.header)
        return header, await self._advance(call_id, running, ())

    async def resume(
        self,
        call_id: str,
        code: str,
        header: JsonValue,
        tools: Sequence[Definition],
        call_ids: CallIds,
        answers: Sequence[Answered],
    ) -> Step:
        """Go on after these answers: all of them, from the program's start, in the order of the history.

        Raises `Rejected` for a history that is not this program's.
        """
        running = self._paused.pop(call_id, None)
        if running is not None:
            known = len(running.applied)
            if running.applied == list(answers[:known]):
                with contextlib.suppress(_Gone):
                    return await self._advance(call_id, running, answers[known:], was_paused=True)
            else:  # the client went back to an earlier state, after a response it never saw for instance
                await running.aclose()
        running = await self._start(code, tools, header, call_ids)
        return await self._advance(call_id, running, answers)

    async def expire(self) -> None:
        """End the processes that have waited too long; their programs are rebuilt when they are needed."""
        limit = self._clock() - self._idle_seconds
        for call_id in [key for key, running in self._paused.items() if running.touched <= limit]:
            await self._paused.pop(call_id).aclose()

    async def aclose(self) -> None:
        while self._paused:
            await self._paused.popitem()[1].aclose()

    async def _start(
        self, code: str, tools: Sequence[Definition], header: JsonValue, call_ids: CallIds
    ) -> _Running:
        stubs = [_stub(tool) for tool in tools]
        known = _header(header) if header is not None else None
        try:
            execution = await self._sandbox.start(code, tools=stubs, header=known, clock="virtual")
        except ValueError as error:  # longer than the sandbox takes
            raise Rejected(f"The program cannot run: {error}.", code="script_error") from error
        try:
            if known is not None:
                known.check(execution.journal.header)
        except ReplayIncompatible as error:
            await execution.aclose()
            raise Rejected(
                f"The program cannot go on: {error.message}.", param="input", code="program_not_resumable"
            ) from error
        return _Running(execution, call_ids, tools)

    async def _advance(
        self, call_id: str, running: _Running, answers: Sequence[Answered], *, was_paused: bool = False
    ) -> Step:
        keep = False
        try:
            async with asyncio.timeout(ADVANCE_SECONDS):
                step = await running.advance(answers)
            if was_paused and running.lost:
                raise _Gone
            keep = step.finished is None
        except TimeoutError:
            return Step(finished=Finished("the program did not come to rest in time", completed=False))
        except SandboxError:
            if was_paused:
                raise _Gone from None
            raise
        finally:
            if not keep:
                await running.aclose()
        await self._keep(call_id, running)
        return step

    async def _keep(self, call_id: str, running: _Running) -> None:
        running.touched = self._clock()
        previous = self._paused.pop(call_id, None)  # two equal requests at once: the later one stays
        self._paused[call_id] = running
        if previous is not None:
            await previous.aclose()
        while len(self._paused) > self._capacity:
            await self._paused.popitem(last=False)[1].aclose()


def _stub(tool: Definition) -> ToolStub:
    parameters = tool.wire.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return ToolStub(
        program_name=program_name(tool.namespace, tool.name),
        name=tool.name,
        namespace=tool.namespace,
        parameters=tuple(properties) if isinstance(properties, dict) else (),
        doc=str(tool.wire.get("description") or ""),
    )


def _header(value: JsonValue) -> JournalHeader:
    return Journal.from_json({"header": value, "entries": []}).header


def _is_same(call: CallRequested, answer: Answered) -> bool:
    try:
        arguments = strict_json.loads(answer.arguments)
    except InvalidJson:
        return False
    return (call.namespace, call.name, call.arguments) == (answer.namespace, answer.name, arguments)


def _not_this_program(answer: Answered) -> Rejected:
    return invalid(
        "input",
        f"The function call {answer.call_id} is not a call that its program made: replay calls unchanged.",
    )


def _finished(result: ProgramResult) -> Finished:
    """The `result` of a program_output: what was printed, then the value of the last expression."""
    parts = [result.output.removesuffix("\n")] if result.output else []
    if result.value is not None:
        parts.append(result.value if isinstance(result.value, str) else strict_json.dumps(result.value))
    if result.error is not None:
        parts.append(str(result.error))
    return Finished("\n".join(parts), completed=result.status == "completed")
