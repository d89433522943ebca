"""When an outcome that nobody has seen yet is written at the latest: one timer serves many calls.

It is told that something waits, and calls for it to be written. It knows nothing of what waits, and never
holds anything back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

LINGER: Final = 0.002
"""Seconds for which an outcome waits to be written with a step."""


class Lingering:
    """`waits` says whether there is anything to write, and `write` writes it."""

    def __init__(self, waits: Callable[[], bool], write: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self._waits = waits
        self._write = write
        self._timer: asyncio.TimerHandle | None = None
        self._overdue = 0.0
        self._flushing: asyncio.Task[None] | None = None

    def begin(self, *, first: bool) -> None:
        """Something waits from now on. `first`: nothing did before."""
        loop = asyncio.get_running_loop()
        if first:
            self._overdue = loop.time() + LINGER
        if self._timer is None:
            self._timer = loop.call_later(LINGER, self._flush)

    async def close(self) -> None:
        """No timer is left, and nothing is being written."""
        if self._timer is not None:
            self._timer.cancel()
        if self._flushing is not None:
            await asyncio.wait([self._flushing])

    def _flush(self) -> None:
        """What has waited long enough is written now. Most calls find a timer that is set already."""
        self._timer = None
        if not self._waits():
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._flushing is None and now >= self._overdue:
            self._flushing = asyncio.create_task(self._written())
        else:
            self._timer = loop.call_at(max(self._overdue, now + LINGER / 2), self._flush)

    async def _written(self) -> None:
        try:
            with suppress(Exception):  # the next step of the run raises it
                await self._write()
        finally:
            self._flushing = None
