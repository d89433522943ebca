"""A run's cancellation: remembered where application code swallowed it, and held until a step has come to its end.

It never cancels anything itself: it raises again, before the run's next step or after the one that must not be cut
in half, what somebody asked for (a caller's `cancel()`, a stream that was left, the run's wall clock).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ptc_tools.settle import settled

T = TypeVar("T")


class Cancellation:
    """Made when the run starts: what its task was asked before that is its caller's concern."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def check(self) -> None:
        """Raises CancelledError if the run was cancelled since it started, whoever caught that on the way."""
        if self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError


async def uncut(step: Coroutine[Any, Any, T], *, after: BaseException | None = None) -> T:
    """What `step` gives, however often the caller is cancelled meanwhile; raises CancelledError then.

    Not where that is what the caller ends with already, `after` which it tidies up.
    """
    result, cancelled = await settled(step)
    if cancelled and not isinstance(after, asyncio.CancelledError):
        raise asyncio.CancelledError from after
    return result
