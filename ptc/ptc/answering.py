"""Gives the calls of a run their outputs: of a batch that ran, of one that had run before, of one cut off.

It is told the outcomes, and puts each into the conversation once, in the promised form. It runs nothing; when
a run ends in the middle of a batch, it leaves no call without an output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptc.batch import BatchResult
from ptc.calls import Calls
from ptc.control import TerminateRun
from ptc.conversation import Conversation, State
from ptc.durable import Durable
from ptc.errors import RunError
from ptc.events import PendingCall, ProgramOpened
from ptc.items import item_type
from ptc.limits import Limits, Spent
from ptc.outputs import output_for
from ptc.recording import RunRecords
from ptc.reporting import RunReporter
from ptc.toolbox import Step
from ptc_tools.call import JsonObject
from ptc_tools.outcome import Cancelled, Outcome


class Answers:
    """The outputs of one run's calls."""

    def __init__(
        self,
        conversation: Conversation,
        calls: Calls,
        *,
        reporter: RunReporter,
        records: RunRecords,
        spent: Spent,
        limits: Limits,
        durable: Durable | None,
    ) -> None:
        self._conversation = conversation
        self._calls = calls
        self._reporter = reporter
        self._records = records
        self._spent = spent
        self._limits = limits
        self._durable = durable

    def give(self, pending: Sequence[PendingCall], result: BatchResult, step: Step) -> None:
        """The outputs of a batch, but of calls that wait. What an error cut off is not kept for a recovery."""
        items: list[tuple[str, JsonObject]] = []
        trouble: RunError | None = None
        new: list[tuple[str, JsonObject, Outcome]] = []
        given = {} if self._durable is None else self._durable.past.answers.get(self._spent.requests, {})
        for call in pending:
            call_id = call.call.call_id
            if call_id in result.waiting:
                continue
            if call_id in given:
                items.append((call_id, given[call_id][0]))
                continue
            outcome = result.outcomes[call_id]
            try:
                item = _output(call, outcome, step)
            except RunError as error:  # the others are answered all the same
                trouble = trouble or error
                continue
            items.append((call_id, item))
            new.append((call_id, item, outcome))
        final = trouble is None and (result.stop is None or isinstance(result.stop, TerminateRun))
        if self._durable is not None and new and final:
            self._durable.answered(new, refused=self._spent.refused)
        for call_id, item in items:
            self._conversation.answer(call_id, item)
        if trouble is not None and result.stop is None:
            raise trouble

    def given_before(self, pending: Sequence[PendingCall]) -> BatchResult | None:
        """The outcomes of a batch that was answered before the run's process ended: nothing of it runs."""
        recovery, durable = self._calls.recovery, self._durable
        if recovery is None or durable is None:
            return None
        number = self._spent.requests
        known = durable.past.answered(number, [call.call.call_id for call in pending])
        if not known:
            return None
        reported = recovery.give_batch_again(number)
        outcomes = {call.call.call_id: known[call.call.call_id][1] for call in pending}
        for call in pending:
            if call.call.call_id not in reported:
                self._reporter.note(call.call, outcomes[call.call.call_id], reused=True)
        if number in durable.past.refused:
            self._spent.refuse_again(self._limits)
        text = durable.past.terminated.get(number)
        return BatchResult(outcomes, stop=None if text is None else TerminateRun(text))

    def give_the_rest(self, step: Step | None) -> None:
        """Every call has its output in the transcript, also when the run ends in the middle of a batch."""
        if self._conversation.state is not State.ANSWERING or step is None:
            return
        known: Mapping[str, Outcome] = self._calls.outcomes
        for call_id, call in tuple(self._conversation.pending.items()):
            try:
                item = _output(call, known.get(call_id, Cancelled("the run ended first")), step)
            except RunError:
                continue  # what cannot be answered by an error keeps no other call without its output
            self._conversation.answer(call_id, item)

    async def refuse_response(self, step: Step | None, error: BaseException) -> list[JsonObject]:
        """The items of a response that failed or broke the protocol, its calls recorded and answered."""
        items = self._conversation.refused
        if not items or step is None:
            return []
        try:
            for item in items:
                call_id = item.get("call_id")
                if item_type(item) == "program" and isinstance(call_id, str):
                    await self._records.opened(ProgramOpened(call_id, str(item.get("code") or ""), item))
            return [*items, *await self._calls.refuse(step, items)]
        except Exception as trouble:  # noqa: BLE001 - what ended the run matters more
            error.add_note(f"the refused calls could not be recorded: {type(trouble).__name__}")
            return list(items)


def _output(call: PendingCall, outcome: Outcome, step: Step) -> JsonObject:
    return output_for(call, outcome, step.promised(call.kind, call.call.namespace, call.call.name))
