"""Limits mean what they say: an honest program that goes beyond one is told so, up to it everything works."""

from __future__ import annotations

import pytest

from ptc_sandbox import Sandbox
from ptc_sandbox.limits import Limits
from tests.sandbox.granted import TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

NESTED = "x = 1\nfor _ in range({levels}):\n    x = [x]\n"


async def outcome(limits: Limits, code: str) -> tuple[str, object, str]:
    async with Sandbox(limits=limits, ahead=1) as sandbox:
        result = await sandbox.run(code, tools=TOOLS)
    return result.status, result.value, result.error.message if result.error else ""


@pytest.mark.parametrize("depth", [1, 3, 20, 64])
async def test_a_value_has_as_many_levels_as_the_limit_says(depth: int) -> None:
    """Exactly as many: one more is the program's error, not a broken protocol."""
    status, _, message = await outcome(Limits(depth=depth), NESTED.format(levels=depth) + "x")
    assert (status, message) == ("completed", "")
    status, _, message = await outcome(Limits(depth=depth), NESTED.format(levels=depth + 1) + "x")
    assert status == "raised"
    assert f"deeper than {depth} levels" in message


@pytest.mark.parametrize("depth", [3, 20, 64])
async def test_arguments_and_results_of_calls_have_the_same_levels(depth: int) -> None:
    """The arguments are an object themselves; what does not go out or in is a catchable error."""
    code = NESTED.format(levels="{levels}") + "y = await echo(x=x)\ny == x"
    assert await outcome(Limits(depth=depth), code.format(levels=depth - 1)) == ("completed", True, "")
    code = (
        NESTED.format(levels=depth)
        + "try:\n    await echo(x=x)\nexcept TypeError as error:\n    r = str(error)\nr"
    )
    status, value, _ = await outcome(Limits(depth=depth), code)
    assert status == "completed"
    assert f"deeper than {depth} levels" in str(value)


async def test_a_result_that_is_deeper_is_the_calls_failure() -> None:
    """A tool may give more than this program is to be told."""

    async def deep(n: int) -> list[object]:
        value: list[object] = []
        for _ in range(n - 1):
            value = [value]
        return value

    code = "r = len(await deep(n=5))\ntry:\n    await deep(n=6)\nexcept ToolError as error:\n    r = error.code\nr"
    async with Sandbox(limits=Limits(depth=5), ahead=1) as sandbox:
        result = await sandbox.run(code, tools=[deep])
    assert (result.status, result.value, result.error) == ("completed", "invalid_result", None)


async def test_more_levels_than_any_tool_takes_are_refused_at_once() -> None:
    """A limit that has no effect would be a promise that nobody keeps."""
    with pytest.raises(ValueError, match="64 at most"):
        Limits(depth=65)


@pytest.mark.parametrize("values", [2, 10, 100])
async def test_a_value_holds_as_many_values_as_the_limit_says(values: int) -> None:
    """The list itself is one of them."""
    status, _, message = await outcome(Limits(values=values), f"list(range({values - 1}))")
    assert (status, message) == ("completed", "")
    status, _, message = await outcome(Limits(values=values), f"list(range({values}))")
    assert status == "raised"
    assert f"{values + 1} JSON values; at most {values}" in message


async def test_what_stands_in_texts_does_not_count_as_values() -> None:
    """Commas and brackets of a text, printed or given, are no values."""
    code = "print(',[{' * 5000)\nawait echo(x='[,' * 5000 + '\\\\\"')\n',[' * 5000 + '\\\\'"
    status, value, message = await outcome(Limits(values=10), code)
    assert (status, value, message) == ("completed", ",[" * 5000 + "\\", "")


async def test_all_calls_together_are_bounded_by_an_error_of_the_program() -> None:
    """Four times the values of one; the call that would go beyond is not made, and the program may end well."""
    code = "n = 0\ntry:\n    while True:\n        await get(i=n)\n        n += 1\nexcept ValueError as error:\n    r = str(error)\n[n, r]"
    status, value, _ = await outcome(Limits(values=10), code)
    assert status == "completed"
    assert isinstance(value, list)
    assert value[0] == 20  # each takes two: an object and a number
    assert "40 JSON values in all" in str(value[1])


async def test_a_program_may_be_blocked_on_more_calls_than_values() -> None:
    """The numbers of its calls are the protocol's, not the program's."""
    code = "import asyncio\nlen(await asyncio.gather(*(get(i=i) for i in range(60))))"
    status, value, message = await outcome(Limits(values=50, calls_in_flight=4), code)
    assert (status, value, message) == ("completed", 60, "")


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("print('\\x01' * {n}, end='')", 1),
        ("print('\\n' * {n}, end='')", 1),
        ("for _ in range({n}):\n    print(end='b')", 1),
        ("import sys\nfor _ in range({n}):\n    sys.stdout.write('b')", 1),
        ("print('\\u00e9' * {n}, end='')", 2),
        ("print('\\U0001f600' * {n}, end='')", 4),
    ],
)
async def test_printed_text_is_bounded_by_its_own_bytes(code: str, size: int) -> None:
    """UTF-8 of the text: neither escapes nor frames count, and everything up to the limit is kept."""
    async with Sandbox(limits=Limits(output_bytes=60_000), ahead=1) as sandbox:
        fits = await sandbox.run(code.format(n=60_000 // size))
        over = await sandbox.run(code.format(n=60_000 // size + 1))
    assert (fits.status, len(fits.output.encode())) == ("completed", 60_000)
    assert (over.status, len(over.output.encode())) == ("killed:output", 60_000)


async def test_a_character_that_does_not_fit_is_left_out_whole() -> None:
    """What was printed stays text."""
    async with Sandbox(limits=Limits(output_bytes=5), ahead=1) as sandbox:
        result = await sandbox.run("print('\\u00e9' * 3)")
    assert (result.status, result.output) == ("killed:output", "\u00e9\u00e9")


async def test_small_limits_leave_room_for_what_is_printed() -> None:
    """Frames have room for any piece of output, however small the other limits are."""
    limits = Limits(output_bytes=100_000, result_bytes=1, argument_bytes=1)
    async with Sandbox(limits=limits.replace(result_bytes=4), ahead=1) as sandbox:
        result = await sandbox.run("print('\\x01' * 50_000)\n1234")
    assert (result.status, result.value, len(result.output)) == ("completed", 1234, 50_001)


async def test_bytes_of_a_value_and_of_arguments_are_those_of_their_json() -> None:
    """Two quotes are part of a text; the frame around it is not."""
    async with Sandbox(limits=Limits(result_bytes=100, argument_bytes=100), ahead=1) as sandbox:
        fits = await sandbox.run("await echo(x='x' * 92)\n'x' * 98", tools=TOOLS)
        over = await sandbox.run("'x' * 99", tools=TOOLS)
        call = await sandbox.run("await echo(x='x' * 93)", tools=TOOLS)
    assert (fits.status, fits.error) == ("completed", None)
    for result in (over, call):
        assert result.error is not None
        assert (result.status, "takes 101 bytes as JSON" in result.error.message) == ("raised", True)


async def test_printing_a_lone_surrogate_raises_as_in_cpython() -> None:
    """UTF-8 cannot carry it, and a question mark in its place would be a silent change."""
    code = "import sys\nseen = []\nfor write in (print, sys.stdout.write):\n    try:\n        write('\\ud800')\n    except UnicodeEncodeError as error:\n        seen.append(error.reason)\nprint('on')\nseen"
    async with Sandbox(ahead=1) as sandbox:
        result = await sandbox.run(code)
    assert (result.value, result.output) == (["surrogates not allowed"] * 2, "on\n")
