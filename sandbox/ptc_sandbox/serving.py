"""Serving one program's calls: each goes the one path, at most so many at once, and none is left behind."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import monotonic_ns
from typing import TypeAlias

from ptc_sandbox.execution import CallCancelled, CallRequested, ChangeRefused, Execution, ProgramEvent
from ptc_sandbox.recording import MAX_REFUSALS, Recording
from ptc_sandbox.result import ProgramCall, ProgramResult
from ptc_tools.call import Call, Program
from ptc_tools.context import RunContext
from ptc_tools.outcome import Outcome

Invoke: TypeAlias = Callable[[Call, RunContext], Awaitable[Outcome]]


class Serving:
    """Takes the events of one execution and answers its calls through `invoke`."""

    def __init__(self, invoke: Invoke, recording: Recording, in_flight: int) -> None:
        self._invoke = invoke
        self._recording = recording
        self._run = recording.run
        self.caller_id = recording.caller_id
        self._refusals: list[ChangeRefused] = []
        self._free = in_flight
        self._queue: deque[CallRequested] = deque()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._records: dict[int, ProgramCall] = {}
        self._interrupted: BaseException | None = None

    def on_event(self, execution: Execution, event: ProgramEvent) -> None:
        """The sink of the execution: called as each event comes, never waits."""
        match event:
            case CallRequested():
                self._records[event.number] = self._record(event)
                if self._free:
                    self._begin(execution, event)
                else:
                    self._queue.append(event)
            case CallCancelled(number):
                self._cancel(number)
            case ChangeRefused() if len(self._refusals) < MAX_REFUSALS:
                self._refusals.append(event)

    def _record(self, call: CallRequested) -> ProgramCall:
        call_id = f"{self.caller_id}:{call.number}"
        started_us = monotonic_ns() // 1000
        return ProgramCall(
            call.number, call_id, call.name, call.namespace, call.arguments, call.line, None, started_us, None
        )

    def _begin(self, execution: Execution, call: CallRequested) -> None:
        self._free -= 1
        self._tasks[call.number] = asyncio.get_running_loop().create_task(self._serve(execution, call))

    async def _serve(self, execution: Execution, call: CallRequested) -> None:
        record = self._records[call.number]
        try:
            outcome = await self._invoke(
                Call(
                    record.call_id,
                    call.name,
                    call.arguments,
                    Program(self.caller_id),
                    call.namespace,
                    call.line,
                ),
                self._run,
            )
            self._done(call.number, outcome)
            execution.answer(call.number, outcome)
        except asyncio.CancelledError:
            raise
        except BaseException as control:  # noqa: BLE001
            # Host control flow: an approval that suspends the run, say. It passes through untouched.
            self._interrupted = self._interrupted or control
            execution.kill("suspended", "the host suspended the program at a call")
        finally:
            self._free += 1
            self._tasks.pop(call.number, None)
            if self._queue and not execution.ended.done():
                self._begin(execution, self._queue.popleft())

    def _done(self, number: int, outcome: Outcome) -> None:
        record = self._records[number]
        duration = monotonic_ns() // 1000 - record.started_us
        self._records[number] = replace(record, outcome=outcome, duration_us=duration)

    def _cancel(self, number: int) -> None:
        """The program gave the call up: one that waits is forgotten, one that runs is cancelled."""
        self._queue = deque(call for call in self._queue if call.number != number)
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def until_end(self, execution: Execution) -> ProgramResult:
        """Wait for the end; then no call of the program is left running."""
        try:
            result = await execution.ended
        except asyncio.CancelledError:
            execution.kill("cancelled", "the run was cancelled")
            raise
        finally:
            await self._settle()
        for refusal in self._refusals:
            await self._recording.refused(refusal.name, refusal.line)
        result = replace(result, calls=tuple(self._records.values()))
        if self._interrupted is not None:
            await self._recording.finished(result)
            raise self._interrupted
        return result

    async def _settle(self) -> None:
        """Calls that still run are cancelled, and waited for: their records are closed when this returns."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
