"""Which parts of a value a JSON schema marks as secret: `"x-sensitive": true`, wherever a schema may stand.

Told a schema, it gives a small tree to walk beside a value. Where branches (`anyOf`, `allOf`, `oneOf`,
`if`) disagree, one mark is enough: a value is never shown because another branch would allow it. Where a mark
stands in a way that this cannot follow, all of the value there counts as marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from ptc_tools.call import JsonObject, JsonValue

MARK: Final = "x-sensitive"
_BRANCHES: Final = ("anyOf", "oneOf", "allOf")
_CONDITIONS: Final = ("if", "then", "else", "not")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DEPENDENCIES: Final = ("dependentSchemas", "dependencies")
_MEMBERS: Final = ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")
_ITEMS: Final = ("items", "additionalItems", "contains", "unevaluatedItems")
_VALUES: Final = ("const", "default", "enum", "examples")
"""Words before values: what is called like a mark in them is none."""
_DEFINED: Final = ("prefixItems", "$defs", "definitions")
_FOLLOWED: Final = frozenset(
    {*_BRANCHES, *_CONDITIONS, *_DEPENDENCIES, *_MEMBERS, *_ITEMS, *_VALUES, *_DEFINED}
)
_EVERYTHING: Final[JsonObject] = {MARK: True}


class Sensitivity:
    """A place in a schema, seen as all the subschemas that may describe the value there."""

    __slots__ = ("_items", "_members", "_root", "_schemas", "whole")

    def __init__(self, root: JsonValue, schemas: list[Mapping[str, JsonValue]]) -> None:
        self._root = root
        self._schemas = schemas
        self._members: dict[str, Sensitivity] = {}
        self._items: dict[int, Sensitivity] = {}
        self.whole = any(schema.get(MARK) is True for schema in schemas)

    @classmethod
    def of(cls, schema: JsonValue) -> Sensitivity:
        """The tree for a schema; `NOTHING` where the schema marks nothing at all, which is the usual case."""
        if not isinstance(schema, dict) or not _mentions(schema):
            return NOTHING
        return cls(schema, _expand(schema, schema))

    def member(self, name: str) -> Sensitivity:
        if not self._schemas:
            return NOTHING
        known = self._members.get(name)
        if known is None:
            found: list[JsonValue] = []
            for schema in self._schemas:
                properties = schema.get("properties")
                if isinstance(properties, dict) and name in properties:
                    found.append(properties[name])
                else:
                    found += [schema.get("additionalProperties"), schema.get("unevaluatedProperties")]
                patterns = schema.get("patternProperties")
                if isinstance(patterns, dict):
                    found.extend(part for pattern, part in patterns.items() if _may_match(pattern, name))
            known = self._descend(found)
            if len(self._members) < 1000:
                self._members[name] = known
        return known

    def item(self, index: int) -> Sensitivity:
        if not self._schemas:
            return NOTHING
        key = min(index, 64)
        known = self._items.get(key)
        if known is None:
            found: list[JsonValue] = []
            for schema in self._schemas:
                prefix = schema.get("prefixItems")
                if isinstance(prefix, list) and (index < len(prefix) or key == 64):
                    found.extend(prefix if key == 64 else prefix[index : index + 1])
                found += [schema.get(word) for word in _ITEMS]
            known = self._items[key] = self._descend(found)
        return known

    def _descend(self, found: list[JsonValue]) -> Sensitivity:
        schemas = [part for schema in found for part in _expand(self._root, schema)]
        return Sensitivity(self._root, schemas) if schemas else NOTHING


NOTHING: Final = Sensitivity(None, [])


def _may_match(pattern: str, name: str) -> bool:
    """JSON Schema patterns are ECMAScript's: one that Python cannot read may match anything."""
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def _mentions(value: JsonValue) -> bool:
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            if here.get(MARK) is True:
                return True
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return False


def _expand(root: JsonValue, schema: JsonValue) -> list[Mapping[str, JsonValue]]:
    """The schema and everything that applies at the same place: references followed, branches joined."""
    found: list[Mapping[str, JsonValue]] = []
    seen: set[int] = set()
    stack = [schema]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(here)
        if not isinstance(here, dict) or id(here) in seen:
            continue
        seen.add(id(here))
        found.append(here)
        if _is_beyond_us(here, root):
            found.append(_EVERYTHING)
        for word in _REFERENCES:
            reference = here.get(word)
            if isinstance(reference, str):
                meant = _resolve(root, reference)
                stack.append(_EVERYTHING if meant is None else meant)
        stack.extend(here.get(word) for word in _BRANCHES)
        stack.extend(here.get(word) for word in _CONDITIONS)
        for word in _DEPENDENCIES:
            dependent = here.get(word)
            if isinstance(dependent, dict):
                stack.extend(value for value in dependent.values() if isinstance(value, dict))
    return found


def _is_beyond_us(schema: Mapping[str, JsonValue], root: JsonValue) -> bool:
    """Whether a mark stands under a word that is not followed, or references below mean another document."""
    if "$id" in schema and schema is not root:
        return True
    return any(
        _mentions(value)
        for word, value in schema.items()
        if word not in _FOLLOWED and isinstance(value, (dict, list))
    )


def _resolve(root: JsonValue, reference: str) -> JsonValue:
    """The schema that a JSON pointer leads to; None for any other reference, and where there is nothing."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    here = root
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict):
            here = here.get(name)
        elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            return None
    return here
