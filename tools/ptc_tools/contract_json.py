"""The JSON form of a contract: for registries, lock files and fingerprints.

Whatever has its default is left out, so that a new field of contracts does not change old fingerprints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from ptc_tools.bounds import Bounds
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.definition import definition_with
from ptc_tools.errors import RegistrationError
from ptc_tools.frozen import thaw
from ptc_tools.mutation import Idempotency, Reconciliation
from ptc_tools.publication import Publication

if TYPE_CHECKING:
    from ptc_tools.contract import Contract

_PLAIN: dict[str, object] = {
    "namespace": None,
    "name": None,
    "description": "",
    "strict": True,
    "timeout": None,
    "defer_loading": False,
    "effects": None,
    "risk_level": None,
    "approval": "never",
    "commitment": None,
    "projection": "full",
    "version": None,
}
_SCHEMAS = ("parameters", "output_schema", "accepted")
_TUPLES = ("allowed_callers", "authority", "tags", "sensitive_parameters", "sensitive_results")
_KNOWN = {*_PLAIN, *_SCHEMAS, *_TUPLES, "bounds", "idempotency", "reconciliation", "extra", "definition",
          "publication"}  # fmt: skip


def contract_to_json(contract: Contract, *, schemas: Callable[[JsonValue], JsonValue] = thaw) -> JsonObject:
    """The contract as plain JSON, without what has its default. `schemas` makes the copies of its schemas.

    A raw definition stands in it whole: it is what the model is shown, so pins have to see all of it.
    """
    data: JsonObject = {}
    for name, default in _PLAIN.items():
        value = getattr(contract, name)
        if value != default:
            data[name] = value
    for name in _SCHEMAS:
        schema = getattr(contract, name)
        if schema is not None:
            data[name] = schemas(schema)
    for name in _TUPLES:
        words = getattr(contract, name)
        if words:
            data[name] = list(words)
    if bounds := contract.bounds.to_json():
        data["bounds"] = bounds
    if contract.idempotency is not None:
        evidence: JsonObject = {"source": contract.idempotency.source}
        if contract.idempotency.parameter is not None:
            evidence["parameter"] = contract.idempotency.parameter
        data["idempotency"] = evidence
    if contract.reconciliation is not None:
        data["reconciliation"] = {
            "tool": contract.reconciliation.tool,
            "arguments": dict(contract.reconciliation.arguments),
        }
    if contract.publication is not None:
        data["publication"] = contract.publication.to_json()
    if contract.definition is not None:
        data["definition"] = schemas(contract.definition)
    return data


def contract_arguments(data: Mapping[str, JsonValue]) -> dict[str, object]:
    """Keyword arguments for `Contract` from its JSON form. Raises `RegistrationError`."""
    what = f"declaration of {str(data.get('name'))[:100]!r}"
    if unknown := set(data) - _KNOWN:
        raise RegistrationError(f"{what}: unknown key {sorted(unknown)[0]!r}")
    for name in ("name", "parameters"):
        if name not in data:
            raise RegistrationError(f"{what}: {name} is missing")
    values: dict[str, object] = {key: value for key, value in data.items() if key != "extra"}
    if "extra" in data:
        values["definition"] = definition_with(_object(data, "extra", what), data, what)
    for name in _TUPLES:
        if name in data:
            words = data[name]
            if not isinstance(words, list):
                raise RegistrationError(f"{what}: {name} must be a list")
            values[name] = tuple(words)
    if "bounds" in data:
        values["bounds"] = Bounds.from_json(_object(data, "bounds", what))
    if "publication" in data:
        values["publication"] = Publication.from_json(data["publication"], f"{what}: publication")
    for name, kind in (("idempotency", Idempotency), ("reconciliation", Reconciliation)):
        if data.get(name) is not None:
            try:
                values[name] = kind(**cast("dict[str, str]", _object(data, name, what)))  # type: ignore[arg-type]
            except TypeError:
                raise RegistrationError(f"{what}: {name} has an unknown or a missing key") from None
    return values


def _object(data: Mapping[str, JsonValue], name: str, what: str) -> JsonObject:
    value = data[name]
    if not isinstance(value, dict):
        raise RegistrationError(f"{what}: {name} must be an object")
    return value
