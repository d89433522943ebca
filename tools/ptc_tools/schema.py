"""JSON Schema as tools use it: is it one, can strict mode express it, does a value fit it.

Checks happen when a tool is registered, with `jsonschema` as the authority; on the path of a call a compiled
`jsonschema-rs` validator answers. A schema never makes anybody fetch something: references are local.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, cast

import jsonschema_rs

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, InvalidSchema
from ptc_tools.frozen import thaw_object
from ptc_tools.strict_json import clone

# Keywords whose value is one schema, a list of schemas, or a mapping of names to schemas.
HOLDS_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames",
             "unevaluatedItems", "unevaluatedProperties", "contentSchema", "additionalItems")  # fmt: skip
HOLDS_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
HOLDS_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
# Drafts that declare themselves; a schema without `$schema` is draft 2020-12.
_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
}
# What a schema means and no keyword that goes over the wire says: see `ptc_tools.limits`.
LIMITS = "x-ptc-limits"
UNIQUE = "unique"
_MAX_MESSAGE = 400
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
Formats: TypeAlias = Mapping[str, Callable[[str], bool]]
_MAX_ERRORS = 3


def walk(schema: JsonValue, pointer: str = "#") -> Iterator[tuple[str, JsonObject]]:
    """Every subschema that is an object, with its JSON pointer; the schema itself first."""
    if not isinstance(schema, dict):
        return
    yield pointer, schema
    for keyword in HOLDS_ONE:
        if keyword in schema:
            yield from walk(schema[keyword], f"{pointer}/{keyword}")
    for keyword in HOLDS_LIST:
        members = schema.get(keyword)
        if isinstance(members, list):
            for index, member in enumerate(members):
                yield from walk(member, f"{pointer}/{keyword}/{index}")
    for keyword in HOLDS_NAMED:
        named = schema.get(keyword)
        if isinstance(named, dict):
            for name, member in named.items():
                yield from walk(member, f"{pointer}/{keyword}/{escape(name)}")


def escape(name: str) -> str:
    """A property name as a token of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def check_schema(schema: object, what: str) -> JsonObject:
    """A plain copy of `schema` if it is a valid JSON Schema object that stands alone; else `InvalidSchema`.

    `what` names it in messages (`"tool 'search': parameters"`).
    """
    if not isinstance(schema, dict):
        raise InvalidSchema(f"{what} must be a JSON Schema object, not {type(schema).__name__}")
    try:
        copy = cast("JsonObject", clone(schema))
    except InvalidJson as error:
        raise InvalidSchema(f"{what} is not JSON: {error}") from None
    dialect = copy.get("$schema")
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in _DIALECTS):
        raise InvalidSchema(f"{what}: $schema {dialect!r} is not supported; use draft 2020-12")
    _check_metaschema(copy, what)
    check_references(copy, what)
    compile_schema(copy, what)
    return copy


def _check_metaschema(schema: JsonObject, what: str) -> None:
    if _plainly_valid(schema):
        return
    # Imported here: it takes 0.1 s, and typed tools do not need it.
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise InvalidSchema(
            f"{what} is not a valid JSON Schema at {error.json_path}: {error.message}"
        ) from None


def _plainly_valid(schema: JsonObject) -> bool:
    """Whether the fast checker takes it, in what it is as strict in as the authority: all but patterns.

    A registry's thousands of schemas are checked at once, and the authority takes a millisecond for each.
    """
    if any("pattern" in member or "patternProperties" in member for _, member in walk(schema)):
        return False
    try:
        return jsonschema_rs.meta.is_valid(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return False


def check_references(schema: JsonObject, what: str) -> None:
    """Raise `InvalidSchema` for a reference out of the schema: nobody fetches it."""
    for pointer, member in walk(schema):
        for keyword in ("$ref", "$dynamicRef"):
            target = member.get(keyword)
            if target is not None and not (isinstance(target, str) and target.startswith("#")):
                raise InvalidSchema(
                    f"{what}: {keyword} at {pointer} must be local (#/$defs/…), got {target!r}"
                )


class SchemaValidator:
    """Answers whether JSON values fit one schema, which was checked before. Compiled when it is first asked."""

    __slots__ = ("_compiled", "_formats", "_schema", "_what", "is_valid")

    is_valid: Callable[[object], bool]

    def __init__(self, schema: JsonObject, what: str, *, formats: bool | Formats = False) -> None:
        self._schema = schema
        self._what = what
        self._formats = formats
        self._compiled: jsonschema_rs.Draft202012Validator | None = None
        self.is_valid = self._first

    def _first(self, value: object) -> bool:
        self.is_valid = self._validator().is_valid
        return self.is_valid(value)

    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        if self._compiled is None:
            self._compiled = compile_schema(self._schema, self._what, formats=self._formats)
        return self._compiled

    def explain(self, value: JsonValue) -> str:
        """What does not fit, by path, quoting no value: results may hold what no model should see."""
        found = []
        for error in self._validator().iter_errors(value):
            where = ".".join(str(step) for step in error.instance_path)[:100]
            found.append(f"{where}: {error.message}" if where else error.message)
            if len(found) == _MAX_ERRORS:
                break
        return shorten(printable("; ".join(found))) if found else "it does not fit the schema"


def compile_schema(
    schema: JsonObject, what: str, *, formats: bool | Formats = False
) -> jsonschema_rs.Draft202012Validator:
    """A `jsonschema-rs` validator that never reads a file or an address, and masks values in its messages.

    `formats` are asserted if it is true; a mapping has checks of its own. Raises `InvalidSchema` where a
    reference leads nowhere or a pattern is not a regular expression.
    """
    try:
        validator = jsonschema_rs.validator_for(
            _asserting(thaw_object(schema)),
            offline=True,
            validate_formats=bool(formats),
            formats=None if isinstance(formats, bool) else dict(formats),
            mask="the value",
        )
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError) as error:
        raise InvalidSchema(
            f"{what} cannot be used as a schema: {str(error).splitlines()[0][:200]}"
        ) from None
    return cast("jsonschema_rs.Draft202012Validator", validator)


def _asserting(schema: JsonObject) -> JsonObject:
    """The schema, which may be written to, with a keyword for what strict mode has none for."""
    for _, member in walk(schema):
        limits = member.get(LIMITS)
        if isinstance(limits, dict) and limits.get(UNIQUE) is True:
            member["uniqueItems"] = True
    return schema


def printable(text: str) -> str:
    """The text without what a terminal or a reader takes for more than text: controls, escapes, turned directions."""
    return _CONTROL.sub("", text)


def shorten(text: str, limit: int = _MAX_MESSAGE) -> str:
    """`text` cut to `limit` characters, with an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def resolve(root: JsonObject, reference: str) -> JsonValue:
    """What a local reference (`#`, `#/$defs/Name`) points to. Raises `InvalidSchema` if nothing is there."""
    found: JsonValue = root
    if reference != "#" and not reference.startswith("#/"):
        raise InvalidSchema(f"reference {reference!r} is not a JSON pointer into this schema")
    for token in reference.removeprefix("#").split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise InvalidSchema(f"reference {reference!r} leads nowhere")
    return found
