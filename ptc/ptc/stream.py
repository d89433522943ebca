"""A streamed run: an async iterator of what happens, over the same driver as every other run.

The run is a task of its own; leaving `async with` ends it, leaving the iteration alone does not. It never
drops an event and never changes the run: its history is that of the unstreamed one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

from ptc.asking import Emit
from ptc.cancelling import uncut
from ptc.errors import LocalProtocolError
from ptc.progress import RunEvent
from ptc.result import RunResult
from ptc.run import Run


class RunStream(AsyncIterator[RunEvent]):
    """`async with runner.stream(…) as events: async for event in events`. Iterated once.

    `result` holds once the iteration has ended. An error of the run is raised by the iteration. Who stops
    iterating without `async with` leaves the run going, its calls included, until it ends or `aclose()` is
    awaited: that is how `finish()` can go on after a break, and why the `async with` is not for show.
    """

    def __init__(self, run_id: str, begin: Callable[[Emit], Awaitable[Run]]) -> None:
        self.run_id = run_id
        self._begin = begin
        self._queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._task: asyncio.Task[RunResult[object]] | None = None
        self._over = False
        self._left = False

    @property
    def result(self) -> RunResult[object]:
        """The run's result. Raises LocalProtocolError before the iteration has ended, and for a run that was left."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            why = "it was ended before it had one" if self._left else "iterate to the end first"
            raise LocalProtocolError(f"the run has no result: {why}", run_id=self.run_id)
        return self._task.result()

    async def finish(self) -> RunResult[object]:
        """The result, without looking at what is left of the events."""
        async for _ in self:
            pass
        return self.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunEvent:
        if self._over:
            raise StopAsyncIteration
        if self._task is None:
            self._task = asyncio.create_task(self._drive())
            self._task.add_done_callback(lambda _: self._queue.put_nowait(None))
        event = await self._queue.get()
        if event is not None:
            return event
        self._queue.put_nowait(None)  # for whoever waits beside us: an event is told once, the end to all
        self._over = True
        if not (self._left and self._task.cancelled()):
            self._task.result()  # raises what the run raised
        raise StopAsyncIteration

    async def _drive(self) -> RunResult[object]:
        run = await self._begin(self._put)
        return await run.drive()

    async def aclose(self) -> None:
        """Ends the run, if it still goes on, and waits until its calls are ended and recorded.

        It waits for that also where it is cancelled meanwhile, and raises CancelledError then.
        """
        self._over = self._left = True
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await uncut(_ended(task))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _put(self, event: RunEvent) -> None:
        self._queue.put_nowait(event)


async def _ended(task: asyncio.Task[RunResult[object]]) -> None:
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # retrieved: whoever leaves early does not ask for it
