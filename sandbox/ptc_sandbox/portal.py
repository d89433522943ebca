"""An event loop in a thread of its own, for code that has none. Started by whoever needs it first.

Many threads may use one at once. A process that was forked from one that had such a thread has no thread of that
kind, and gets its own. Nothing here knows what is run.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Portal:
    """Where awaitables are run for threads that cannot await. After `close`, the next `call` starts it anew."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` on the loop and wait for it in this thread; gives what it gives, raises what it raises.

        Whoever stops waiting (KeyboardInterrupt) cancels it. RuntimeError on the loop's own thread.
        """
        loop = self._started()
        if self._thread is threading.current_thread():
            raise RuntimeError("this is the event loop's own thread, which cannot wait for itself: use await")

        async def awaited() -> T:
            return await work()

        future = asyncio.run_coroutine_threadsafe(awaited(), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` and end the thread. Nothing is done where none was started, in this process."""
        if self._pid != os.getpid() or self._loop is None:
            return
        try:
            self.call(work)
        finally:
            with self._lock:
                loop, self._loop = self._loop, None
                thread, self._thread = self._thread, None
            if loop is not None and thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._pid != os.getpid():
            Portal.__init__(self)  # the lock too: it may have been held while the process was forked
        with self._lock:
            if self._loop is None:
                ready: Future[asyncio.AbstractEventLoop] = Future()
                # A daemon: a program that forgets to close ends all the same, and what runs here with it.
                self._thread = threading.Thread(target=_serve, args=(ready,), name="ptc-sandbox", daemon=True)
                self._thread.start()
                self._loop = ready.result()
            return self._loop


def _serve(ready: Future[asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        ready.set_result(loop)
        loop.run_forever()
