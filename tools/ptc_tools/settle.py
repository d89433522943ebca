"""Awaiting what must not be cut in half: a cancelled call still finishes writing its record."""

from __future__ import annotations

import asyncio
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


async def settled(step: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Run `step` to its end even when the caller is cancelled meanwhile; say whether it was.

    The caller cleans up and raises `CancelledError` itself then. What `step` raises passes through.
    """
    if isinstance(step, Done):
        return step.result(), False
    task = asyncio.ensure_future(step)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
        except BaseException:  # noqa: BLE001 - it is the task's own, and is raised by result() below
            break
    return task.result(), cancelled
