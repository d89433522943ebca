"""The conformance suite: what any engine must do with a program, as cases that an engine can prove itself by.

`prove(make)` runs them all and says of each whether it holds; `check(engine)` runs them on one engine. An engine
that cannot keep one by its nature is given an exception list, each with its reason; a case that holds in spite
of its exception is reported too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ptc_sandbox.engines.engine import Engine
from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramResult
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.outcome import Denied, Outcome
from ptc_tools.tool import AnyTool, define_tool


@dataclass(frozen=True, slots=True)
class Case:
    """A program and how it must end. `holds` looks at the result and at the calls that reached the path.

    `endless`: only its time ends it, so the engine's limits decide how long it takes.
    """

    name: str
    program: str
    holds: Callable[[ProgramResult, list[Call]], bool]
    endless: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case: it holds, or `found` says what was seen; `excepted` is the reason it need not."""

    name: str
    holds: bool
    found: str
    excepted: str = ""

    @property
    def ok(self) -> bool:
        """Whether an engine may be used as far as this case goes."""
        return self.holds or bool(self.excepted)

    @property
    def stale(self) -> bool:
        """Whether it holds in spite of its exception: the exception is to be taken off the list."""
        return self.holds and bool(self.excepted)


def gives(value: JsonValue, output: str = "") -> Callable[[ProgramResult, list[Call]], bool]:
    """The program completes with this value and output."""
    return lambda result, _: (result.status, result.value, result.output) == ("completed", value, output)


def ends(*statuses: str) -> Callable[[ProgramResult, list[Call]], bool]:
    """The program ends in one of these ways, and with an error that says why."""
    return lambda result, _: result.status in statuses and result.error is not None


def calls(*expected: tuple[str, JsonObject], value: JsonValue) -> Callable[[ProgramResult, list[Call]], bool]:
    """Exactly these calls reach the path, and the program gives the value."""
    return lambda result, made: (
        result.value == value and [(call.name, call.arguments) for call in made] == list(expected)
    )


def never_called(*statuses: str) -> Callable[[ProgramResult, list[Call]], bool]:
    """No call reaches the path, and the program ends in one of these ways."""
    return lambda result, made: not made and result.status in statuses


CASES: tuple[Case, ...] = (
    Case("a value", "1 + 1", gives(2)),
    Case("a structure", "{'a': [1, 2.5, None, True, 'x']}", gives({"a": [1, 2.5, None, True, "x"]})),
    Case("tuples become arrays", "(1, (2,))", gives([1, [2]])),
    Case("large integers keep their digits", "9007199254740993", gives(9007199254740993)),
    Case("output", "print('a', 1)\nprint('b')\n3", gives(3, "a 1\nb\n")),
    Case("no last expression", "x = 1", gives(None)),
    Case("functions and closures", "def f(n):\n    return lambda x: x + n\nf(1)(2)", gives(3)),
    Case(
        "classes", "class A:\n    def __init__(self):\n        self.n = 1\na = A()\na.n += 1\na.n", gives(2)
    ),
    Case(
        "exceptions",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    r = str(e)\nr",
        gives("division by zero"),
    ),
    Case("comprehensions", "[x * y for x in range(3) for y in range(2) if x]", gives([0, 1, 0, 2])),
    Case(
        "modules",
        "import json, math, re\njson.loads('[1]') + [math.floor(2.5)] + re.findall('a', 'aba')",
        gives([1, 2, "a", "a"]),
    ),
    Case("a call", "await get(i=3)", calls(("get", {"i": 3}), value=3)),
    Case(
        "calls in turn",
        "a = await get(i=1)\nb = await get(i=a + 1)\n[a, b]",
        calls(("get", {"i": 1}), ("get", {"i": 2}), value=[1, 2]),
    ),
    Case(
        "gathered calls",
        "import asyncio\nawait asyncio.gather(get(i=1), get(i=2))",
        calls(("get", {"i": 1}), ("get", {"i": 2}), value=[1, 2]),
    ),
    Case(
        "structured arguments",
        "await echo(x={'a': [1, None]})",
        calls(("echo", {"x": {"a": [1, None]}}), value={"a": [1, None]}),
    ),
    Case(
        "a failing tool is catchable",
        "try:\n    await fail(i=1)\nexcept Exception as e:\n    r = 'caught'\nr",
        gives("caught"),
    ),
    Case("a failing tool ends a program that does not catch it", "await fail(i=1)", ends("raised")),
    Case(
        "two failing tools are both catchable",
        "import asyncio\nr = await asyncio.gather(fail(i=1), fail(i=2), return_exceptions=True)\nlen(r)",
        gives(2),
    ),
    Case(
        "wrong arguments are refused by the host",
        "try:\n    await get(i='x')\nexcept Exception:\n    r = 'refused'\nr",
        gives("refused"),
    ),
    Case(
        "a tool that was not granted does not exist",
        "await admin_delete(i=1)",
        never_called("raised", "denied"),
    ),
    Case(
        "tools cannot be changed from inside",
        "try:\n    add_tools([get])\nexcept RuntimeError as e:\n    r = 'tools' in str(e)\nr",
        gives(True),
    ),
    Case(
        "an uncaught exception",
        "x = 1\nraise ValueError('bad')",
        lambda result, _: (
            result.status == "raised"
            and result.error is not None
            and (result.error.type, result.error.message, result.error.line) == ("ValueError", "bad", 2)
        ),
    ),
    Case(
        "output before a failure is kept",
        "print('so far')\n1 / 0",
        lambda result, _: result.status == "raised" and result.output == "so far\n",
    ),
    Case("a syntax error", "x = (", ends("raised", "denied")),
    Case("files", "open('/etc/hostname').read()", ends("raised", "denied")),
    Case("the system's modules", "import os\nos.listdir('/')", ends("raised", "denied")),
    Case("sockets", "import socket\nsocket.create_connection(('127.0.0.1', 9))", ends("raised", "denied")),
    Case("processes", "import subprocess\nsubprocess.run(['id'])", ends("raised", "denied")),
    Case("code from text", "eval('1 + 1')", ends("raised", "denied")),
    Case("every class from any value", "().__class__.__base__.__subclasses__()", ends("raised", "denied")),
    Case("an endless loop", "while True:\n    pass", ends("killed:time", "killed:cpu"), endless=True),
    Case(
        "an endless loop that catches everything",
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        ends("killed:time", "killed:cpu"),
        endless=True,
    ),
    Case("growth without end", "x = []\nwhile True:\n    x.append('a' * 1000000)", ends("killed:memory")),
    Case("endless recursion", "def f():\n    return f()\nf()", ends("raised")),
    Case("calls without end", "while True:\n    await get(i=1)", ends("killed:calls", "raised")),
    Case("sets are not JSON", "{1, 2}", ends("raised")),
    Case("infinity is not JSON", "float('inf')", ends("raised")),
    Case("other keys than strings are not JSON", "{1: 2}", ends("raised")),
    Case("a value that holds itself", "x = []\nx.append(x)\nx", ends("raised")),
    Case("objects do not cross", "class A:\n    pass\nawait echo(x=A())", never_called("raised", "denied")),
)


def tools() -> tuple[AnyTool, ...]:
    """The tools that the suite grants: `get` and `echo` give back their argument, `fail` raises."""

    async def get(i: int) -> int:
        return i

    async def echo(x: JsonValue) -> JsonValue:
        return x

    async def fail(i: int) -> int:
        raise LookupError(f"nothing at {i}")

    integer: JsonObject = {"type": "integer"}
    return (_tool("get", "i", integer, get), _tool("echo", "x", {}, echo), _tool("fail", "i", integer, fail))


def _tool(name: str, parameter: str, schema: JsonObject, function: Callable[..., Any]) -> AnyTool:
    parameters: JsonObject = {"type": "object", "properties": {parameter: schema}, "required": [parameter]}
    definition: JsonObject = {
        "type": "function",
        "name": name,
        "description": f"{name} of the conformance suite",
        "parameters": {**parameters, "additionalProperties": False},
        "allowed_callers": ["programmatic"],
        "output_schema": schema,
    }
    return define_tool(definition, function)


PATIENT: Final = Limits(wall_seconds=30, calls=100, memory_bytes=64 * 1024 * 1024)
"""For programs that end by themselves, also on a loaded machine."""
BRIEF: Final = PATIENT.replace(wall_seconds=1.5)
"""For programs that only their time ends."""


async def prove(
    make: Callable[[Limits], Engine], exceptions: Mapping[str, str] | None = None
) -> AsyncIterator[Verdict]:
    """Run all cases, each with limits that suit it. `make` is called with limits and gives an engine, twice.

    The engines are closed. Otherwise as `check`, which this is made of.
    """
    excused = dict(exceptions or {})
    _refuse_unknown(excused, CASES)
    for limits, endless in ((PATIENT, False), (BRIEF, True)):
        cases = tuple(case for case in CASES if case.endless is endless)
        engine = make(limits)
        try:
            listed = {case.name: excused[case.name] for case in cases if case.name in excused}
            async for verdict in check(engine, listed, cases):
                yield verdict
        finally:
            await engine.aclose()


async def check(
    engine: Engine, exceptions: Mapping[str, str] | None = None, cases: tuple[Case, ...] = CASES
) -> AsyncIterator[Verdict]:
    """Run the cases one by one. `exceptions`: the reason, by case name, why an engine need not keep it.

    Give the engine short limits (a second or two, a few hundred calls, 64 MiB): some cases run into them.
    ValueError for an exception to a case that there is not: it would excuse nothing.
    """
    from ptc_tools.invoke import Invoker

    _refuse_unknown(exceptions or {}, cases)
    granted = tools()
    path = Invoker(granted)
    for case in cases:
        made: list[Call] = []

        async def invoke(call: Call, run: RunContext, made: list[Call] = made) -> Outcome:
            outcome = await path.invoke(call, run)
            if not isinstance(outcome, Denied):
                made.append(call)
            return outcome

        result = await engine.run(case.program, tools=granted, invoke=invoke)
        holds = case.holds(result, made)
        found = f"{result.status}: {result.error or repr(result.value)[:200]}"
        yield Verdict(case.name, holds, found, (exceptions or {}).get(case.name, ""))


def _refuse_unknown(exceptions: Mapping[str, str], cases: tuple[Case, ...]) -> None:
    unknown = set(exceptions) - {case.name for case in cases}
    if unknown:
        raise ValueError(f"exceptions to cases that do not exist: {', '.join(sorted(unknown))}")
