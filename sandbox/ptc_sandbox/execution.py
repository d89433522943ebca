"""One program under way: the driver between a child's channel and whoever answers its calls.

It keeps the journal, replays a recorded one, watches the clock and the caps, and says how the
program ended, on evidence. It neither looks tools up nor runs them.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ptc_sandbox import ending
from ptc_sandbox.delivery import Delivery
from ptc_sandbox.errors import ConfinementUnavailable, ProtocolViolation
from ptc_sandbox.events import (
    Blocked,
    CallCancelled,
    CallForged,
    CallRequested,
    ChangeRefused,
    Ended,
    ProgramEvent,
)
from ptc_sandbox.forkserver import Child, Exit
from ptc_sandbox.journal import (
    Answer,
    CallAnswered,
    CallDropped,
    CallMade,
    Entry,
    Journal,
    Ticked,
)
from ptc_sandbox.limits import Limits
from ptc_sandbox.link import UNREAD, Link
from ptc_sandbox.printed import Printed
from ptc_sandbox.program import Program
from ptc_sandbox.replay import Replay
from ptc_sandbox.result import ProgramError, ProgramResult, Status
from ptc_sandbox.wire import (
    BlockedFrame,
    CallFrame,
    CancelFrame,
    EndFrame,
    OutputFrame,
    Ready,
    RefusedFrame,
    Unconfined,
    Wire,
    WireEvent,
)
from ptc_tools.errors import PtcError
from ptc_tools.outcome import Outcome

_REFUSALS = 100
"""Refused changes of the tools that are told one by one; a program can try for ever, and the rest are counted."""


class Execution:
    """A running program. Pull events with `next_event`, or pass `sink` to be called with each as it comes."""

    def __init__(
        self,
        child: Child,
        program: Program,
        limits: Limits,
        *,
        recorded: tuple[Entry, ...] = (),
        sink: Callable[[Execution, ProgramEvent], None] | None = None,
        on_end: Callable[[], None] | None = None,
        entries: list[Entry] | None = None,
        again: Callable[[], Awaitable[Child]] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._program = program
        self._limits = limits
        self._wire = Wire(limits)
        self._linked = partial(
            Link, on_data=self._on_data, on_closed=self._on_closed, on_backlog=self._on_backlog
        )
        self._link = self._linked(child.channel)
        self._again = again
        self._beginning: asyncio.Task[None] | None = None
        self._granted = program.stubs
        self._replay = Replay(recorded)
        self._entries: list[Entry] = [] if entries is None else entries
        self._on_end = on_end
        self._printed = Printed(limits.output_bytes)
        self._waiting: dict[int, CallRequested] = {}
        self._answered: set[int] = set()
        self._tick: asyncio.TimerHandle | None = None
        self._asleep = False
        self._clock_us = 0
        self._origin_ns = self._started_ns = time.monotonic_ns()
        self._ticks = self._refusals = 0
        self._ended = False
        self.ended: asyncio.Future[ProgramResult] = self._loop.create_future()
        self._events = Delivery(None if sink is None else partial(sink, self), self.ended)
        self._deadline: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Give the program to its child. Separate from making it: the first events come at once."""
        self._deadline = self._loop.call_later(self._limits.wall_seconds, self._out_of_time)
        self._link.open()

    # -- for whoever answers -------------------------------------------------------------------------

    @property
    def pending(self) -> Mapping[int, CallRequested]:
        """The calls that wait for an answer, by number, in the order they were made."""
        return self._waiting

    @property
    def over(self) -> bool:
        """Whether the program has ended, or is being ended: nothing of it may start any more."""
        return self._ended

    @property
    def journal(self) -> Journal:
        """The run so far. Resuming from it gives the same program at the same point."""
        return Journal(self._program.header, tuple(self._entries))

    @property
    def output(self) -> str:
        """What the program has printed so far."""
        return self._printed.text

    async def next_event(self) -> ProgramEvent:
        """The next thing the program did. `Ended` is the last and is given again if asked again.

        Raises ReplayDiverged or ConfinementUnavailable where the program could not be run as asked.
        """
        return await self._events.next()

    def answer(self, number: int, outcome: Outcome) -> None:
        """Answer a call. An answer to a call that was cancelled meanwhile is dropped; to any other, a mistake."""
        if self._ended or number in self._answered:
            return
        if number not in self._waiting:
            raise RuntimeError(f"there is no call {number} to answer")
        del self._waiting[number]
        self._send_answer(CallAnswered(number, Answer.of(outcome), self._now_us()))

    def kill(self, status: Status, message: str) -> None:
        """End the program from outside, at once. `status` says how it is to be told."""
        self._stop(status, ProgramError("Killed", message, wall="host"), ending.by_host(status))

    def fail(self, error: BaseException) -> None:
        """End it because it cannot be run as asked: `error` is raised to whoever waits."""
        if not self._ended:
            self._finish()
            if not self.ended.done():
                self.ended.set_exception(error)
            self._events.wake()

    async def aclose(self) -> None:
        """Kill the program if it still runs and wait until its process is gone."""
        self.kill("cancelled", "the program was given up")
        await self._child.exited

    # -- bytes ---------------------------------------------------------------------------------------

    def _on_data(self, data: bytes) -> None:
        try:
            for event in self._wire.receive(data):
                if self._ended:
                    return
                self._on_event(event)
        except ProtocolViolation as violation:
            self.kill("killed:protocol", violation.message)

    def _on_backlog(self) -> None:
        self.kill("killed:protocol", f"the program leaves more than {UNREAD} bytes of answers unread")

    # -- events --------------------------------------------------------------------------------------

    def _on_event(self, event: WireEvent) -> None:
        match event:
            case CallFrame():
                self._on_call(event)
            case BlockedFrame():
                self._on_blocked(event)
            case OutputFrame(text):
                if not self._printed.add(text):
                    most = self._limits.output_bytes
                    self.kill("killed:output", f"the program printed more than {most} bytes")
            case CancelFrame(number):
                self._on_cancel(number)
            case EndFrame():
                self._on_end_frame(event)
            case RefusedFrame(name, line):
                self._refusals += 1
                if self._refusals <= _REFUSALS:
                    self._events.put(ChangeRefused(name, line))
            case Ready():
                self._link.write(self._wire.start(self._program.start_frame(self._limits)))
                if self._replay.active:
                    self._replay_told()  # a program may have slept before its first call
            case Unconfined(layer, reason):
                self.fail(ConfinementUnavailable(layer, reason))

    def _on_call(self, frame: CallFrame) -> None:
        if frame.number > self._limits.calls:
            self.kill("killed:calls", f"the program made more than {self._limits.calls} calls")
            return
        stub = self._granted.get(frame.name)
        if stub is None:
            # Decided here, once, for live and for replayed calls: what was not granted never becomes a call.
            self._events.put(CallForged(frame.number, frame.name, frame.arguments, frame.line))
            message = f"the program called {frame.name!r}, which was not granted to it"
            error = ProgramError("Denied", message, code="unknown_tool", wall="host")
            self._stop("denied", error, "a call of no granted tool")
            return
        call = CallRequested(frame.number, stub.namespace, stub.name, frame.arguments, frame.line)
        made = CallMade(frame.number, stub.namespace, stub.name, frame.arguments, frame.line)
        self._waiting[frame.number] = call
        self._entries.append(made)
        if self._replay.active:
            self._replay_step(made)
        else:
            self._events.put(call)
        if frame.blocked is not None and not self._ended:
            self._on_blocked(frame.blocked)

    def _on_cancel(self, number: int) -> None:
        if number in self._answered:
            return  # the answer and the cancellation crossed on the way
        del self._waiting[number]  # the wire lets a call be cancelled once
        self._answered.add(number)
        dropped = CallDropped(number)
        self._entries.append(dropped)
        if self._replay.active:
            self._replay_step(dropped)
        else:
            self._events.put(CallCancelled(number))

    def _on_blocked(self, frame: BlockedFrame) -> None:
        if self._wire.is_stale(frame):
            return
        if self._replay.active:
            self.fail(self._replay.stuck())
            return
        if self._tick:
            self._tick.cancel()
            self._tick = None
        self._asleep = frame.timer_us is not None
        if frame.timer_us is not None:
            self._schedule_tick(frame.timer_us)
        if self._waiting:
            timer = None if frame.timer_us is None else max(0, frame.timer_us - self._now_us()) / 1e6
            self._events.put(Blocked(tuple(self._waiting), timer))

    def _schedule_tick(self, timer_us: int) -> None:
        """A real clock ticks when the timer is due; a virtual one at once, but only when no call is pending."""
        if self._program.header.clock == "virtual":
            if not self._waiting:
                self._send_tick(Ticked(max(timer_us, self._clock_us)))
            return
        delay = max(0, timer_us - self._now_us()) / 1e6
        self._tick = self._loop.call_later(
            delay, lambda: self._send_tick(Ticked(max(timer_us, self._now_us())))
        )

    def _send_tick(self, entry: Ticked) -> None:
        self._ticks += 1
        if self._ticks > self._limits.ticks:
            self.kill("killed:calls", f"the program waited for more than {self._limits.ticks} timers")
            return
        self._entries.append(entry)
        self._clock_us = entry.clock_us
        self._asleep = False
        self._link.write(self._wire.tick(entry.clock_us))

    def _send_answer(self, entry: CallAnswered) -> None:
        entry, data = self._wire.fitting(entry)
        self._answered.add(entry.number)
        self._entries.append(entry)
        self._clock_us = entry.clock_us
        self._asleep = False
        self._link.write(data)

    # -- replay --------------------------------------------------------------------------------------

    def _replay_step(self, done: CallMade | CallDropped) -> None:
        """The program did something that the journal must know; then it is told what it was told then."""
        divergence = self._replay.matches(done)
        if divergence:
            self.fail(divergence)
            return
        self._replay_told()

    def _replay_told(self) -> None:
        while (entry := self._replay.next_told()) is not None:
            if isinstance(entry, Ticked):
                self._send_tick(entry)
            else:
                self._waiting.pop(entry.number, None)
                self._send_answer(entry)
        if not self._replay.active:
            self._origin_ns = time.monotonic_ns() - self._clock_us * 1000
            for call in tuple(self._waiting.values()):
                self._events.put(call)

    # -- time ----------------------------------------------------------------------------------------

    def _now_us(self) -> int:
        """Microseconds on the program's clock. Time while it was suspended does not count."""
        if self._program.header.clock == "virtual":
            return self._clock_us
        return max(self._clock_us, (time.monotonic_ns() - self._origin_ns) // 1000)

    def _out_of_time(self) -> None:
        waiting = [call.name for call in self._waiting.values()]
        self.kill("killed:time", ending.out_of_time(self._limits, waiting, asleep=self._asleep))

    # -- the end -------------------------------------------------------------------------------------

    def _on_end_frame(self, frame: EndFrame) -> None:
        if self._replay.active:
            self.fail(self._replay.ended_early())
            return
        status, error, evidence = ending.of_frame(frame, self._limits)
        self._stop(status, error, evidence, frame)

    def _on_closed(self) -> None:
        """The child went without a word: its wait status says why."""
        self._child.exited.add_done_callback(self._on_exit)

    def _on_exit(self, exited: asyncio.Future[Exit]) -> None:
        if self._ended or exited.cancelled():
            return
        try:
            self._wire.closed()
        except ProtocolViolation as violation:
            self.kill("killed:protocol", violation.message)
            return
        exit = exited.result()
        status, error, evidence = ending.of_exit(exit, self._limits)
        # Killed by somebody else: no program can do that to itself, and no limit did.
        killed = status == "crashed" and exit.signal == signal.SIGKILL
        again, self._again = self._again, None  # once
        if killed and again is not None and self._wire.silent and not self._entries:
            self._beginning = self._loop.create_task(self._begin_again(again))
        else:
            self._stop(status, error, evidence)

    async def _begin_again(self, again: Callable[[], Awaitable[Child]]) -> None:
        """It had done nothing yet, so nothing is done twice: another child gets the program."""
        self._link.close()
        self._child.close()
        try:
            self._child = await again()
        except PtcError as error:
            self.fail(error)
            return
        self._wire = Wire(self._limits)
        self._link = self._linked(self._child.channel)
        self._link.open()

    def _stop(
        self, status: Status, error: ProgramError | None, evidence: str, frame: EndFrame | None = None
    ) -> None:
        if self._ended:
            return
        self._ended = True
        result = ProgramResult(
            status=status,
            value=frame.value if frame else None,
            output=self.output,
            error=error,
            calls=(),
            journal=self.journal,
            duration_us=(time.monotonic_ns() - self._started_ns) // 1000,
            cpu_us=self._child.cpu_us(),
            peak_memory=self._child.peak_bytes(),
            evidence=evidence,
        )
        if self._refusals > _REFUSALS:
            self._events.put(ChangeRefused("add_tools", None, more=self._refusals - _REFUSALS))
        if not self.ended.done():  # whoever waited may have been cancelled, and the future with it
            self.ended.set_result(result)
        self._events.put(Ended(result))
        self._events.wake()
        self._finish()

    def _finish(self) -> None:
        """Let go of everything. The process is killed, whatever it was doing: a finaliser may spin."""
        self._ended = True
        for planned in (self._deadline, self._tick, self._beginning):
            if planned:
                planned.cancel()
        self._link.close()
        self._child.close()
        if self._on_end:
            self._on_end()
