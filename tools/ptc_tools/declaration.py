"""A declaration from elsewhere (a registry, a file) made into something that can be executed.

`compile_declaration` copies what it is given, refuses what is incomplete, and infers nothing from the names
of fields: a `delete_…` is not destructive because of its name, it must say so. The result is independent of
its source, and its codecs are the only way in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson, RegistrationError
from ptc_tools.schema import SchemaValidator
from ptc_tools.strict_json import clone, dumps, loads
from ptc_tools.tool import AnyTool, Tool

REQUIRED = ("name", "description", "parameters", "output_schema", "allowed_callers", "effects", "version")
REQUIRED_OF_MUTATIONS = ("commitment",)


class InvalidValue(ValueError):
    """A value does not fit the schema of the codec."""


class ValueCodec:
    """JSON text to a valid value and back. Integers keep every digit; nothing is converted or filled in."""

    __slots__ = ("_validator", "_what")

    def __init__(self, schema: JsonObject, what: str) -> None:
        self._validator = SchemaValidator(schema, what, formats=True)
        self._what = what

    def decode(self, text: str | bytes) -> JsonValue:
        """A fresh value from strict JSON text. Raises `InvalidJson` or `InvalidValue`."""
        return self._valid(loads(text))

    def encode(self, value: JsonValue) -> str:
        """Compact JSON text of a valid value. Raises `InvalidJson` or `InvalidValue`."""
        return dumps(self._valid(clone(value)))

    def _valid(self, value: JsonValue) -> JsonValue:
        if not self._validator.is_valid(value):
            raise InvalidValue(f"{self._what}: {self._validator.explain(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Spec:
    """A compiled declaration: the contract, and the codecs of what goes in and comes out."""

    contract: Contract
    arguments: ValueCodec
    result: ValueCodec

    def bind(self, function: Callable[..., object]) -> AnyTool:
        """A tool that fulfils the contract with this function, which takes and returns JSON."""
        return Tool(self.contract, function)


def compile_declaration(source: Mapping[str, JsonValue] | Contract) -> Spec:
    """An executable spec from a declaration in the JSON form of contracts (see `Contract.to_json`).

    Raises `RegistrationError` for what execution needs and the declaration lacks: callers, effects, an
    output schema, a version; of a mutation also its commitment, and idempotency or a reconciliation read.
    """
    try:
        data = source.to_json() if isinstance(source, Contract) else cast("JsonObject", clone(dict(source)))
    except InvalidJson as error:
        raise RegistrationError(f"the declaration is not JSON: {error}") from None
    what = f"declaration of {str(data.get('name'))[:100]!r}"
    effects = data.get("effects")
    needed = REQUIRED + (REQUIRED_OF_MUTATIONS if effects in ("write", "destructive") else ())
    lacking = [name for name in needed if data.get(name) in (None, "", [])]
    if lacking:
        raise RegistrationError(f"{what} lacks {', '.join(lacking)}: what it does not say is not guessed")
    if effects != "read" and not (data.get("idempotency") or data.get("reconciliation")):
        raise RegistrationError(f"{what}: a mutation needs idempotency or a reconciliation read")
    contract = Contract.from_json(data)
    name = contract.qualified_name
    return Spec(
        contract,
        ValueCodec(contract.checked_parameters, f"arguments of {name}"),
        ValueCodec(cast("JsonObject", contract.output_schema), f"result of {name}"),
    )
