"""What a cut result says to go on with is where it really stopped; what a mutation declares is really there."""

from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import Field
from typing_extensions import TypedDict

from ptc_tools import (
    Bounds,
    Empty,
    EmptyResult,
    Failure,
    Invocation,
    Next,
    Outcome,
    Partial,
    PartialResult,
    Reconciliation,
    RegistrationError,
    Success,
    define_tool,
    tool,
)
from ptc_tools.strict_json import dumps
from tests.tools.tool_support import MemoryRecorder, invoke


@tool(bounds=Bounds(items=3, text=20, offset="skip"))
async def look(skip: int = 5) -> list[int] | EmptyResult:
    """Look."""
    if skip > 50:
        return EmptyResult(reason="there is nothing so far away as that")
    return list(range(skip, 100))


@pytest.mark.parametrize(
    ("arguments", "then"), [({}, 8), ({"skip": None}, 8), ({"skip": 20.0}, 23), ({"skip": 0}, 3)]
)
async def test_a_cut_list_goes_on_where_it_stopped(arguments: object, then: int) -> None:
    """Counted from the parameter's default where a call gives none."""
    outcome = await invoke(look, arguments)
    assert isinstance(outcome, Partial)
    assert outcome.continuation == {"skip": then}


OWNERS = ["ada", "bob", "ada", "bob", "bob", "ada", "bob", "ada", "ada", "bob"]


async def owned(owner: str = "", tags: list[str] | None = None, skip: int = 0) -> list[str]:
    """List the orders of an owner."""
    rows = [f"{index}:{name}" for index, name in enumerate(OWNERS) if not owner or name == owner]
    return [row + "".join(tags or ()) for row in rows][skip:]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(
    "arguments", [{"owner": "ada"}, {"owner": "ada", "tags": ["!"]}, {}, {"owner": "bob", "skip": 1}]
)
async def test_what_goes_on_is_the_same_call_further_on(arguments: dict[str, object], raw: bool) -> None:
    """Without its filter a call would give other rows, and nobody would see that it did."""
    bounds = Bounds(items=2, offset="skip")
    entry = (
        define_tool(
            {"name": "owned", "parameters": tool(owned).contract.checked_parameters}, owned, bounds=bounds
        )  # type: ignore[dict-item]
        if raw
        else tool(owned, bounds=bounds)
    )
    seen: list[object] = []
    given: object = dumps(arguments)  # type: ignore[arg-type]
    while isinstance(outcome := await invoke(entry, given), Partial):
        assert outcome.continuation is not None
        assert outcome.continuation == {**arguments, "skip": outcome.continuation["skip"]}
        seen += outcome.value["value"]  # type: ignore[index, call-overload, arg-type]
        given = outcome.continuation
    assert isinstance(outcome, Success)
    assert [*seen, *outcome.value] == await owned(**arguments)  # type: ignore[misc, arg-type]


async def test_what_goes_on_are_the_callers_own_arguments() -> None:
    """A middleware changes them again when they come back, and may know what no caller does."""

    async def scoped(invocation: Invocation, next: Next) -> Outcome:
        return await next(invocation.with_arguments({**invocation.arguments, "owner": "bob"}))

    entry = tool(owned, bounds=Bounds(items=2, offset="skip"))
    outcome = await invoke(entry, {"owner": "ada"}, middleware=[scoped])
    assert isinstance(outcome, Partial)
    assert outcome.continuation == {"owner": "ada", "skip": 2}


async def test_a_raw_tools_record_shows_no_sensitive_argument_to_go_on_with() -> None:
    """The record of a cut result is kept longer than the call."""
    definition: dict[str, Any] = {
        "name": "raw",
        "parameters": {
            "type": "object",
            "properties": {"pin": {"type": "string", "x-sensitive": True}, "skip": {"type": "integer"}},
        },
    }
    raw = define_tool(definition, lambda pin, skip=0: [1, 2, 3], bounds=Bounds(items=1, offset="skip"))
    recorder = MemoryRecorder()
    outcome = await invoke(raw, {"pin": "pin-canary"}, recorder=recorder, redacting=True)
    assert isinstance(outcome, Partial)
    assert outcome.continuation == {"pin": "pin-canary", "skip": 1}
    assert "canary" not in str(recorder.records)


async def test_nothing_stays_nothing_when_its_reason_is_cut() -> None:
    """'Partial' would say that there is more."""
    outcome = await invoke(look, {"skip": 60})
    assert isinstance(outcome, Empty)
    assert outcome.value == {"outcome": "empty", "reason": "there is nothing so "}


@pytest.mark.parametrize("source", ["$idempotency", "nosuch"])
def test_a_reconciliation_read_is_told_what_there_is(source: str) -> None:
    """A read without its argument would tell nothing, and only after the change went wrong."""

    async def change(n: int) -> int:
        """Change."""
        return n

    with pytest.raises(RegistrationError, match="reconciliation"):
        tool(change, effects="write", reconciliation=Reconciliation("find", {"id": source}))


def test_an_offset_is_a_number_of_items() -> None:
    """A cursor cannot be counted on from, and the tool would be asked for a place that is none."""

    async def pages(cursor: str = "") -> list[int]:
        """Look."""
        return []

    with pytest.raises(RegistrationError, match="integer"):
        tool(pages, bounds=Bounds(items=3, offset="cursor"))


class Row(TypedDict):
    id: UUID
    day: date
    state: Literal["a state of many letters", "b"]
    pin: Annotated[str, Field(pattern="^[0-9]+$")] | None
    words: str


@tool(bounds=Bounds(text=8, items=100))
async def row(pin: str | None, words: str) -> Row:
    """Look."""
    return {
        "id": UUID(int=7),
        "day": date(2024, 1, 31),
        "state": "a state of many letters",
        "pin": pin,
        "words": words,
    }


async def test_a_text_of_a_form_is_never_cut_in_the_middle() -> None:
    """Half a date is no date, and the first letters of an id are another's id."""
    outcome = await invoke(row, {"pin": "1234", "words": "quite a few of them"})
    assert isinstance(outcome, Partial)
    assert outcome.missing == ("/words: characters after the first 8",)
    assert outcome.value["value"] == {  # type: ignore[index, call-overload]
        "id": "00000000-0000-0000-0000-000000000007",
        "day": "2024-01-31",
        "state": "a state of many letters",
        "pin": "1234",
        "words": "quite a ",
    }


async def test_a_form_without_a_length_that_is_too_long_fails() -> None:
    """It can neither be cut to a true value nor be released over its bound."""
    outcome = await invoke(row, {"pin": "1" * 20, "words": ""})
    assert isinstance(outcome, Failure)
    assert "/pin has more than 8 characters" in outcome.message


@pytest.mark.parametrize("where", ["missing", "continuation"])
async def test_bytes_bound_what_a_tool_says_is_missing(where: str) -> None:
    """A tool that says more about what is missing than about the rest would fill the model's context with it."""

    @tool(bounds=Bounds(bytes=1000, items=50))
    async def some(n: int) -> PartialResult[list[int]]:
        """Look."""
        return PartialResult(
            value=list(range(n)),
            missing=[f"the row of number {index}" for index in range(n if where == "missing" else 1)],
            continuation={"text": "x" * (5 * n if where == "continuation" else 1)},
        )

    outcome = await invoke(some, {"n": 40})
    assert isinstance(outcome, Partial)
    assert len(dumps(outcome.value).encode()) <= 1000
    assert outcome.value["value"] == list(range(40))  # type: ignore[index, call-overload]
    assert outcome.continuation is not None
    if where == "missing":
        assert outcome.missing[-1] == "and more"
    far = await invoke(some, {"n": 400})
    if where == "continuation":
        assert isinstance(far, Failure)  # half of it would lead elsewhere
    else:
        assert isinstance(far, Partial)
        assert far.continuation is None  # it would skip what was cut


async def test_why_there_is_nothing_stays_within_the_bytes() -> None:
    """The marker itself is never cut: a broken one would be no answer."""

    @tool(bounds=Bounds(bytes=100, text=3))
    async def none(n: int) -> list[int] | EmptyResult:
        """Look."""
        return EmptyResult(reason="r" * n)

    outcome = await invoke(none, {"n": 5000})
    assert isinstance(outcome, Empty)
    assert outcome.value == {"outcome": "empty", "reason": "rrr"}


async def test_a_raw_schema_says_which_texts_have_a_form() -> None:
    """Through references, conjunctions and patterns of names, as for typed tools."""
    result = {
        "type": "object",
        "properties": {
            "when": {"$ref": "#/$defs/When"},
            "all": {"allOf": [{"type": "string"}, {"const": "abcdef"}]},
        },
        "patternProperties": {"^d_": {"format": "date"}},
        "additionalProperties": {"type": "string"},
        "$defs": {"When": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}},
    }
    partial = {
        "type": "object",
        "properties": {"outcome": {"const": "partial"}, "value": result},
        "required": ["outcome"],
    }
    definition = {
        "name": "raw",
        "parameters": {"type": "object"},
        "output_schema": {
            "anyOf": [{k: v for k, v in result.items() if k != "$defs"}, partial],
            "$defs": result["$defs"],
        },
    }
    value = {"when": "2024-01-31T00:00:00Z", "all": "abcdef", "d_x": "2024-01-31", "note": "abcdef"}
    outcome = await invoke(define_tool(definition, lambda: value, bounds=Bounds(text=4)))  # type: ignore[arg-type]
    assert isinstance(outcome, Partial)
    assert outcome.value["value"] == {**value, "note": "abcd"}  # type: ignore[index, call-overload]


async def test_a_list_is_cut_by_its_bytes_alone() -> None:
    """Its first rows are worth more than an error; what only loses members by a cut says so and fails."""

    @tool(bounds=Bounds(bytes=100, offset="skip"))
    async def rows(skip: int = 0) -> list[str]:
        """Look."""
        return ["x" * 20] * (10 - skip)

    outcome = await invoke(rows, {"skip": 2})
    assert isinstance(outcome, Partial)
    assert outcome.value["value"] == ["x" * 20] * 4  # type: ignore[index, call-overload]
    assert outcome.continuation == {"skip": 6}

    @tool(bounds=Bounds(bytes=100))
    async def whole(n: int) -> dict[str, str]:
        """Look."""
        return {"text": "x" * n}

    assert "partial" not in dumps(whole.contract.output_schema)
    assert isinstance(await invoke(whole, {"n": 200}), Failure)
