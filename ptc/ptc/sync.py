"""One event loop in a thread of its own, for callers without one: the whole of `run_sync`.

A client's connections belong to the loop that opened them, so all synchronous runs of a process share this
one; any number of threads may use it at once. It ends with the process.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ptc.errors import LocalProtocolError

T = TypeVar("T")


class LoopThread:
    """Started when first used; a forked child starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs it to its end; an interrupt cancels it and waits for that."""
        loop = self._started()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            task = loop.create_task(coroutine)
            tasks.append(task)
            task.add_done_callback(lambda ended: _pass_on(ended, done))

        loop.call_soon_threadsafe(start, context=contextvars.copy_context())
        try:
            return done.result()
        except BaseException:
            if not done.done():
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
                concurrent.futures.wait([done])
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=self._loop.run_forever, name="ptc-loop", daemon=True)
                self._thread.start()
                atexit.register(self._stop)
            return self._loop

    def _stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = None
        if loop is not None and thread is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=5)
            if not thread.is_alive():
                loop.close()


def _pass_on(task: asyncio.Task[T], done: concurrent.futures.Future[T]) -> None:
    if task.cancelled():
        done.set_exception(asyncio.CancelledError())
        return
    error = task.exception()
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


_LOOP = LoopThread()


def run_blocking(coroutine: Coroutine[Any, Any, T], what: str) -> T:
    """Runs a coroutine for a caller without an event loop. Raises LocalProtocolError inside one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _LOOP.run(coroutine)
    coroutine.close()
    raise LocalProtocolError(
        f"{what}_sync() was called inside a running event loop, which it would block; "
        f"use `await {what}(…)` there"
    )
