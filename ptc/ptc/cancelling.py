"""Remembers a run's cancellation where application code in its own task swallowed it.

It may be told nothing but when to look. It never cancels anything itself: it raises again, before the run's
next step, what somebody asked for (a caller's `cancel()`, a stream that was left, the run's wall clock).
"""

from __future__ import annotations

import asyncio


class Cancellation:
    """Made when the run starts: what its task was asked before that is its caller's concern."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def check(self) -> None:
        """Raises CancelledError if the run was cancelled since it started, whoever caught that on the way."""
        if self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError
