"""Awaiting what must not be cut in half: a cancelled call still finishes writing its record."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Done(Coroutine[Any, Any, T]):
    """A step that came to its end already: awaiting it waits for nothing, and it cannot be cut in half.

    For recorders that write at once; a task for each record would cost more than the record.
    """

    __slots__ = ("_error", "_value")

    def __init__(self, value: T | None = None, *, error: Exception | None = None) -> None:
        self._value = value
        self._error = error

    def result(self) -> T:
        """The value, or what the step raised."""
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def send(self, value: Any, /) -> Any:
        raise StopIteration(self.result())

    def throw(self, *exception: Any) -> Any:
        raise exception[0]

    def close(self) -> None:
        return None

    def __await__(self) -> Generator[Any, Any, T]:
        yield from ()
        return self.result()


class _Uncut(asyncio.Task[T]):
    """A task that nobody cancels: whoever waits for it and is cancelled hears of that when it has ended.

    Waiting for it directly saves the future, and the turns of the event loop, that `asyncio.shield` takes.
    """

    def cancel(self, msg: object = None) -> bool:
        return False


def _begun(step: Coroutine[Any, Any, T]) -> _Uncut[T]:
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return _Uncut(step, loop=loop, eager_start=True)
    return _Uncut(step, loop=loop)


async def settled(step: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Run `step` to its end even when the caller is cancelled meanwhile; say whether it was.

    The caller cleans up and raises `CancelledError` itself then. What `step` raises passes through.
    """
    if isinstance(step, Done):
        return step.result(), False
    task = _begun(step)
    cancelled = False
    while not task.done():
        try:
            await task
        except asyncio.CancelledError:
            cancelled = True
        except BaseException:  # noqa: BLE001 - it is the task's own, and is raised by result() below
            break
    return task.result(), cancelled
