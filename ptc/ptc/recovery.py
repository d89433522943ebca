"""What becomes of the calls of a run whose process ended: given again, run again, asked about, or left to somebody.

A call with an outcome is never run again. One that was admitted and has none is uncertain: a read runs again,
an idempotent mutation runs again with the same key, any other is settled by its declared read, and if that
does not tell, the run pauses for a decision. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ptc.approval import ApprovalDesk, ApprovalPending, ApprovalRequest, Approve, Decision, Deny, Happened
from ptc.durable import Durable, in_tool
from ptc.errors import ContractChanged
from ptc.giving import through_layers
from ptc.limits import Spent
from ptc.past import PastCall
from ptc.reporting import RunReporter
from ptc.result import UncertainCall
from ptc_tools import strict_json
from ptc_tools.call import Call, Direct, JsonObject, Program
from ptc_tools.compare import compare
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson
from ptc_tools.invoke import Invoker, parse_arguments
from ptc_tools.middleware import Invocation, Middleware
from ptc_tools.outcome import Denied, Empty, Failure, Outcome, Success, Uncertain
from ptc_tools.tool import AnyTool


class Recovery:
    """The uncertain calls of one recovered run. `decided`: by call id, what somebody decided about each."""

    def __init__(
        self,
        durable: Durable,
        *,
        desk: ApprovalDesk,
        reporter: RunReporter,
        spent: Spent,
        decided: Mapping[str, tuple[ApprovalRequest, Decision]],
        layers: Sequence[Middleware] = (),
    ) -> None:
        self.desk = desk
        self.durable = durable
        self.uncertain: list[UncertainCall] = []
        self.code_tool: str | None = None
        self._calls = durable.past.calls
        self._reporter = reporter
        self._spent = spent
        self._layers = layers
        self._decided = {
            call_id: decision for call_id, (request, decision) in decided.items() if request.uncertain
        }

    def find(self, call: Call, run: RunContext) -> PastCall | None:
        """What the past knows of a call, once."""
        if not self._calls:
            return None
        try:
            return self._calls.pop(self.durable.key(call, run), None)
        except InvalidJson:
            return None  # it cannot have been admitted

    def let_in(self, call: Call) -> None:
        """A call that was cut off runs again: it may have had its effect, so no limit says that it was denied."""
        caller = call.caller
        self._spent.let_in.add((call.call_id, caller.caller_id if isinstance(caller, Program) else None))

    def check_contract(self, call: Call, invoker: Invoker) -> None:
        """A call that waited for a decision runs as it was asked about, or it was denied. Raises ContractChanged."""
        past = self.durable.past
        request, contract = past.asked.get(call.call_id), past.asked_under.get(call.call_id)
        if request is None or contract is None:
            return
        if (request.namespace, request.name, request.caller) != (call.namespace, call.name, call.caller):
            return
        try:
            _under_its_contract(contract, call, invoker, "waits for an approval")
        except ContractChanged:
            if not self.desk.refuses(request):
                raise

    def give_again(self, past: PastCall) -> None:
        """A call with an outcome counts and is reported as it was; it does not run."""
        assert past.outcome is not None
        caller = past.call.caller
        if past.attempts:  # what never ran was not counted
            self._spent.count_call(caller.caller_id if isinstance(caller, Program) else None)
        self._reporter.note(past.call, past.outcome, reused=True)

    def give_batch_again(self, request: int) -> set[str]:
        """All calls and programs of a batch that was answered; gives the ids of the calls."""
        self._hear_programs(lambda number, _: number == request)
        return self._give_calls_again(lambda past: past.request == request)

    def _give_calls_again(self, wanted: Callable[[PastCall], bool]) -> set[str]:
        found = [past for past in self._calls.values() if past.settled and wanted(past)]
        for past in found:
            del self._calls[past.key]
            self.give_again(past)
        return {past.call.call_id for past in found}

    def _in_journal(self, program: str) -> Callable[[PastCall], bool]:
        """Which calls a program is told the outcome of by its journal, so that they are not asked for again."""
        journal = cast("dict[str, Any]", self.durable.past.journals.get(program, {}))
        told = {f"{program}:{entry[1]}" for entry in journal.get("entries", ()) if entry[0] == "answer"}
        return lambda past: past.call.call_id in told and past.call.caller == Program(program)

    def _hear_programs(self, wanted: Callable[[int, str], bool]) -> None:
        for request, type, data in self.durable.past.programs:
            if wanted(request, str(data["call_id"])):
                self._reporter.hear(type, data)

    def is_code_tool(self, call: Call) -> bool:
        return isinstance(call.caller, Direct) and call.namespace is None and call.name == self.code_tool

    async def resolve(self, invoker: RecoveringInvoker, past: PastCall, run: RunContext) -> Outcome | None:
        """The outcome of a call of the past, or None: it may run (again) now. Raises ContractChanged."""
        call = past.call
        if past.settled:
            self.give_again(past)
            if self.is_code_tool(call):
                self._give_calls_again(lambda inner: inner.call.caller == Program(call.call_id))
                self._hear_programs(lambda _, program: program == call.call_id)
            self.durable.offered.restore_late(self.durable.request())
            await self._reporter.event("call.reused", {"call_id": call.call_id}, run)
            return past.outcome
        if self.is_code_tool(call):
            self._give_calls_again(self._in_journal(call.call_id))
            return None  # the program goes on from its journal
        try:
            admitted, tool = _under_its_contract(
                past.contract, call, invoker, "was running when its process ended"
            )
        except ContractChanged:
            denial = self._decided.get(call.call_id)
            if not isinstance(denial, Deny):
                raise
            return await self._told(
                past, Contract.from_json(past.contract), "decided", run, _left_open(denial)
            )
        both = (admitted, tool.contract)
        if all(contract.effects == "read" for contract in both):
            return await self._told(past, tool.contract, "run_again", run)
        arguments = past_arguments(past)
        if all(item.idempotency and item.idempotency.operation(arguments) for item in both):
            return await self._told(past, tool.contract, "same_key", run)
        decision = self._decided.pop(call.call_id, None)
        if decision is not None:
            return await self._decide(invoker, past, tool, decision, run)
        known, outcome = await self._reconcile(invoker, past, tool, run)
        if known:
            if outcome is not None:
                outcome = await self._given(invoker, past, tool, outcome, run)
            return await self._told(past, tool.contract, "reconciled", run, outcome)
        await self._told(past, tool.contract, "waiting", run)
        raise await self.desk.hold(self._request(past), tool.contract, run)

    async def _told(
        self,
        past: PastCall,
        contract: Contract,
        resolution: Any,
        run: RunContext,
        outcome: Outcome | None = None,
    ) -> Outcome | None:
        """Reports what is done about an uncertain call, durable before it is done."""
        self.uncertain.append(UncertainCall(past.call, past.attempts, resolution))
        if outcome is not None:
            self.durable.settle(past.key, outcome)
            self.give_again(replace(past, outcome=outcome))
        data: JsonObject = {
            "call_id": past.call.call_id,
            "tool": contract.qualified_name,
            "attempt": past.attempts,
            "resolution": resolution,
        }
        await self._reporter.event("call.uncertain", data, run)
        return outcome

    async def _decide(
        self, invoker: RecoveringInvoker, past: PastCall, tool: AnyTool, decision: Decision, run: RunContext
    ) -> Outcome | None:
        outcome: Outcome | None = None
        if isinstance(decision, Deny):
            outcome = _left_open(decision)
        elif isinstance(decision, Happened):
            outcome = invoker.released_value(
                Invocation(tool, past_arguments(past), past.call, run), decision.result
            )
        if outcome is not None:
            outcome = await self._given(invoker, past, tool, outcome, run)
        resolution = "run_again" if isinstance(decision, Approve) else "decided"
        return await self._told(past, tool.contract, resolution, run, outcome)

    async def _given(
        self, invoker: RecoveringInvoker, past: PastCall, tool: AnyTool, found: Outcome, run: RunContext
    ) -> Outcome:
        """What was found out reaches model and program as the tool's own result would: through the layers."""
        try:
            arguments = cast("JsonObject", parse_arguments(past.call.arguments))
        except InvalidJson:
            arguments = past_arguments(past)
        return await invoker.given(Invocation(tool, arguments, past.call, run), found, self._layers)

    async def _reconcile(
        self, invoker: RecoveringInvoker, past: PastCall, tool: AnyTool, run: RunContext
    ) -> tuple[bool, Outcome | None]:
        """Asks the declared read. Whether it told, and the outcome; None where nothing had happened."""
        declared = tool.contract.reconciliation
        if declared is None:
            return False, None
        request = declared.request(past_arguments(past), call_id=past.call.call_id, idempotency_key=past.key)
        namespace, _, name = declared.tool.rpartition(".")
        reader = invoker.catalog.resolve(namespace or None, name)
        if reader is None:
            return False, None
        caller = Direct() if "direct" in reader.contract.allowed_callers else past.call.caller
        call_id = f"{past.call.call_id}:reconcile:{past.attempts}"
        arguments = request["arguments"]
        assert isinstance(arguments, dict)
        read = Call(call_id, name, arguments, caller, namespace or None)
        try:
            told = await Invoker.invoke(invoker, read, run)
        except ApprovalPending as pending:
            self.desk.on_behalf(pending.request, past.call)
            await self._told(past, tool.contract, "waiting", run)
            raise
        if isinstance(told, (Denied, Failure)) or not isinstance(told, Success):
            return False, None
        value = told.value
        happened = value.get("happened") if isinstance(value, dict) else None
        if isinstance(told, Empty) or happened is False:
            return True, None
        if happened is True and isinstance(value, dict) and "result" in value:
            released = invoker.released_value(
                Invocation(tool, past_arguments(past), past.call, run), value["result"]
            )
            if isinstance(released, Success):
                return True, released
        sure = "the call took effect" if happened is True else "the call may have taken effect"
        text = strict_json.dumps(value)
        return True, Uncertain(
            "uncertain",
            f"the process ended while the call ran; {sure}: {declared.tool} says {text}",
            reconciliation=request,
        )

    def _request(self, past: PastCall) -> ApprovalRequest:
        call = past.call
        return ApprovalRequest(
            call.call_id,
            call.name,
            past_arguments(past),
            call.caller,
            call.namespace,
            reason=f"attempt {past.attempts} was cut off with its process: it may have taken effect",
            uncertain=True,
        )


def _left_open(denial: Deny) -> Uncertain:
    return Uncertain("uncertain", f"nobody knows whether the call took effect: {denial.reason}")


def _under_its_contract(
    stored: JsonObject, call: Call, invoker: Invoker, what: str
) -> tuple[Contract, AnyTool]:
    """The contract that is kept of a call, and the tool of now. Raises ContractChanged where it is another."""
    tool = invoker.catalog.resolve(call.namespace, call.name)
    if tool is None:
        raise ContractChanged(f"{call.qualified_name} {what}, and is not there any more")
    kept = Contract.from_json(stored)
    verdict = compare(kept, tool.contract)
    if not verdict.covered:
        raise ContractChanged(
            f"{call.qualified_name} {what}, and its contract is {verdict.verdict} now: "
            + "; ".join(str(reason) for reason in verdict.reasons[:3])
        )
    return kept, tool


def past_arguments(past: PastCall) -> JsonObject:
    """The validated arguments with which the call was admitted."""
    return dict(past.arguments)


class RecoveringInvoker(Invoker):
    """The one path of a durable run: what the past knows comes first."""

    recovery: Recovery | None = None

    async def invoke(self, call: Call, run: RunContext) -> Outcome:
        recovery = self.recovery
        past = None if recovery is None else recovery.find(call, run)
        if recovery is not None and past is not None:
            outcome = await recovery.resolve(self, past, run)
            if outcome is not None:
                return outcome
            recovery.let_in(call)
        elif recovery is not None:
            recovery.check_contract(call, self)
        return await super().invoke(call, run)

    async def given(self, invocation: Invocation, found: Outcome, layers: Sequence[Middleware]) -> Outcome:
        """See `ptc.giving`."""
        return await through_layers(
            invocation,
            found,
            catalog=self.catalog,
            layers=layers,
            max_result_bytes=self._max_result_bytes,
        )

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> Outcome:
        """Attempts are counted over all processes of the run."""
        if self.recovery is not None:
            durable = self.recovery.durable
            attempt = durable.attempts.get(durable.key(invocation.call, invocation.run), attempt)
            if not self.recovery.is_code_tool(invocation.call):
                inside = in_tool.set(True)
                try:
                    return await super().execute(invocation, keywords, attempt)
                finally:
                    in_tool.reset(inside)
        return await super().execute(invocation, keywords, attempt)
