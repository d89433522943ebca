"""The answer as data: `text.format` from a type or a schema, and the answer read back against it.

It asks the service for strict JSON and still trusts nothing: what comes back is parsed strictly and
validated here. An answer that does not fit is an error, never a half-read value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ptc.errors import ConfigurationError, InvalidOutput
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.schema import SchemaValidator, check_schema

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_WRAPPED = "value"


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """What an answer has to be. `adapter` decodes a type, `validator` checks a raw schema."""

    name: str
    schema: JsonObject
    adapter: TypeAdapter[Any] | None = None
    validator: SchemaValidator | None = None
    wrapped: bool = False

    @classmethod
    def of(cls, output_type: object) -> OutputFormat:
        """From a pydantic model, dataclass, TypedDict or other type, or from a JSON schema (a dict).

        The service takes objects only, so another type is asked for as `{"value": …}` and unwrapped again.
        Raises ConfigurationError.
        """
        if isinstance(output_type, Mapping):
            schema = check_schema(dict(output_type), "output_type")
            name = _name(str(schema.get("title") or "output"))
            return cls(name, schema, validator=SchemaValidator(schema, "output_type"))
        if isinstance(output_type, str) or inspect.isroutine(output_type):
            what = "a text" if isinstance(output_type, str) else "a function"
            raise ConfigurationError(f"output_type is {what}; give a type, or a JSON schema as a dict")
        return _of_type(output_type)

    @property
    def result_schema(self) -> JsonObject:
        """The schema of the value itself, without the object that the service is asked for around it."""
        if not self.wrapped:
            return self.schema
        inner = cast("JsonObject", cast("JsonObject", self.schema["properties"])[_WRAPPED])
        definitions = self.schema.get("$defs")
        return inner if definitions is None else {**inner, "$defs": definitions}

    def plain(self, value: object) -> JsonValue:
        """A value that `read` gave, as JSON again."""
        plain = value if self.adapter is None else self.adapter.dump_python(value, mode="json", by_alias=True)
        return strict_json.loads(strict_json.dumps(plain))

    def to_wire(self) -> JsonObject:
        """The `text` field of a request."""
        strict = self.adapter is not None
        return {"format": {"type": "json_schema", "name": self.name, "schema": self.schema, "strict": strict}}

    def read(self, text: str) -> object:
        """The answer as a value of the type. Raises InvalidOutput, which says where it does not fit."""
        try:
            value = strict_json.loads(text)
        except InvalidJson as error:
            raise InvalidOutput(f"the answer is not JSON: {error}", text=text) from None
        if self.wrapped:
            if not isinstance(value, dict) or set(value) != {_WRAPPED}:
                raise InvalidOutput(f"the answer is not an object with `{_WRAPPED}` alone", text=text)
            value = value[_WRAPPED]
        if self.validator is not None:
            if not self.validator.is_valid(value):
                raise InvalidOutput(f"the answer does not fit: {self.validator.explain(value)}", text=text)
            return value
        return self._decode(value, text)

    def _decode(self, value: JsonValue, text: str) -> object:
        from pydantic import ValidationError

        assert self.adapter is not None
        try:
            return self.adapter.validate_json(strict_json.dumps(value), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the answer"
            raise InvalidOutput(f"the answer does not fit: {where}: {first['msg']}", text=text) from None


def _of_type(output_type: Any) -> OutputFormat:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    from ptc_tools.typed import tidy

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        schema = cast("JsonObject", adapter.json_schema(mode="validation"))
    except (PydanticUserError, TypeError) as error:
        raise ConfigurationError(f"output_type: {str(error).splitlines()[0]}") from None
    name = _name(getattr(output_type, "__name__", "output"))
    wrapped = schema.get("type") != "object" or "properties" not in schema
    if wrapped:
        definitions = schema.pop("$defs", None)
        schema = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
        if definitions is not None:
            schema["$defs"] = definitions
    tidy(schema, strict=True)
    return OutputFormat(name, schema, adapter=adapter, wrapped=wrapped)


def _name(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", text)[:64] or "output"
