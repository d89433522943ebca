"""What the API's strict mode can express, as a check: for a schema that breaks a rule, `InvalidSchema`.

The rules are those of the vendor's guide to structured outputs: an object at the root, every property
required, nothing additional, a subset of keywords, and sizes. An optional parameter is one that may be null.
"""

from __future__ import annotations

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidSchema
from ptc_tools.schema import LIMITS, walk

FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
)
_KEYWORDS = frozenset(
    {
        "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
        "$ref", "$defs", "definitions", "title", "description", "pattern", "format", "minLength", "maxLength",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
        "$schema", "$id", "$comment", LIMITS,
    }
)  # fmt: skip
_SAYS_WHAT = ("type", "enum", "const", "anyOf", "$ref")
MAX_PROPERTIES = 5000
MAX_DEPTH = 10
MAX_TEXT = 120_000
MAX_ENUM = 1000
_LARGE_ENUM, _LARGE_ENUM_TEXT = 250, 15_000


def check_strict(schema: JsonObject, what: str) -> None:
    """Raise `InvalidSchema`, naming the place and the way out, if strict mode cannot express `schema`."""
    if schema.get("type") != "object":
        raise InvalidSchema(f'{what}: strict mode needs "type": "object" at the root')
    for keyword in ("anyOf", "$ref"):
        if keyword in schema:
            raise InvalidSchema(f"{what}: strict mode does not take {keyword} at the root")
    properties = enums = text = 0
    for pointer, member in walk(schema):
        _check_keywords(member, pointer, what)
        _check_object(member, pointer, what)
        named = member.get("properties")
        if isinstance(named, dict):
            properties += len(named)
            text += sum(map(len, named))
        text += sum(map(len, _named(member, "$defs")))
        values = member.get("enum")
        if isinstance(values, list):
            enums += len(values)
            size = sum(len(value) for value in values if isinstance(value, str))
            text += size
            if len(values) > _LARGE_ENUM and size > _LARGE_ENUM_TEXT:
                raise InvalidSchema(f"{what}: the enum at {pointer} is too long for strict mode")
    _check_sizes(what, properties=properties, enums=enums, text=text, depth=_depth(schema))


def _named(member: JsonObject, keyword: str) -> JsonObject:
    value = member.get(keyword)
    return value if isinstance(value, dict) else {}


def _check_keywords(member: JsonObject, pointer: str, what: str) -> None:
    for keyword in member:
        if keyword not in _KEYWORDS:
            raise InvalidSchema(
                f"{what}: strict mode cannot express {keyword!r} at {pointer}; "
                "say it in the description, or choose strict=False"
            )
    if "$ref" in member and set(member) - {"$ref", "$defs", "definitions"}:
        raise InvalidSchema(f"{what}: strict mode takes no keyword beside $ref at {pointer}")
    if not any(keyword in member for keyword in _SAYS_WHAT):
        raise InvalidSchema(
            f"{what}: strict mode needs a type at {pointer} (an untyped value needs strict=False)"
        )
    form = member.get("format")
    if form is not None and form not in FORMATS:
        raise InvalidSchema(f"{what}: strict mode does not know the format {form!r} at {pointer}")


def _check_object(member: JsonObject, pointer: str, what: str) -> None:
    kind = member.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and "items" not in member:
        raise InvalidSchema(f"{what}: strict mode needs items at {pointer}")
    if "object" not in kinds and "properties" not in member:
        return
    if member.get("additionalProperties") is not False:
        raise InvalidSchema(
            f'{what}: strict mode needs "additionalProperties": false at {pointer}; '
            "a mapping with free keys needs strict=False, or a list of key and value"
        )
    required = member.get("required")
    names = set(_named(member, "properties"))
    listed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    if names != listed:
        odd = sorted(names ^ listed)
        raise InvalidSchema(
            f"{what}: strict mode needs every property in required at {pointer}, and nothing else there "
            f"({', '.join(odd)[:200]}); an optional one is one that may be null"
        )


def _check_sizes(what: str, *, properties: int, enums: int, text: int, depth: int) -> None:
    for count, limit, name in (
        (properties, MAX_PROPERTIES, "properties"),
        (enums, MAX_ENUM, "enum values"),
        (text, MAX_TEXT, "characters in names and enum values"),
        (depth, MAX_DEPTH, "levels of nesting"),
    ):
        if count > limit:
            raise InvalidSchema(f"{what}: {count} {name}, strict mode takes {limit}")


def _depth(schema: JsonValue) -> int:
    """Levels of objects inside objects, references not followed."""
    if not isinstance(schema, dict):
        return 0
    below = [schema.get("items"), *_list(schema, "anyOf"), *_named(schema, "properties").values()]
    below += _named(schema, "$defs").values()
    return max(map(_depth, below), default=0) + (1 if "properties" in schema else 0)


def _list(member: JsonObject, keyword: str) -> list[JsonValue]:
    value = member.get(keyword)
    return value if isinstance(value, list) else []
