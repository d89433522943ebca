"""A date, time, span or UUID has one form in JSON, and a search range is held to what the tool is given."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from ptc_tools import Bounds, Denied, SearchRange, Success, define_tool, tool
from ptc_tools.call import JsonObject
from tests.tools.tool_support import invoke

ID = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (datetime, ["2024-01-01T10:00:00Z", "2024-01-01 10:00"], ["1700000000", "20240101", "-1"]),
        (date, ["2024-01-01"], ["1700006400", "20240101", "2024-1-1"]),
        (time, ["10:00", "10:00:00.5Z"], ["3600", "1000"]),
        (timedelta, ["P1D", "PT1H", "-P1DT2H"], ["1 day", "1d", "3600", "01:00:00", "P"]),
        (UUID, [ID], [f"urn:uuid:{ID}", ID.replace("-", ""), f"{{{ID}}}"]),
    ],
)
async def test_a_value_is_written_in_one_form(annotation: type, good: list[str], bad: list[str]) -> None:
    """What pydantic reads besides is a number of seconds to it, and something else to whoever checks."""

    async def look(at) -> str:  # type: ignore[no-untyped-def]
        return type(at).__name__

    look.__annotations__["at"] = annotation
    entry = tool(look)
    for text in good:
        assert await invoke(entry, {"at": text}) == Success(annotation.__name__)
    for text in bad:
        assert isinstance(await invoke(entry, {"at": text}), Denied), text


async def test_a_range_is_measured_between_decoded_values() -> None:
    """A text that two readers read in two ways would stretch it."""

    @tool(bounds=Bounds(search=SearchRange("since", "until", 30)))
    async def find(since: datetime | None = None, until: datetime | None = None) -> str:
        """Find."""
        return "found"

    assert await invoke(find, {"since": "2024-01-01T00:00:00Z", "until": "2024-01-31T00:00:00Z"}) == Success(
        "found"
    )
    for since, until in (
        ("20240101", "20240131"),
        ("2024-01-01T00:00:00Z", "2024-01-31T00:00:01Z"),
        ("2024-01-01T00:00:00Z", "2024-01-31T00:00:00"),
        ("2024-01-01T00:00:00Z", None),
    ):
        assert isinstance(await invoke(find, {"since": since, "until": until}), Denied)


async def test_a_range_of_amounts_is_exact() -> None:
    """Decimals are texts on the wire, and numbers to the tool."""

    @tool(bounds=Bounds(search=SearchRange("low", "high", 10)))
    async def find(low: Decimal, high: Decimal) -> str:
        """Find."""
        return "found"

    assert await invoke(find, {"low": "0.1", "high": "10.1"}) == Success("found")
    assert isinstance(await invoke(find, {"low": "0.1", "high": "10.2"}), Denied)


async def test_a_raw_tools_range_takes_days_and_times_in_their_one_form() -> None:
    """Its function gets the text, and reads it as it likes."""
    text: JsonObject = {"type": "string"}
    schema: JsonObject = {"type": "object", "properties": {"since": text, "until": text}}
    raw = define_tool(
        {"name": "find", "parameters": schema},
        lambda since, until: "found",
        bounds=Bounds(search=SearchRange("since", "until", 30)),
    )
    assert await invoke(raw, {"since": "2024-01-01", "until": "2024-01-31"}) == Success("found")
    assert isinstance(await invoke(raw, {"since": "20240101", "until": "20240131"}), Denied)
