"""`sys`, `logging`, `ast`, `shlex`, `fnmatch` and redirections, as far as programs use them: text in, text to the
program's output.

Nothing of the interpreter is here: `sys` has two streams and a few numbers, `ast` reads literals only.
"""

from __future__ import annotations

import ast
import fnmatch
import logging
import shlex
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ptc_sandbox.guest.facades.tracebacks import format_current
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.output import Redirection, Stream

_LEVELS = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"write() argument must be str, not {type(value).__name__}")
    return str.__str__(value)


def sys_members(guards: Guards) -> dict[str, Any]:
    """Streams to write to, and what a program asks about its Python."""

    def exit(status: object = None, /) -> NoReturn:
        """End the program."""
        raise SystemExit(status)

    exit.__qualname__ = "exit"
    exit.__module__ = "sys"
    streams = {"stdout": Stream("stdout", guards.stdout), "stderr": Stream("stderr", guards.stderr)}
    plain = ("byteorder", "float_info", "maxsize", "maxunicode", "version_info")
    return {**streams, "exit": exit, **{name: getattr(sys, name) for name in plain}}


def contextlib_members(guards: Guards) -> dict[str, Any]:
    """`redirect_stdout` and `redirect_stderr`, of this program's streams."""

    def redirect_stdout(new_target: Any) -> Redirection:
        """Send what the program prints to `new_target` for the length of a `with`."""
        return Redirection(guards.stdout, new_target)

    def redirect_stderr(new_target: Any) -> Redirection:
        """The same for what it writes to sys.stderr."""
        return Redirection(guards.stderr, new_target)

    for function in (redirect_stdout, redirect_stderr):
        function.__qualname__ = function.__name__
        function.__module__ = "contextlib"
    return {"redirect_stdout": redirect_stdout, "redirect_stderr": redirect_stderr}


class Logger:
    """Writes `LEVEL:name:message` to the program's output, from its level on."""

    __slots__ = ("_root", "_write", "level", "name")

    def __init__(self, name: str, root: Logger | None, write: Callable[[str], None]) -> None:
        self.name = name
        self.level = _LEVELS["WARNING"] if root is None else 0
        self._root = root
        self._write = write

    def log(self, level: int, msg: object, *args: Any, exc_info: Any = None, **options: Any) -> None:
        """Write a message, formatted with `%`, if its level is high enough."""
        least = self.level or (self._root.level if self._root is not None else 0)
        if level < least:
            return
        text = str(msg)
        if args:
            text = text % (args[0] if len(args) == 1 and isinstance(args[0], dict) else args)
        name = next((name for name, number in _LEVELS.items() if number == level), f"Level {level}")
        self._write(f"{name}:{self.name}:{text}\n" + (format_current() if exc_info else ""))

    def debug(self, msg: object, *args: Any, **options: Any) -> None:
        """As `log`, at this level."""
        self.log(_LEVELS["DEBUG"], msg, *args, **options)

    def info(self, msg: object, *args: Any, **options: Any) -> None:
        """As `log`, at this level."""
        self.log(_LEVELS["INFO"], msg, *args, **options)

    def warning(self, msg: object, *args: Any, **options: Any) -> None:
        """As `log`, at this level."""
        self.log(_LEVELS["WARNING"], msg, *args, **options)

    def error(self, msg: object, *args: Any, **options: Any) -> None:
        """As `log`, at this level."""
        self.log(_LEVELS["ERROR"], msg, *args, **options)

    def critical(self, msg: object, *args: Any, **options: Any) -> None:
        """As `log`, at this level."""
        self.log(_LEVELS["CRITICAL"], msg, *args, **options)

    def exception(self, msg: object, *args: Any, **options: Any) -> None:
        """As `error`, with the exception that is being handled."""
        self.error(msg, *args, **{"exc_info": True, **options})

    def setLevel(self, level: int | str) -> None:  # noqa: N802 -- logging's name
        """The level from which on messages are written."""
        self.level = _level(level)


def _level(level: Any) -> int:
    if isinstance(level, str) and str.__str__(level) in _LEVELS:
        return int(_LEVELS[str.__str__(level)])
    if isinstance(level, int):
        return int.__int__(level)
    raise ValueError(f"Unknown level: {level!r}")


def logging_members(guards: Guards) -> dict[str, Any]:
    """Loggers that write to the program's output; `basicConfig` sets the level."""
    root = Logger("root", None, guards.environment.write_output)
    made: dict[str, Logger] = {}

    def getLogger(name: str | None = None) -> Logger:  # noqa: N802
        """The logger of this name."""
        if not name:
            return root
        key = _text(name)
        return made.setdefault(key, Logger(key, root, guards.environment.write_output))

    def basicConfig(*, level: int | str | None = None, **options: Any) -> None:  # noqa: N802
        """Set the level of the root logger. Formats, files and handlers are left as they are."""
        if level is not None:
            root.setLevel(level)

    calls = ("debug", "info", "warning", "error", "critical", "exception", "log")
    return {
        **_LEVELS,
        **{name: getattr(root, name) for name in calls},
        "getLogger": getLogger,
        "basicConfig": basicConfig,
    }


def ast_members(guards: Guards) -> dict[str, Any]:
    """`literal_eval` of text."""

    def literal_eval(text: str) -> Any:
        """The value of a literal: numbers, text, tuples, lists, dicts, sets, booleans, None."""
        if not isinstance(text, str):
            raise TypeError("literal_eval() takes text")
        return ast.literal_eval(str.__str__(text))

    literal_eval.__qualname__ = "literal_eval"
    literal_eval.__module__ = "ast"
    return {"literal_eval": literal_eval}


def shlex_members(guards: Guards) -> dict[str, Any]:
    """`split`, `quote` and `join` of text; nothing is read from a terminal."""

    def split(s: str, comments: bool = False, posix: bool = True) -> list[str]:
        """Split text as a shell does."""
        return shlex.split(_text(s), bool(comments), bool(posix))

    split.__qualname__ = "split"
    split.__module__ = "shlex"
    return {"split": split, "quote": shlex.quote, "join": shlex.join}


def fnmatch_members(guards: Guards) -> dict[str, Any]:
    """The whole of `fnmatch`."""
    return {name: getattr(fnmatch, name) for name in ("filter", "fnmatch", "fnmatchcase", "translate")}
