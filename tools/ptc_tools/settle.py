"""Awaiting what must not be cut in half: a cancelled call still finishes writing its record."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def settled(step: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Run `step` to its end even when the caller is cancelled meanwhile; say whether it was.

    The caller cleans up and raises `CancelledError` itself then. What `step` raises passes through.
    """
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
