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
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.outcome import Outcome

_GRACE_SECONDS = 5.0
"""For calls that may change something and still run when their program is over."""

Invoke: TypeAlias = Callable[[Call, RunContext], Awaitable[Outcome]]


class Serving:
    """Takes the events of one execution and answers its calls through `invoke`."""

    def __init__(self, invoke: Invoke, catalog: Catalog, recording: Recording, in_flight: int) -> None:
        self._invoke = invoke
        self._catalog = catalog
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

    async def until_end(self, execution: Execution) -> ProgramResult:
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
        for refusal in self._refusals:
            await self._recording.refused(refusal.name, refusal.line)
        result = replace(result, calls=tuple(self._records.values()))
        if self._interrupted is not None:
            await self._recording.finished(result)
            raise self._interrupted
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
