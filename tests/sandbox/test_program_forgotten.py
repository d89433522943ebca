"""Calls that a program writes and never awaits are told, with their line, and nothing else is told."""

from __future__ import annotations

import pytest

from ptc_sandbox import Sandbox
from tests.sandbox.granted import TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORGOTTEN = [
    ("t = [get(i=1)]\n5", 1),
    ("x = 1\n[get(i=i) for i in range(3)]\n1", 2),
    ("def f():\n    return get(i=1)\nf()\n5", 2),
    ("c = get\n\nc(i=1)\n5", 3),
    ("get(i=1) if 1 else 2\n3", 1),
    ("y = (get(i=1) or 1)\n1", 1),
    ("import asyncio\nasyncio.create_task(get(i=1))\n1", 2),
    ("import asyncio\nasyncio.gather(get(i=1), get(i=2))\n1", 2),
    ("import functools\np = functools.partial(get, i=1)\np()\n1", 3),
    ("t = {}\nt['a'] = get(i=1)\nawait add(a=1, b=2)", 2),
    ("calls = [get(i=i) for i in range(3)]\nfor c in calls[:2]:\n    await c", 1),
    ("calls = [get(i=i) for i in range(3)]\ncalls", 1),
    ("list(map(lambda i: get(i=i), range(2)))\n1", 1),
    ("class A:\n    def go(self):\n        self.c = get(i=1)\nA().go()\n1", 3),
    ("import asyncio\nasync def main():\n    c = [get(i=1)]\n    return len(c)\nasyncio.run(main())", 3),
    ("import sys\nt = []\nt.append(get(i=1))\nsys.exit()", 3),
]


@pytest.mark.parametrize(("code", "line"), FORGOTTEN)
async def test_a_call_that_is_never_awaited_is_told_with_its_line(
    sandbox: Sandbox, code: str, line: int
) -> None:
    """A program that completed without its calls would be a silent loss."""
    result = await sandbox.run(code, tools=TOOLS)
    assert result.status == "raised"
    assert result.error is not None
    assert (result.error.type, result.error.line) == ("ForgottenAwait", line)
    assert "await" in result.error.message


FINE = [
    ("c = get(i=1)\nc.close()\n1", 1),
    ("import asyncio\nt = asyncio.create_task(get(i=1))\nt.cancel()\nawait asyncio.sleep(0)\n1", 1),
    ("import asyncio\nt = asyncio.create_task(get(i=1))\nawait t", 1),
    ("import asyncio\nsum(await asyncio.gather(*[get(i=i) for i in range(4)]))", 6),
    (
        "import asyncio\ntry:\n    async with asyncio.TaskGroup() as group:\n"
        "        t = group.create_task(get(i=1))\n        raise ValueError\nexcept* ValueError:\n    pass\n2",
        2,
    ),
    ("import asyncio\nt = asyncio.create_task(get(i=1))\n7 if await get(i=1) else 8", 7),
    (
        "import asyncio\ntry:\n    await asyncio.wait_for(get(i=1), 0)\nexcept TimeoutError:\n    pass\n3",
        3,
    ),
    ("import asyncio\nasyncio.run(get(i=4))", 4),
    ("def f(i):\n    return get(i=i)\nawait f(1) + await f(2)", 3),
    (
        "import asyncio\ndone, rest = await asyncio.wait([asyncio.create_task(get(i=i)) for i in range(3)],"
        " return_when=asyncio.FIRST_COMPLETED)\nlen(done) + len(rest)",
        3,
    ),
    ("try:\n    c = [get(1, 2, 3)]\nexcept TypeError:\n    c = []\nlen(c)", 0),
]


@pytest.mark.parametrize(("code", "value"), FINE)
async def test_what_was_awaited_begun_or_given_up_is_no_mistake(
    sandbox: Sandbox, code: str, value: int
) -> None:
    """Ordinary programs complete: a call that somebody closed or cancelled was meant to be."""
    result = await sandbox.run(code, tools=TOOLS)
    assert (result.status, result.value) == ("completed", value)


async def test_calls_that_were_made_stay_made_and_told(sandbox: Sandbox) -> None:
    """The model is told what ran before the mistake showed."""
    code = "print(await get(i=1))\ndef later():\n    return [get(i=2)]\nlater()\n1"
    result = await sandbox.run(code, tools=TOOLS)
    assert (result.status, result.output, len(result.calls)) == ("raised", "1\n", 1)


async def test_a_program_that_raises_tells_its_own_error(sandbox: Sandbox) -> None:
    """What it had not come to is no mistake of its own."""
    result = await sandbox.run("c = []\nc.append(get(i=1))\n1 / 0", tools=TOOLS)
    assert result.error is not None
    assert (result.status, result.error.type) == ("raised", "ZeroDivisionError")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import asyncio\nasyncio.current_task() is None", True),
        ("import asyncio\nf = asyncio.gather()\nisinstance(f, asyncio.Future)", True),
        (
            "import asyncio\nasync def f():\n    return 3\ng = asyncio.gather(f(), f())\nasyncio.run(g)",
            [3, 3],
        ),
        ("import asyncio\nasync def f():\n    return 3\nasyncio.run(asyncio.Task(f()))", 3),
        ("import asyncio\nt = asyncio.gather(get(i=1))\nasyncio.get_event_loop().run_until_complete(t)", [1]),
    ],
)
async def test_asyncio_works_in_a_program_that_awaits_nothing(
    sandbox: Sandbox, code: str, value: object
) -> None:
    """Such a program has its loop like any other, though no task of its runs."""
    result = await sandbox.run(code, tools=TOOLS)
    assert (result.status, result.value, result.error) == ("completed", value, None)


OWN = "async def own():\n    return 1\n"


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("own()\nprint('end')", 3),
        ("def helper():\n    own()\nfor _ in range(3):\n    helper()", 4),
        ("async def main():\n    own()\nawait main()", 4),
        ("held = own()", 1),
    ],
)
async def test_a_coroutine_of_the_programs_own_that_it_never_awaits_is_a_warning(
    sandbox: Sandbox, program: str, line: int
) -> None:
    """Python prints a RuntimeWarning and goes on, and so does a program here, once for each place."""
    result = await sandbox.run(f"{OWN}{program}\n'value'", tools=TOOLS)
    assert (result.status, result.value) == ("completed", "value")
    assert result.output.count("RuntimeWarning") == 1
    assert f"<program>:{line}: RuntimeWarning: coroutine 'own' was never awaited" in result.output
    assert "await own(" in result.output


@pytest.mark.parametrize(
    "program",
    [
        "await own()",
        "await asyncio.gather(own(), asyncio.create_task(own()))",
        "own().close()",
        "task = asyncio.create_task(own())\ntask.cancel()\nawait asyncio.wait([task])",
        "try:\n    await asyncio.wait_for(own(), 0)\nexcept TimeoutError:\n    pass",
        "asyncio.run(own())",
    ],
)
async def test_one_that_was_awaited_closed_or_cancelled_is_none(sandbox: Sandbox, program: str) -> None:
    """As in Python."""
    result = await sandbox.run(f"{OWN}{program}\n'value'", tools=TOOLS)
    assert (result.value, result.output) == ("value", "")
