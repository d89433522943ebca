"""Which types a mapping's keys may have, so that no two keys of a JSON object become one in Python.

JSON's keys are texts, and `1`, `01` and `1.0` are three of them. It reads pydantic's core schemas, and decides by
the kind of a type alone; what an application's own validator makes of a key is the application's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from ptc_tools.call import JsonObject

_ONE_FORM: Final = frozenset({"str", "any", "enum", "literal", "date", "int", "uuid"})
# The one form of each that several texts may stand for.
_PATTERNS: Final = {"int": r"^(0|-?[1-9][0-9]*)$", "uuid": r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
_INSIDE = ("schema", "strict_schema", "json_schema")


class KeysOfManyForms(ValueError):
    """Keys of a type that two different texts may stand for, such as `1` and `1.0`."""


def names_of(keys: object) -> JsonObject:
    """What a schema has to say of a mapping's keys beside what it says already. Raises `KeysOfManyForms`."""
    kinds = set(_kinds(keys))
    if "str" in kinds or "any" in kinds:
        return {}  # each text is a key of its own
    if unclear := sorted(kinds - _ONE_FORM):
        raise KeysOfManyForms(
            f"keys of the type {unclear[0]} have more than one form in JSON, and two of them would become one key: "
            "take str keys, or a list of pairs"
        )
    patterns = [_PATTERNS[kind] for kind in sorted(kinds) if kind in _PATTERNS]
    return {"pattern": patterns[0]} if len(kinds) == 1 and patterns else {}


def _kinds(schema: object) -> Iterator[str]:
    """The kinds of a core schema, through what stands around them."""
    if not isinstance(schema, Mapping):
        yield "any"  # nothing is said of the keys
        return
    choices = schema.get("choices")
    if isinstance(choices, list):
        for choice in choices:
            yield from _kinds(choice[0] if isinstance(choice, tuple) else choice)
        return
    for name in _INSIDE:
        if isinstance(schema.get(name), Mapping) and schema.get("type") != "date":
            yield from _kinds(schema[name])
            return
    yield cast("str", schema.get("type", "any"))
