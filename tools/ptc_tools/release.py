"""What a tool did as an outcome: bounded, valid, free of secrets, and honest about what is not known.

Nothing in here runs a tool or writes a record. Messages are for a model: they hold no value that a designer,
the host or a `Sensitive` mark keeps from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar, cast

from ptc_tools.call import JsonValue
from ptc_tools.context import idempotency_key
from ptc_tools.contract import UNBOUNDED
from ptc_tools.cutting import OutOfBounds, bounded
from ptc_tools.errors import CallRefused, InvalidJson
from ptc_tools.hidden import scrub, texts_of
from ptc_tools.markers import sensitive_texts
from ptc_tools.middleware import Invocation
from ptc_tools.mutation import is_transport_error
from ptc_tools.outcome import (
    Cancelled,
    DenialCode,
    Denied,
    Empty,
    EndedElsewhere,
    Failure,
    Outcome,
    Partial,
    Success,
    Uncertain,
)
from ptc_tools.provenance import Provenance, Source
from ptc_tools.results import Codec, InvalidResult, Returned
from ptc_tools.safe_text import describe_exception, safe_text


def released(invocation: Invocation, codec: Codec, value: object, max_bytes: int) -> Outcome:
    """What a tool, or a middleware in its stead, returned."""
    contract = invocation.tool.contract
    bounds = contract.bounds
    try:
        returned = codec.encode(value, max_bytes)
        secrets = _secrets(invocation)
        if secrets and _holds(
            returned.value, secrets
        ):  # whole: a cut could leave a part that is none of them
            return _invalid(invocation, "the tool's result holds a credential and is withheld", None)
        if secrets and returned.provenance is not None:
            returned.provenance = _without(returned.provenance, secrets)
        if bounds is not UNBOUNDED:
            bounded(returned, bounds, contract.output_schema, lambda: _skipped(invocation))
        check = invocation.tool.check_result
        fits = check is None or check.is_valid(returned.value)
    except Exception as error:  # noqa: BLE001 - serialising runs the application's code
        text = described(error, invocation)
        if isinstance(error, InvalidResult | OutOfBounds):
            text = text.partition(": ")[2]
        return _invalid(invocation, f"the tool's result cannot be sent: {text}", error)
    if not fits:
        why = check.explain(returned.value) if check is not None else ""
        return _invalid(invocation, f"the tool's result breaks its output schema: {why}", None)
    return _success(returned)


def _success(returned: Returned) -> Success:
    value = returned.value
    if returned.kind == "partial" and isinstance(value, dict):
        missing, continuation = value.get("missing"), value.get("continuation")
        return Partial(
            value,
            provenance=returned.provenance,
            missing=tuple(str(item) for item in missing) if isinstance(missing, list) else (),
            continuation=continuation if isinstance(continuation, dict) else None,
        )
    if returned.kind == "empty":
        return Empty(value, provenance=returned.provenance)
    return Success(value, provenance=returned.provenance)


def _skipped(invocation: Invocation) -> int | None:
    """How many items the tool passed over: as it was told, or by its parameter's default."""
    offset = invocation.tool.contract.bounds.offset or ""
    given: object = invocation.arguments.get(offset)
    if given is None:
        parameter = inspect.signature(invocation.tool.function).parameters.get(offset)
        given = 0 if parameter is None or parameter.default in (parameter.empty, None) else parameter.default
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def failed(invocation: Invocation, error: BaseException) -> Failure | Denied:
    """A tool that raised. A mutation whose connection broke may have happened all the same.

    A registry that refused the call is a denial: nothing ran. What ended elsewhere ended here in the same way.
    """
    if isinstance(error, CallRefused):
        return Denied(cast("DenialCode", error.code), _scrubbed(safe_text(error.message), invocation))
    if isinstance(error, EndedElsewhere):
        return _as_there(invocation, error)
    text = described(error, invocation)
    if invocation.tool.contract.mutates and is_transport_error(error):
        return uncertain(invocation, f"the connection broke ({text})", error)
    return Failure("tool_error", f"the tool failed: {text}", error)


def _as_there(invocation: Invocation, error: EndedElsewhere) -> Failure | Denied:
    outcome = error.outcome
    message = _scrubbed(safe_text(outcome.message), invocation)
    if isinstance(outcome, Denied):
        return Denied(outcome.code, message)
    doubtful = isinstance(outcome, Uncertain) or outcome.code in ("uncertain", "timeout", "invalid_result")
    if doubtful and invocation.tool.contract.mutates:
        return uncertain(invocation, message, error)
    return Failure("tool_error" if outcome.code == "uncertain" else outcome.code, message, error)


def timed_out(invocation: Invocation, seconds: float | None) -> Failure:
    """A tool that did not answer in time."""
    message = f"the tool did not answer within {seconds:g} seconds"
    if invocation.tool.contract.mutates:
        return uncertain(invocation, message, None)
    return Failure("timeout", message)


def _invalid(invocation: Invocation, message: str, error: BaseException | None) -> Failure:
    message = _scrubbed(message, invocation)
    if invocation.tool.contract.mutates:
        return uncertain(invocation, message, error)
    return Failure("invalid_result", message, error)


def uncertain(invocation: Invocation, what: str, error: BaseException | None) -> Uncertain:
    """A mutation that may have been made, and the read that tells."""
    contract = invocation.tool.contract
    read = None
    if contract.reconciliation is not None:
        try:
            key = idempotency_key(invocation.run, invocation.call)
        except InvalidJson:
            key = ""
        read = contract.reconciliation.request(
            invocation.arguments, call_id=invocation.call.call_id, idempotency_key=key
        )
    advice = f"find out with {contract.reconciliation.tool}" if contract.reconciliation else "find out"
    message = f"{what}; the change may have been made: {advice} before trying again"
    return Uncertain("uncertain", message, error, reconciliation=read)


def described(error: BaseException, invocation: Invocation) -> str:
    """An exception for a model: without what this call knows and a model does not."""
    return describe_exception(error, lambda text: _scrubbed(text, invocation))


Told = TypeVar("Told", bound=Denied | Failure | Cancelled)


def scrubbed(outcome: Told, invocation: Invocation) -> Told:
    """What an application's policy, approver or middleware says to the model, without what a model may not see.

    The same object if there is nothing of it in the message.
    """
    message = _scrubbed(outcome.message, invocation)
    return outcome if message == outcome.message else replace(outcome, message=message)


def _scrubbed(text: str, invocation: Invocation) -> str:
    try:
        return scrub(text, _hidden(invocation))
    except Exception:  # noqa: BLE001 - a designer's object may do anything when it is looked at
        return "its message is withheld"


def _hidden(invocation: Invocation) -> Iterator[str]:
    """Every text that this call knows and a model does not."""
    run, tool = invocation.run, invocation.tool
    yield from (secret.reveal() for secret in run.credentials.values())
    for value in tool.kept.values():
        yield from texts_of(value)
    yield from (value for value in (run.principal, run.tenant) if value)
    yield from run.labels.values()
    yield from sensitive_texts(invocation.arguments, tool.contract.sensitive_parameters)


def _secrets(invocation: Invocation) -> tuple[str, ...]:
    """What no result holds: the run's credentials, and the secrets among the designer's values."""
    own = invocation.tool.secrets
    if not invocation.run.credentials:
        return own
    return (*own, *(text for text in (item.reveal() for item in invocation.run.credentials.values()) if text))


def _holds(value: JsonValue, secrets: tuple[str, ...]) -> bool:
    return any(secret in text for text in _texts(value) for secret in secrets)


def _without(provenance: Provenance, secrets: tuple[str, ...]) -> Provenance:
    """The origins without a secret, which would go into the record."""
    return Provenance(
        tuple(
            Source(*(scrub(str(text), secrets) for text in (source.system, source.record, source.version)))
            for source in provenance.sources
        ),
        provenance.classification,
    )


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
