"""Serving one program's calls: each goes the one path, at most so many at once, and none is left behind."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import monotonic_ns
from typing import Final, Protocol, TypeAlias

from ptc_sandbox.events import Blocked, CallCancelled, CallForged, CallRequested, ChangeRefused, ProgramEvent
from ptc_sandbox.recording import Recording
from ptc_sandbox.result import ProgramCall, ProgramResult, Status
from ptc_tools.call import Call, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.errors import HostControlFlow
from ptc_tools.outcome import Outcome

_GRACE_SECONDS = 5.0
"""For calls that may change something and still run when their program is over."""

_CAN_GO_ON: Final = ("suspended", "completed", "raised")
"""How a program ends that left a call behind which waits for somebody: it is asked about, and runs again. One
that was killed or denied is over."""

Invoke: TypeAlias = Callable[[Call, RunContext], Awaitable[Outcome]]


class Served(Protocol):
    """What this needs of a running program: an `Execution`, or what another engine has in its place."""

    ended: asyncio.Future[ProgramResult]

    @property
    def over(self) -> bool: ...

    def answer(self, number: int, outcome: Outcome) -> None: ...

    def kill(self, status: Status, message: str) -> None: ...


class Serving:
    """Takes the events of one execution and answers its calls through `invoke`."""

    def __init__(self, invoke: Invoke, catalog: Catalog, recording: Recording, in_flight: int) -> None:
        self._invoke = invoke
        self._catalog = catalog
        self._recording = recording
        self._run = recording.run
        self.caller_id = recording.caller_id
        self._refused: list[CallForged | ChangeRefused] = []
        self._free = in_flight
        self._queue: deque[CallRequested] = deque()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._records: dict[int, ProgramCall] = {}
        self._interrupted: BaseException | None = None
        self._held: dict[int, HostControlFlow] = {}
        self._blocked: tuple[int, ...] | None = None

    def on_event(self, execution: Served, event: ProgramEvent) -> None:
        """The sink of the execution: called as each event comes, never waits."""
        match event:
            case CallRequested():
                self._blocked = None
                self._records[event.number] = self._record(event)
                if self._free:
                    self._begin(execution, event)
                else:
                    self._queue.append(event)
            case CallCancelled(number):
                self._blocked = None
                self._held.pop(number, None)
                self._cancel(number)
            case Blocked(pending):
                self._blocked = pending
                self._suspend_if_held(execution)
            case CallForged() | ChangeRefused():
                self._refused.append(event)

    def _record(self, call: CallRequested) -> ProgramCall:
        call_id = f"{self.caller_id}:{call.number}"
        started_us = monotonic_ns() // 1000
        return ProgramCall(
            call.number, call_id, call.name, call.namespace, call.arguments, call.line, None, started_us, None
        )

    def _begin(self, execution: Served, call: CallRequested) -> None:
        self._free -= 1
        task = asyncio.get_running_loop().create_task(self._serve(execution, call))
        self._tasks[call.number] = task
        task.add_done_callback(lambda _: self._finished(execution, call.number))

    def _finished(self, execution: Served, number: int) -> None:
        """Whatever became of a call, also of one that was cancelled before its first step: its place is free."""
        self._free += 1
        del self._tasks[number]
        if self._queue and not execution.over:
            self._begin(execution, self._queue.popleft())

    async def _serve(self, execution: Served, call: CallRequested) -> None:
        if execution.over:
            return  # the program ended between its call and this step: nothing starts any more
        asked = self._call(call.number)
        try:
            outcome = await self._invoke(asked, self._run)
            self._done(call.number, outcome)
            self._blocked = None
            execution.answer(call.number, outcome)
        except asyncio.CancelledError:
            raise
        except BaseException as control:  # noqa: BLE001
            # Host control flow passes through untouched. One that waits (for an approval, say) ends nothing yet.
            if isinstance(control, HostControlFlow) and control.waits:
                self._held[call.number] = control
                self._suspend_if_held(execution)
                return
            self._interrupted = self._interrupted or control
            execution.kill("suspended", "the host suspended the program at a call")

    def _suspend_if_held(self, execution: Served) -> None:
        """Suspends a program that can do nothing until calls are answered that all wait for somebody.

        Not sooner: what it can still do it does once, and whoever decides sees all that there is to decide.
        """
        if self._held and self._blocked is not None and self._held.keys() >= set(self._blocked):
            execution.kill("suspended", "the host suspended the program at a call")

    def _call(self, number: int) -> Call:
        record = self._records[number]
        caller = Program(self.caller_id)
        return Call(record.call_id, record.name, record.arguments, caller, record.namespace, record.line)

    def _done(self, number: int, outcome: Outcome) -> None:
        record = self._records[number]
        duration = monotonic_ns() // 1000 - record.started_us
        self._records[number] = replace(record, outcome=outcome, duration_us=duration)

    def _cancel(self, number: int) -> None:
        """The program gave the call up: one that waits is forgotten, a read is cancelled, others finish.

        What may have changed something outside is not broken off half way; its outcome is recorded, and the
        program is not told any more.
        """
        self._queue = deque(call for call in self._queue if call.number != number)
        task = self._tasks.get(number)
        if task is not None and self._only_reads(self._records[number]):
            task.cancel()

    def _only_reads(self, record: ProgramCall) -> bool:
        """Whether the tool says that it changes nothing. One that does not say may."""
        tool = self._catalog.resolve(record.namespace, record.name)
        return tool is not None and tool.contract.effects == "read"

    async def until_end(self, execution: Served) -> ProgramResult:
        """Wait for the end; then no call of the program is left running."""
        try:
            result = await execution.ended
        except asyncio.CancelledError:
            execution.kill("cancelled", "the run was cancelled")
            for task in tuple(self._tasks.values()):
                task.cancel()
            raise
        finally:
            await self._settle()
        for refused in self._refused:
            if isinstance(refused, ChangeRefused):
                await self._recording.refused(refused.name, refused.line, more=refused.more)
            else:
                await self._recording.forged(refused.number, refused.name, refused.arguments, refused.line)
        for change in self._run.programs.take_refusals(self.caller_id):
            await self._recording.refused_outside(change)
        result = replace(result, calls=tuple(self._records.values()))
        interrupted = self._interrupted
        if interrupted is None and result.status in _CAN_GO_ON:
            interrupted = next(iter(self._held.values()), None)
        if interrupted is not None:
            await self._recording.finished(result)
            raise interrupted
        return result

    async def _settle(self) -> None:
        """No call goes on when this returns, and the record of each is closed.

        Reads are cancelled at once; what may change something gets a moment to finish first.
        """
        for number, task in tuple(self._tasks.items()):
            if self._only_reads(self._records[number]):
                task.cancel()
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
