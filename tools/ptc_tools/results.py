"""From what a tool returned to the JSON that is released: one codec for each tool.

The codec serialises by the return annotation, so that a subclass's extra fields stay behind, and hands back
a fresh tree that shares nothing with the tool. It never turns what JSON cannot carry into a string.
"""

from __future__ import annotations

import collections.abc
import json
from typing import Any, cast, get_args, get_origin

from pydantic_core import PydanticSerializationError

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, InvalidSignature
from ptc_tools.schema import resolve
from ptc_tools.strict_json import MAX_DEPTH, dumps, loads
from ptc_tools.typed import json_schema, refers_to, result_adapter, tidy

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_STREAMS = (collections.abc.AsyncIterator, collections.abc.AsyncGenerator, collections.abc.Iterator,
            collections.abc.Generator, collections.abc.AsyncIterable)  # fmt: skip


class InvalidResult(ValueError):
    """A tool returned something that JSON, or its own return annotation, cannot carry."""


class PlainResult:
    """For a tool without a return annotation: it returns JSON already."""

    __slots__ = ()
    schema: JsonObject | None = None

    def encode(self, value: object, max_bytes: int) -> JsonValue:
        """A fresh copy of a JSON value. Raises `InvalidResult`."""
        try:
            text = dumps(value)
        except InvalidJson as error:
            raise InvalidResult(str(error)) from None
        _check_size(len(text), max_bytes)
        return cast("JsonValue", json.loads(text))


PLAIN = PlainResult()


class TypedResult:
    """For a tool with a return annotation."""

    __slots__ = ("_adapter", "schema")

    def __init__(self, annotation: object, what: str) -> None:
        self._adapter = result_adapter(annotation, what)
        self.schema: JsonObject = _unwrap(json_schema(self._adapter, "serialization", what))

    def encode(self, value: object, max_bytes: int) -> JsonValue:
        """The value as the return annotation serialises it. Raises `InvalidResult`."""
        try:
            # The schema judges the result afterwards, so a warning about its type would say nothing new.
            text = self._adapter.dump_json([value], by_alias=True, warnings=False)
        except PydanticSerializationError as error:
            raise InvalidResult(str(error).splitlines()[0]) from None
        _check_size(len(text) - 2, max_bytes)
        try:
            return cast("list[JsonValue]", loads(text, max_depth=MAX_DEPTH + 1))[0]
        except InvalidJson as error:
            raise InvalidResult(str(error)) from None


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise InvalidResult(
            f"the result is too large: {size} bytes of JSON, at most {max_bytes} are released"
        )


def _unwrap(schema: JsonObject) -> JsonObject:
    tidy(schema, strict=False)
    result = cast("JsonObject", schema["items"]) if "items" in schema else {}
    if "$defs" not in schema:
        return result
    definitions = cast("JsonObject", schema["$defs"])
    reference = result.get("$ref")
    if isinstance(reference, str):
        # The usual case, one model: its schema stands at the root, where a program's author looks first.
        target = resolve(schema, reference)
        if isinstance(target, dict) and not refers_to(target, reference, schema):
            del definitions[reference.removeprefix("#/$defs/")]
            result = target
    return result | {"$defs": definitions} if definitions else result


def read_result(hints: dict[str, object], what: str) -> TypedResult | PlainResult:
    """The codec for a function's return annotation. Raises `InvalidSignature`, or `InvalidSchema`."""
    if "return" not in hints:
        return PLAIN
    annotation = hints["return"]
    origin = get_origin(annotation) or annotation
    if origin in _AWAITABLES:
        annotation = get_args(annotation)[-1] if get_args(annotation) else Any
        origin = get_origin(annotation) or annotation
    if origin in _STREAMS:
        raise InvalidSignature(f"{what}: a tool returns one value; collect the stream, with a bound")
    return TypedResult(annotation, what)
