"""What a parameter or a field is marked with: `Annotated[str, Sensitive]`, `Annotated[Client, Designer]`.

`Designer` values come from whoever configures the tool and are no part of what a model sees. `Sensitive`
values are redacted wherever they would be recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.schema import escape, resolve, walk

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

SENSITIVE_KEYWORD = "x-sensitive"
REDACTED = "[redacted]"
ANY_DEPTH = "**"
_HERE = ("if", "then", "else", "not")
_LISTED = ("anyOf", "oneOf", "allOf")
_NAMED = ("dependentSchemas", "dependencies")
_BELOW = (
    "items",
    "additionalProperties",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
)
_BY_REFERENCE = ("$defs", "definitions")
_VALUES = ("const", "default", "enum", "examples")
"""Words before values: what is called like a mark in them is none."""
_FOLLOWED = frozenset(
    {
        *_HERE,
        *_LISTED,
        *_NAMED,
        *_BELOW,
        *_BY_REFERENCE,
        *_VALUES,
        "properties",
        "patternProperties",
        "prefixItems",
    }
)


class DesignerMark:
    """The type of `Designer`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Designer"


class SensitiveMark:
    """The type of `Sensitive`. Marks the schema while it is generated; the mark is taken off for the wire."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Sensitive"

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = dict(handler(core_schema))
        schema[SENSITIVE_KEYWORD] = True
        return schema


Designer = DesignerMark()
"""Marks a parameter that `tool.configure(…)` sets: absent from the model's schema, refused from a call."""
Sensitive = SensitiveMark()
"""Marks a parameter, or a field of a model, whose values are redacted in records and in error messages."""


class ProviderConfig:
    """Base for the configuration of a tool's provider (endpoint, account …): only a designer may set it."""

    __slots__ = ()


def is_designer(annotation: object) -> bool:
    """Whether `Designer` (or its type) is among the metadata of `Annotated[…]`."""
    if get_origin(annotation) is not Annotated:
        return False
    return any(item is DesignerMark or isinstance(item, DesignerMark) for item in get_args(annotation)[1:])


def sensitive_paths(schema: JsonObject) -> tuple[str, ...]:
    """Where a schema says `"x-sensitive": true`, as patterns for `redact`."""
    return tuple(sorted(set(_marked(schema, schema, "", ()))))


def take_sensitive(schema: JsonObject) -> tuple[str, ...]:
    """`sensitive_paths` of a generated schema, from which the marks are removed, and defaults under them."""
    paths = sensitive_paths(schema)
    if paths:
        for _, member in list(walk(schema)):
            if "default" in member and next(_marked(member, schema, "", ()), None) is not None:
                del member["default"]
    _unmark(schema)
    return paths


def _marked(
    schema: JsonValue, root: JsonObject, path: str, above: tuple[str, ...], *, again: bool = True
) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if schema.get(SENSITIVE_KEYWORD) or (schema.get("format") == "password" and schema.get("writeOnly")):
        yield path  # the second is how a SecretStr describes itself
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = resolve(root, reference)
        if reference not in above:
            yield from _marked(target, root, path, (*above, reference), again=again)
        elif again:
            # It holds itself, to any depth: whatever ends like a marked place below here is one.
            for suffix in _marked(target, root, "", above, again=False):
                yield f"{path}/{ANY_DEPTH}{suffix}"
    if _is_beyond_us(schema, root):
        yield path
    for keyword in _LISTED:
        members = schema.get(keyword)
        for member in members if isinstance(members, list) else ():
            yield from _marked(member, root, path, above, again=again)
    for keyword in _HERE:
        yield from _marked(schema.get(keyword), root, path, above, again=again)
    for keyword in _NAMED:
        named = schema.get(keyword)
        for member in named.values() if isinstance(named, dict) else ():
            yield from _marked(member, root, path, above, again=again)
    patterns = schema.get("patternProperties")
    for member in patterns.values() if isinstance(patterns, dict) else ():
        yield from _marked(member, root, f"{path}/*", above, again=again)
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        yield from _marked(member, root, f"{path}/{escape(name)}", above, again=again)
    for keyword in _BELOW:
        below = schema.get(keyword)
        for member in below if isinstance(below, list) else (below,):
            yield from _marked(member, root, f"{path}/*", above, again=again)
    prefix = schema.get("prefixItems")
    for index, member in enumerate(prefix if isinstance(prefix, list) else ()):
        yield from _marked(member, root, f"{path}/{index}", above, again=again)


def _is_beyond_us(schema: JsonObject, root: JsonObject) -> bool:
    """Whether a mark stands where this cannot tell which values it means: then all of them here count as marked."""
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        return _mentions(root)
    return any(_mentions(value) for keyword, value in schema.items() if keyword not in _FOLLOWED)


def _mentions(value: JsonValue) -> bool:
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            if here.get(SENSITIVE_KEYWORD):
                return True
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
    return False


def with_marks(schema: JsonObject | None, paths: tuple[str, ...]) -> JsonObject | None:
    """A schema with `"x-sensitive": true` where `paths` say: for those who walk schemas, not for the wire."""
    if not paths:
        return schema
    root = dict(schema or {})
    own = root.get("$defs")
    definitions: JsonObject = dict(own) if isinstance(own, dict) else {}
    parts = root.get("allOf")
    marked = [_mark(_steps(path), definitions) for path in paths]
    root["allOf"] = [*(parts if isinstance(parts, list) else ()), *marked]
    root["$defs"] = definitions
    return root


def _mark(steps: list[str], definitions: JsonObject) -> JsonValue:
    if not steps:
        return {SENSITIVE_KEYWORD: True}
    step, inner = steps[0], _mark(steps[1:], definitions)
    if step == ANY_DEPTH:
        name = f"x-sensitive-{len(definitions)}"
        below: JsonObject = {"$ref": f"#/$defs/{name}"}
        definitions[name] = {"allOf": [inner, {"items": below, "additionalProperties": below}]}
        return below
    if step == "*":
        return {"items": inner, "additionalProperties": inner}
    found: JsonObject = {"properties": {step: inner}}
    if step.isdigit():
        found["items"] = inner  # one position of a tuple: its neighbours are hidden with it
    return found


def _unmark(value: JsonValue) -> None:
    if isinstance(value, dict):
        if value.get(SENSITIVE_KEYWORD) is True:
            del value[SENSITIVE_KEYWORD]
        for item in value.values():
            _unmark(item)
    elif isinstance(value, list):
        for item in value:
            _unmark(item)


def redact(value: JsonValue, paths: tuple[str, ...]) -> JsonValue:
    """A copy of `value` with `[redacted]` where `paths` say (`/customer/email`, `/rows/*/iban`, `/tree/**/pin`).

    A value that is null stays null: its absence is no secret, and an auditor may need to see it.
    """
    for path in paths:
        value = _redacted(value, _steps(path))
    return value


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _redacted(value: JsonValue, steps: list[str]) -> JsonValue:
    if not steps:
        return None if value is None else REDACTED
    step, rest = steps[0], steps[1:]
    if step == ANY_DEPTH:
        value = _redacted(value, rest)
        rest = steps
    if isinstance(value, dict):
        return {
            key: _redacted(item, rest) if step in ("*", ANY_DEPTH, key) else item
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _redacted(item, rest) if step in ("*", ANY_DEPTH, str(index)) else item
            for index, item in enumerate(value)
        ]
    return value


def sensitive_texts(value: JsonValue, paths: tuple[str, ...]) -> Iterator[str]:
    """The texts and numbers in the places that `paths` name: what an error message must not repeat."""
    for path in paths:
        yield from _texts(value, _steps(path))


def _texts(value: JsonValue, steps: list[str]) -> Iterator[str]:
    if not steps:
        if isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value)
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                yield from _texts(item, [])
        return
    step, rest = steps[0], steps[1:]
    if step == ANY_DEPTH:
        yield from _texts(value, rest)
        rest = steps
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        if step in ("*", ANY_DEPTH, str(key)):
            yield from _texts(item, rest)
