"""Where a program's events go: to a sink as they come, or into a queue that somebody pulls from.

It is given events and hands them on in their order. It never waits for a sink, and keeps nothing for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ptc_sandbox.events import Blocked, Ended, ProgramEvent
from ptc_sandbox.result import ProgramResult


class Delivery:
    """One program's events. `ended` resolves to its result, or raises why it could not be run as asked."""

    def __init__(
        self, sink: Callable[[ProgramEvent], None] | None, ended: asyncio.Future[ProgramResult]
    ) -> None:
        self._sink = sink
        self._ended = ended
        self._events: deque[ProgramEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        """Events that wait to be pulled."""
        return len(self._events)

    def put(self, event: ProgramEvent) -> None:
        """Hand one event on."""
        if self._sink is not None:
            self._sink(event)
            return
        if isinstance(event, Blocked) and self._events and isinstance(self._events[-1], Blocked):
            self._events.pop()  # the newer one says it all
        self._events.append(event)
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again: there is an event, or the end."""
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> ProgramEvent:
        """The next event; `Ended` when there is none left and the program is over."""
        while not self._events:
            if self._ended.done():
                return Ended(self._ended.result())
            self._waiter = asyncio.get_running_loop().create_future()
            waiting: list[asyncio.Future[Any]] = [self._waiter, self._ended]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return self._events.popleft()
