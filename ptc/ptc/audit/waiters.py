"""Those who wait for a record: tasks on event loops, threads, the caller itself; and how they are told.

They are told once, from the writer's thread, and each event loop is woken once for a whole group.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from typing import TypeAlias

from ptc.audit.errors import AuditUnavailable
from ptc.audit.lines import Draft


class AsyncWaiter:
    """A task that waits on its event loop. `expired` once it was told that its time is over."""

    __slots__ = ("deadline", "expired", "future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        self.loop = loop
        self.future: asyncio.Future[int | None] = loop.create_future()
        self.deadline = deadline
        self.expired = False


class ThreadWaiter:
    """A thread that waits: the command line, a host without an event loop."""

    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: Future[int | None] = Future()

    def settle(self, result: int | AuditUnavailable | None) -> None:
        if isinstance(result, AuditUnavailable):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


class InlineWaiter:
    """The caller itself, which writes its record with its own hands (`sync="none"`)."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: int | AuditUnavailable | None = None

    def settle(self, result: int | AuditUnavailable | None) -> None:
        self.result = result


Job: TypeAlias = "tuple[Draft, AsyncWaiter | ThreadWaiter | InlineWaiter | None]"


def unavailable(name: str) -> AuditUnavailable:
    return AuditUnavailable(
        f"the audit log cannot write ({name}), so nothing that must be recorded may run:"
        " free space or repair the disk; the log keeps trying by itself"
    )


def tell(jobs: list[Job], result: list[int] | list[None] | AuditUnavailable) -> None:
    """Answers the waiters of a group: once for each event loop, not once for each waiter."""
    if len(jobs) == 1:
        waiter = jobs[0][1]
        if isinstance(waiter, (InlineWaiter, ThreadWaiter)):
            waiter.settle(result if isinstance(result, AuditUnavailable) else result[0])
            return
    first = jobs[0][1] if jobs else None
    if isinstance(first, AsyncWaiter) and all(
        type(waiter) is AsyncWaiter and waiter.loop is first.loop for _, waiter in jobs
    ):
        with contextlib.suppress(RuntimeError):  # that loop is closed: its tasks are gone, the records stay
            first.loop.call_soon_threadsafe(_wake_jobs, jobs, result)
        return
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[AsyncWaiter, int]]] = {}
    for index, (_, waiter) in enumerate(jobs):
        if isinstance(waiter, AsyncWaiter):
            by_loop.setdefault(waiter.loop, []).append((waiter, index))
        elif waiter is not None:
            waiter.settle(result if isinstance(result, AuditUnavailable) else result[index])
    for loop, waiters in by_loop.items():
        try:
            loop.call_soon_threadsafe(_wake_all, waiters, result)
        except RuntimeError:
            continue  # that loop is closed: its tasks are gone, the records stay


def _wake_jobs(jobs: list[Job], result: list[int] | list[None] | AuditUnavailable) -> None:
    """The usual case: all of a group wait on the loop that this runs on."""
    for index, (_, waiter) in enumerate(jobs):
        assert isinstance(waiter, AsyncWaiter)
        future = waiter.future
        if future.done():
            continue  # given up meanwhile: cancelled, or its time was over
        if isinstance(result, AuditUnavailable):
            future.set_exception(result)
        else:
            future.set_result(result[index])


def _wake_all(
    waiters: list[tuple[AsyncWaiter, int]], result: list[int] | list[None] | AuditUnavailable
) -> None:
    for waiter, index in waiters:
        if waiter.future.done():
            continue  # given up meanwhile: cancelled, or its time was over
        if isinstance(result, AuditUnavailable):
            waiter.future.set_exception(result)
        else:
            waiter.future.set_result(result[index])
