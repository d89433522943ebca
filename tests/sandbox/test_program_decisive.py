"""How a program ended is told by what decided it, also where a TaskGroup has put that into a group."""

from __future__ import annotations

import pytest

from ptc_sandbox import Sandbox

pytestmark = pytest.mark.asyncio(loop_scope="module")

_TASK = "async def work():\n    {}\nasync with asyncio.TaskGroup() as group:\n    group.create_task(work())"


@pytest.mark.parametrize(
    "program",
    [
        _TASK.format("return getattr(1, '__class__')"),
        _TASK.format("async with asyncio.TaskGroup():\n        getattr(1, '__class__')"),
        "raise ExceptionGroup('several', [ValueError(1), OSError(2)]) if 0 else "
        "ExceptionGroup('several', [ValueError(1), ExceptionGroup('more', [seen])])",
    ],
)
async def test_what_the_language_wall_refused_in_a_task_is_a_refusal(sandbox: Sandbox, program: str) -> None:
    """Else whoever tries in a TaskGroup would be in no record of refusals."""
    caught = "try:\n    getattr(1, '__class__')\nexcept AttributeError as error:\n    seen = error\n"
    result = await sandbox.run(caught + program)
    assert result.status == "denied"
    assert result.error is not None
    assert (result.error.wall, result.error.code) == ("language", "forbidden_attribute")


async def test_want_of_memory_in_a_task_is_want_of_memory(sandbox: Sandbox) -> None:
    """The uncaught MemoryError is the evidence, wherever it was raised."""
    result = await sandbox.run(_TASK.format("return 'a' * 10**10"))
    assert result.status == "killed:memory"


async def test_a_group_that_the_program_handles_ends_nothing(sandbox: Sandbox) -> None:
    """`except*` is as good as `except`."""
    program = (
        f"try:\n    {_TASK.format('getattr(1, chr(95) * 2 + chr(120))').replace(chr(10), chr(10) + '    ')}"
    )
    result = await sandbox.run(f"{program}\nexcept* AttributeError:\n    print('handled')\n1")
    assert (result.status, result.output) == ("completed", "handled\n")


async def test_an_ordinary_group_is_raised_as_before(sandbox: Sandbox) -> None:
    """With what is in it."""
    result = await sandbox.run(_TASK.format("raise ValueError('no')"))
    assert result.status == "raised"
    assert result.error is not None
    assert result.error.type == "ExceptionGroup"
    assert "ValueError: no" in result.error.message


async def test_a_missing_package_is_a_module_that_was_not_found(sandbox: Sandbox) -> None:
    """With its name, as programs ask for it."""
    program = "try:\n    import pandas\nexcept ModuleNotFoundError as error:\n    name = error.name\nname"
    assert (await sandbox.run(program)).value == "pandas"


@pytest.mark.parametrize(
    "suppress", ["suppress(ImportError)", "contextlib.suppress(ModuleNotFoundError, OSError)"]
)
async def test_an_import_whose_failure_is_suppressed_fails_quietly(sandbox: Sandbox, suppress: str) -> None:
    """As without the package; another import of the same program is refused before it runs all the same."""
    head = "import contextlib\nfrom contextlib import suppress\nfast = False\n"
    program = f"{head}with {suppress}:\n    import numpy\n    fast = True\n"
    assert (await sandbox.run(f"{program}fast")).value is False
    assert (await sandbox.run(f"{program}import numpy")).status == "denied"


ENCODINGS = [
    *(
        "utf-8",
        "utf-8-sig",
        "utf-16",
        "utf-32",
        "utf-7",
        "ascii",
        "latin-1",
        "cp1252",
        "cp1250",
        "cp1256",
        "cp437",
    ),
    *(
        "cp737",
        "cp874",
        "koi8-r",
        "koi8-u",
        "shift_jis",
        "gb18030",
        "big5",
        "euc_kr",
        "mac_roman",
        "mac_romanian",
    ),
    *("unicode_escape", "raw_unicode_escape", "punycode"),
]


async def test_texts_are_encoded_as_python_does(sandbox: Sandbox) -> None:
    """All of Python's encodings of texts are there: a file that begins with a mark, a text with escapes."""
    program = f"text = 'aZ 09 -'\n[[name, text.encode(name).hex(), text.encode(name).decode(name)] for name in {ENCODINGS}]"
    text = "aZ 09 -"
    result = await sandbox.run(program)
    assert result.value == [[name, text.encode(name).hex(), text] for name in ENCODINGS]
    escaped = await sandbox.run(
        "[b'\\\\u00e9'.decode('unicode_escape'), b'\\xef\\xbb\\xbfa'.decode('utf-8-sig')]"
    )
    assert escaped.value == ["é", "a"]
