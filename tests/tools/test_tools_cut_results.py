"""What a cut result says to go on with is where it really stopped; what a mutation declares is really there."""

import pytest

from ptc_tools import (
    Bounds,
    Empty,
    EmptyResult,
    Partial,
    Reconciliation,
    RegistrationError,
    tool,
)
from tests.tools.tool_support import invoke


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
