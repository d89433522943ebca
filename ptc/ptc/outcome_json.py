"""Outcomes as JSON and back, for run stores. What a host alone may see (exceptions, provenance) stays out."""

from __future__ import annotations

from typing import Any, cast

from ptc_tools.call import JsonObject
from ptc_tools.outcome import Cancelled, Denied, Empty, Failure, Outcome, Partial, Success, Uncertain


def outcome_to_json(outcome: Outcome) -> JsonObject:
    """Plain JSON; `outcome_from_json` is the inverse."""
    if isinstance(outcome, Success):
        told: JsonObject = {"status": outcome.status, "value": outcome.value}
        if isinstance(outcome, Partial):
            told["missing"] = list(outcome.missing)
            told["continuation"] = outcome.continuation
        return told
    told = {"status": outcome.status, "code": outcome.code, "message": outcome.message}
    if isinstance(outcome, Uncertain):
        told["reconciliation"] = outcome.reconciliation
    return told


def outcome_from_json(value: JsonObject) -> Outcome:
    """Raises KeyError for what `outcome_to_json` did not write."""
    told = cast("dict[str, Any]", value)
    match told["status"]:
        case "success":
            return Success(told["value"])
        case "empty":
            return Empty(told["value"])
        case "partial":
            return Partial(told["value"], missing=tuple(told["missing"]), continuation=told["continuation"])
        case "denied":
            return Denied(told["code"], told["message"])
        case "uncertain":
            return Uncertain(told["code"], told["message"], reconciliation=told["reconciliation"])
        case "cancelled":
            return Cancelled(told["message"])
    return Failure(told["code"], told["message"])
