"""Limits that JSON Schema has no keyword for: of decimals, dates, times and durations, which are strings in JSON.

They stand in a contract's schema as `x-ptc-limits`, so that fingerprints and comparisons see them, and in words
for the model. The typed decoder enforces them; what strict mode alone has no keyword for stands there too, and
validators enforce it. The keyword itself never goes over the wire.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pydantic_core import to_jsonable_python

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.schema import LIMITS, walk

_SENTENCES = {
    "ge": "Not less than {}.",
    "gt": "More than {}.",
    "le": "Not more than {}.",
    "lt": "Less than {}.",
    "multiple_of": "A multiple of {}.",
    "max_digits": "At most {} digits.",
    "decimal_places": "At most {} decimal places.",
    "now_op": "In the {}.",
    "tz_constraint": "Time zone: {}.",
}


def with_limits(schema: dict[str, object], core: Mapping[str, object]) -> dict[str, object]:
    """The schema, with the limits that pydantic's core schema has for such values."""
    limits = {name: _as_json(core[name]) for name in _SENTENCES if core.get(name) is not None}
    return {**schema, LIMITS: limits} if limits else schema


def limits_in_words(schema: JsonObject) -> Iterator[str]:
    """A sentence for each limit of the schema."""
    limits = schema.get(LIMITS)
    if isinstance(limits, dict):
        for name, value in limits.items():
            if name in _SENTENCES:
                yield _SENTENCES[name].format(value)


def without_limits(schema: JsonObject) -> JsonObject:
    """The schema, which may be written to, without the keyword: the words stay."""
    for _, member in walk(schema):
        member.pop(LIMITS, None)
    return schema


def _as_json(limit: object) -> JsonValue:
    if isinstance(limit, int | str):
        return str(limit)
    if isinstance(limit, float | Decimal):
        exact = Decimal(str(limit))
        return format(exact.normalize(), "f") if exact.is_finite() else str(exact)
    return str(to_jsonable_python(limit))
