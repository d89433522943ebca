"""Which parts of a schema have something to say about a part of a value.

It follows references and combinations and asks no validator: of a union, every branch is named, also one that
the value does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ptc_tools.call import JsonObject, JsonValue


def expanded(schemas: Iterable[JsonValue], root: JsonObject) -> Iterator[JsonObject]:
    """The schemas, and those that they refer to or are combined of."""
    waiting = list(schemas)
    seen: set[int] = set()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            waiting.append(_resolved(reference, root))
        for combiner in ("anyOf", "oneOf", "allOf"):
            members = schema.get(combiner)
            waiting += members if isinstance(members, list) else []


def _resolved(reference: str, root: JsonObject) -> JsonValue:
    found: JsonValue = root
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def members(schemas: list[JsonObject], name: str) -> list[JsonObject]:
    """Those of a member of the object that `schemas`, which are expanded, apply to."""
    found: list[JsonValue] = []
    for schema in schemas:
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        own = [properties[name]] if isinstance(properties, dict) and name in properties else []
        if isinstance(patterns, dict):
            own += [part for pattern, part in patterns.items() if _matches(pattern, name)]
        found += own or [schema.get("additionalProperties")]
    return [schema for schema in found if isinstance(schema, dict)]


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # of another dialect than Python's: it may match
        return True


def items(schemas: list[JsonObject], index: int) -> list[JsonObject]:
    """Those of an element of the array that `schemas`, which are expanded, apply to."""
    found: list[JsonValue] = []
    for schema in schemas:
        first = schema.get("prefixItems")
        ahead = isinstance(first, list) and index < len(first)
        found.append(first[index] if ahead and isinstance(first, list) else schema.get("items"))
    return [schema for schema in found if isinstance(schema, dict)]
