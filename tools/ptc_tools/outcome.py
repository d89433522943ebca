"""How a call ended. The types stay different everywhere: on the wire, in a program, in the audit record.

Success       the tool ran; `value` fits its output schema
 ├── Empty    … and there is nothing to show, which is an answer
 └── Partial  … and something is missing: `missing` says what, `continuation` how to go on
Denied        the tool never ran: unknown, not allowed, bad arguments, not approved, program not open …
Failure       the tool ran and did not give a valid result: raised, timed out, broke its schema
 └── Uncertain  … and it may have changed something: `reconciliation` says which read tells
Cancelled     the call was given up before its result was released
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.provenance import Provenance

DenialCode: TypeAlias = Literal[
    "unknown_tool",
    "caller_not_allowed",
    "program_not_open",
    "malformed_arguments",
    "invalid_arguments",
    "not_authorized",
    "not_approved",
    "limit_exceeded",
    "audit_unavailable",
    "not_admitted",
    "call_refused",
    "call_not_admitted",
    "admission_conflict",
    "call_identity_conflict",
    "registry_overloaded",
    "incomplete_response",
    "cancelled",
]
FailureCode: TypeAlias = Literal["tool_error", "invalid_result", "timeout", "audit_unavailable", "uncertain"]


@dataclass(frozen=True, slots=True)
class Success:
    """The tool ran; `value` is JSON and fits the tool's output schema.

    `provenance` is for the audit record; the model never sees it.
    """

    value: JsonValue
    status: Literal["success", "empty", "partial"] = "success"
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Empty(Success):
    """The tool ran and found nothing. `value` says so: `{"outcome": "empty", …}`."""

    status: Literal["success", "empty", "partial"] = "empty"


@dataclass(frozen=True, slots=True)
class Partial(Success):
    """The tool ran and `value` is not all: `{"outcome": "partial", "value", "missing", "continuation"}`.

    `missing` names what is not there; `continuation` holds the arguments that go on from here, None if
    nothing does.
    """

    status: Literal["success", "empty", "partial"] = "partial"
    missing: tuple[str, ...] = ()
    continuation: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """The tool never ran. `message` says what was wrong and what to do, and is meant for the model."""

    code: DenialCode
    message: str
    status: Literal["denied"] = "denied"


@dataclass(frozen=True, slots=True)
class Failure:
    """The tool ran without a valid result. `message` is meant for the model: no traceback, no host path.

    `exception` keeps the host's exception for `on_tool_error="raise"`; it never leaves the process. `details`
    is what `message` says in more words, for the host's record alone, where they were withheld from the model.
    """

    code: FailureCode
    message: str
    exception: BaseException | None = field(default=None, repr=False)
    status: Literal["failure", "uncertain"] = "failure"
    details: str | None = field(default=None, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Uncertain(Failure):
    """A mutation whose effect is not known: it may have happened. It is not tried again by itself.

    `reconciliation` is the declared read that tells: `{"tool": "records.get_operation", "arguments": {…}}`.
    """

    status: Literal["failure", "uncertain"] = "uncertain"
    reconciliation: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The call was given up: its program cancelled it, its run ended, or a sibling failed the run."""

    message: str = "the call was cancelled"
    code: Literal["cancelled"] = "cancelled"
    status: Literal["cancelled"] = "cancelled"


Outcome: TypeAlias = Success | Denied | Failure | Cancelled


class EndedElsewhere(Exception):
    """Raised by a tool whose call was run somewhere else and has no result: `outcome` is how it ended there."""

    def __init__(self, outcome: Denied | Failure) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def error_object(outcome: Denied | Failure | Cancelled) -> JsonObject:
    """The JSON object that stands for a call without a result: `{"error": {"type", "message"}}`.

    A program-owned call with an output schema must be answered by an object even then (wire.md, rule 5). An
    uncertain mutation has `reconciliation` beside them.
    """
    error: JsonObject = {"type": outcome.code, "message": outcome.message}
    if isinstance(outcome, Uncertain) and outcome.reconciliation is not None:
        error["reconciliation"] = outcome.reconciliation
    return {"error": error}
