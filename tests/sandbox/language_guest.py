"""The other side of `language_server`: a process like the fork server's, without the kernel wall.

Reads one program a line from its input, forks a child for each, and answers with what became of it. Runs
under `python -s -S -P`, so the language wall is tried where it lives.
"""

from __future__ import annotations

import sys

PACKAGES, SITE = sys.argv[1:3]
sys.path[:0] = [PACKAGES, SITE]

from ptc_sandbox.guest.guards_identity import install  # noqa: E402

install()

import ast  # noqa: E402
import asyncio  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402

from ptc_sandbox.guest.builtins import make_globals, prepare  # noqa: E402
from ptc_sandbox.guest.facades.module import facade  # noqa: E402
from ptc_sandbox.guest.policy import PolicyViolation, compile_program, forgotten_awaits  # noqa: E402

EPOCH_US = 1_700_000_000_000_000


class World:
    """A world that follows from nothing but a seed."""

    def __init__(self) -> None:
        self.random = random.Random(7)
        self.output = []
        self._bytes = random.Random("bytes")
        self._clock = 0

    def now_us(self):
        self._clock += 1
        return EPOCH_US + self._clock

    def monotonic_us(self):
        self._clock += 1
        return self._clock

    def sleep(self, seconds):
        self._clock += round(seconds * 1e6)

    def random_bytes(self, n):
        return self._bytes.randbytes(n)

    def write_output(self, text):
        self.output.append(text)


def make_tools():
    async def get(i):
        return i

    async def echo(x):
        return x

    async def add(a, b):
        return a + b

    async def read_doc(name):
        if name != "public":
            raise PermissionError("not granted")
        return "a document"

    def add_tools(*args):
        raise RuntimeError("tools are changed by the application")

    return {"get": get, "echo": echo, "add": add, "read_doc": read_doc, "add_tools": add_tools}


_ASYNCIO = [
    "ALL_COMPLETED",
    "Event",
    "Lock",
    "Queue",
    "Semaphore",
    "TaskGroup",
    "TimeoutError",
    "CancelledError",
    "create_task",
    "current_task",
    "gather",
    "sleep",
    "timeout",
    "wait",
    "wait_for",
    "as_completed",
    "run",
]


def run_walled(code):
    world = World()
    program = compile_program(code)
    findings = forgotten_awaits(program.tree, {"get", "echo", "add", "read_doc"})
    if findings:
        raise SyntaxError(findings[0].message)
    members = {name: getattr(asyncio, name) for name in _ASYNCIO if hasattr(asyncio, name)}
    namespace = make_globals(world, make_tools(), facade("asyncio", members))
    made = eval(program.code, namespace)
    if program.is_coroutine:
        asyncio.run(made)
    return namespace.get(program.result_name), "".join(world.output)


def run_plain(code):
    """The same program as CPython runs it: the last expression is its value."""
    tree = ast.parse(code)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("__value", ast.Store())], last.value), last)
        ast.fix_missing_locations(tree)
    printed = sys.stdout = io.StringIO()
    space = sys.modules["__main__"].__dict__
    space.update(asyncio=asyncio, **make_tools())
    made = eval(compile(tree, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True), space)
    if made is not None:
        asyncio.run(made)
    return space.get("__value"), printed.getvalue()


def outcome(request):
    run = run_plain if request["plain"] else run_walled
    try:
        value, output = run(request["code"])
    except PolicyViolation as error:
        return {"status": "denied", "code": error.code, "message": str(error), "line": error.line}
    except BaseException as error:  # noqa: BLE001
        return {"status": "raised", "code": type(error).__name__, "message": str(error), "line": None}
    try:
        return {"status": "completed", "value": json.loads(json.dumps(value)), "output": output}
    except (TypeError, ValueError) as error:
        return {"status": "completed", "value": f"<{type(value).__name__}: {error}>", "output": output}


def main() -> None:
    prepare()
    for line in sys.stdin:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            try:
                text = json.dumps(outcome(json.loads(line)))
            except BaseException as error:  # noqa: BLE001
                text = json.dumps({"status": "broken", "code": type(error).__name__, "message": str(error)})
            os.write(writer, text.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            answer = stream.read().decode() or '{"status": "killed", "code": "killed"}'
        os.waitpid(pid, 0)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
