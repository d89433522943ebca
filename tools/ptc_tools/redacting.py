"""A recorder in front of a recorder that takes out what contracts mark as sensitive.

For a recorder that keeps what it is given. `ptc.AuditLog` needs none: it redacts what it shows, and binds
its digests to the values as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson
from ptc_tools.markers import REDACTED, redact
from ptc_tools.outcome import Denied, Outcome, Partial, Success, Uncertain
from ptc_tools.record import Recorder
from ptc_tools.schema import escape
from ptc_tools.strict_json import dumps, loads


@dataclass(frozen=True, slots=True)
class _Token:
    inner: object
    contract: Contract


class Redacting:
    """`Recorder` that hands everything on to another, with `[redacted]` for sensitive values."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> object:
        shown = redact(arguments, contract.sensitive_parameters)
        inner = await self._recorder.started(redacted_call(call, contract), contract, shown, run)
        return _Token(inner, contract)

    async def finished(self, token: object, outcome: Outcome, duration_us: int) -> None:
        kept = cast("_Token", token)
        await self._recorder.finished(kept.inner, redacted_outcome(outcome, kept.contract), duration_us)

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        shown = call if contract is None else _known_part(redacted_call(call, contract), contract)
        await self._recorder.denied(shown, contract, outcome, run)

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        await self._recorder.event(type, data, run)


def redacted_call(call: Call, contract: Contract) -> Call:
    """The call without sensitive arguments; malformed text is left out, since nobody knows where they are."""
    if not contract.sensitive_parameters or not call.arguments:
        return call
    if isinstance(call.arguments, Mapping):
        shown = redact(dict(call.arguments), contract.sensitive_parameters)
        return replace(call, arguments=cast("JsonObject", shown))
    try:
        value = loads(call.arguments)
    except InvalidJson:
        return replace(call, arguments=None)
    return replace(call, arguments=dumps(redact(value, contract.sensitive_parameters)))


def _known_part(call: Call, contract: Contract) -> Call:
    """A refused call without the members that the tool does not declare: one may be a sensitive one, misspelt."""
    declared = contract.checked_parameters.get("properties")
    if not contract.sensitive_parameters or not call.arguments or not isinstance(declared, dict):
        return call
    given = loads(call.arguments) if isinstance(call.arguments, str) else dict(call.arguments)
    if not isinstance(given, dict):
        return replace(call, arguments=None)
    kept: JsonObject = {name: value for name, value in given.items() if name in declared}
    return replace(call, arguments=dumps(kept) if isinstance(call.arguments, str) else kept)


def redacted_outcome(outcome: Outcome, contract: Contract) -> Outcome:
    """The outcome without sensitive parts of its result, or of the arguments of its reconciliation read."""
    if isinstance(outcome, Uncertain) and outcome.reconciliation is not None:
        return replace(outcome, reconciliation=_redacted_read(outcome.reconciliation, contract))
    if isinstance(outcome, Partial) and contract.sensitive_parameters and outcome.continuation is not None:
        shown = redact(outcome.continuation, contract.sensitive_parameters)
        outcome = replace(outcome, continuation=cast("JsonObject", shown))
    if isinstance(outcome, Success) and contract.sensitive_results:
        return replace(outcome, value=redact(outcome.value, contract.sensitive_results))
    return outcome


def _redacted_read(read: JsonObject, contract: Contract) -> JsonObject:
    """What the read gets from a parameter that is sensitive, or that holds something sensitive, is hidden."""
    declared, given = contract.reconciliation, read.get("arguments")
    if declared is None or not isinstance(given, dict):
        return read
    hidden = {path.split("/")[1] for path in contract.sensitive_parameters if path}
    shown: JsonObject = {
        name: REDACTED if escape(declared.arguments.get(name, "")) in hidden else value
        for name, value in given.items()
    }
    return {**read, "arguments": shown}
