"""The event loop of a program: asyncio's own machinery on a selector whose only I/O is the wire.

The loop reads the wire only when nothing else can run, one frame at a time, so what a program does depends
on the order of the frames alone, never on when they came. Before it waits it tells the host what it waits
for (`blocked`), and a cancelled call is told as well (`cancel`). Nothing here may be seen by a program.
"""

from __future__ import annotations

import asyncio
from asyncio import events, tasks
from collections.abc import Callable, Collection, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

from ptc_sandbox.guest.channel import Channel
from ptc_sandbox.guest.world import World

_SPINS = 1000
"""Turns of the loop without a look at the wire while a call or a timer is due: a program may poll."""


_LATEST_US = 2**53 - 1
"""The greatest number that the host takes."""


class Deadlock(RuntimeError):
    """The program waits for something that no call and no timer can bring about."""


class ProgramTask(asyncio.Task[Any]):
    """A task that hashes by its number: sets of tasks are then in the same order in every process."""

    def __init__(self, coro: Any, *, number: int = 0, **options: Any) -> None:
        self._number = (
            number  # first, as the task is entered into a set; the class itself is closed to change
        )
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        """Without the coroutine's place: the standard library's own lie in a folder of the host."""
        state = "cancelled" if self.cancelled() else "finished" if self.done() else "pending"
        return f"<Task {state} name={self.get_name()!r}>"


class ProgramLoop(asyncio.BaseEventLoop):
    """Runs one program's coroutines. `pending` holds the future of each call that the host has not answered."""

    _scheduled: list[Any]  # BaseEventLoop's heap of timers, soonest first
    _ready: Collection[Any]  # and its queue of what can run now
    if TYPE_CHECKING:

        def _run_once(self) -> None: ...  # BaseEventLoop's turn of the loop

    def __init__(self, channel: Channel, make_error: Callable[[Any], BaseException]) -> None:
        super().__init__()
        self._selector = self
        self.channel = channel
        self._backlog: list[list[Any]] = []
        self._spins = 0
        self._tasks_made = 0
        self._clock_resolution = 1e-6
        self.pending: dict[int, asyncio.Future[Any]] = {}
        self._make_error = make_error
        self.world: World

    # -- what BaseEventLoop asks of its subclass -----------------------------------------------------

    def time(self) -> float:
        return self.world.clock_us / 1e6

    def select(self, timeout: float | None) -> tuple[()]:
        """Called once a turn. With something ready it returns at once; else it waits for one frame."""
        if timeout is not None and timeout <= 0:
            self._spins += 1
            if self._spins < _SPINS or not (self.pending or self._scheduled):
                return ()
        self._spins = 0
        self._take(self._next_frame(self._next_timer_us()))
        return ()

    def _process_events(self, event_list: object) -> None:
        """There are no descriptors to serve."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake this one from."""

    def call_exception_handler(self, context: object) -> None:
        """Errors that nobody awaited are the program's own affair; the default would write to a log."""

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None, **_: object
    ) -> ProgramTask:
        if context is not None and type(context) is not Context:
            raise TypeError(
                "context must be a Context"
            )  # another's `run` would be handed the task's own steps
        self._tasks_made += 1
        number = self._tasks_made
        return ProgramTask(
            coro, number=number, loop=self, name=str(name or f"Task-{number}"), context=context
        )

    # -- the wire ------------------------------------------------------------------------------------

    def _next_timer_us(self) -> int | None:
        """When the first timer is due; one that is not due in this century is told as late as a frame can say."""
        if not self._scheduled:
            return None
        due = float(self._scheduled[0]._when) * 1e6
        return round(max(due, 0)) if due < _LATEST_US else _LATEST_US

    def _next_frame(self, timer_us: int | None) -> list[Any]:
        if self._backlog:
            return self._backlog.pop(0)
        return self._wait(timer_us)

    def _wait(self, timer_us: int | None) -> list[Any]:
        if not self.pending and timer_us is None:
            raise Deadlock("the program waits for something that no call and no timer can bring about")
        channel = self.channel
        if not channel.has_frame():
            self.world.flush_output()
            channel.put(["blocked", channel.received, list(self.pending), timer_us])
        return channel.get()

    def _take(self, frame: list[Any]) -> None:
        kind = frame[0]
        if kind == "answer":
            _, number, clock_us, ok, value = frame
            self.world.advance(clock_us)
            future = self.pending.pop(number, None)
            if future is None or future.done():
                return  # the call was cancelled while its answer was under way
            if ok:
                future.set_result(value)
            else:
                future.set_exception(self._make_error(value))
        elif kind == "tick":
            self.world.advance(frame[1])

    def alone(self) -> bool:
        """Whether nothing but the running task can go on before a call that it makes now is answered."""
        if self._ready or self._scheduled or self.pending or self._backlog:
            return False
        task = tasks.current_task(self)
        return task is not None and not task.cancelling()  # a cancelled task must meet it at its next await

    def wait_for_answer(self, number: int) -> Any:
        """Wait for one call with nothing else to do: the same as suspending, without a turn of the loop."""
        self.world.flush_output()
        while True:
            frame = self.channel.get()
            if frame[0] == "tick":
                self.world.advance(frame[1])
            elif frame[1] == number:
                self.world.advance(frame[2])
                if frame[3]:
                    return frame[4]
                raise self._make_error(frame[4])

    def sleep_until(self, clock_us: int) -> None:
        """Block the whole program until the clock says `clock_us`; answers that come meanwhile are kept."""
        kept: list[list[Any]] = []
        while True:
            frame = self._backlog.pop(0) if self._backlog else self._wait(clock_us)
            if frame[0] == "tick":
                self.world.advance(frame[1])
                if self.world.clock_us >= clock_us:
                    break
            else:
                kept.append(frame)
        self._backlog[:0] = kept

    # -- running -------------------------------------------------------------------------------------

    def be_current(self) -> None:
        """Be the loop of futures and tasks that a program makes while none of its coroutines runs."""
        events.set_event_loop(self)

    def run_to_end(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run `coro` to its end, also from within a running task, as `asyncio.run` in a program does."""
        running = events._get_running_loop()
        if running is None:
            self.be_current()
            try:
                return self.run_until_complete(self.create_task(coro))
            finally:
                self._cancel_rest()
        current = tasks.current_task(self)
        if current is not None:
            tasks._leave_task(self, current)
        try:
            task = self.create_task(coro)
            while not task.done():
                self._run_once()
            return task.result()
        finally:
            if current is not None:
                tasks._enter_task(self, current)

    def _cancel_rest(self) -> None:
        """Tasks that nobody awaited end with the program: cancelled, and their calls with them."""
        rest = [task for task in sorted(tasks.all_tasks(self), key=hash) if not task.done()]
        if not rest:
            return
        for task in rest:
            task.cancel()
        self.run_until_complete(tasks.gather(*rest, return_exceptions=True))
