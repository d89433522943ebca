"""JSON Schema (2020-12) counts 1.0 as an integer; a function that declares one is given an int.

It is told arguments that fit their schema, and gives copies in which such numbers are ints. It changes
nothing else, and nothing where a fraction would have been as welcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

from ptc_tools.applied import expanded, items, members
from ptc_tools.call import JsonObject, JsonValue

_EXACT = 2**53
Place: TypeAlias = tuple[int | str, ...]
"""Member names and indexes from the root; a step that leads nowhere is passed over (a union's branch)."""


def with_integers_at(arguments: JsonObject, places: Iterable[Place]) -> JsonObject:
    """A copy with ints at those places; the same object where none of them holds a whole float."""
    changed: JsonValue = arguments
    for place in places:
        changed = _at(changed, place)
    return cast("JsonObject", changed)


def _at(value: JsonValue, place: Place) -> JsonValue:
    if isinstance(value, float):
        return int(value) if _is_exact(value) else value
    for number, step in enumerate(place):
        if isinstance(value, dict) and isinstance(step, str) and step in value:
            inner = _at(value[step], place[number + 1 :])
            return value if inner is value[step] else {**value, step: inner}
        if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            inner = _at(value[step], place[number + 1 :])
            return value if inner is value[step] else [*value[:step], inner, *value[step + 1 :]]
    return value


def with_integers(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """A copy with ints where the schema takes integers and no other numbers; the same object if nothing changes.

    Raises `ValueError` for one whose digits are not known any more (9007199254740993.0).
    """
    return cast("JsonObject", _fitting(arguments, [schema], schema)) if _holds_whole(arguments) else arguments


def _is_exact(value: float) -> bool:
    """Whether it is the integer that was written: from 2**53 on a double stands for several."""
    return value.is_integer() and abs(value) < _EXACT


def _holds_whole(value: JsonValue) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    if isinstance(value, dict):
        return any(map(_holds_whole, value.values()))
    return isinstance(value, list) and any(map(_holds_whole, value))


def _fitting(value: JsonValue, schemas: list[JsonObject], root: JsonObject) -> JsonValue:
    applied = list(expanded(schemas, root))
    if isinstance(value, float) and value.is_integer():
        kinds = {kind for schema in applied for kind in _kinds(schema)}
        if "integer" not in kinds or "number" in kinds:
            return value
        if not _is_exact(value):
            raise ValueError(
                "a large integer is written without a fraction and an exponent, to keep its digits"
            )
        return int(value)
    if isinstance(value, dict):
        return {name: _fitting(item, members(applied, name), root) for name, item in value.items()}
    if isinstance(value, list):
        return [_fitting(item, items(applied, index), root) for index, item in enumerate(value)]
    return value


def _kinds(schema: JsonObject) -> list[JsonValue]:
    kinds = schema.get("type")
    return kinds if isinstance(kinds, list) else [kinds]
