"""Point 5: what a tool may return and how far it may search is declared, enforced, and never cut silently."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typing_extensions import TypedDict

from ptc_tools import (
    Bounds,
    Denied,
    Failure,
    Partial,
    PartialResult,
    RegistrationError,
    SearchRange,
    Success,
    define_tool,
    tool,
)
from ptc_tools.cutting import OutOfBounds, cut
from ptc_tools.strict_json import dumps
from tests.tools.tool_support import invoke


async def test_a_list_over_its_bound_is_cut_and_says_how_to_go_on() -> None:
    """What is cut is partial, with its continuation."""

    @tool(bounds=Bounds(items=3, offset="skip"))
    async def rows(skip: int = 0) -> list[int]:
        return list(range(10))[skip:]

    seen: list[object] = []
    arguments: object = {}
    while True:
        outcome = await invoke(rows, arguments)
        assert isinstance(outcome, Success)
        Draft202012Validator(rows.contract.output_schema).validate(outcome.value)  # type: ignore[arg-type]
        if not isinstance(outcome, Partial):
            seen += outcome.value  # type: ignore[arg-type]
            break
        seen += outcome.value["value"]  # type: ignore[index, call-overload, arg-type]
        assert outcome.missing
        arguments = outcome.continuation
    assert seen == list(range(10))


async def test_without_an_offset_the_cut_is_reported_all_the_same() -> None:
    """There is nothing to continue with, and it says so."""

    @tool(bounds=Bounds(items=2))
    async def rows(n: int) -> list[int]:
        return list(range(n))

    outcome = await invoke(rows, {"n": 5})
    assert isinstance(outcome, Partial)
    assert outcome.value == {
        "outcome": "partial",
        "value": [0, 1],
        "missing": ["/: items after the first 2 of 5"],
        "continuation": None,
    }
    assert await invoke(rows, {"n": 2}) == Success([0, 1])


async def test_lists_and_texts_inside_are_cut_too_and_named_by_path() -> None:
    """A bound that holds at the root alone is none."""

    class Report(TypedDict):
        title: str
        rows: list[str]

    @tool(bounds=Bounds(items=2, text=4))
    async def report(n: int) -> Report:
        return {"title": "a long title", "rows": ["abcdef", "b", "c"]}

    outcome = await invoke(report, {"n": 1})
    assert isinstance(outcome, Partial)
    assert outcome.value["value"] == {"title": "a lo", "rows": ["abcd", "b"]}  # type: ignore[index, call-overload]
    assert outcome.missing == (
        "/title: characters after the first 4",
        "/rows: items after the first 2 of 3",
        "/rows/0: characters after the first 4",
    )


async def test_too_deep_or_too_large_to_be_cut_is_a_failure() -> None:
    """No cut would leave a true value."""
    definition = {"name": "raw", "parameters": {"type": "object"}}

    def returning(value: object, bounds: Bounds):  # type: ignore[no-untyped-def]
        return define_tool(definition, lambda: value, bounds=bounds)  # type: ignore[arg-type]

    for value, bounds in (
        ({"a": {"b": {}}}, Bounds(depth=2)),
        ({"a": "x" * 100}, Bounds(bytes=50)),
        ("x" * 100, Bounds(bytes=50)),
    ):
        outcome = await invoke(returning(value, bounds))
        assert isinstance(outcome, Failure)
        assert outcome.code == "invalid_result"
    assert await invoke(returning({"a": {}}, Bounds(depth=2))) == Success({"a": {}})
    cut_by_bytes = await invoke(returning(["x" * 20] * 5, Bounds(bytes=50, items=100)))
    assert isinstance(cut_by_bytes, Partial)
    assert cut_by_bytes.value["value"] == ["x" * 20] * 2  # type: ignore[index, call-overload]


async def test_a_cut_that_would_break_the_schema_is_a_failure() -> None:
    """A raw tool whose output schema has no partial form cannot be cut to a valid result."""
    definition = {
        "name": "raw",
        "parameters": {"type": "object"},
        "output_schema": {"type": "array", "items": {"type": "integer"}},
    }
    outcome = await invoke(define_tool(definition, lambda: [1, 2, 3], bounds=Bounds(items=2)))  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)


async def test_a_tools_own_continuation_is_dropped_when_more_was_cut() -> None:
    """It would skip what was cut."""

    @tool(bounds=Bounds(items=2))
    async def rows(n: int) -> PartialResult[list[int]]:
        return PartialResult(value=list(range(n)), missing=["later ones"], continuation={"n": 99})

    outcome = await invoke(rows, {"n": 3})
    assert isinstance(outcome, Partial)
    assert outcome.continuation is None
    assert outcome.missing == ("later ones", "/: items after the first 2 of 3")
    whole = await invoke(rows, {"n": 2})
    assert isinstance(whole, Partial)
    assert whole.continuation == {"n": 99}


@pytest.mark.parametrize(
    ("start", "end", "allowed"),
    [
        ("2024-01-01", "2024-01-31", True),
        ("2024-01-01", "2024-02-01", False),
        ("2024-01-01", "2023-01-01", False),
        ("2024-01-01T00:00:00+00:00", "2024-01-31T00:00:00+00:00", True),
        ("2024-01-01T00:00:00+00:00", "2024-01-31T00:00:01+00:00", False),
        ("2024-01-01T00:00:00", "2024-01-02T00:00:00+00:00", False),
        (None, "2024-01-31", False),
        ("2024-01-01", None, False),
        ("yesterday", "2024-01-31", False),
    ],
)
async def test_a_search_reaches_no_further_than_its_range(start: object, end: object, allowed: bool) -> None:
    """A model that leaves an end open asks for everything; that is refused before the tool runs."""
    ran: list[object] = []

    @tool(bounds=Bounds(search=SearchRange("since", "until", 30)))
    async def find(since: str | None, until: str | None) -> int:
        ran.append(since)
        return 1

    outcome = await invoke(find, {"since": start, "until": end})
    assert isinstance(outcome, Success) == allowed
    assert bool(ran) == allowed
    if not allowed:
        assert isinstance(outcome, Denied)
        assert outcome.code == "limit_exceeded"


async def test_a_range_of_numbers_is_bounded_by_their_distance() -> None:
    """Ids, pages, amounts."""

    @tool(bounds=Bounds(search=SearchRange("low", "high", 10)))
    async def find(low: int, high: int) -> int:
        return high - low

    assert await invoke(find, {"low": 5, "high": 15}) == Success(10)
    assert isinstance(await invoke(find, {"low": 5, "high": 16}), Denied)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Bounds(items=0),
        lambda: Bounds(text=-1),
        lambda: Bounds(bytes=True),
        lambda: Bounds(depth=1.5),  # type: ignore[arg-type]
        lambda: SearchRange("a", "b", 0),
        lambda: SearchRange("a", "b", float("nan")),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(bad: Any) -> None:
    """Found at registration."""
    with pytest.raises(RegistrationError):
        bad()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=25,
)


def _largest(value: object) -> tuple[int, int]:
    if isinstance(value, str):
        return 0, len(value)
    if not isinstance(value, dict | list):
        return 0, 0
    inner = [_largest(item) for item in (value.values() if isinstance(value, dict) else value)]
    items = len(value) if isinstance(value, list) else 0
    return max([items, *(pair[0] for pair in inner)]), max([0, *(pair[1] for pair in inner)])


@given(JSON, st.integers(1, 4), st.integers(1, 6), st.integers(2, 60))
def test_whatever_is_released_is_within_its_bounds_or_says_that_it_was_cut(
    value: object, items: int, text: int, size: int
) -> None:
    """For any value: within bounds; and reported exactly if it is not the whole value."""
    bounds = Bounds(items=items, text=text, bytes=size)
    try:
        result = cut(value, bounds)  # type: ignore[arg-type]
    except OutOfBounds:
        return
    most_items, most_text = _largest(result.value)
    assert most_items <= items
    assert most_text <= text
    assert len(dumps(result.value).encode()) <= size
    assert bool(result.missing) == (result.value != value)
