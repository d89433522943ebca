"""The JSON Schema of one type, made once and shared by all the tools that mention the type.

A fragment is frozen and stands in every schema that uses it, so ten thousand tools over a hundred types
generate a hundred schemas. It never holds a description of a parameter: those differ from tool to tool.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, cast, get_args, get_origin

import jsonschema_rs
from pydantic.fields import FieldInfo

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidSchema, InvalidSignature
from ptc_tools.frozen import freeze_object
from ptc_tools.markers import take_sensitive
from ptc_tools.schema import check_references, compile_schema, resolve, walk
from ptc_tools.typed import Mode, json_schema, refers_to, result_adapter, tidy

_WORDS = frozenset({"description", "title", "examples", "deprecated"})
_CACHED = 8192


@dataclass(frozen=True, slots=True)
class Fragment:
    """A type's schema, the definitions that it refers to, and where in it `Sensitive` values are.

    `rooted` is both in one schema that stands alone.
    """

    schema: JsonObject
    definitions: JsonObject
    rooted: JsonObject
    sensitive: tuple[str, ...]


def fragment(annotation: object, mode: Mode, *, strict: bool, what: str) -> Fragment:
    """The fragment of a type. Raises `InvalidSignature` or `InvalidSchema`, with `what` in the message."""
    key = _key(annotation)
    if key is None:
        return _made(annotation, mode, strict, what)
    return _cached(_Keyed((key, mode, strict), annotation, what))


class _Keyed:
    """A cache key that brings along what the value is made from."""

    __slots__ = ("annotation", "key", "what")

    def __init__(self, key: tuple[Hashable, Mode, bool], annotation: object, what: str) -> None:
        self.key = key
        self.annotation = annotation
        self.what = what

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key


@lru_cache(maxsize=_CACHED)
def _cached(keyed: _Keyed) -> Fragment:
    _, mode, strict = keyed.key
    made = _made(keyed.annotation, mode, strict, keyed.what)
    keyed.what = ""
    return made


def _made(annotation: object, mode: Mode, strict: bool, what: str) -> Fragment:
    generated = json_schema(result_adapter(without_words(annotation), what), mode, what)
    root = cast("JsonObject", generated.get("items", {}))
    if "$defs" in generated:
        root = root | {"$defs": generated["$defs"]}
    if mode == "serialization":
        _check_shown(root, what)
    sensitive = take_sensitive(root)
    tidy(root, strict=strict)
    if not jsonschema_rs.meta.is_valid(root):
        raise InvalidSchema(f"{what}: the schema of a type is not valid JSON Schema (json_schema_extra?)")
    if mode == "validation":
        _check_literals(root, what)
    check_references(root, what)
    compile_schema(root, what)
    definitions = cast("JsonObject", root.pop("$defs", {}))
    schema, shared = freeze_object(root), freeze_object(definitions)
    return Fragment(schema, shared, freeze_object(_at_root(schema, shared)), sensitive)


def _check_shown(root: JsonObject, what: str) -> None:
    """Raises `InvalidSignature` for a result that says asterisks in place of what it promises."""
    for _, member in walk(root):
        if member.get("writeOnly") is True and member.get("format") == "password":
            raise InvalidSignature(
                f"{what}: a SecretStr in a result is written as asterisks; return Annotated[str, ptc.Sensitive] if"
                " the caller may have it, and leave it out if not"
            )


def _check_literals(root: JsonObject, what: str) -> None:
    """Raises `InvalidSignature` for two literals that differ in JSON and are equal in Python."""
    for _, member in walk(root):
        values = member.get("enum")
        numbers = (
            [item for item in values if isinstance(item, int | float)] if isinstance(values, list) else []
        )
        if len(set(numbers)) < len(numbers):
            raise InvalidSignature(
                f"{what}: of the literals {numbers!r} two are equal in Python (1 and True, 0 and False): a tool "
                "could not tell which one was sent"
            )


def _at_root(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    """The schema with a single model's own schema at the root, where a program's author looks first."""
    if not definitions:
        return schema
    whole: JsonObject = {**schema, "$defs": definitions}
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return whole
    target = resolve(whole, reference)
    if not isinstance(target, dict) or refers_to(target, reference, whole):
        return whole
    rest = {key: value for key, value in definitions.items() if key != reference.removeprefix("#/$defs/")}
    found = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {**found, "$defs": rest} if rest else found


def words_of(annotation: object) -> str | None:
    """What `Annotated[…, Field(description=…)]` says, if it is there."""
    if get_origin(annotation) is Annotated:
        for item in get_args(annotation)[1:]:
            if isinstance(item, FieldInfo) and item.description is not None:
                return item.description
    return None


def without_words(annotation: object) -> object:
    """The same type without descriptions at its top."""
    if get_origin(annotation) is not Annotated or words_of(annotation) is None:
        return annotation
    base, *metadata = get_args(annotation)
    kept: list[object] = []
    for item in metadata:
        given = _given(item) if isinstance(item, FieldInfo) else None
        if given is None:
            kept.append(item)
            continue
        kept += cast("FieldInfo", item).metadata
        if given:
            kept.append(FieldInfo(**given))  # type: ignore[arg-type]
    return Annotated[(base, *kept)] if kept else base


def _given(info: FieldInfo) -> dict[str, object] | None:
    """What was passed to `Field(…)` but words and constraints; None if this pydantic does not tell."""
    given = getattr(info, "_attributes_set", None)
    if not isinstance(given, Mapping):
        return None
    return {name: value for name, value in given.items() if name not in _WORDS and name != "annotation"}


def _key(annotation: object) -> Hashable | None:
    """Something that is equal for annotations of one meaning; None if that cannot be told."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        base = _key(arguments[0])
        parts = [_metadata_key(item) for item in arguments[1:]]
        return None if base is None or None in parts else (Annotated, base, *parts)
    if arguments and get_origin(annotation) is not Literal:
        keys = [_key(item) for item in arguments]
        return None if None in keys else (get_origin(annotation), *keys)
    if annotation is None:
        return "None"
    return annotation if isinstance(annotation, Hashable) and _hashes(annotation) else None


def _metadata_key(item: object) -> Hashable | None:
    """Le(1) and Le(1.0) are equal and hash alike, yet are written differently: hence their texts."""
    if isinstance(item, FieldInfo):
        given = _given(item)
        constraints = [_metadata_key(part) for part in item.metadata]
        if given is None or None in constraints or not _hashes(values := tuple(sorted(given.items()))):
            return None
        return (FieldInfo, values, repr(values), *constraints)
    if not _hashes(item):
        return None
    # Pydantic keeps a pattern in an object that is equal to itself alone.
    general = vars(item) if type(item).__name__ == "PydanticGeneralMetadata" else None
    if general is not None:
        pairs = tuple(sorted(general.items()))
        return (type(item), pairs, repr(pairs)) if _hashes(pairs) else None
    return (type(item), item, repr(item))


def _hashes(item: object) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True


def assembled(
    properties: Mapping[str, JsonObject], definitions: Iterable[tuple[str, JsonObject]]
) -> tuple[JsonObject, JsonObject]:
    """Properties and all their definitions in one schema; a name that two types share is told apart.

    `definitions` are pairs of a property's name and its fragment's definitions.
    """
    whole: JsonObject = {}
    found: JsonObject = dict(properties)
    for name, own in definitions:
        renamed: dict[str, str] = {}
        for key, schema in own.items():
            if key in whole and whole[key] is not schema and whole[key] != schema:
                renamed[key] = f"{key}_{name}"
        if renamed:
            found[name] = _pointing(found[name], renamed)
        for key, schema in own.items():
            whole[renamed.get(key, key)] = _pointing(schema, renamed) if renamed else schema
    return found, whole


def _pointing(schema: JsonValue, renamed: Mapping[str, str]) -> JsonValue:
    """A copy in which references to renamed definitions point to their new names."""
    if isinstance(schema, list):
        return [_pointing(item, renamed) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: _pointing(item, renamed) for key, item in schema.items()}
    reference = copy.get("$ref")
    if isinstance(reference, str) and (name := reference.removeprefix("#/$defs/")) in renamed:
        copy["$ref"] = f"#/$defs/{renamed[name]}"
    return copy
