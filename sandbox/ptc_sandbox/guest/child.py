"""One disposable child: confines itself, waits for a program, runs it, reports how it ended, and is gone.

It is forked from the server with everything loaded. Before it reads a byte of the program the kernel wall
stands; parsing, policy and compilation happen behind it. What it reports is a claim: the host binds the end
to the frame that says so and kills the process, whatever still runs in it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ptc_sandbox.confine import LayerUnavailable
from ptc_sandbox.guest import aio, source
from ptc_sandbox.guest.builtins import make_globals
from ptc_sandbox.guest.channel import Channel, ChannelClosed, TooLarge
from ptc_sandbox.guest.encode import NotJson, plain
from ptc_sandbox.guest.loop import ProgramLoop
from ptc_sandbox.guest.policy import PolicyViolation, compile_program, forgotten_awaits
from ptc_sandbox.guest.tools import Caller, ToolDenied, ToolError, ToolTimeout, make_error, reserved_tools
from ptc_sandbox.guest.world import World

_MESSAGE_CHARS = 2000
_OUT_OF_MEMORY = b'["end",{"status":"memory"}]'
_OUT_OF_MEMORY_FRAME = len(_OUT_OF_MEMORY).to_bytes(4, "little") + _OUT_OF_MEMORY


class ForgottenAwait(Exception):
    """A tool is called and its result thrown away unawaited: the call would never be made."""


def serve(fd: int, confine: Callable[[], None]) -> NoReturn:
    """The whole life of a child. Never returns and never raises."""
    channel = Channel(fd)
    try:
        try:
            confine()
        except BaseException as error:  # noqa: BLE001 -- whatever it is, nothing may run
            layer = error.report.layer if isinstance(error, LayerUnavailable) else "unknown"
            channel.put(["unconfined", layer, f"{type(error).__name__}: {error}"])
            channel.flush()
            os._exit(1)
        loop = ProgramLoop(channel)
        channel.put(["ready"])
        run(channel, loop, channel.get()[1])
        channel.get()  # stay until the host has read what this process used, and kills it
    except ChannelClosed:
        pass
    except MemoryError:
        os.write(fd, _OUT_OF_MEMORY_FRAME)
    finally:
        os._exit(0)


def run(channel: Channel, loop: ProgramLoop, start: dict[str, Any]) -> None:
    """Run the program of a `start` frame and queue its `end` frame."""
    world = World(channel, start["seed"], start["epoch_us"], loop.sleep_until)
    loop.world = world
    loop.make_error = make_error
    caller = Caller(loop, channel, start["argument_bytes"])
    tools = {name: caller.tool(name, parameters, doc) for name, parameters, doc in start["tools"]}
    try:
        if start["language_wall"]:
            value = _run_program(start["code"], world, loop, tools)
        else:
            value = _run_unrestricted(start["code"], world, loop, tools)
        _end(
            channel,
            world,
            {"status": "completed", "value": plain(value, "the program's value")},
            start["result_bytes"],
        )
    except MemoryError:
        tools.clear()
        os.write(channel._fd, _OUT_OF_MEMORY_FRAME)
    except ChannelClosed:
        raise
    except BaseException as error:  # noqa: BLE001 -- a program may raise anything; it is told, then over
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return _end(channel, world, {"status": "completed", "value": None})
        _end(channel, world, _failure(error, start["code"]))


def _end(channel: Channel, world: World, ending: dict[str, Any], limit: int | None = None) -> None:
    world.flush_output()
    try:
        channel.put(["end", ending], limit)
    except UnicodeEncodeError:
        raise NotJson("the program's value holds a lone surrogate, which JSON cannot carry") from None
    except TooLarge as error:
        raise ValueError(f"the program's value is too large: {error}") from None
    channel.flush()


def _run_program(code: str, world: World, loop: ProgramLoop, tools: Mapping[str, Any]) -> object:
    try:
        program = compile_program(code)
    except MemoryError:
        raise SyntaxError("the program is nested too deeply, or too large, to be compiled") from None
    for finding in forgotten_awaits(program.tree, frozenset(tools)):
        error = ForgottenAwait(finding.message)
        error.lineno = finding.line  # type: ignore[attr-defined]
        raise error
    names = {
        **tools,
        **reserved_tools(loop.channel),
        **{kind.__name__: kind for kind in (ToolError, ToolDenied, ToolTimeout)},
    }
    namespace = make_globals(world, names, aio.facade(loop))
    if program.is_coroutine:
        loop.run_to_end(eval(program.code, namespace))  # noqa: S307 -- running the program is the purpose
    else:
        exec(program.code, namespace)  # noqa: S102
    return namespace.get(program.result_name)


def _run_unrestricted(code: str, world: World, loop: ProgramLoop, tools: Mapping[str, Any]) -> object:
    """Plain CPython, language wall off: proves that the kernel wall holds alone. The host asks for it by name."""
    import ast

    tree = compile(code, source.PROGRAM, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    namespace: dict[str, Any] = {"__name__": "__main__", **tools, **reserved_tools(loop.channel)}
    namespace["print"] = lambda *values, sep=" ", end="\n": world.write_output(
        sep.join(map(str, values)) + end
    )
    result = eval(tree, namespace)  # noqa: S307
    if result is not None:
        loop.run_to_end(result)
    return namespace.get("result")


def _failure(error: BaseException, code: str) -> dict[str, Any]:
    """How an exception is told: bounded, by the program's own lines, without a path of this machine."""
    line = getattr(error, "lineno", None) or getattr(error, "line", None)
    if type(line) is not int or not isinstance(error, (SyntaxError, PolicyViolation, ForgottenAwait)):
        line = source.failing_line(error.__traceback__)
    wall = _wall(error)
    return {
        "status": "denied" if wall else "raised",
        "error": {
            "type": _text(type(error).__name__, 100),
            "code": _text(str(getattr(error, "code", wall)), 100)
            if wall or isinstance(error, ToolError)
            else None,
            "message": _text(_message(error), _MESSAGE_CHARS),
            "line": line,
            "excerpt": source.excerpt(code, line),
            "wall": wall,
        },
    }


def _wall(error: BaseException) -> str | None:
    """Which wall an uncaught error shows: the policy, or a system call that the kernel refused."""
    if isinstance(error, PolicyViolation):
        return "language"
    refused = isinstance(error, PermissionError) and error.errno == errno.EPERM
    return "kernel" if refused else None


def _text(text: str, limit: int) -> str:
    return text[:limit].encode("utf-8", "replace").decode()


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)
    try:
        text = str(error)
        if isinstance(error, BaseExceptionGroup):
            text += ": " + "; ".join(
                f"{type(inner).__name__}: {_message(inner)}" for inner in error.exceptions[:5]
            )
    except Exception:  # noqa: BLE001 -- the program's own __str__
        return "(its text could not be made)"
    return text
