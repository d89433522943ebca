"""What of a failure a model is told: what its author wrote for it, and of anything else only what cannot tell more.

No search for a value in a free text finds each way to write it. So where a tool works with what a model must
not know, the text of an exception is withheld whole; the search comes on top, for the texts that are shown.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ptc_tools.context import RunContext, idempotency_key
from ptc_tools.errors import InvalidJson, ToolError
from ptc_tools.hidden import scrub, texts_of
from ptc_tools.markers import sensitive_texts
from ptc_tools.middleware import Invocation
from ptc_tools.outcome import Cancelled, Denied, Failure
from ptc_tools.safe_text import describe_exception, safe_text

WITHHELD: Final = "details are withheld from models and programs; the application has them"
_logger: Final = logging.getLogger("ptc.tools")


@dataclass(frozen=True, slots=True)
class Told:
    """A failure in words: `shown` for the model, and `details` for the host, if they say more."""

    shown: str
    details: str | None = None


def told(error: BaseException, invocation: Invocation, *, by_middleware: bool = False) -> Told:
    """An exception of the application's. Its own words are shown if they were written for the model
    (`ToolError`), or if nothing that a model must not know was at hand.
    """
    _logger.debug("call of %s failed", invocation.tool.contract.qualified_name, exc_info=error)
    if isinstance(error, ToolError):
        return Told(_scrubbed_line(error.message, invocation) or "ToolError")
    details = described(error, invocation)
    if not _holds_back(invocation, by_middleware):
        return Told(details)
    return Told(f"{_kind_of(error)} ({WITHHELD})", None if _sensitive(invocation) else details)


def told_of_result(why: str, invocation: Invocation) -> Told:
    """Why a result is refused, where the reason names parts of what the tool returned."""
    why = _scrubbed(why, invocation)
    if not _holds_back(invocation, False):
        return Told(why)
    return Told(WITHHELD, None if _sensitive(invocation) else why)


def described(error: BaseException, invocation: Invocation) -> str:
    """An exception's type and first line, without those values of this call's that were found in it."""
    return describe_exception(error, lambda text: _scrubbed(text, invocation))


Said = TypeVar("Said", bound=Denied | Failure | Cancelled)


def scrubbed(outcome: Said, invocation: Invocation) -> Said:
    """What an application's policy, approver or middleware says to the model, without what a model may not see.

    The same object if there is nothing of it in the message.
    """
    message = _scrubbed(outcome.message, invocation)
    return outcome if message == outcome.message else replace(outcome, message=message)


def scrubbed_text(text: str, invocation: Invocation) -> str:
    """One line that somebody wrote for the model, without what a model may not see."""
    return _scrubbed_line(text, invocation)


def _scrubbed_line(text: str, invocation: Invocation) -> str:
    return safe_text(_scrubbed(text, invocation))  # whole, before anything is cut off it


def _holds_back(invocation: Invocation, by_middleware: bool) -> bool:
    """Whether what failed had anything at hand that a model must not know."""
    tool, run = invocation.tool, invocation.run
    if tool.kept or _sensitive(invocation):
        return True
    return (by_middleware or tool.takes_context is not None) and _trusted(run)


def _sensitive(invocation: Invocation) -> bool:
    """Whether the call has to do with what a record must not show either."""
    contract = invocation.tool.contract
    return bool(contract.sensitive_parameters or contract.sensitive_results)


def _trusted(run: RunContext) -> bool:
    return bool(run.credentials or run.labels or run.principal or run.tenant)


def _kind_of(error: BaseException) -> str:
    """The name of an exception's class, of the nearest that stands in its module: one made at run time may have
    any name.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a task group of one says nothing by itself
    return next(kind.__name__ for kind in type(error).__mro__ if _is_written_down(kind))


def _is_written_down(kind: type) -> bool:
    found: object = sys.modules.get(kind.__module__)
    for step in kind.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(step)
    return (
        found is kind and kind.__name__.isidentifier() and kind.__name__ == kind.__qualname__.split(".")[-1]
    )


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
    if tool.takes_context is not None:
        try:
            yield idempotency_key(run, invocation.call)
        except InvalidJson:
            return
