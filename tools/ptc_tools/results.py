"""From what a tool returned to the JSON that is released: one codec for each tool.

The codec serialises by the return annotation, so that a subclass's extra fields stay behind, and hands back
a fresh tree that shares nothing with the tool. It never turns what JSON cannot carry into a string.
"""

from __future__ import annotations

import collections.abc
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin

from pydantic_core import PydanticSerializationError, SchemaSerializer, core_schema, from_json

from ptc_tools.applied import expanded
from ptc_tools.bounds import Bounds
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, InvalidSignature
from ptc_tools.fragments import fragment
from ptc_tools.provenance import Provenance, Traced
from ptc_tools.returns import EmptyResult, Kind, PartialResult, kind_of
from ptc_tools.schema import walk
from ptc_tools.strict_json import MAX_DEPTH, dumps, loads
from ptc_tools.typed import result_adapter

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_STREAMS = (collections.abc.AsyncIterator, collections.abc.AsyncGenerator, collections.abc.Iterator,
            collections.abc.Generator, collections.abc.AsyncIterable)  # fmt: skip


class InvalidResult(ValueError):
    """A tool returned something that JSON, or its own return annotation, cannot carry."""


class TooLarge(InvalidResult):
    """A result is larger than may be released. The message names numbers alone."""


@dataclass(slots=True)
class Returned:
    """A result as JSON, what kind of result it is, and where it came from."""

    value: JsonValue
    kind: Kind = "success"
    provenance: Provenance | None = None


class Codec:
    """What every tool's result goes through. This one is for a tool without a return annotation."""

    __slots__ = ("schema", "sensitive")

    def __init__(self) -> None:
        self.schema: JsonObject | None = None
        self.sensitive: tuple[str, ...] = ()

    def encode(self, value: object, max_bytes: int) -> Returned:
        """Fresh JSON for what a tool returned. Raises `InvalidResult`."""
        provenance = None
        if isinstance(value, Traced):
            traced = cast("Traced[object]", value)
            value, provenance = traced.value, traced.provenance
        return Returned(self._json(value, max_bytes), kind_of(value), provenance)

    def _json(self, value: object, max_bytes: int) -> JsonValue:
        if isinstance(value, PartialResult | EmptyResult):
            value = value.model_dump(mode="json")
        try:
            text = dumps(value)
        except InvalidJson as error:
            raise InvalidResult(str(error)) from None
        _check_size(len(text), max_bytes)
        return cast("JsonValue", json.loads(text))


PLAIN = Codec()


def _refuse_traced(_: object) -> object:
    raise ValueError("return one Traced value, not Traced parts (flatten, join, summarise)")


# Where an annotation says Any, pydantic would write a Traced as the object that it is: origins and all.
setattr(  # noqa: B010 - the class does not know pydantic
    Traced,
    "__pydantic_serializer__",
    SchemaSerializer(
        core_schema.any_schema(serialization=core_schema.plain_serializer_function_ser_schema(_refuse_traced))
    ),
)


class TypedCodec(Codec):
    """For a tool with a return annotation."""

    __slots__ = ("_annotation", "_is_open", "_write")

    def __init__(self, annotation: object, what: str) -> None:
        self._annotation = annotation
        self._write: Callable[..., bytes] | None = None
        self._is_open = True
        part = fragment(annotation, "serialization", strict=False, what=what)
        self.sensitive = part.sensitive
        self.schema = part.rooted

    def _json(self, value: object, max_bytes: int) -> JsonValue:
        write = self._write
        if write is None:
            # The core's own method: the adapter's wrapper costs as much as the work.
            write = self._write = result_adapter(self._annotation, "result").serializer.to_json
            self._is_open = any(_takes_any_key(member) for _, member in walk(self.schema or {}))
        try:
            # The schema judges the result afterwards, so a warning about its type would say nothing new.
            text = write([value], by_alias=True, warnings=False)
        except PydanticSerializationError as error:
            raise InvalidResult(str(error).splitlines()[0]) from None
        if len(text) - 2 > max_bytes:
            _check_size(len(text) - 2, max_bytes)
        try:
            # Fewer bytes cannot be nested deeper. Keys that differ in Python may be one in JSON (1 and "1").
            if self._is_open or (len(text) > MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH):
                return cast("list[JsonValue]", loads(text, max_depth=MAX_DEPTH + 1))[0]
            # Pydantic wrote it just now: only what its serialiser lets pass has to be refused.
            listed: list[JsonValue] = from_json(text, allow_inf_nan=False)
            return listed[0]
        except ValueError as error:
            raise InvalidResult(_why(text) or str(error)) from None


def _takes_any_key(schema: JsonObject) -> bool:
    """Whether keys may come from a mapping, or from anything: not from a model's fields alone."""
    if "properties" in schema:
        return schema.get("additionalProperties", False) is not False
    return not _SAID & schema.keys() or schema.get("type") == "object"


_SAID = frozenset({"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"})


def _why(text: bytes) -> str | None:
    """What is wrong with a document, in the words of the strict reader."""
    try:
        loads(text, max_depth=MAX_DEPTH + 1)
    except InvalidJson as error:
        return str(error)
    return None


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TooLarge(f"the result is too large: {size} bytes of JSON, at most {max_bytes} are released")


def read_result(hints: dict[str, object], what: str, bounds: Bounds = Bounds()) -> Codec:  # noqa: B008 - a frozen value
    """The codec for a function's return annotation. Raises `InvalidSignature`, or `InvalidSchema`.

    Where `bounds` may cut the result, the partial form is added to the annotation: the output schema says so.
    """
    if "return" not in hints:
        return PLAIN
    annotation = hints["return"]
    origin = get_origin(annotation) or annotation
    if origin in _AWAITABLES:
        annotation = get_args(annotation)[-1] if get_args(annotation) else Any
        origin = get_origin(annotation) or annotation
    if origin in _STREAMS:
        raise InvalidSignature(f"{what}: a tool returns one value; collect the stream, with a bound")
    if origin is Traced:
        annotation = get_args(annotation)[0] if get_args(annotation) else Any
    if _mentions_traced(annotation):
        raise InvalidSignature(
            f"{what}: return one Traced value, not Traced parts (flatten, join, summarise)"
        )
    codec = TypedCodec(annotation, what)
    if any(_is_partial(member) for member in (annotation, *get_args(annotation))):
        return codec
    if bounds.cuts or (bounds.bytes is not None and _may_be_list(codec.schema)):
        return TypedCodec(annotation | PartialResult[annotation], what)  # type: ignore[valid-type]
    return codec


def _may_be_list(schema: JsonObject | None) -> bool:
    """Whether bytes can be cut: only a list at the root has a part that is a result as well."""
    return any(
        "type" not in part or part["type"] == "array"
        for part in expanded([schema], schema or {})
        if not {"anyOf", "oneOf", "$ref", "enum", "const"} & part.keys()
    )


def _is_partial(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, PartialResult)


def _mentions_traced(annotation: object) -> bool:
    return (
        annotation is Traced
        or get_origin(annotation) is Traced
        or any(_mentions_traced(inner) for inner in get_args(annotation))
    )
