"""Types to JSON Schema and back: the one place that knows pydantic.

Given annotations it makes adapters and schemas; it never guesses a type, and it never converts a value of
one JSON type to another (`"1"` is not an int). JSON forms: datetime, date, time and timedelta as ISO 8601,
UUID and Enum by value, Decimal as a string, bytes as URL-safe base64.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError, core_schema
from typing_extensions import TypedDict

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidSchema, InvalidSignature
from ptc_tools.keys import KeysOfManyForms, names_of
from ptc_tools.limits import limits_in_words, with_limits
from ptc_tools.schema import LIMITS, UNIQUE, resolve, walk
from ptc_tools.strict import FORMATS
from ptc_tools.typeddicts import modern

# With an exponent of any size, int() of a short text would take all of the memory.
DECIMAL = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"
CONFIG = ConfigDict(
    extra="forbid",
    strict=True,
    ser_json_bytes="base64",
    val_json_bytes="base64",
    ser_json_inf_nan="constants",  # refused afterwards by the strict decoder, where null would be silent
    hide_input_in_errors=True,
)
_UNNAMED = (
    "a type that holds itself needs a name that can be referred to: a class, `type Name = …`, or "
    "typing_extensions.TypeAliasType (any JSON at all is ptc.JsonValue)"
)
_Adapter = TypeVar("_Adapter")
Mode: TypeAlias = Literal["validation", "serialization"]
Fields: TypeAlias = "TypeAdapter[dict[str, object]]"
Items: TypeAlias = "TypeAdapter[list[object]]"


def fields_adapter(name: str, fields: dict[str, object], what: str) -> Fields:
    """An adapter for an object with these fields (`{"sku": Required[str], …}`). Raises `InvalidSignature`."""

    def build() -> Fields:
        shape: type = TypedDict(name, {key: modern(hint) for key, hint in fields.items()})  # type: ignore[misc]
        shape.__pydantic_config__ = CONFIG  # type: ignore[attr-defined]
        return cast("Fields", TypeAdapter(shape))

    return _built(build, what)


def result_adapter(annotation: object, what: str) -> Items:
    """An adapter for a list of one such value: a list passes our configuration on to whatever is in it."""
    listed = cast("type[list[object]]", types.GenericAlias(list, (modern(annotation),)))
    return _built(lambda: TypeAdapter(listed, config=CONFIG), what)


def _built(build: Callable[[], _Adapter], what: str) -> _Adapter:
    try:
        return build()
    except PydanticUndefinedAnnotation as error:
        raise InvalidSignature(f"{what}: the type {error.name!r} cannot be found; define it first") from None
    except RecursionError:
        raise InvalidSignature(f"{what}: {_UNNAMED}") from None
    except SchemaError as error:  # a pattern that its regular expressions cannot have, for instance
        why = str(error).strip().splitlines()[-1].removeprefix("error: ").strip()
        raise InvalidSchema(f"{what}: the type cannot be validated: {why}") from None
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise InvalidSignature(f"{what}: {str(error).splitlines()[0]}") from None


def json_schema(adapter: Fields | Items, mode: Mode, what: str) -> JsonObject:
    """The adapter's schema as pydantic sees it, with our JSON forms. Raises `InvalidSchema` or `InvalidSignature`."""
    try:
        return cast("JsonObject", adapter.json_schema(mode=mode, schema_generator=_Generator))
    except KeysOfManyForms as error:
        raise InvalidSchema(f"{what}: {error}") from None
    except PydanticUserError as error:
        if error.code == "class-not-fully-defined":
            raise InvalidSignature(f"{what}: {_UNNAMED}") from None
        raise InvalidSchema(f"{what} has no JSON Schema: {str(error).splitlines()[0]}") from None


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})  # type: ignore[assignment]

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A string: a JSON number would pass through binary floating point on the way."""
        return with_limits({"type": "string", "pattern": DECIMAL}, schema)

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return with_limits(super().date_schema(schema), schema)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return with_limits(super().datetime_schema(schema), schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return with_limits(super().time_schema(schema), schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return with_limits(super().timedelta_schema(schema), schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """What comes in has keys of one form each; what goes out is looked at when it does."""
        found = super().dict_schema(schema)
        if self.mode == "validation" and (names := names_of(schema.get("keys_schema"))):
            given = found.get("propertyNames")
            found["propertyNames"] = {**(given if isinstance(given, dict) else {}), **names}
        return found

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """What we send always holds every field of a model or dataclass, those with a default too."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return "serialization_exclude_if" not in field
        return super().field_is_required(field, total)


def tidy(schema: JsonObject, *, strict: bool) -> None:
    """Make a generated schema, in place, one that the API takes: shorter, closed, in the subset of `strict`.

    What strict mode has no keyword for but a sentence can say (a default, a format, uniqueness) goes into the
    description; the typed decoder still enforces it.
    """
    for _, member in list(walk(schema)):
        if not isinstance(member.get("title"), dict):
            member.pop("title", None)
        member.pop("discriminator", None)
        if "oneOf" in member and strict:
            # Pydantic writes oneOf for discriminated unions, whose members exclude each other anyway.
            member["anyOf"] = member.pop("oneOf")
        if "properties" in member:
            member.setdefault("additionalProperties", False)
            if strict:
                member["required"] = list(cast("JsonObject", member["properties"]))
        elif member.get("type") == "object" and "additionalProperties" not in member:
            member["additionalProperties"] = False
            member["properties"] = {}
            if strict:
                member["required"] = []
        for sentence in limits_in_words(member):
            describe(member, sentence)
        if strict:
            _say_in_words(member)
    if strict:
        _inline_siblings(schema)


def _say_in_words(member: JsonObject) -> None:
    if "default" in member:
        default = member.pop("default")
        if default is not None:
            describe(member, f"Usually {default!r}.")
    if "format" in member and member["format"] not in FORMATS:
        describe(member, f"Format: {member.pop('format')}.")
    if member.pop("uniqueItems", False):
        describe(member, "No duplicates.")
        member[LIMITS] = {UNIQUE: True}
    for keyword in ("examples", "deprecated", "readOnly", "writeOnly"):
        member.pop(keyword, None)


def describe(member: JsonObject, sentence: str) -> None:
    """Add a sentence to a schema's description."""
    before = member.get("description")
    member["description"] = f"{before.rstrip()} {sentence}" if isinstance(before, str) else sentence


def _inline_siblings(schema: JsonObject) -> None:
    """Strict mode takes no keyword beside `$ref`: write what it refers to in its place."""
    for _, member in list(walk(schema)):
        reference = member.get("$ref")
        if not isinstance(reference, str) or set(member) <= {"$ref", "$defs"}:
            continue
        target = resolve(schema, reference)
        words = {key: value for key, value in member.items() if key not in ("$ref", "$defs")}
        if isinstance(target, dict) and not refers_to(target, reference, schema):
            del member["$ref"]
            member.update(cast("JsonObject", _copy(target)) | words)
        else:
            for key in words:
                del member[key]
            if "description" in words:
                member["anyOf"] = [{"$ref": member.pop("$ref")}]
                member["description"] = words["description"]
    _drop_unused(schema)


def _copy(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def refers_to(target: JsonObject, reference: str, root: JsonObject) -> bool:
    """Whether `reference` is reached again from `target`: then it cannot be written in its own place."""
    seen: set[str] = set()
    queue = [target]
    while queue:
        for _, member in walk(queue.pop()):
            inner = member.get("$ref")
            if inner == reference:
                return True
            if isinstance(inner, str) and inner not in seen:
                seen.add(inner)
                found = resolve(root, inner)
                if isinstance(found, dict):
                    queue.append(found)
    return False


def _drop_unused(schema: JsonObject) -> None:
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return
    body: JsonObject = {key: value for key, value in schema.items() if key != "$defs"}
    used: set[str] = set()
    queue: list[JsonValue] = [body]
    while queue:
        for _, member in walk(queue.pop()):
            reference = member.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/$defs/"):
                name = reference.removeprefix("#/$defs/").split("/")[0].replace("~1", "/").replace("~0", "~")
                if name not in used and name in definitions:
                    used.add(name)
                    queue.append(definitions[name])
    for name in list(definitions):
        if name not in used:
            del definitions[name]
    if not definitions:
        del schema["$defs"]
