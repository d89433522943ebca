"""Reports of calls and programs as JSON and back: what a paused run keeps of what it has done.

Plain values in and out. What a host alone may see of an outcome (exceptions, provenance) stays behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from ptc.outcome_json import outcome_from_json, outcome_to_json
from ptc.result import CallReport, ProgramReport
from ptc_tools.call import Call, Direct, JsonObject, Program


def report_to_json(report: CallReport) -> JsonObject:
    """Plain JSON; `report_from_json` is the inverse."""
    call = report.call
    return {
        "call_id": call.call_id,
        "namespace": call.namespace,
        "name": call.name,
        "arguments": dict(call.arguments) if isinstance(call.arguments, Mapping) else call.arguments,
        "program": call.caller.caller_id if isinstance(call.caller, Program) else None,
        "line": call.origin_line,
        "outcome": outcome_to_json(report.outcome),
        "started_us": report.started_us,
        "duration_us": report.duration_us,
        "request": report.request,
        "reused": report.reused,
        "ran": report.ran,
    }


def report_from_json(value: JsonObject) -> CallReport:
    """Raises KeyError for what `report_to_json` did not write."""
    told = cast("dict[str, Any]", value)
    caller = Direct() if told["program"] is None else Program(told["program"])
    outcome = outcome_from_json(told["outcome"])
    return CallReport(
        call=Call(told["call_id"], told["name"], told["arguments"], caller, told["namespace"], told["line"]),
        outcome=outcome,
        started_us=told["started_us"],
        duration_us=told["duration_us"],
        request=told["request"],
        reused=told["reused"],
        ran=told.get("ran", outcome.status != "denied"),  # a state of before told it by the outcome alone
    )


def program_to_json(report: ProgramReport) -> JsonObject:
    """Plain JSON; `program_from_json` is the inverse."""
    return asdict(report)


def program_from_json(value: JsonObject) -> ProgramReport:
    """Raises TypeError for what `program_to_json` did not write."""
    return ProgramReport(**cast("dict[str, Any]", value))
