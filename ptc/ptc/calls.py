"""The calls of one run: what they share from batch to batch, and the one path that each of them takes.

It puts the run's own layers (budget, approvals) around the application's, and keeps what was executed. It
decides nothing about a call; the path does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptc.approval import ApprovalDesk, ApprovalRequest, Decision, PauseForApproval, WatchedInvoker
from ptc.batch import Batch, BatchResult, Ledger
from ptc.budget import Budget
from ptc.choice import ToolChoice
from ptc.errors import ToolCallFailed
from ptc.events import PendingCall
from ptc.exposure import LiveExposure
from ptc.limits import Spent
from ptc.loading import LoadedTools
from ptc.reporting import RunReporter
from ptc.settings import Settings
from ptc.toolbox import Step
from ptc_tools.call import Call, JsonObject
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Outcome, Success


class Calls:
    """`decided`: decisions of a resumed run, beside the requests that they answer."""

    def __init__(
        self,
        settings: Settings,
        context: RunContext,
        reporter: RunReporter,
        *,
        spent: Spent,
        exposure: LiveExposure,
        history: Sequence[JsonObject],
        decided: Mapping[str, tuple[ApprovalRequest, Decision]],
    ) -> None:
        self._settings = settings
        self._context = context
        self._reporter = reporter
        self._exposure = exposure
        self._budget = Budget(spent, settings.limits)
        self._batch: Batch | None = None
        self.ledger = Ledger()
        self.loaded = LoadedTools(history)
        self.desk: ApprovalDesk | None = None
        if isinstance(settings.approver, PauseForApproval):
            self.desk = ApprovalDesk(settings.approver, reporter, decided)

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """What is known of the last batch, also when it did not come to its end."""
        return {} if self._batch is None else self._batch.result.outcomes

    async def run(
        self, step: Step, pending: Sequence[PendingCall], choice: ToolChoice, open_before: tuple[str, ...]
    ) -> BatchResult:
        """Runs a batch; see `Batch.execute`."""
        functions, handlers = self._invokers(step)
        self._batch = Batch(
            step=step,
            functions=functions,
            handlers=handlers,
            run=self._context,
            reporter=self._reporter,
            ledger=self.ledger,
            choice=choice,
            open_before=open_before,
            loaded=self.loaded,
            settled=self._settled,
            limit=self._settings.limits.max_concurrent_calls,
        )
        return await self._batch.execute(pending)

    def _invokers(self, step: Step) -> tuple[Invoker, Invoker]:
        settings = self._settings
        options: dict[str, Any] = {
            "recorder": self._reporter,
            "policy": settings.policy,
            "default_timeout": settings.call_timeout,
        }
        if self.desk is None:
            options |= {"approver": settings.approver, "middleware": (self._budget, *settings.middleware)}
            functions = Invoker(step.functions, **options)
            return functions, functions.with_catalog(step.handlers)
        # Innermost, so that a decision binds to the arguments that the tool would get.
        layers = (self._budget, *settings.middleware, self.desk)
        options |= {"approver": self.desk, "middleware": layers}
        return (
            WatchedInvoker(step.functions, self.desk, **options),
            WatchedInvoker(step.handlers, self.desk, **options),
        )

    def _settled(self, call: Call, outcome: Outcome) -> None:
        self._exposure.settle(call, isinstance(outcome, Success))

    def failure(
        self, pending: Sequence[PendingCall], outcomes: Mapping[str, Outcome]
    ) -> ToolCallFailed | None:
        """The first call that did not succeed, as the error that `on_tool_error="raise"` raises."""
        for call in pending:
            outcome = outcomes[call.call.call_id]
            if call.whole and not isinstance(outcome, Success):
                name = call.call.qualified_name
                message = f"the call of {name} did not succeed ({outcome.code}): {outcome.message}"
                error = ToolCallFailed(message, call=call.call, outcome=outcome)
                error.__cause__ = getattr(outcome, "exception", None)
                return error
        return None
