"""`traceback` as text: where in the program an exception was raised. Frames and tracebacks stay out of reach."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from ptc_sandbox.guest.guards import Guards

_PROGRAM = "<program>"
_LIMIT = 50


def traceback_members(guards: Guards) -> dict[str, Any]:
    """Functions that give text or print it; of the frames only the program's own are named."""

    def format_exception_only(exc: Any, /, value: Any = None) -> list[str]:
        return [_last_line(_exception(exc, value))]

    def format_exception(
        exc: Any, /, value: Any = None, tb: Any = None, limit: Any = None, chain: bool = True
    ) -> list[str]:
        return _lines(_exception(exc, value), chain)

    def format_exc(limit: Any = None, chain: bool = True) -> str:
        return format_current(chain)

    def print_exc(limit: Any = None, file: Any = None, chain: bool = True) -> None:
        _print(format_exc(limit, chain), file)

    def print_exception(
        exc: Any, /, value: Any = None, tb: Any = None, limit: Any = None, file: Any = None
    ) -> None:
        _print("".join(_lines(_exception(exc, value), True)), file)

    def _print(text: str, file: Any) -> None:
        if file is None:
            guards.stderr.write(text)
        else:
            file.write(text)

    functions = (format_exception_only, format_exception, format_exc, print_exc, print_exception)
    for function in functions:
        function.__qualname__ = function.__name__
        function.__module__ = "traceback"
    return {function.__name__: function for function in functions}


def format_current(chain: bool = True) -> str:
    """The exception that is being handled, as text."""
    current = sys.exc_info()[1]
    return "NoneType: None\n" if current is None else "".join(_lines(current, chain))


def _exception(exc: Any, value: Any) -> BaseException:
    found = value if value is not None else exc
    if not isinstance(found, BaseException):
        raise TypeError(f"an exception was expected, not {type(found).__name__}")
    return found


def _lines(exc: BaseException, chain: bool, depth: int = 10) -> list[str]:
    lines: list[str] = []
    before, how = exc.__cause__, "The above exception was the direct cause of the following exception"
    if before is None and not exc.__suppress_context__:
        before, how = exc.__context__, "During handling of the above exception, another exception occurred"
    if chain and before is not None and depth:
        lines += [*_lines(before, chain, depth - 1), f"\n{how}:\n\n"]
    if exc.__traceback__ is not None:
        lines += ["Traceback (most recent call last):\n", *_places(exc.__traceback__)]
    return [*lines, _last_line(exc)]


def _places(traceback: TracebackType | None) -> list[str]:
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == _PROGRAM:
            places.append(f'  File "{_PROGRAM}", line {traceback.tb_lineno}, in {code.co_name}\n')
        traceback = traceback.tb_next
    return places if len(places) <= _LIMIT else [*places[: _LIMIT // 2], "  […]\n", *places[-_LIMIT // 2 :]]


def _last_line(exc: BaseException) -> str:
    kind = type(exc)
    name = (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    text = str(exc)
    return f"{name}: {text}\n" if text else f"{name}\n"
