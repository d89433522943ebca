"""The tools of a program: functions that turn a call into a frame and wait for the host's answer.

What is here only asks. The host looks the name up among the tools it granted, checks the arguments and
decides; a program that forges one of these objects gains nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from ptc_sandbox.guest.channel import Channel, TooLarge
from ptc_sandbox.guest.encode import NotJson, plain
from ptc_sandbox.guest.loop import ProgramLoop
from ptc_sandbox.guest.source import PROGRAM


class ToolError(Exception):
    """A tool did not give a result. `code` says how (`tool_error`, `timeout`, `invalid_arguments`, …)."""

    code = "tool_error"


class ToolDenied(ToolError):
    """The host refused the call, and the tool did not run."""

    code = "denied"


class ToolTimeout(ToolError, TimeoutError):
    """The tool did not finish in time."""

    code = "timeout"


class ToolUncertain(ToolError):
    """A change that may have been made: find out before trying again.

    `reconciliation` is the read that tells, `{"tool", "arguments"}`, or None if the tool has none.
    """

    code = "uncertain"
    reconciliation: dict[str, Any] | None = None


ERRORS = (ToolError, ToolDenied, ToolTimeout, ToolUncertain)
"""What a program may catch, by these names."""
for _kind in ERRORS:
    _kind.__module__ = "__main__"


def make_error(answer: dict[str, Any]) -> ToolError:
    """The exception for an answer that is not a result: `{"status", "code", "message"}`, perhaps `"reconciliation"`."""
    kind = (
        ToolDenied
        if answer["status"] == "denied"
        else ToolTimeout
        if answer["code"] == "timeout"
        else ToolUncertain
        if answer["status"] == "uncertain"
        else ToolError
    )
    error = kind(answer["message"])
    error.code = answer["code"]
    if isinstance(error, ToolUncertain):
        error.reconciliation = answer.get("reconciliation")
    return error


class Caller:
    """Numbers the calls of one program and carries them. One for each program."""

    def __init__(self, loop: ProgramLoop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self.argument_bytes = 0
        self._made = 0
        self._written = 0
        self._unstarted: dict[int, tuple[Coroutine[Any, Any, Any], str, int | None]] = {}

    def forgotten(self) -> list[tuple[str, int | None]]:
        """Tools and lines of the calls that were written and never begun, in the order they were written.

        One that was closed or cancelled before it began is not among them: that somebody meant.
        """
        return [
            (name, line)
            for coroutine, name, line in self._unstarted.values()
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        ]

    async def call(self, name: str, arguments: dict[str, Any], line: int | None, written: int) -> Any:
        """Make the call and wait for its answer; a cancelled wait tells the host."""
        del self._unstarted[written]
        loop = self._loop
        arguments = plain(arguments, f"the arguments of {name}", self._channel.depth)
        alone = loop.alone()
        waits = self._channel.received if alone else None
        try:
            self._channel.put(["call", self._made + 1, name, arguments, line, waits], self.argument_bytes)
        except UnicodeEncodeError:
            raise NotJson(f"an argument of {name} holds a lone surrogate, which JSON cannot carry") from None
        except TooLarge as error:
            raise ValueError(f"the call of {name} is too large: {error}") from None
        self._made = number = self._made + 1
        if alone:  # most programs make their calls one after the other
            return loop.wait_for_answer(number)
        future = loop.pending[number] = loop.create_future()
        try:
            return await future
        except asyncio.CancelledError:
            if loop.pending.pop(number, None) is not None:
                self._channel.put(["cancel", number])
            raise

    def tool(self, name: str, parameters: list[str], doc: str) -> Callable[..., Any]:
        """The function that a program sees. Its coroutine makes the call when it is awaited."""
        call = self.call
        unstarted = self._unstarted

        def tool(*args: object, **arguments: object) -> Any:
            if args:
                arguments = _bind(name, parameters, args, arguments)
            self._written = written = self._written + 1
            line = _line()
            coroutine = call(name, arguments, line, written)
            unstarted[written] = (coroutine, name, line)  # kept, so that no collector decides what is told
            return coroutine

        tool.__name__ = tool.__qualname__ = name
        tool.__module__ = "tools"
        tool.__doc__ = doc
        return tool


def _bind(
    name: str, parameters: list[str], args: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    """Positional arguments go to the parameters in the order in which the tool declares them."""
    if len(args) > len(parameters):
        raise TypeError(f"{name}() takes {len(parameters)} arguments but {len(args)} were given")
    bound = dict(zip(parameters, args, strict=False))
    for key in named:
        if key in bound:
            raise TypeError(f"{name}() got two values for the argument {key!r}")
    return {**bound, **named}


def _line() -> int | None:
    """The line of the program that made the call, for the record."""
    frame = sys._getframe(2)
    return frame.f_lineno if frame.f_code.co_filename == PROGRAM else None


def _reserved(name: str, channel: Channel) -> Callable[..., NoReturn]:
    def refuse(*args: object, **arguments: object) -> NoReturn:
        channel.put(["refused", name, _line()])
        channel.flush()
        raise RuntimeError(
            f"{name}() is not available inside a program: tools are changed by the application between runs"
            " (CodeAct.add_tools, CodeAct.remove_tool) or, in a run, by a tool that the model calls directly"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = "tools"
    return refuse


def reserved_tools(channel: Channel) -> dict[str, Callable[..., NoReturn]]:
    """`add_tools` and `remove_tools`: names that exist so that calling them says why they cannot work."""
    return {name: _reserved(name, channel) for name in ("add_tools", "remove_tools")}
