"""How much a tool may return and how far it may search: declared in its contract, enforced on the way.

What happens to a result over its bounds is `ptc_tools.cutting`'s; a call that reaches too far is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from decimal import Decimal

from ptc_tools.call import JsonObject
from ptc_tools.errors import RegistrationError
from ptc_tools.strict_json import dumps
from ptc_tools.written import is_date, is_datetime


def is_finite(number: object) -> bool:
    """Whether it is a number that a float can be: no bool, not-a-number, infinity, or one of 400 digits."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


@dataclass(frozen=True, slots=True)
class SearchRange:
    """How far two parameters may lie apart: numbers by `limit`, dates and times by `limit` days."""

    start: str
    end: str
    limit: float

    def __post_init__(self) -> None:
        if not (is_finite(self.limit) and self.limit > 0):
            raise RegistrationError(
                "a search range's limit must be a positive number; leave out what has none"
            )
        if not (isinstance(self.start, str) and isinstance(self.end, str)):
            raise RegistrationError("a search range's start and end are names of parameters")
        if self.start == self.end:
            raise RegistrationError("a search range lies between two parameters")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a tool; None is the invoker's own limit, or none.

    `items`: elements of any list. `text`: characters of any free text; what the output schema gives a form
    (a date, a pattern, an enum) is never cut. `depth`: levels of nesting. `bytes`: all that the tool returned
    as JSON, what it says is missing included. `search`: how far a call may reach. `offset`: the integer
    parameter by which the tool skips items, so that a cut list can be continued.
    """

    items: int | None = None
    text: int | None = None
    depth: int | None = None
    bytes: int | None = None
    search: SearchRange | None = None
    offset: str | None = None

    def __post_init__(self) -> None:
        for name in ("items", "text", "depth", "bytes"):
            limit = getattr(self, name)
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
                raise RegistrationError(f"bounds: {name} must be a positive integer, got {limit!r}")
        if not isinstance(self.search, SearchRange | None):
            raise RegistrationError("bounds: search is a SearchRange: start, end and limit")
        if not isinstance(self.offset, str | None):
            raise RegistrationError("bounds: offset is the name of a parameter")

    @property
    def cuts(self) -> bool:
        """Whether a result of any shape may be cut, and so become a partial one."""
        return self.items is not None or self.text is not None

    def check(self, parameters: JsonObject, what: str) -> None:
        """Raises `RegistrationError` for an offset that cannot be counted on from, a cursor say."""
        declared = parameters.get("properties")
        if self.offset is None or not isinstance(declared, dict):
            return
        shape = dumps(declared.get(self.offset))
        if '"type"' in shape and not any(word in shape for word in ('"integer"', '"number"', '"$ref"')):
            raise RegistrationError(f"{what}: bounds.offset names {self.offset!r}, which is no integer")

    def to_json(self) -> JsonObject:
        """The declared limits, for fingerprints and lock files."""
        found: JsonObject = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, SearchRange):
                found[item.name] = {"start": value.start, "end": value.end, "limit": value.limit}
            elif value is not None:
                found[item.name] = value
        return found

    @classmethod
    def from_json(cls, data: JsonObject) -> Bounds:
        """The inverse of `to_json`. Raises `RegistrationError`."""
        known = {item.name for item in fields(cls)}
        if unknown := set(data) - known:
            raise RegistrationError(f"bounds: unknown limit {sorted(unknown)[0]!r}")
        values: dict[str, object] = dict(data)
        search = data.get("search")
        if isinstance(search, dict):
            try:
                values["search"] = SearchRange(**search)  # type: ignore[arg-type]
            except TypeError:
                raise RegistrationError("bounds: a search range has start, end and limit") from None
        return cls(**values)  # type: ignore[arg-type]


def check_range(arguments: Mapping[str, object], search: SearchRange) -> str | None:
    """Why a call with these decoded arguments reaches too far, or None. Without both ends it has no end."""
    start, end = arguments.get(search.start), arguments.get(search.end)
    if start is None or end is None:
        return f"give both {search.start} and {search.end}, at most {search.limit:g} apart"
    try:
        distance = _distance(start, end)
    except (TypeError, ValueError, ArithmeticError):
        return f"{search.start} and {search.end} are not two numbers, dates or times of one kind"
    if distance < 0:
        return f"{search.end} lies before {search.start}"
    if distance > search.limit:
        return f"{search.start} to {search.end} is more than {search.limit:g} apart; search in parts"
    return None


def _distance(start: object, end: object) -> float | Decimal:
    start, end = _point(start), _point(end)
    if isinstance(start, datetime) and isinstance(end, datetime):
        return (end - start).total_seconds() / 86400
    if isinstance(start, datetime) or isinstance(end, datetime):
        raise TypeError("a day and a time have no distance")
    if isinstance(start, date) and isinstance(end, date):
        return float((end - start).days)
    if isinstance(start, Decimal) and isinstance(end, Decimal):
        return end - start
    if isinstance(start, int | float) and isinstance(end, int | float):
        return end - start
    raise TypeError("two kinds")


def _point(value: object) -> object:
    """A raw tool's text as the day or time that it says in its only form; anything else as it is."""
    if isinstance(value, bool):
        raise TypeError("no place in a range")
    if not isinstance(value, str):
        return value
    if is_date(value):
        return date.fromisoformat(value)
    if is_datetime(value):
        return datetime.fromisoformat(value.upper())
    raise ValueError("neither a day nor a time")
