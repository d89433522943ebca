"""What a run store says about a run: its steps, read into what a recovered run needs to know.

Pure reading. It never decides what to do about a call of which the outcome is missing; `ptc.recovery` does.
The kinds of steps and their fields are those of docs/durable.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ptc.approval import ApprovalRequest, Approve, Decision, Deny, Happened
from ptc.items import call_key, is_client_call, item_type
from ptc.outcome_json import outcome_from_json
from ptc.reading import items_in
from ptc.searching import FIND, LOAD
from ptc.store.errors import StoreUnreadable
from ptc.store.protocol import Step
from ptc_tools.call import Call, Caller, Direct, JsonObject, Program
from ptc_tools.outcome import Cancelled, Outcome

_START: Final = ("model", "mode", "input", "previous_response_id", "conversation_id")


@dataclass(slots=True)
class PastCall:
    """A call that was admitted, or that a program was denied. `outcome` None: the process ended before there was one.

    `settled`: the outcome was released, or may be given again; else nobody knows what the call did.
    """

    key: str
    call: Call
    arguments: JsonObject
    request: int
    contract: JsonObject
    attempts: int = 1
    outcome: Outcome | None = None
    settled: bool = False


@dataclass(slots=True)
class Past:
    """Empty for a new run."""

    start: JsonObject = field(default_factory=dict)
    ended: str | None = None
    last: int = 0
    sent: dict[int, JsonObject] = field(default_factory=dict)
    responses: dict[int, list[JsonObject]] = field(default_factory=dict)
    selected: dict[int, dict[str, JsonObject]] = field(default_factory=dict)
    local_from: int | None = None
    calls: dict[str, PastCall] = field(default_factory=dict)
    contracts: dict[str, JsonObject] = field(default_factory=dict)
    answers: dict[int, dict[str, tuple[JsonObject, Outcome]]] = field(default_factory=dict)
    terminated: dict[int, str] = field(default_factory=dict)
    compacted: dict[int, list[JsonObject]] = field(default_factory=dict)
    journals: dict[str, JsonObject] = field(default_factory=dict)
    asked: dict[str, ApprovalRequest] = field(default_factory=dict)
    asked_under: dict[str, JsonObject] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    decided_us: dict[str, int] = field(default_factory=dict)
    """When each decision came, since the epoch."""
    approved: dict[str, tuple[ApprovalRequest, Decision]] = field(default_factory=dict)
    """Calls that somebody let run: where one is cut off and is to run again, it runs as it was approved."""
    done: set[tuple[str, str | None]] = field(default_factory=set)
    """Calls, each with the program that made it, that have run or been answered since they were asked about."""
    over: set[str] = field(default_factory=set)
    """Call ids that were answered: a program of that id asks for nothing any more."""
    programs: list[tuple[int, str, JsonObject]] = field(default_factory=list)
    told: set[tuple[str, str]] = field(default_factory=set)
    offered: JsonObject | None = None
    refused: set[int] = field(default_factory=set)
    """Requests after whose calls the run had reached its limit of calls."""

    def __bool__(self) -> bool:
        return self.last > 0

    @classmethod
    def of(cls, run_id: str, steps: Iterable[Step]) -> Past:
        """Raises StoreUnreadable where a step is missing, or is not as this library writes it."""
        past = cls()
        for step in steps:
            if step.n != past.last + 1 or (step.kind == "start") != (step.n == 1):
                raise _damaged(run_id, past.last + 1, "it is missing")
            try:
                past._take(step.kind, cast("dict[str, Any]", step.data))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise _damaged(run_id, step.n, f"{type(error).__name__}: {error}") from error
            past.last = step.n
        if past.last == 0:
            raise _damaged(run_id, 1, "it is missing")
        return past

    def is_done(self, call_id: str) -> bool:
        """Whether nothing is left to decide about the call that was asked about under this id."""
        request = self.asked.get(call_id)
        return request is not None and (call_id, _owner(request.caller)) in self.done

    @property
    def waiting(self) -> dict[str, ApprovalRequest]:
        """What somebody approves or denies, by call id: calls that have not run, and those that an approval let
        run and that were cut off. Calls whose program is answered wait no more."""
        cut_off = {past.call.call_id for past in self.calls.values() if not past.settled}
        again = {call_id: pair[0] for call_id, pair in self.approved.items() if call_id in cut_off}
        return again | {
            call_id: request
            for call_id, request in self.asked.items()
            if not self.is_done(call_id) and not request.uncertain and not self._over(request.caller)
        }

    def _over(self, caller: Caller) -> bool:
        return isinstance(caller, Program) and caller.caller_id in self.over

    def answered(self, request: int, call_ids: Sequence[str]) -> Mapping[str, tuple[JsonObject, Outcome]]:
        """Outputs and outcomes of a batch that was answered as a whole; empty for one that was not."""
        known = self.answers.get(request, {})
        return known if call_ids and all(call_id in known for call_id in call_ids) else {}

    def selection(self, request: int) -> Mapping[str, JsonObject] | None:
        """What was kept of registries' tools for a response that came, by name: what its calls still need.

        None for a request that has no response: its tools are read like any other's.
        """
        responses = self.responses.get(request)
        if not responses:
            return None
        calls = [item for item in items_in(responses[-1]) if is_client_call(item)]
        given = self.answers.get(request, {})
        return {} if all(call_key(item) in given for item in calls) else self.selected.get(request, {})

    def searches(self, request: int) -> bool:
        """Whether a response that came has searches without an output: those need a catalog."""
        given = self.answers.get(request, {})
        responses = self.responses.get(request)
        return any(
            item_type(item) == "tool_search_call"
            or (item.get("name") in (FIND, LOAD) and not item.get("namespace"))
            for item in (items_in(responses[-1]) if responses else ())
            if is_client_call(item) and call_key(item) not in given
        )

    def calls_of(self, request: int) -> list[PastCall]:
        """Calls with an outcome to give again, in the order in which they were admitted."""
        return [call for call in self.calls.values() if call.request == request and call.settled]

    def _take(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "start":
                self.start = {name: data[name] for name in _START}
            case "sent":
                self.sent[data["request"]] = data
                self.ended = self.offered = None
            case "received":
                self.responses.setdefault(data["request"], []).append(data["response"])
                if data.get("programs") == "local" and self.local_from is None:
                    self.local_from = data["request"]
            case "selected":
                self.selected[data["request"]] = data["tools"]
            case "contract":
                self.contracts[data["token"]] = data["contract"]
            case "admitted":
                self._admitted(data)
            case "outcome":
                self._outcome(data)
            case "denied":
                call, outcome = call_from_json(data), outcome_from_json(data["outcome"])
                key = f"denied {call.call_id}"  # no call that ran has such a key
                self.calls[key] = PastCall(key, call, {}, data["request"], {}, 0, outcome, settled=True)
            case "answered":
                answers = self.answers.setdefault(data["request"], {})
                for call_id, item, outcome in data["calls"]:
                    answers[call_id] = (item, outcome_from_json(outcome))
                    self._answered(call_id)
                if data.get("refused") is True:
                    self.refused.add(data["request"])
            case "terminated":
                self.terminated[data["request"]] = data["text"]
            case "compacted":
                self.compacted[data["request"]] = data["items"]
            case "journal":
                self.journals[data["program"]] = {"header": data["header"], "entries": []}
            case "entry":
                cast("list[Any]", self.journals[data["program"]]["entries"]).append(data["entry"])
                if data["entry"][0] == "answer":
                    self.done.add((f"{data['program']}:{data['entry'][1]}", data["program"]))
            case "program":
                self.programs.append((data["request"], data["type"], data["data"]))
            case "told":
                self.told.add((data["type"], data["key"]))
            case "asked":
                request = ApprovalRequest.from_json(data["request"])
                self.asked[request.call_id] = request
                if data.get("contract") is not None:
                    self.asked_under[request.call_id] = self.contracts[data["contract"]]
                self.decisions.pop(request.call_id, None)
                self.done.discard((request.call_id, _owner(request.caller)))
                if isinstance(request.caller, Program):
                    self.over.discard(request.caller.caller_id)
                if not request.uncertain:
                    self.approved.pop(request.call_id, None)
            case "decided":
                decision = self.decisions[data["call_id"]] = decision_from_json(data["decision"])
                if data.get("at_us") is not None:
                    self.decided_us[data["call_id"]] = int(data["at_us"])
                asked = self.asked.get(data["call_id"])
                if asked is not None and not asked.uncertain and isinstance(decision, Approve):
                    self.approved[asked.call_id] = (asked, decision)
            case "ended":
                self.ended = data["status"]
            case _:
                raise ValueError(f"a step of the kind {kind!r} is not one of this version")

    def _answered(self, call_id: str) -> None:
        """A call of a response; one that a program here made is none, though it may have the same id."""
        self.over.add(call_id)
        self.done.add((call_id, None))
        request = self.asked.get(call_id)
        owner = None if request is None else _owner(request.caller)
        if owner is not None and not call_id.startswith(f"{owner}:"):
            self.done.add((call_id, owner))

    def _admitted(self, data: dict[str, Any]) -> None:
        self.ended = None
        key = data["key"]
        known = self.calls.pop(key, None)  # in the order of the last attempt
        call = call_from_json(data)
        attempts = known.attempts + 1 if known else 1
        contract = self.contracts[data["contract"]]
        self.calls[key] = PastCall(key, call, data["arguments"], data["request"], contract, attempts)
        self.done.add((call.call_id, _owner(call.caller)))
        request = self.asked.get(call.call_id)
        if request is not None and request.uncertain and request.caller == call.caller:
            self.decisions.pop(call.call_id, None)  # it was about the attempt before
            del self.asked[call.call_id]

    def _outcome(self, data: dict[str, Any]) -> None:
        outcome = outcome_from_json(data["outcome"])
        call = self.calls[data["key"]]
        call.outcome = outcome
        call.settled = data["settled"] and not isinstance(outcome, Cancelled)
        if data.get("offered") is not None:
            self.offered = data["offered"]


def _owner(caller: Caller) -> str | None:
    return caller.caller_id if isinstance(caller, Program) else None


def _damaged(run_id: str, n: int, why: str) -> StoreUnreadable:
    return StoreUnreadable(
        f"step {n} of the run {run_id!r} is damaged, or of a newer version ({why}): nothing of the run is done"
        " again from what is left; take its file from a backup, or let the run be",
        run_id=run_id,
    )


def call_to_json(call: Call) -> JsonObject:
    """A call as it came; `call_from_json` is the inverse."""
    given = call.arguments
    return {
        "call_id": call.call_id,
        "namespace": call.namespace,
        "name": call.name,
        "given": given if given is None or isinstance(given, str) else dict(given),
        "program": call.caller.caller_id if isinstance(call.caller, Program) else None,
        "line": call.origin_line,
    }


def call_from_json(data: dict[str, Any]) -> Call:
    caller = Direct() if data["program"] is None else Program(data["program"])
    return Call(data["call_id"], data["name"], data["given"], caller, data["namespace"], data.get("line"))


def decision_to_json(decision: Decision) -> JsonObject:
    """Plain JSON; `decision_from_json` is the inverse."""
    match decision:
        case Approve(arguments, by):
            changed = None if arguments is None else dict(arguments)
            return {"decision": "approved", "arguments": changed, "by": by}
        case Deny(reason, by):
            return {"decision": "denied", "reason": reason, "by": by}
        case Happened(result, by):
            return {"decision": "happened", "result": result, "by": by}


def decision_from_json(value: JsonObject) -> Decision:
    told = cast("dict[str, Any]", value)
    if told["decision"] == "approved":
        return Approve(told["arguments"], told["by"])
    if told["decision"] == "denied":
        return Deny(told["reason"], told["by"])
    return Happened(told["result"], told["by"])
