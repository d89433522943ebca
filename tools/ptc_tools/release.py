"""What a tool did as an outcome: bounded, valid, free of secrets, and honest about what is not known.

Nothing in here runs a tool or writes a record. Messages are for a model: they hold no value that a designer,
the host or a `Sensitive` mark keeps from it.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import cast

from ptc_tools.call import JsonObject
from ptc_tools.context import idempotency_key
from ptc_tools.contract import UNBOUNDED
from ptc_tools.cutting import OutOfBounds, bounded
from ptc_tools.disclosure import Told, scrubbed_text, told, told_of_result
from ptc_tools.errors import CallRefused, InvalidJson
from ptc_tools.hidden import Sought, scrub
from ptc_tools.middleware import Invocation
from ptc_tools.mutation import is_transport_error
from ptc_tools.outcome import (
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
from ptc_tools.results import Codec, InvalidResult, Returned, TooLarge
from ptc_tools.strict_json import clone, loads


def released(invocation: Invocation, codec: Codec, value: object, max_bytes: int) -> Outcome:
    """What a tool, or a middleware in its stead, returned."""
    contract = invocation.tool.contract
    bounds = contract.bounds
    try:
        returned = codec.encode(value, max_bytes)
        secrets = invocation.tool.secrets or invocation.run.credentials
        if secrets and _takes_out(
            returned, invocation
        ):  # whole: a cut could leave a part that is none of them
            return _invalid(invocation, Told("the tool's result holds a credential and is withheld"), None)
        if bounds is not UNBOUNDED:
            bounded(returned, bounds, contract.output_schema, lambda passed: _going_on(invocation, passed))
        check = invocation.tool.check_result
        fits = check is None or check.is_valid(returned.value)
    except Exception as error:  # noqa: BLE001 - serialising runs the application's code
        return _invalid(invocation, _why_not_sent(error, invocation), error)
    if not fits:
        why = told_of_result(check.explain(returned.value) if check is not None else "", invocation)
        return _invalid(invocation, _in(why, "the tool's result breaks its output schema: {}"), None)
    return _success(returned)


def _takes_out(returned: Returned, invocation: Invocation) -> bool:
    """Whether the result holds a credential. Origins, which go into the record, lose theirs."""
    given = (item.reveal() for item in invocation.run.credentials.values())
    secrets = (*invocation.tool.secrets, *given)
    if returned.provenance is not None:
        returned.provenance = _without(returned.provenance, secrets)
    return Sought(secrets).are_in(returned.value)


def _why_not_sent(error: Exception, invocation: Invocation) -> Told:
    """A result that could not be written: in our words, in the serialiser's, or in the application's own."""
    if isinstance(error, OutOfBounds | TooLarge):
        why = Told(scrubbed_text(str(error), invocation))
    elif isinstance(error, InvalidResult):  # the serialiser quotes errors of the application's
        why = told_of_result(scrubbed_text(str(error), invocation), invocation)
    else:
        why = told(error, invocation)
    return _in(why, "the tool's result cannot be sent: {}")


def _in(why: Told, sentence: str) -> Told:
    """A reason in a sentence, for the model and for the host."""
    details = None if why.details is None else sentence.replace("{}", why.details)
    return Told(sentence.replace("{}", why.shown), details)


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


def _going_on(invocation: Invocation, passed: int) -> JsonObject | None:
    """The arguments of this call with the offset moved by `passed` items, None if nobody can tell from where.

    All of them: the same call, further on. A filter that was left out would give other items. They are the
    caller's own: what a middleware made of them it makes again, and may be nothing that a caller knows.
    """
    offset = invocation.tool.contract.bounds.offset
    if offset is None:
        return None
    skipped = _skipped(invocation, offset)
    if skipped is None:
        return None
    given = invocation.call.arguments
    arguments = loads(given) if given and isinstance(given, str) else clone(dict(given or {}))
    return {**cast("JsonObject", arguments), offset: skipped + passed}


def _skipped(invocation: Invocation, offset: str) -> int | None:
    """How many items the tool passed over: as it was told, or by its parameter's default."""
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
        return Denied(cast("DenialCode", error.code), scrubbed_text(error.message, invocation))
    if isinstance(error, EndedElsewhere):
        return _as_there(invocation, error)
    why = told(error, invocation)
    if invocation.tool.contract.mutates:
        # What it waited for was cancelled by somebody else: a request may have gone out before.
        if isinstance(error, asyncio.CancelledError):
            return uncertain(invocation, Told("the tool was cut off by a cancelled task"), error)
        if is_transport_error(error):
            return uncertain(invocation, _in(why, "the connection broke ({})"), error)
    why = _in(why, "the tool failed: {}")
    return Failure("tool_error", why.shown, error, details=why.details)


def _as_there(invocation: Invocation, error: EndedElsewhere) -> Failure | Denied:
    outcome = error.outcome
    message = scrubbed_text(outcome.message, invocation)
    if isinstance(outcome, Denied):
        return Denied(outcome.code, message)
    doubtful = isinstance(outcome, Uncertain) or outcome.code in ("uncertain", "timeout", "invalid_result")
    if doubtful and invocation.tool.contract.mutates:
        return uncertain(invocation, Told(message), error)
    return Failure("tool_error" if outcome.code == "uncertain" else outcome.code, message, error)


def timed_out(invocation: Invocation, seconds: float | None) -> Failure:
    """A tool that did not answer in time."""
    message = f"the tool did not answer within {seconds:g} seconds"
    if invocation.tool.contract.mutates:
        return uncertain(invocation, Told(message), None)
    return Failure("timeout", message)


def _invalid(invocation: Invocation, why: Told, error: BaseException | None) -> Failure:
    if invocation.tool.contract.mutates:
        return uncertain(invocation, why, error)
    return Failure("invalid_result", why.shown, error, details=why.details)


def uncertain(invocation: Invocation, why: Told, error: BaseException | None) -> Uncertain:
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
    why = _in(why, f"{{}}; the change may have been made: {advice} before trying again")
    return Uncertain("uncertain", why.shown, error, reconciliation=read, details=why.details)


def _without(provenance: Provenance, secrets: tuple[str, ...]) -> Provenance:
    """The origins without a secret, which would go into the record."""
    return Provenance(
        tuple(
            Source(*(scrub(str(text), secrets) for text in (source.system, source.record, source.version)))
            for source in provenance.sources
        ),
        provenance.classification,
    )
