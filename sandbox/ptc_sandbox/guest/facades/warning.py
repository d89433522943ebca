"""`warnings` for programs: what they warn of goes to their output, by filters of their own.

No module's registry is kept and no source is read; the library's own warnings are not shown.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.source import PROGRAM

_ACTIONS = ("default", "error", "ignore", "always", "all", "module", "once")


@dataclass(frozen=True, slots=True)
class _Filter:
    action: str
    category: type[Warning]
    message: re.Pattern[str] | None = None
    line: int = 0

    def fits(self, text: str, category: type[Warning], line: int) -> bool:
        return (
            issubclass(category, self.category)
            and (self.message is None or self.message.match(text) is not None)
            and self.line in (0, line)
        )


_AT_FIRST = tuple(
    _Filter("ignore", category) for category in (PendingDeprecationWarning, ImportWarning, ResourceWarning)
)


class Caught:
    """A warning that `catch_warnings(record=True)` recorded."""

    __slots__ = ("category", "file", "filename", "line", "lineno", "message", "source")

    def __init__(self, message: Warning, category: type[Warning], lineno: int) -> None:
        self.message = message
        self.category = category
        self.filename = PROGRAM
        self.lineno = lineno
        self.file = self.line = self.source = None


class _State:
    """The filters of one program, the newest first, what was shown already, and where warnings are recorded."""

    def __init__(self, guards: Guards) -> None:
        self.filters: tuple[_Filter, ...] = _AT_FIRST
        self.shown: set[tuple[str, type[Warning], int]] = set()
        self.record: list[Caught] | None = None
        self._output = guards.stderr

    def set(self, filters: tuple[_Filter, ...]) -> None:
        self.filters = filters
        self.shown = set()

    def add(self, new: _Filter, at_end: bool) -> None:
        if new.action not in _ACTIONS:
            raise ValueError(f"invalid action: {new.action!r}")
        rest = tuple(one for one in self.filters if one != new)
        self.set((*rest, new) if at_end else (new, *rest))

    def warn(self, message: Warning, line: int) -> None:
        category, text = type(message), str.__str__(str(message))
        action = next((one.action for one in self.filters if one.fits(text, category, line)), "default")
        if action == "error":
            raise message
        key = (text, category, {"once": -1, "module": 0}.get(action, line))
        if action == "ignore" or (action not in ("always", "all") and key in self.shown):
            return
        self.shown.add(key)
        if self.record is not None:
            self.record.append(Caught(message, category, line))
        else:
            self._output.write(f"{PROGRAM}:{line}: {category.__name__}: {text}\n")


class _Catching:
    """The context manager of `catch_warnings`: what was changed within is undone at its end."""

    __slots__ = ("_before", "_first", "_record", "_state")

    def __init__(self, state: _State, record: bool, first: tuple[Any, ...] | None) -> None:
        self._state = state
        self._record = record
        self._first = first
        self._before: list[Any] = []

    def __enter__(self) -> list[Caught] | None:
        state = self._state
        self._before.append((state.filters, state.record))
        state.record = [] if self._record else state.record
        if self._first is not None:
            action, category, line, at_end = self._first
            state.add(_Filter(_text(action), _category(category), None, line), bool(at_end))
        else:
            state.set(state.filters)
        return state.record if self._record else None

    def __exit__(self, *exc_info: object) -> None:
        filters, self._state.record = self._before.pop()
        self._state.set(filters)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is needed, not {type(value).__name__}")
    return str.__str__(value)


def _category(category: Any) -> type[Warning]:
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError("category must be a Warning subclass")
    return category


def _line(frame: FrameType | None, level: int) -> int:
    """The line of the program `level` calls up; its outermost one where there are fewer."""
    line = 0
    while frame is not None and level > 0:
        if frame.f_code.co_filename == PROGRAM:
            line = frame.f_lineno
            level -= 1
        frame = frame.f_back
    return line


def warnings_members(guards: Guards) -> dict[str, Any]:
    """The whole of `warnings` for programs."""
    state = _State(guards)

    def warn(
        message: Any,
        category: Any = None,
        stacklevel: int = 1,
        source: Any = None,
        *,
        skip_file_prefixes: Any = (),
    ) -> None:
        """Issue a warning, or maybe ignore it or raise an exception."""
        if not isinstance(message, Warning):
            message = _category(UserWarning if category is None else category)(message)
        if not issubclass(
            type(message), Warning
        ):  # its __new__ may give anything, and the record shows its type
            raise TypeError("the category must make a Warning")
        state.warn(message, _line(sys._getframe(1), max(1, int(stacklevel))))

    def filterwarnings(
        action: str,
        message: str = "",
        category: Any = Warning,
        module: str = "",
        lineno: int = 0,
        append: bool = False,
    ) -> None:
        """Add a rule before the others; `module` is not looked at, as all warnings are the program's."""
        pattern = re.compile(_text(message), re.IGNORECASE) if message else None
        state.add(_Filter(_text(action), _category(category), pattern, int(lineno)), bool(append))

    def simplefilter(action: str, category: Any = Warning, lineno: int = 0, append: bool = False) -> None:
        """Add a rule that fits every text."""
        state.add(_Filter(_text(action), _category(category), None, int(lineno)), bool(append))

    def resetwarnings() -> None:
        """Forget every rule."""
        state.set(())

    def catch_warnings(
        *,
        record: bool = False,
        module: Any = None,
        action: Any = None,
        category: Any = Warning,
        lineno: int = 0,
        append: bool = False,
    ) -> _Catching:
        """Undo at the end of a `with` what is changed in it; with `record`, collect instead of showing."""
        first = None if action is None else (action, category, int(lineno), append)
        return _Catching(state, bool(record), first)

    functions = (warn, filterwarnings, simplefilter, resetwarnings, catch_warnings)
    for function in functions:
        function.__qualname__ = function.__name__
        function.__module__ = "warnings"
    return {function.__name__: function for function in functions}
