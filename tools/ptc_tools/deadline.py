"""A deadline that costs nothing until somebody waits.

A coroutine that never suspends cannot be interrupted by a timer anyway, so none is armed for it: its clock
is looked at afterwards. From its first suspension on it runs under `asyncio.timeout`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Expired(Exception):
    """The deadline passed; whatever the coroutine came to is not in time."""


async def within(seconds: float | None, step: Coroutine[Any, Any, T]) -> T:
    """Run `step` for at most `seconds` (None: for as long as it takes). Raises `Expired`.

    At the deadline `step` is cancelled. If it swallows that and returns all the same, it is late.
    """
    if seconds is None:
        return await step
    due = time.monotonic() + seconds
    try:
        waits_for = step.send(None)
    except StopIteration as end:
        if time.monotonic() > due:
            raise Expired from None
        return end.value  # type: ignore[no-any-return]
    timer = asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.0, due - time.monotonic()))
    try:
        async with timer:
            value = await _Rest(step, waits_for)
    except TimeoutError as error:
        if timer.expired():
            raise Expired from error
        raise
    if timer.expired():
        raise Expired
    return value


class _Rest(Generic[T]):
    """The rest of a coroutine that was begun already, and what it waits for now."""

    __slots__ = ("_step", "_waits_for")

    def __init__(self, step: Coroutine[Any, Any, T], waits_for: object) -> None:
        self._step = step
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, Any, T]:
        step, waits_for = self._step, self._waits_for
        try:
            while True:
                try:
                    answer = yield waits_for
                except GeneratorExit:
                    step.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle
                    waits_for = step.throw(error)
                else:
                    waits_for = step.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
