"""Coroutines that a program made and never awaited: told in its output, as Python tells it on standard error.

Python warns when such a coroutine is dropped, by way of the `warnings` module, which is silent here; those that are
still held when the program ends it would tell at its own end, which a program's process never sees. Nothing is raised.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from types import CoroutineType
from typing import Any

from ptc_sandbox.guest.source import PROGRAM


class Unawaited:
    """Tells of one program's. `write` takes the text."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._told: set[tuple[str, int]] = set()

    def watch(self) -> None:
        """Be told by the interpreter from here on."""
        warnings._warn_unawaited_coroutine = self._dropped  # type: ignore[attr-defined]

    def at_end(self, held: Iterable[object], besides: object) -> None:
        """Tell of those among `held` that nobody began; `besides` is the program's value, which has its own error."""
        for value in held:
            if (
                type(value) is CoroutineType
                and value is not besides
                and value.cr_code.co_filename == PROGRAM
                and inspect.getcoroutinestate(value) == inspect.CORO_CREATED
            ):
                self._tell(value, value.cr_code.co_firstlineno)

    def _dropped(self, coroutine: Any) -> None:
        if type(coroutine) is not CoroutineType:
            return  # a generator that the library made awaitable
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != PROGRAM:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            self._tell(coroutine, frame.f_lineno)

    def _tell(self, coroutine: Any, line: int) -> None:
        name = coroutine.cr_code.co_name  # `__name__` may be an object of the program's
        if (name, line) not in self._told:
            self._told.add((name, line))
            self._write(
                f"{PROGRAM}:{line}: RuntimeWarning: coroutine '{name}' was never awaited:"
                f" write `await {name}(…)`, or give it to asyncio.gather or create_task\n"
            )
