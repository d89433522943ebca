"""Fingerprints of contracts: equal when the contracts are, on every platform and in any order of keys.

A fingerprint covers what a model is told and what a call may do, description and tags included. Times of
creation, the order of keys, tags and tools, and the function behind a tool are no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract_json import contract_to_json
from ptc_tools.strict_json import canonical

if TYPE_CHECKING:
    from ptc_tools.contract import Contract

# Part of every hash: a change of what is covered must not look like a change of contracts.
_DOMAIN = "ptc-contract/1"
_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True, check_circular=False
)
_ANNOTATIONS = frozenset({"title", "description", "examples", "$comment", "default", "deprecated"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def normalised(schema: JsonValue, *, words: bool = True) -> JsonValue:
    """A schema with its sets (`required`, `type`, `enum`) in one order; without `words`, no annotations."""
    if isinstance(schema, list):
        return [normalised(item, words=words) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: JsonObject = {}
    for key, value in schema.items():
        if not words and key in _ANNOTATIONS:
            continue
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            found[key] = {name: normalised(item, words=words) for name, item in value.items()}
        elif key in ("required", "enum", "type") and isinstance(value, list):
            found[key] = sorted(value, key=canonical)
        elif key in ("const", "default", "examples"):
            found[key] = value
        else:
            found[key] = normalised(value, words=words)
    return found


def _digest(kind: str, value: JsonValue) -> str:
    """`sha256:…` over the canonical JSON of a value, bound to what kind of thing it is."""
    # A contract was checked to be JSON when it was made, so this does not look again.
    text = _CANONICAL.encode([_DOMAIN, kind, value])
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def contract_fingerprint(contract: Contract) -> str:
    """Of all that a contract says."""
    return _digest("contract", contract_to_json(contract, schemas=normalised))


def schema_fingerprint(contract: Contract) -> str:
    """Of the shapes alone: which arguments are accepted and which results are given, without any words."""
    parameters = normalised(contract.checked_parameters, words=False)
    output = None if contract.output_schema is None else normalised(contract.output_schema, words=False)
    return _digest("schema", [parameters, output])


def toolset_fingerprint(contracts: Iterable[Contract]) -> str:
    """Of a set of contracts, whatever their order."""
    return _digest("toolset", cast("JsonValue", sorted(contract.fingerprint() for contract in contracts)))
