"""Forgotten awaits are told before the run, and nothing else is."""

from __future__ import annotations

import ast

import pytest

from ptc_sandbox.guest.policy import compile_program, forgotten_awaits

TOOLS = {"get", "search", "save"}

FORGOTTEN = [
    ("get(i=1)", [1]),
    ("x = 1\nsave(a=1)\nawait get()", [2]),
    ("result = get(i=1)\nprint(result['a'])", [1]),
    ("result = get(i=1)\nresult", [1]),
    ("result = get(i=1)", [1]),
    ("rows = search(q='a').rows", [1]),
    ("n = len(search(q='a'))", [1]),
    ("print(get(i=1))", [1]),
    ("for row in search(q='a'):\n    print(row)", [1]),
    ("total = get(i=1) + get(i=2)", [1, 1]),
    ("if get(i=1) > 3:\n    pass", [1]),
    ("if get(i=1):\n    pass", [1]),
    ("f'{get(i=1)}'", [1]),
    ("async def f():\n    save(x=1)\nawait f()", [2]),
    ("x = [row['a'] for row in search(q='b')]", [1]),
    ("first = search(q='b')[0]", [1]),
    ("x = get(i=1)\ny = str(x)", [1]),
    ("def f():\n    x = get(i=1)\n    return x.name", [2]),
    ("'{}'.format(1)\nget(i=1).format", [2]),
    ("while not get(i=1):\n    pass", [1]),
    ("t = [get(i=1)]\n5", [1]),
    ("t = [get(i=i) for i in range(3)]\n5", [1]),
    ("t = [(get(i=1), 2)]", [1]),
    ("[get(i=i) for i in range(3)]\n1", [1]),
    ("[get(i=1), 2]", [1]),
    ("get(i=1) if 1 else 2\n3", [1]),
    ("2 if 1 else get(i=1)\n3", [1]),
    ("x = get(i=1) or 1\nawait x", [1]),
    ("x = 1 and get(i=1) and 2", [1]),
    ("1 and get(i=1)\n2", [1]),
]

FINE = [
    "await get(i=1)",
    "x = await get(i=1)\nx['a']",
    "t = get(i=1)\nx = await t",
    "import asyncio\na, b = await asyncio.gather(get(i=1), get(i=2))",
    "import asyncio\nawait asyncio.gather(*[get(i=i) for i in range(3)])",
    "import asyncio\nt = asyncio.create_task(get(i=1))\nawait t",
    "import asyncio\ntasks = [get(i=i) for i in range(3)]\nawait asyncio.gather(*tasks)",
    "import asyncio\nc = get(i=1)\nt = asyncio.create_task(c)\nawait t",
    "def f(i):\n    return get(i=i)\nawait f(1)",
    "f = lambda i: get(i=i)\nawait f(1)",
    "calls = {'a': get(i=1)}\nawait calls['a']",
    "calls = []\ncalls.append(get(i=1))\nawait calls[0]",
    "async def run(c): return await c\nawait run(get(i=1))",
    "tools = [get, search]\nawait tools[0](i=1)",
    "c = get(i=1) if True else get(i=2)\nawait c",
    "def get(i): return i\nget(1)\nprint(get(2))",
    "x = 0\nc = x or get(i=1)\nawait c",
    "for c in [get(i=1), get(i=2)]:\n    await c",
    "a, b = (get(i=1), get(i=2))\nawait a\nawait b",
    "import asyncio\nt = [get(i=1)]\nprint(len(t))\nawait asyncio.gather(*t)",
    "get = 5\nprint(get)",
    "import math as get\nget(1)",
    "def f(get):\n    get(1)",
    "x = get(i=1)\nx = await x",
    "x = get(i=1)\nif x is not None:\n    await x",
    "def gen():\n    yield get(i=1)\nfor c in gen():\n    await c",
    "import asyncio\nasync with asyncio.TaskGroup() as tg:\n    tg.create_task(get(i=1))",
    "import asyncio\nawait asyncio.wait_for(get(i=1), 5)",
    "import asyncio\nasyncio.run(get(i=1))",
    "def print(c): return c\nawait print(get(i=1))",
    "c = get(i=1)\nc.close()",
    "cs = [get(i=i) for i in range(3)]\nprint(len(cs))\nfor c in cs:\n    await c",
    "class A:\n    c = get(i=1)\nawait A.c",
    "x = get(i=1)\nasync def f():\n    return await x\nawait f()",
    "global_c = get(i=1)\ndef f():\n    global global_c\n    return global_c",
    "(await get(i=1))['a']",
    "await get(i=await get(i=1))",
    "x = y = get(i=1)\nawait y",
]


@pytest.mark.parametrize(("source", "lines"), FORGOTTEN)
def test_a_forgotten_await_is_found_with_its_line(source: str, lines: list[int]) -> None:
    """The call would never be made, and the program would compute with a coroutine."""
    for tree in (ast.parse(source), compile_program(source).tree):
        assert [finding.line for finding in forgotten_awaits(tree, TOOLS)] == lines


@pytest.mark.parametrize("source", FINE)
def test_a_call_that_might_be_awaited_is_left_alone(source: str) -> None:
    """A false alarm would refuse a right program."""
    for tree in (ast.parse(source), compile_program(source).tree):
        assert forgotten_awaits(tree, TOOLS) == []


def test_the_message_says_what_to_write() -> None:
    """It is read by a model."""
    (finding,) = forgotten_awaits(ast.parse("get(i=1)"), TOOLS)

    assert finding.name == "get"
    assert "await get(" in finding.message
