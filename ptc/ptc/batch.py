"""Runs the calls of one response: at once, within a bound, each answered exactly once whatever happens.

It is told the pending calls and the step's snapshot. It never runs a call of a batch that was cut short,
never runs an executed call again, and never leaves one without an outcome: not when a sibling ends the run,
not when the run is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ptc.approval import ApprovalPending
from ptc.choice import ToolChoice
from ptc.control import FailRun, TerminateRun, ToolFailed
from ptc.events import PendingCall
from ptc.failing import FailFast
from ptc.items import malformed
from ptc.loading import LoadedTools
from ptc.reporting import RunReporter
from ptc.toolbox import Step
from ptc_tools import strict_json
from ptc_tools.call import Call, Caller, Program
from ptc_tools.context import RunContext
from ptc_tools.errors import HostControlFlow, InvalidJson
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Cancelled, Denied, Outcome, Success
from ptc_tools.refusals import program_not_open

_ENDED_BY_FAILURE = "the program was ended, since one of its calls did not succeed"
_Key: TypeAlias = tuple[str, str, str | None, str, object, Caller]


class Ledger:
    """What was executed in this run, by the whole identity of a call (wire.md, rules 14 and 15).

    The same call again gets the same outcome and does not run; a call that reuses a call id with another
    name, caller or other arguments inherits nothing.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, list[tuple[_Key, Outcome]]] = {}

    def find(self, kind: str, call: Call) -> Outcome | None:
        known = self._by_id.get(call.call_id)
        if known is None:
            return None
        key = _key(kind, call)
        return next((outcome for other, outcome in known if other == key), None)

    def put(self, kind: str, call: Call, outcome: Outcome, *, ran: bool = False) -> None:
        """`ran`: the path ran the tool, whatever the outcome says: a middleware may deny what it saw done."""
        if ran or not isinstance(outcome, Denied):  # what never ran may be asked again
            self._by_id.setdefault(call.call_id, []).append((_key(kind, call), outcome))


def _key(kind: str, call: Call) -> _Key:
    arguments: object = call.arguments
    try:
        value = strict_json.loads(arguments) if isinstance(arguments, str) else arguments
        arguments = strict_json.canonical(value)
    except InvalidJson:
        arguments = str(arguments)
    return (call.call_id, kind, call.namespace, call.name, arguments, call.caller)


@dataclass(slots=True)
class BatchResult:
    """Outcomes by call id; `stop` is what a middleware or tool raised to end the run, if one did.

    `waiting`: call ids that wait for an approval, and have no outcome yet.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    stop: HostControlFlow | None = None


@dataclass(slots=True)
class Batch:
    """One response's calls. `open_before`: hosted programs that were open when the request was sent."""

    step: Step
    functions: Invoker
    handlers: Invoker
    approvals: Mapping[str, Invoker]
    run: RunContext
    reporter: RunReporter
    ledger: Ledger
    choice: ToolChoice
    open_before: tuple[str, ...]
    loaded: LoadedTools
    settled: Callable[[Call, Outcome], None]
    limit: int
    failing: FailFast
    result: BatchResult = field(default_factory=BatchResult)
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _speakers: set[Caller] = field(default_factory=set)

    async def execute(self, pending: Sequence[PendingCall]) -> BatchResult:
        """Runs them all. When cancelled, every outcome is in `result` by the time CancelledError leaves."""
        # Before any of them runs: a local program that one of these calls starts is not theirs to speak for.
        callers = {call.call.caller for call in pending}
        self._speakers = {one for one in callers if _may_speak(one, self.run)}
        gate = asyncio.Semaphore(self.limit)
        try:
            # Each in a task of its own, also a call that is alone: a tool that swallows its cancellation must
            # not swallow the run's.
            for call in pending:
                self._running[call.call.call_id] = asyncio.create_task(self._one(call, gate))
            await asyncio.gather(*self._running.values())
        except BaseException:
            await self._stop_running()
            self.result.waiting.clear()
            raise
        finally:
            if self.result.stop is not None:
                self.result.waiting.clear()
            for call in pending:
                if (
                    call.call.call_id not in self.result.waiting
                    and call.call.call_id not in self.result.outcomes
                ):
                    self._settle(call, Cancelled("the call was cancelled with its run"))
        return self.result

    async def _one(self, pending: PendingCall, gate: asyncio.Semaphore) -> None:
        call = pending.call
        try:
            async with gate:
                known = self.ledger.find(pending.kind, call)
                if known is not None:
                    self.result.outcomes[call.call_id] = known
                    self.reporter.note(call, known, reused=True)
                    await self.reporter.event("call.reused", {"call_id": call.call_id}, self.run)
                    return
                outcome = await self._invoke(pending)
                self._settle(pending, outcome)
        except TerminateRun as stop:
            self.result.stop = self.result.stop or stop
            outcome = stop.outcome or self._cut_off(call, "the run was ended")
            self._settle(pending, outcome)
        except FailRun as stop:
            self.result.stop = stop
            self._settle(pending, self._cut_off(call, f"the run was failed: {stop.message}", ""))
        except ApprovalPending:
            self.result.waiting.add(call.call_id)
        except HostControlFlow as stop:
            self.result.stop = self.result.stop or stop
            failed = isinstance(stop, ToolFailed)
            self._settle(pending, Cancelled(_ENDED_BY_FAILURE if failed else "the run was suspended"))
        except asyncio.CancelledError:
            self._settle(pending, Cancelled())
            if not self.failing.took_back_its_cancel():
                raise
            self.result.stop = self.failing.stop

    def _cut_off(self, call: Call, why: str, otherwise: str = " before the call gave a result") -> Cancelled:
        """What the transcript says of a call that ended the run. A result that was there is not handed out, since
        not every layer has seen it; that there was one is said, lest the call be made again."""
        ran = self.reporter.has_run(call)
        return Cancelled(f"{why}; the tool had run, and its result is withheld" if ran else why + otherwise)

    async def _invoke(self, pending: PendingCall) -> Outcome:
        call = pending.call
        invoker = self.functions if pending.kind == "function_call" else self.handlers
        refusal, server = self._refusal(pending), pending.item.get("server_label")
        if refusal is None and pending.kind == "mcp_approval_request":
            invoker = self.approvals[str(server)]
        if refusal is not None:
            contract = self.step.contract(pending.kind, call.namespace, call.name, server=server)
            return await invoker.deny(call, contract, refusal, self.run)
        return await invoker.invoke(call, self.run)

    def _refusal(self, pending: PendingCall) -> Denied | None:
        """What the loop itself forbids, before the one path is asked."""
        call = pending.call
        if not pending.whole:
            return Denied(
                "incomplete_response", "the response was cut short, so none of its calls ran; ask again"
            )
        wrong = malformed(pending.item)
        if wrong is not None:
            return Denied("malformed_arguments", f"the call is malformed: {wrong}")
        server = pending.item.get("server_label")
        found = self.step.resolve(pending.kind, call.namespace, call.name, server=server)
        if found is None:
            return _nobody(pending) if pending.kind != "function_call" else None
        if call.caller not in self._speakers and call.caller.kind in found.contract.allowed_callers:
            return program_not_open()
        if self.step.waits(found):
            not_yet = self.loaded.refusal(call, self.step.deferral)
            if not_yet is not None:
                return Denied("not_admitted", not_yet)
        ruled_out = self.choice.refusal(pending.kind, call, pending.item, self.step, self.open_before)
        return None if ruled_out is None else Denied("not_admitted", ruled_out)

    def _settle(self, pending: PendingCall, outcome: Outcome) -> None:
        if pending.call.call_id in self.result.outcomes:
            return
        self.result.outcomes[pending.call.call_id] = outcome
        self.reporter.note_missing(pending.call, outcome)
        self.ledger.put(pending.kind, pending.call, outcome, ran=self.reporter.has_run(pending.call))
        self.settled(pending.call, outcome)

    async def _stop_running(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)


def _may_speak(caller: Caller, run: RunContext) -> bool:
    return not isinstance(caller, Program) or caller.caller_id in run.programs


def _nobody(pending: PendingCall) -> Denied:
    kind = pending.kind
    if kind == "mcp_approval_request":
        server = str(pending.item.get("server_label"))[:100]
        return Denied(
            "not_approved",
            f"this application approves no calls of {server!r}: it has no handler for that server",
        )
    what = f"custom tool {pending.call.qualified_name!r}" if kind == "custom_tool_call" else kind
    return Denied("unknown_tool", f"this application has no handler for {what}")


def failing(outcomes: Mapping[str, Outcome]) -> bool:
    """Whether no call of a batch succeeded."""
    return bool(outcomes) and not any(isinstance(outcome, Success) for outcome in outcomes.values())
