"""Fingerprints of contracts: equal when the contracts are, on every platform and in any order of keys.

A fingerprint covers what a model is told and what a call may do, description and tags included. Times of
creation, the order of keys, tags and tools, and the function behind a tool are no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from ptc_tools.call import JsonValue
from ptc_tools.contract_json import contract_to_json
from ptc_tools.schema import HOLDS_LIST, HOLDS_NAMED, HOLDS_ONE
from ptc_tools.strict_json import canonical

if TYPE_CHECKING:
    from ptc_tools.contract import Contract

# Part of every hash: a change of what is covered must not look like a change of contracts.
_DOMAIN = "ptc-contract/1"
_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True, check_circular=False
)
_ANNOTATIONS = frozenset({"title", "description", "examples", "$comment", "default", "deprecated"})
_EXACT = 2**53
_AS_IT_IS = frozenset({str, bool, int, type(None)})
_SCHEMAS = frozenset({"parameters", "accepted", "output_schema", "definition"})  # normalised already


def normalised(schema: JsonValue, *, words: bool = True) -> JsonValue:
    """A schema with its sets (`required`, `type`, `enum`) in one order; without `words`, no annotations.

    Only what is known to hold schemas is looked into: a property, or a key of data, may be called
    "description" as well. Numbers that are equal (1 and 1.0) are written alike.
    """
    if not isinstance(schema, dict):
        return plain_numbers(schema)
    return {
        key: value if type(value) in _AS_IT_IS else _normalised_keyword(key, value, words)
        for key, value in schema.items()
        if words or key not in _ANNOTATIONS
    }


def _normalised_keyword(key: str, value: JsonValue, words: bool) -> JsonValue:
    if isinstance(value, dict):
        if key in HOLDS_NAMED:
            return {name: normalised(item, words=words) for name, item in value.items()}
        if key in ("dependentRequired", "dependencies"):
            return {
                name: _as_set(item) if isinstance(item, list) else normalised(item, words=words)
                for name, item in value.items()
            }
        if key in HOLDS_ONE:
            return normalised(value, words=words)
    if isinstance(value, list):
        if key in HOLDS_LIST or key in HOLDS_ONE:
            return [normalised(item, words=words) for item in value]
        if key in ("required", "enum", "type"):
            return _as_set(value)
    return plain_numbers(value)


def _as_set(values: list[JsonValue]) -> JsonValue:
    return sorted(map(plain_numbers, values), key=canonical)


def plain_numbers(value: JsonValue) -> JsonValue:
    """A copy in which a number without a fraction is an integer, as far as doubles are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    return value


def _digest(kind: str, value: JsonValue) -> str:
    """`sha256:…` over the canonical JSON of a value, bound to what kind of thing it is."""
    # A contract was checked to be JSON when it was made, so this does not look again.
    text = _CANONICAL.encode([_DOMAIN, kind, value])
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def contract_fingerprint(contract: Contract) -> str:
    """Of all that a contract says."""
    data = {
        key: value if key in _SCHEMAS else plain_numbers(value)
        for key, value in contract_to_json(contract, schemas=normalised).items()
    }
    if contract.definition is not None:
        definition = contract.definition
        data["definition"] = {
            key: normalised(value) if key in ("parameters", "output_schema") else plain_numbers(value)
            for key, value in definition.items()
        }
    return _digest("contract", data)


def schema_fingerprint(contract: Contract) -> str:
    """Of the shapes alone: which arguments are accepted and which results are given, without any words."""
    parameters = normalised(contract.checked_parameters, words=False)
    output = None if contract.output_schema is None else normalised(contract.output_schema, words=False)
    return _digest("schema", [parameters, output])


def toolset_fingerprint(contracts: Iterable[Contract], namespaces: Mapping[str, str] | None = None) -> str:
    """Of a set of contracts, whatever their order, and of what their namespaces are described by."""
    members = cast("JsonValue", sorted(contract.fingerprint() for contract in contracts))
    return _digest("toolset", [members, dict(namespaces)] if namespaces else members)
