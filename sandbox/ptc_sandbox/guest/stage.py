"""The stage of one program: its loop, its world and its namespace, made before the program is there.

`Stage.run` takes a `start` frame, compiles the program under the policy, runs it, and sends the `end` frame:
the program's value, or what went wrong in words that a model can use. What it reports is a claim; the host
checks it and binds the end to the frame.
"""

from __future__ import annotations

import ast
import errno
import gc
from collections.abc import Callable
from typing import Any, TypeVar

from ptc_sandbox.guest import aio, source
from ptc_sandbox.guest.builtins import make_globals
from ptc_sandbox.guest.channel import Channel, ChannelClosed, TooLarge
from ptc_sandbox.guest.encode import NotJson, plain
from ptc_sandbox.guest.guards_identity import numbers
from ptc_sandbox.guest.loop import ProgramLoop
from ptc_sandbox.guest.policy import PolicyViolation, compile_program, forgotten_awaits
from ptc_sandbox.guest.tools import ERRORS, Caller, ToolError, make_error, reserved_tools
from ptc_sandbox.guest.unawaited import Unawaited
from ptc_sandbox.guest.world import World

_MESSAGE_CHARS = 2000
_INNER = 5
_LEVELS = 2
"""Exceptions of a group that are told, and groups within groups that are opened."""

_LOOKED_INTO = 1000
"""Exceptions of a group that are looked at for what decided the end."""

T = TypeVar("T")


class ForgottenAwait(Exception):
    """A tool is called and its result thrown away unawaited: the call would never be made, or never was."""

    def __init__(self, message: str, lineno: int | None) -> None:
        super().__init__(message)
        self.lineno = lineno


class Stage:
    """Everything that one program needs and that does not depend on it. Used once."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._loop = ProgramLoop(channel, make_error)
        self._world = self._loop.world = World(channel, self._loop.sleep_until)
        self._caller = Caller(self._loop, channel)
        self._unawaited = Unawaited(self._world.write_output)
        self._names: dict[str, Any] = reserved_tools(channel)
        errors = {kind.__name__: kind for kind in ERRORS}
        self._namespace = make_globals(self._world, {**self._names, **errors}, aio.facade(self._loop))

    def run(self, start: dict[str, Any]) -> None:
        """Run the program of a `start` frame and send its `end` frame. Raises MemoryError and ChannelClosed."""
        numbers.restart()  # a rehearsal may have come between the making of this stage and the program
        gc.freeze()  # the collector starts from nothing: when it runs must not depend on what came before
        self._world.begin(start["seed"], start["epoch_us"])
        self._caller.argument_bytes = start["argument_bytes"]
        self.channel.values = start["values"]
        self.channel.depth = start["depth"]
        tools = {name: self._caller.tool(name, parameters, doc) for name, parameters, doc in start["tools"]}
        self._unawaited.watch()
        try:
            run = self._run_program if start["language_wall"] else self._run_unrestricted
            result = run(start["code"], tools)
            forgotten = self._forgotten()
            if forgotten is not None:
                raise forgotten
            self._unawaited.at_end(tuple(self._namespace.values()), result)
            value = plain(result, "the program's value", self.channel.depth)
            self._end({"status": "completed", "value": value}, start["result_bytes"])
        except (MemoryError, ChannelClosed):
            raise
        except BaseException as error:  # noqa: BLE001 -- a program may raise anything; it is told, then over
            failed = self._forgotten() if _is_clean_exit(error) else error
            if failed is None:
                self._end({"status": "completed", "value": None})
            else:
                failed = _decisive(failed)
                if isinstance(failed, MemoryError):
                    raise failed from None
                self._end(_failure(failed, start["code"], bare=not start["language_wall"]))

    def close(self) -> None:
        """Close the loop. For rehearsals; a real program's process is killed."""
        self._loop.close()

    def _run_program(self, code: str, tools: dict[str, Any]) -> object:
        try:
            program = compile_program(code)
        except MemoryError:
            raise SyntaxError("the program is nested too deeply, or too large, to be compiled") from None
        for finding in forgotten_awaits(program.tree, frozenset(tools)) if tools else ():
            raise ForgottenAwait(finding.message, finding.line)
        namespace = self._namespace
        namespace.update(tools)
        if program.is_coroutine:
            self._loop.run_to_end(eval(program.code, namespace))  # noqa: S307 -- this is what we are here for
        else:
            self._loop.be_current()
            exec(program.code, namespace)  # noqa: S102
        return namespace.get(program.result_name)

    def _forgotten(self) -> ForgottenAwait | None:
        """What there is to say where the program is done and a call that it wrote was never begun."""
        forgotten = self._caller.forgotten()
        if not forgotten:
            return None
        name, line = forgotten[0]
        more = f" (and {len(forgotten) - 1} more)" if len(forgotten) > 1 else ""
        return ForgottenAwait(
            f"the program ended, and this call of {name}(){more} was never awaited, so it was not made:"
            f" write `await {name}(…)`, or await the task, list or gather that it was put in.",
            line,
        )

    def _run_unrestricted(self, code: str, tools: dict[str, Any]) -> object:
        """Plain CPython: proves that the kernel wall holds alone. The host asks for it by name."""
        compiled = compile(code, source.PROGRAM, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        namespace: dict[str, Any] = {"__name__": "__main__", **tools, **self._names}

        def write(*values: object, sep: str = " ", end: str = "\n") -> None:
            self._world.write_output(sep.join(map(str, values)) + end)

        namespace["print"] = write
        result = eval(compiled, namespace)  # noqa: S307
        if result is not None:
            self._loop.run_to_end(result)
        return namespace.get("result")

    def _end(self, ending: dict[str, Any], limit: int | None = None) -> None:
        self._world.flush_output()
        try:
            self.channel.put(["end", ending], limit)
        except UnicodeEncodeError:
            raise NotJson("the program's value holds a lone surrogate, which JSON cannot carry") from None
        except TooLarge as error:
            raise ValueError(f"the program's value is too large: {error}") from None
        self.channel.flush()


def _decisive(error: BaseException) -> BaseException:
    """What says how the program ended: of a group what a wall refused, or want of memory, if it holds such a thing.

    A TaskGroup puts into a group whatever one of its tasks raised, alone or not.
    """
    waiting, seen = [error], 0
    while waiting and seen < _LOOKED_INTO:
        one = waiting.pop(0)
        seen += 1
        if isinstance(one, (PolicyViolation, MemoryError)):
            return one
        if isinstance(one, BaseExceptionGroup):
            group: BaseExceptionGroup[Any] = one
            waiting += _asked(lambda: group.exceptions[:_LOOKED_INTO], ())  # noqa: B023 -- asked at once
    return error


def _failure(error: BaseException, code: str, *, bare: bool) -> dict[str, Any]:
    """How an exception is told: bounded, by the program's own lines, without a path of this machine."""
    line = _line(error)
    wall = _wall(error, bare=bare)
    said = _asked(lambda: str(getattr(error, "code", "EPERM")), "")
    return {
        "status": "denied" if wall else "raised",
        "error": {
            "type": _text(type(error).__name__, 100),
            "code": _text(said, 100) if wall or isinstance(error, ToolError) else None,
            "message": _text(_message(error), _MESSAGE_CHARS),
            "line": line,
            "excerpt": source.excerpt(code, line),
            "wall": wall,
        },
    }


def _asked(question: Callable[[], T], otherwise: T) -> T:
    """What an exception of the program's says of itself; its properties and texts may raise anything."""
    try:
        return question()
    except (MemoryError, ChannelClosed):
        raise
    except BaseException:  # noqa: BLE001
        return otherwise


def _line(error: BaseException) -> int | None:
    if isinstance(error, (SyntaxError, PolicyViolation, ForgottenAwait)):
        line = _asked(lambda: getattr(error, "lineno", None) or getattr(error, "line", None), None)
        if type(line) is int and 0 < line < 1 << 31:
            return line
    return source.failing_line(error.__traceback__)


def _wall(error: BaseException, *, bare: bool) -> str | None:
    """Which wall an uncaught error shows: the policy or, in `bare` CPython, a system call that was refused."""
    if isinstance(error, PolicyViolation):
        return "language"
    refused = bare and isinstance(error, PermissionError) and error.errno == errno.EPERM
    return "kernel" if refused else None


def _text(text: str, limit: int) -> str:
    return text[:limit].encode("utf-8", "replace").decode()


def _is_clean_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and _asked(lambda: error.code in (None, 0), False)


def _message(error: BaseException, levels: int = _LEVELS) -> str:
    """Its text; of a group that of some within it. They can hold each other many times over, so not of all."""
    unmade = "(its text could not be made)"
    if isinstance(error, SyntaxError):
        return _asked(lambda: str(error.msg), unmade)
    text = _text(_asked(lambda: str(error), unmade), _MESSAGE_CHARS)
    if isinstance(error, BaseExceptionGroup) and levels:
        group: BaseExceptionGroup[Any] = error
        inner: tuple[Any, ...] = _asked(lambda: group.exceptions[:_INNER], ())
        text += ": " + "; ".join(f"{type(one).__name__}: {_message(one, levels - 1)}" for one in inner)
    return text
