"""Where synchronous tools run: a bounded pool of daemon threads, off the event loop.

Python cannot stop a thread. When a call's deadline passes, its thread goes on until the function returns and
keeps its place in the pool until then; nobody waits for it, and it does not hold up the interpreter's exit.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
MAX_THREADS = 32


class ThreadPool:
    """At most `limit` daemon threads, started when needed; further work waits in order."""

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._serve, daemon=True, name=f"ptc-tool-{self._threads}").start()
            else:
                self._idle -= 1
        self._work.put(job)

    def _serve(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


_POOL = ThreadPool()


async def run_in_thread(function: Callable[[], T], pool: ThreadPool | None = None) -> T:
    """Run `function` in a pool thread, with the caller's context variables. Cancelling leaves it running.

    `pool`: the tools' own if None; what may wait for long, as many at once as there are runs, has another.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def job() -> None:
        value: T | None = None
        error: BaseException | None = None
        if future.cancelled():
            return  # given up while it waited for a thread: it must not start now
        try:
            value = context.run(function)
        except StopIteration as stop:
            error = RuntimeError("the tool raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - it belongs to whoever awaits the call
            error = raised
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(settle, value, error)
            except RuntimeError:
                return  # the loop was closed meanwhile; nobody waits any more

    (pool or _POOL).submit(job)
    return await future
