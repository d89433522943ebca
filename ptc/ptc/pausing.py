"""From a run to its state and back: what a pause keeps, and how a resumed run finds its place again.

Used by the driver alone. It decides nothing about a call; what a state says of tools is checked against the
tools that the application gives now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from ptc.approval import ApprovalDesk, ApprovalRequest, Approve, Decision, Deny, Happened
from ptc.batch import Ledger
from ptc.conversation import Conversation
from ptc.errors import ContractChanged, InvalidInput
from ptc.events import CallRequested, PendingCall
from ptc.exposure import LiveExposure
from ptc.handlers import ClientTool
from ptc.items import call_key, call_of, is_client_call, is_output, item_type
from ptc.limits import Spent
from ptc.outputs import value_of
from ptc.reading import pending_of
from ptc.report_json import program_from_json, program_to_json, report_from_json, report_to_json
from ptc.reporting import RunReporter
from ptc.result import CallReport
from ptc.state import RunState
from ptc.steps import Steps
from ptc.toolbox import Entry, Step, entry_name
from ptc.usage import Usage
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.compare import compare
from ptc_tools.contract import Contract
from ptc_tools.errors import InvalidJson
from ptc_tools.outcome import Outcome, Success
from ptc_tools.tool import AnyTool


def state_of(
    *,
    run_id: str,
    model: str,
    conversation: Conversation,
    desk: ApprovalDesk,
    reporter: RunReporter,
    exposure: LiveExposure,
    steps: Steps,
    spent: Spent,
) -> RunState:
    """The state of a run whose batch waits for decisions."""
    waiting = conversation.pending
    retired, removed = exposure.still_callable, _removed(waiting.values(), desk, exposure, steps)
    return RunState(
        run_id=run_id,
        model=model,
        mode=conversation.mode,
        programs=exposure.programs,
        history=tuple(conversation.history),
        pending=tuple(call.item for call in waiting.values()),
        answers=conversation.answers,
        approvals=desk.open_requests(waiting),
        journals={call_id: journal for call_id, journal in reporter.suspended.items() if call_id in waiting},
        contracts={
            request.call_id: desk.contracts[request.call_id].to_json()
            for request in desk.open_requests(waiting)
        },
        offered=tuple(_names(exposure.entries)),
        hosted_tool=exposure.hosted_tool,
        forced_choice=steps.choice.forced,
        spent=_spent_json(spent),
        previous_response_id=conversation.previous_response_id,
        conversation_id=conversation.conversation_id,
        # A local program that was suspended has a report, and will have its real one.
        calls=tuple(
            report_to_json(report)
            for report in reporter.calls
            if report.request != reporter.request or report.call.call_id not in waiting
        ),
        programs_so_far=tuple(program_to_json(report) for report in reporter.programs),
        choice=steps.choice.to_json(),
        retired=tuple(_names(retired)),
        removed=tuple(_names(removed)),
        later=tuple(
            _names(entry for entry in exposure.entries if not any(entry is had for had in steps.entries))
        ),
        eager=tuple(sorted(steps.eager)),
        admitted=steps.admissions(removed),
        added=exposure.entries,
        kept=(*retired, *removed),
    )


def _removed(
    waiting: Iterable[PendingCall], desk: ApprovalDesk, exposure: LiveExposure, steps: Steps
) -> list[Entry]:
    """What the batch could call, and is not offered any more, as far as the calls that wait need it."""
    waiting = list(waiting) if steps.current is None else steps.current.meant(list(waiting))
    needed = {(call.call.namespace, call.call.name) for call in waiting}
    needed |= {
        (request.namespace, request.name)
        for request in desk.open_requests([call.call.call_id for call in waiting])
    }
    code_tool = None if steps.current is None else steps.current.code_tool
    local = any(call.kind == "function_call" and call.call.name == code_tool for call in waiting)
    return [
        entry
        for entry in steps.entries
        if not any(entry is offered for offered in exposure.entries)
        and (_called(entry) in needed or (local and steps.in_programs(entry)))
    ]


def _called(entry: Entry) -> tuple[str | None, str]:
    """What a call of it says: a client tool goes by the type of its calls, or its own name."""
    return (None, entry.name) if isinstance(entry, ClientTool) else entry_name(entry)


def entries_of(state: RunState, known: Sequence[Entry]) -> tuple[Entry, ...]:
    """The tools that the paused run offered, found by name among those given now. Raises ContractChanged."""
    return _found(state.offered, [*state.added, *known])


def retired_of(state: RunState, known: Sequence[Entry]) -> tuple[Entry, ...]:
    """The tools that the service is still told of, since a program that is open could call them."""
    return _found(state.retired, [*state.kept, *known])


def removed_of(
    state: RunState, known: Sequence[Entry], restored: Callable[[Iterable[JsonObject]], Sequence[AnyTool]]
) -> tuple[Entry, ...]:
    """The tools that a waiting call needs and the run does not offer any more.

    `restored` makes those of registries again where this process does not have them.
    """
    here = [*state.kept, *known]
    names = set(_names(here))
    lacking = [saved for name, saved in state.admitted.items() if name not in names]
    return _found(state.removed, [*here, *restored(lacking)])


def _found(names: Sequence[str], entries: Sequence[Entry]) -> tuple[Entry, ...]:
    by_name = dict(zip(_names(entries), entries, strict=True))
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ContractChanged(
            f"the paused run offered {', '.join(missing)}, which this runner does not have; give them with tools="
        )
    return tuple(by_name[name] for name in names)


def check_contracts(state: RunState, step: Step, refuses: Callable[[ApprovalRequest], bool]) -> None:
    """A waiting call runs under the contract that it was asked for with, or one that it covers. Raises
    ContractChanged, but not for a call that somebody denied: `refuses` is asked about one that changed."""
    items = {call_key(item): item for item in state.pending}
    for request in state.approvals:
        stored = state.contracts.get(request.call_id)
        if stored is None:
            continue
        old = Contract.from_json(stored)
        # One that is not of the response is made inside a local program, which calls functions alone.
        item = items.get(request.call_id, {"type": "function_call"})
        kind, server = item_type(item), item.get("server_label")
        tool = step.resolve(kind, request.namespace, request.name, server=server)
        if tool is None:
            if refuses(request):
                continue
            raise ContractChanged(f"{old.qualified_name} waits for an approval and is not there any more")
        verdict = compare(old, tool.contract)
        if not verdict.covered and not refuses(request):
            raise ContractChanged(
                f"{old.qualified_name} waits for an approval and its contract is {verdict.verdict} now: "
                + "; ".join(str(reason) for reason in verdict.reasons[:3])
            )


def decisions_for(
    requests: Iterable[ApprovalRequest], decisions: Mapping[str, Decision]
) -> dict[str, tuple[ApprovalRequest, Decision]]:
    """Each decision beside the request that it answers.

    Raises InvalidInput for one that answers nothing, or is none.
    """
    waiting = {request.call_id: request for request in requests}
    unknown = sorted(str(call_id) for call_id in set(decisions) - set(waiting))
    if unknown:
        raise InvalidInput(
            f"there is nothing to decide about {', '.join(unknown)}; waiting: {', '.join(sorted(waiting))}"
        )
    for call_id, decision in decisions.items():
        if not isinstance(decision, (Approve, Deny, Happened)):
            raise InvalidInput(
                f"the decision about {call_id} is a {type(decision).__name__}: give ptc.Approve(), ptc.Deny(…) "
                "or, for a call whose outcome is unknown, ptc.Happened(…)"
            )
        _check_words(call_id, decision)
        if isinstance(decision, Approve) and decision.arguments is not None and waiting[call_id].uncertain:
            raise InvalidInput(
                f"{call_id} was cut off: it runs again with the arguments that it had, or not at all; give"
                " ptc.Approve() without arguments"
            )
        if isinstance(decision, Happened) and not waiting[call_id].uncertain:
            raise InvalidInput(f"{call_id} has not run: approve or deny it; Happened is for uncertain calls")
    return {call_id: (waiting[call_id], decision) for call_id, decision in decisions.items()}


def _check_words(call_id: str, decision: Decision) -> None:
    """A decision is kept and recorded, so that it is texts and JSON."""
    given = decision.arguments if isinstance(decision, Approve) else None
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(
            f"the arguments that were approved for {call_id} are a {type(given).__name__}, not an object"
        )
    value = decision.result if isinstance(decision, Happened) else None if given is None else dict(given)
    try:
        strict_json.dumps(value)
    except InvalidJson as error:
        raise InvalidInput(f"what was decided about {call_id} is no JSON: {error}") from None
    words = {"by": decision.by, "reason": decision.reason if isinstance(decision, Deny) else ""}
    for name, word in words.items():
        if not isinstance(word, str) and not (word is None and name == "by"):
            raise InvalidInput(
                f"{name}= of the decision about {call_id} is a {type(word).__name__}, not a text"
            )


def restore(conversation: Conversation, state: RunState) -> None:
    """Puts a conversation where the run was paused: its answers known, its waiting calls pending."""
    conversation.restore(
        state.history,
        pending_of(_last_calls(state), whole=True),
        state.answers,
        previous_response_id=state.previous_response_id,
    )


def restore_ledger(
    ledger: Ledger, history: Iterable[JsonObject], step: Step, reports: Iterable[CallReport]
) -> None:
    """What was executed before the pause is not executed again, whatever came of it (wire.md, rule 14)."""
    told: dict[str, list[CallReport]] = {}
    for report in reports:
        told.setdefault(report.call.call_id, []).append(report)
    calls: dict[str, JsonObject] = {}
    for item in history:
        key = call_key(item)
        if key is None:
            continue
        if is_client_call(item):
            calls[key] = item
        elif is_output(item) and key in calls:
            kind = item_type(calls[key])
            (meant,) = step.meant([CallRequested(kind, call_of(calls[key]), calls[key])])
            call = meant.call
            reports = [one for one in told.get(key, ()) if one.call == call]
            outcome = reports[0].outcome if reports else None
            if outcome is None:  # of a run that this one went on from
                outcome = _outcome_of(item.get("output"), step.promised(kind, call.namespace, call.name))
            if outcome is not None:
                ledger.put(kind, call, outcome, ran=any(report.ran for report in reports))


def restore_reports(reporter: RunReporter, state: RunState) -> None:
    """The result of a resumed run tells of all of it."""
    reporter.restore(
        [report_from_json(report) for report in state.calls],
        [program_from_json(report) for report in state.programs_so_far],
    )


def restore_spent(spent: Spent, stored: Mapping[str, JsonValue]) -> None:
    fields = cast("dict[str, Any]", dict(stored))
    spent.usage = Usage(**fields["usage"])
    spent.requests, spent.calls = fields["requests"], fields["calls"]
    spent.failing_batches = fields["failing_batches"]
    spent.refused = fields.get("refused") is True
    spent.calls_of_program = dict(fields["calls_of_program"])


def _spent_json(spent: Spent) -> JsonObject:
    return {
        "usage": asdict(spent.usage),
        "requests": spent.requests,
        "calls": spent.calls,
        "failing_batches": spent.failing_batches,
        "refused": spent.refused,
        "calls_of_program": dict(spent.calls_of_program),
    }


def _last_calls(state: RunState) -> list[JsonObject]:
    """The calls of the last response, answered or not, in their order. An output answers the call of its id
    before it: a service may use an id again."""
    last: dict[str | None, JsonObject] = {}
    for item in state.history:
        if is_client_call(item):
            last.pop(call_key(item), None)
            last[call_key(item)] = item
        elif is_output(item):
            last.pop(call_key(item), None)
    open_ids = {call_key(item) for item in state.pending} | set(state.answers)
    return [item for key, item in last.items() if key in open_ids]


def _outcome_of(output: JsonValue, promised: Contract | None) -> Outcome | None:
    """What an output said, if it was a result: an error may be tried again under its own rules."""
    if not isinstance(output, str):
        return None
    value = value_of(output, promised)
    return None if isinstance(value, dict) and "error" in value else Success(value)


def _names(entries: Iterable[Entry]) -> list[str]:
    return [".".join(part for part in entry_name(entry) if part) for entry in entries]
