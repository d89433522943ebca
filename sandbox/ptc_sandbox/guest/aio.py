"""What a program sees as `asyncio`: the standard library's own, less what would leave the program's world.

No loop, no threads, no subprocesses, no streams. What orders by address in the standard library
(`as_completed` of coroutines) is given an order here; tasks hash by their number (`guest.loop`).
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ptc_sandbox.guest.facades import module
from ptc_sandbox.guest.facades.module import Facade
from ptc_sandbox.guest.guards_types import StandInMeta, make_stand_in
from ptc_sandbox.guest.loop import ProgramLoop, ProgramTask
from ptc_sandbox.guest.policy_errors import RefusedCall

AS_THEY_ARE = (
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "CancelledError",
    "Condition",
    "Event",
    "InvalidStateError",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "QueueEmpty",
    "QueueFull",
    "QueueShutDown",
    "Semaphore",
    "TaskGroup",
    "TimeoutError",
    "gather",
    "iscoroutine",
    "iscoroutinefunction",
    "isfuture",
    "shield",
    "sleep",
    "timeout",
    "timeout_at",
    "wait",
    "wait_for",
)
"""Members that are asyncio's own."""

_REFUSED = {
    "to_thread": "There are no threads: await the coroutines directly, with asyncio.gather for several.",
    "create_subprocess_exec": "There are no other processes.",
    "create_subprocess_shell": "There are no other processes.",
    "open_connection": "There is no network: only the tools reach outside.",
    "new_event_loop": "The program has a loop already: use await, or asyncio.run(main()).",
    "set_event_loop": "The program has a loop already: use await, or asyncio.run(main()).",
    "Runner": "Use asyncio.run(main()).",
}


def facade(loop: ProgramLoop) -> Facade:
    """The `asyncio` that belongs to one program's loop."""
    found = {name: getattr(asyncio, name) for name in AS_THEY_ARE if hasattr(asyncio, name)}
    members = {
        **found,
        "Task": _task,
        "Future": _future,
        "ensure_future": _ensure_future,
        "as_completed": _as_completed,
        "current_task": _current_task,
        "all_tasks": lambda: asyncio.all_tasks(loop),
        "create_task": _create_task(loop),
        "run": _run(loop),
        "get_event_loop": lambda: Loop(loop),
        "get_running_loop": lambda: Loop(loop),
    }
    return module.facade("asyncio", members, _REFUSED)


def _current_task(loop: object = None) -> asyncio.Task[Any] | None:
    """The running task. The library looks the loop up in a table of loops: an object of the program's that hashes
    like one would be asked whether it equals the real one. None in a program that awaits nothing."""
    _no_other(loop)
    return asyncio.current_task() if asyncio._get_running_loop() else None


def _no_other(loop: object) -> None:
    """A loop of the program's own would be handed contexts and what hides in them."""
    if loop is not None:
        raise RefusedCall("Programs may not choose a loop: leave out loop.")


class _FutureMeta(StandInMeta):
    """`asyncio.Future` to programs: makes real ones, on the program's loop."""

    def __call__(cls, *, loop: object = None) -> Any:  # type: ignore[override]  # noqa: N805
        _no_other(loop)
        return asyncio.Future()


class _TaskMeta(StandInMeta):
    """`asyncio.Task` to programs, likewise."""

    def __call__(  # type: ignore[override]
        cls,  # noqa: N805
        coro: Any,
        *,
        loop: object = None,
        name: str | None = None,
    ) -> Any:
        _no_other(loop)
        return asyncio.get_event_loop().create_task(coro, name=name)


_future = make_stand_in(asyncio.Future, _FutureMeta)
_task = make_stand_in(ProgramTask, _TaskMeta)
for _made in (_future, _task):
    type.__setattr__(_made, "__class_getitem__", classmethod(types.GenericAlias))


def _ensure_future(coro_or_future: Any, *, loop: object = None) -> Any:
    _no_other(loop)
    return asyncio.ensure_future(coro_or_future)


class Loop:
    """The little of an event loop that ordinary programs ask for; the loop itself stays out of reach."""

    __slots__ = (
        *("call_at", "call_later", "call_soon", "create_future", "create_task", "is_closed", "is_running"),
        *("run_until_complete", "time"),
    )

    def __init__(self, loop: ProgramLoop) -> None:
        self.run_until_complete = _run(loop)
        self.create_task = _create_task(loop)
        self.create_future = lambda: loop.create_future()
        self.time = lambda: loop.time()
        self.call_soon = lambda callback, *args: loop.call_soon(callback, *args)
        self.call_later = lambda delay, callback, *args: loop.call_later(delay, callback, *args)
        self.call_at = lambda when, callback, *args: loop.call_at(when, callback, *args)
        self.is_running = lambda: True
        self.is_closed = lambda: False

    def __repr__(self) -> str:
        return "<event loop of this program>"


def _as_completed(fs: Iterable[Any], *, timeout: float | None = None) -> Any:
    """As `asyncio.as_completed`; coroutines start in the order in which they are given."""
    return asyncio.as_completed([asyncio.ensure_future(item) for item in dict.fromkeys(fs)], timeout=timeout)


def _create_task(loop: ProgramLoop) -> Callable[..., Any]:
    def create_task(coro: Coroutine[Any, Any, Any], *, name: str | None = None) -> asyncio.Task[Any]:
        return loop.create_task(coro, name=name)

    return create_task


def _run(loop: ProgramLoop) -> Callable[..., Any]:
    async def wait_for_it(awaitable: Any) -> Any:
        return await awaitable

    def run(main: Any, *, debug: bool | None = None) -> Any:
        if not asyncio.iscoroutine(main):
            if not asyncio.isfuture(main):
                raise ValueError(f"a coroutine was expected, got {main!r}")
            main = wait_for_it(main)
        return loop.run_to_end(main)

    return run
