"""Raw function-tool definitions beside the contract that describes them: they must say the same.

A raw definition goes over the wire unchanged, while policy, pins and people look at the contract's fields.
Nothing here lets it say one thing to the model and another to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, RegistrationError
from ptc_tools.strict_json import canonical, clone

if TYPE_CHECKING:
    from ptc_tools.contract import Contract

# What a definition says that the contract's own fields say as well.
DEFINED = frozenset({"type", "name", "description", "parameters", "strict", "output_schema", "allowed_callers",
                     "defer_loading"})  # fmt: skip
NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


def check_definition(contract: Contract, what: str) -> JsonObject:
    """A plain copy of the contract's definition. Raises `RegistrationError` where it contradicts a field."""
    if not isinstance(contract.definition, dict):
        raise RegistrationError(f"{what}: definition must be an object")
    try:
        definition = cast("JsonObject", clone(contract.definition))
    except InvalidJson as error:
        raise RegistrationError(f"{what}: definition is not JSON: {error}") from None
    for name in ("strict", "defer_loading"):
        if not isinstance(definition.get(name), bool | None):
            raise RegistrationError(f"{what}: {name} must be true or false, got {definition[name]!r}")
    said: JsonObject = {
        "type": definition.get("type"),
        "name": definition.get("name"),
        "description": definition.get("description") or "",
        "parameters": _or(definition.get("parameters"), NO_PARAMETERS),
        "output_schema": definition.get("output_schema"),
        "allowed_callers": _as_set(_or(definition.get("allowed_callers"), ["direct"])),
        "strict": definition.get("strict") is True,
        "defer_loading": definition.get("defer_loading") is True,
    }
    meant: JsonObject = {
        "type": "function",
        "name": contract.name,
        "description": contract.description,
        "parameters": contract.parameters,
        "output_schema": contract.output_schema,
        "allowed_callers": _as_set(list(contract.allowed_callers)),
        "strict": contract.strict,
        "defer_loading": contract.defer_loading,
    }
    for name, value in meant.items():
        if canonical(said[name]) != canonical(value):
            raise RegistrationError(f"{what}: its definition says another {name} than the contract")
    return definition


def definition_with(extra: JsonObject, declaration: Mapping[str, JsonValue], what: str) -> JsonObject:
    """The definition of a declaration that has more for the wire than contracts have fields for.

    Raises `RegistrationError` for an extra that would say again what a field says.
    """
    for name in sorted(extra):
        if name in DEFINED:
            raise RegistrationError(
                f"{what}: extra may not hold {name!r}, which is the declaration's own field"
            )
    if "definition" in declaration:
        raise RegistrationError(f"{what}: extra and definition exclude each other")
    defined = {key: value for key, value in declaration.items() if key in DEFINED}
    return {"type": "function", "strict": True, **defined, **extra}


def extra_of(contract: Contract) -> JsonObject:
    """What goes over the wire beyond the contract's own fields."""
    return {key: value for key, value in (contract.definition or {}).items() if key not in DEFINED}


def form_of(contract: Contract) -> Mapping[str, JsonValue] | None:
    """Which of the fields a raw definition states, and how: None, false and absent are three things there."""
    if contract.definition is None:
        return None
    return {
        key: value if isinstance(value, bool | None) else "stated"
        for key, value in contract.definition.items()
        if key in DEFINED
    }


def _or(value: JsonValue, default: JsonValue) -> JsonValue:
    return default if value is None else value


def _as_set(value: JsonValue) -> JsonValue:
    return cast("JsonValue", sorted({str(item) for item in value})) if isinstance(value, list) else value
