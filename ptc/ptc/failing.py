"""Ends what runs beside a call that fails the run, whoever made it: the model, a hosted program or one here.

It is the run's outermost layer. It cancels the other calls at once and lets none start any more; it never
cancels the call that failed, nor the program that made it, which is told by the failure itself.
"""

from __future__ import annotations

import asyncio

from ptc.control import FailRun
from ptc_tools.call import Program
from ptc_tools.middleware import Invocation, Next
from ptc_tools.outcome import Outcome


class FailFast:
    """Middleware of one run. `stop`: what failed it, if something did."""

    def __init__(self) -> None:
        self.stop: FailRun | None = None
        self._running: dict[asyncio.Task[object], str] = {}
        self._cancelled: set[asyncio.Task[object]] = set()

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        if self.stop is not None:
            raise self.stop
        task = asyncio.current_task()
        outer = None if task is None else self._running.get(task)  # a tool may make calls in its own task
        if task is not None:
            self._running[task] = invocation.call.call_id
        try:
            return await next(invocation)
        except FailRun as stop:
            self._fail(stop, invocation, task)
            raise
        finally:
            if task is not None and outer is None:
                self._running.pop(task, None)
            elif task is not None and outer is not None:
                self._running[task] = outer

    def took_back_its_cancel(self) -> bool:
        """Whether the current task was cancelled by this alone; then it is not cancelled any more."""
        task = asyncio.current_task()
        if self.stop is None or task is None or task not in self._cancelled:
            return False
        self._cancelled.discard(task)
        return task.uncancel() == 0

    def _fail(self, stop: FailRun, invocation: Invocation, current: asyncio.Task[object] | None) -> None:
        if self.stop is not None:
            return
        self.stop = stop
        owner = invocation.caller.caller_id if isinstance(invocation.caller, Program) else None
        for task, call_id in self._running.items():
            if task is not current and call_id != owner:
                self._cancelled.add(task)
                task.cancel()
