"""Waiting for something to change in a registry: by topic, so that a change wakes those whom it concerns.

Another process on the same file is not heard of, so who waits also looks again each second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

LOOK_AGAIN: Final = 1.0
T = TypeVar("T")


class _Waiter:
    __slots__ = ("event", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.event = asyncio.Event()


class Waiting:
    """Who waits for what. Any number of event loops may wait."""

    def __init__(self) -> None:
        self._waiters: dict[str, set[_Waiter]] = {}
        self._hung_up = False

    async def until(self, topic: str, ask: Callable[[], Awaitable[T | None]], seconds: float) -> T | None:
        """Asks now, and again whenever something of the topic changed, until there is an answer or time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        waiter = _Waiter(loop)
        self._waiters.setdefault(topic, set()).add(waiter)
        try:
            while True:
                waiter.event.clear()
                found = await ask()
                left = until - loop.time()
                if found is not None or left <= 0 or self._hung_up:
                    return found
                with suppress(TimeoutError):
                    await asyncio.wait_for(waiter.event.wait(), min(left, LOOK_AGAIN))
        finally:
            waiting = self._waiters.get(topic, set())
            waiting.discard(waiter)
            if not waiting:
                self._waiters.pop(topic, None)

    def wake(self, topic: str) -> None:
        """Whoever waits for something of the topic looks again."""
        for waiter in list(self._waiters.get(topic, ())):
            if not waiter.loop.is_closed():
                waiter.loop.call_soon_threadsafe(waiter.event.set)

    def hang_up(self) -> None:
        """Nobody waits any longer."""
        self._hung_up = True
        for topic in list(self._waiters):
            self.wake(topic)
