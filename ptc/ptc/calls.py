"""The calls of one run: what they share from batch to batch, and the one path that each of them takes.

It puts the run's own layers (budget, approvals) around the application's, and keeps what was executed. It
decides nothing about a call; the path does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ptc.approval import ApprovalDesk, ApprovalRequest, Decision, PauseForApproval
from ptc.batch import Batch, BatchResult, Ledger
from ptc.budget import Budget
from ptc.choice import ToolChoice
from ptc.choosing import ChosenInPrograms
from ptc.control import ToolFailed
from ptc.durable import Durable
from ptc.errors import RunError, ToolCallFailed
from ptc.events import CallRequested, PendingCall
from ptc.exposure import LiveExposure
from ptc.failing import FailFast
from ptc.items import is_client_call, item_type, refused_call_of
from ptc.limits import Spent
from ptc.loading import LoadedTools
from ptc.outputs import output_for
from ptc.recovery import RecoveringInvoker, Recovery
from ptc.reporting import RunReporter
from ptc.settings import Settings
from ptc.taking_back import TakeBack
from ptc.toolbox import Step
from ptc_tools.call import Call, JsonObject, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Cancelled, Denied, Failure, Outcome, Success


class Calls:
    """`decided`: decisions of a resumed run, beside the requests that they answer. `again`: approvals of calls
    that were cut off and are to run again. `asked`: what the run had asked before."""

    def __init__(
        self,
        settings: Settings,
        context: RunContext,
        reporter: RunReporter,
        *,
        spent: Spent,
        exposure: LiveExposure,
        loaded: LoadedTools,
        decided: Mapping[str, tuple[ApprovalRequest, Decision]],
        again: Mapping[str, tuple[ApprovalRequest, Decision]],
        asked: Iterable[ApprovalRequest] = (),
        durable: Durable | None = None,
    ) -> None:
        self._settings = settings
        self._context = context
        self._reporter = reporter
        self._exposure = exposure
        self._budget = Budget(spent, settings.limits)
        self._chosen = ChosenInPrograms()
        self._failing = FailFast()
        self._take_back = TakeBack(exposure)
        self._batch: Batch | None = None
        self.ledger = Ledger()
        self.loaded = loaded
        self.desk: ApprovalDesk | None = None
        self.recovery: Recovery | None = None
        pausing = isinstance(settings.approver, PauseForApproval)
        if pausing or durable is not None:
            self.desk = ApprovalDesk(
                settings.approver if isinstance(settings.approver, PauseForApproval) else PauseForApproval(),
                reporter,
                {call_id: pair for call_id, pair in decided.items() if not pair[0].uncertain} | dict(again),
                asked=asked,
                on_ask=None if durable is None else durable.asked,
            )
            if durable is not None:
                self.recovery = Recovery(
                    durable,
                    desk=self.desk,
                    reporter=reporter,
                    spent=spent,
                    decided=decided,
                    layers=(self._failing, *settings.middleware),
                )

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """What is known of the last batch, also when it did not come to its end."""
        return {} if self._batch is None else self._batch.result.outcomes

    async def run(
        self, step: Step, pending: Sequence[PendingCall], choice: ToolChoice, open_before: tuple[str, ...]
    ) -> BatchResult:
        """Runs a batch; see `Batch.execute`."""
        functions, handlers, approvals = self._invokers(step)
        self._chosen.holds(choice, step)
        self._batch = Batch(
            step=step,
            functions=functions,
            handlers=handlers,
            approvals=approvals,
            run=self._context,
            reporter=self._reporter,
            ledger=self.ledger,
            choice=choice,
            open_before=open_before,
            loaded=self.loaded,
            settled=self._settled,
            limit=self._settings.limits.max_concurrent_calls,
            failing=self._failing,
        )
        return await self._batch.execute(pending)

    async def refuse(self, step: Step, items: Sequence[JsonObject]) -> list[JsonObject]:
        """Records the calls of a response that is refused as a whole; gives the outputs that say so."""
        functions, handlers, _ = self._invokers(step)
        refusal = Denied(
            "incomplete_response", "the response failed or broke the protocol, so none of its calls ran"
        )
        outputs: list[JsonObject] = []
        for item in items:
            if not is_client_call(item):
                continue
            kind, call = item_type(item), refused_call_of(item)
            server = item.get("server_label")
            contract = step.contract(kind, call.namespace, call.name, server=server)
            invoker = functions if kind == "function_call" else handlers
            outcome = await invoker.deny(call, contract, refusal, self._context)
            with suppress(RunError):  # a kind of call that cannot be answered by an error
                outputs.append(output_for(CallRequested(kind, call, item, False), outcome, None))
        return outputs

    def _invokers(self, step: Step) -> tuple[Invoker, Invoker, dict[str, Invoker]]:
        """For functions, for other calls, and for each MCP server's approval requests."""
        settings = self._settings
        own = (self._failing, self._chosen, self._budget, *settings.middleware, self._take_back)
        options: dict[str, Any] = {
            "recorder": self._reporter,
            "policy": settings.policy if step.deferral is None else step.deferral.policy(settings.policy),
            "default_timeout": settings.call_timeout,
        }
        # The calls of a hosted program are of the batch, which is answered before anything is raised.
        raising = settings.on_tool_error == "raise" and step.programs == "local"
        options |= {"approver": settings.approver, "middleware": own}
        if self.desk is not None and isinstance(settings.approver, PauseForApproval):
            # Innermost, so that a decision binds to the arguments that the tool would get.
            options |= {"approver": self.desk, "middleware": (*own, self.desk)}
            self.desk.code_tool = step.code_tool
        if self.recovery is None:
            functions = (RaisingInvoker if raising else Invoker)(step.functions, **options)
            approvals = {
                label: functions.with_catalog(Catalog([tool])) for label, tool in step.approvals.items()
            }
            return functions, functions.with_catalog(step.handlers), approvals
        self.recovery.code_tool = step.code_tool
        found = (RecoveringRaisingInvoker if raising else RecoveringInvoker)(step.functions, **options)
        handlers = RecoveringInvoker(step.handlers, **options)
        each = {
            label: RecoveringInvoker(Catalog([tool]), **options) for label, tool in step.approvals.items()
        }
        for invoker in (found, handlers, *each.values()):
            invoker.recovery = self.recovery
        return found, handlers, dict(each)

    def _settled(self, call: Call, outcome: Outcome) -> None:
        self._exposure.settle(call, isinstance(outcome, Success))

    def failure(
        self, pending: Sequence[PendingCall], outcomes: Mapping[str, Outcome]
    ) -> ToolCallFailed | None:
        """The first call that did not succeed, as the error that `on_tool_error="raise"` raises."""
        for call in pending:
            outcome = outcomes[call.call.call_id]
            if call.whole and not isinstance(outcome, Success):
                return _failure(call.call, outcome)
        return None


class RaisingInvoker(Invoker):
    """The one path with `on_tool_error="raise"` for local programs: one of whose calls did not succeed is
    ended there, and does not get to catch what the application asked to see."""

    async def invoke(self, call: Call, run: RunContext) -> Outcome:
        outcome = await super().invoke(call, run)
        if isinstance(call.caller, Program) and not isinstance(outcome, Success):
            raise ToolFailed(_failure(call, outcome))
        return outcome


class RecoveringRaisingInvoker(RaisingInvoker, RecoveringInvoker):
    """The same in a durable run: what a call gave before its process ended is raised as well."""


def _failure(call: Call, outcome: Denied | Failure | Cancelled) -> ToolCallFailed:
    message = f"the call of {call.qualified_name} did not succeed ({outcome.code}): {outcome.message}"
    error = ToolCallFailed(message, call=call, outcome=outcome)
    error.__cause__ = getattr(outcome, "exception", None)
    return error
