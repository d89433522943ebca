"""How the one path keeps its record: what is written, when it is waited for, and what happens if it fails.

A record that was begun is closed whatever happens to the call, also when its task is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from ptc_tools.call import Call, JsonObject
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.errors import HostControlFlow
from ptc_tools.outcome import Cancelled, Denied, Failure, Outcome, Uncertain
from ptc_tools.record import Recorder
from ptc_tools.safe_text import describe_exception
from ptc_tools.settle import settled

GIVEN_UP = "the call was cancelled while it ran; it may have taken effect"
"""What the record of a call that may change something says if it was broken off: what it did is not known."""


@dataclass(slots=True)
class Attempt:
    """A call that was recorded as started and must be recorded as finished."""

    contract: Contract
    token: object
    began: int


class Ledger:
    """The recorder of an invoker, or none: then nothing is written and nothing waited for."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder

    async def start(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Attempt | Denied:
        """Record that a call starts. Without a record it must not: then this is a refusal."""
        if self.recorder is None:
            return Attempt(contract, None, 0)
        try:
            token, cancelled = await settled(self.recorder.started(call, contract, arguments, run))
        except Exception:  # noqa: BLE001 - whatever the log's reason, a call without a record must not run
            refusal = Denied("audit_unavailable", "the call could not be recorded, so the tool did not run")
            return await self.deny(call, contract, refusal, run)
        attempt = Attempt(contract, token, time.perf_counter_ns())
        if cancelled:
            reason = asyncio.CancelledError()
            await self.abandon(attempt, reason, ran=False)
            raise reason
        return attempt

    async def finish(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        """Record how a call ended, then hand the outcome out."""
        if self.recorder is None:
            return outcome
        try:
            _, cancelled = await settled(self.recorder.finished(attempt.token, outcome, _since(attempt)))
        except Exception as error:  # noqa: BLE001 - an outcome without a record is not released
            message = "the tool ran, but its outcome could not be recorded and is withheld"
            return Failure("audit_unavailable", message, error)
        if cancelled:
            raise asyncio.CancelledError
        return outcome

    async def abandon(self, attempt: Attempt, reason: BaseException, *, ran: bool = True) -> None:
        """Close the record of a call that its host gave up. Trouble with it must not hide the reason."""
        if self.recorder is None:
            return
        outcome: Outcome = Cancelled("the call was cancelled")
        if isinstance(reason, HostControlFlow):
            outcome = _left(reason)
        elif (
            ran and attempt.contract.effects != "read"
        ):  # a tool that does not say may have changed something
            outcome = Uncertain("uncertain", GIVEN_UP)
        try:
            await settled(self.recorder.finished(attempt.token, outcome, _since(attempt)))
        except Exception as error:  # noqa: BLE001 - see above
            reason.add_note(f"the audit record was not closed: {describe_exception(error)}")

    async def deny(self, call: Call, contract: Contract | None, refusal: Denied, run: RunContext) -> Denied:
        """Record a refusal, then hand it out. Without a record the refusal stands, and says so."""
        if self.recorder is None:
            return refusal
        try:
            _, cancelled = await settled(self.recorder.denied(call, contract, refusal, run))
        except Exception:  # noqa: BLE001 - nothing ran; the refusal stands whatever the log's trouble
            return Denied("audit_unavailable", f"{refusal.message} (and the refusal could not be recorded)")
        if cancelled:
            raise asyncio.CancelledError
        return refusal


def _left(reason: HostControlFlow) -> Outcome:
    """What the record says of a call whose host left on purpose: its own word, if it gave one."""
    if reason.outcome is not None:
        return reason.outcome
    if reason.waits:
        return Cancelled("the run was suspended")
    told = str(reason)
    return Cancelled(
        f"the run was ended: {told}" if told else "the run was ended before the call gave a result"
    )


def _since(attempt: Attempt) -> int:
    return (time.perf_counter_ns() - attempt.began) // 1000
