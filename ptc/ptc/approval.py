"""Approvals: which calls wait for somebody, what they are asked, and what a decision is worth.

A decision binds to one call in full: call id, namespace, name, canonical arguments and caller (wire.md, rule
15). Nothing here waits for a person: a call without a decision pauses the run, and the decision comes when
the run is resumed.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, TypeAlias, cast, get_args

from ptc.errors import ConfigurationError
from ptc_tools import strict_json
from ptc_tools.call import Call, Caller, CallerKind, Direct, JsonObject, JsonValue, Program
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract, Effects, RiskLevel
from ptc_tools.errors import HostControlFlow
from ptc_tools.middleware import Invocation, Next
from ptc_tools.outcome import Denied, Outcome
from ptc_tools.record import Recorder

When: TypeAlias = Callable[[Call, Contract, JsonObject, RunContext], bool]


_CANNOT_WAIT: Final = (
    "this call needs an approval, and a program of a code tool of the application's own cannot wait for one;"
    ' the application gives its tools to Runner(programs="local"), whose programs can'
)


@dataclass(frozen=True, slots=True)
class PauseForApproval:
    """The approver that pauses the run at every call of a tool with `approval="always"`.

    `when` may let calls through: asked with call, contract, arguments and run, it says whether somebody has
    to decide. `ask` is asked the same about calls of all other tools; `ask_for(effects=["destructive"])` makes
    one. If either raises, the call is denied. `expires_after` (seconds): a decision that comes later counts as
    none, and the call is denied.
    """

    when: When | None = None
    expires_after: float | None = None
    ask: When | None = None

    def __post_init__(self) -> None:
        for name, rule in (("when", self.when), ("ask", self.ask)):
            if rule is not None and not callable(rule):
                raise ConfigurationError(
                    f"PauseForApproval({name}=…) is a {type(rule).__name__}; give a function of call, contract,"
                    " arguments and run"
                )
        after = self.expires_after
        if after is None:
            return
        number = after if isinstance(after, int | float) and not isinstance(after, bool) else 0
        if not (number > 0 and math.isfinite(number)):
            raise ConfigurationError(
                f"PauseForApproval(expires_after={after!r}): give a positive number of seconds, or None"
            )

    def asks(self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext) -> bool:
        """Whether somebody has to decide about a call whose tool does not say so."""
        return self.ask is not None and self.ask(call, contract, arguments, run)

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Denied | None:
        """Outside a run nobody can be asked later. Inside, the run puts its own desk in this one's place."""
        return Denied("not_approved", "this call needs an approval, and is not part of a run that can pause")


def ask_for(
    *,
    tools: Iterable[str] = (),
    effects: Iterable[Effects] = (),
    risk: Iterable[RiskLevel] = (),
    callers: Iterable[CallerKind] = (),
) -> When:
    """A rule for `PauseForApproval(ask=…)`: somebody decides about a call for which all that is given holds.

    `tools` are globs of qualified names. A tool that does not declare its effects or risk may be of any kind,
    so it is asked about. Raises ConfigurationError for a word that there is not.
    """
    globs = tuple(tools)
    given = (
        ("effects", frozenset(effects), get_args(Effects)),
        ("risk", frozenset(risk), get_args(RiskLevel)),
        ("callers", frozenset(callers), get_args(CallerKind)),
    )
    for name, words, known in given:
        if unknown := sorted(words - set(known)):
            raise ConfigurationError(f"ask_for({name}=…) has no {unknown[0]!r}; there are {', '.join(known)}")

    def asks(call: Call, contract: Contract, arguments: JsonObject, run: RunContext) -> bool:
        said = (contract.effects, contract.risk_level, call.caller.kind)
        if globs and not any(fnmatchcase(contract.qualified_name, glob) for glob in globs):
            return False
        return all(
            not words or word is None or word in words
            for (_, words, _), word in zip(given, said, strict=True)
        )

    return asks


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call that waits. `arguments` are validated; `expires_us` since the epoch, None for never."""

    call_id: str
    name: str
    arguments: JsonObject
    caller: Caller = field(default_factory=Direct)
    namespace: str | None = None
    reason: str = "the tool asks for an approval"
    requested_us: int = 0
    expires_us: int | None = None
    uncertain: bool = False
    """The process ended while the call ran, and nobody knows what it did: see `Happened`."""
    question: str | None = None
    """What the tool's confirmation asks about this call, where it has one (`ptc.Confirmation`)."""

    @property
    def binding(self) -> str:
        """What a decision holds for: a digest of the whole identity of the call."""
        owner = self.caller.caller_id if isinstance(self.caller, Program) else None
        identity: list[JsonValue] = [self.call_id, self.namespace, self.name, self.arguments, owner]
        return hashlib.sha256(strict_json.canonical(identity)).hexdigest()

    def to_json(self) -> JsonObject:
        more: JsonObject = {"uncertain": True} if self.uncertain else {}
        if self.question is not None:
            more["question"] = self.question
        return {
            **more,
            "call_id": self.call_id,
            "namespace": self.namespace,
            "name": self.name,
            "arguments": self.arguments,
            "program": self.caller.caller_id if isinstance(self.caller, Program) else None,
            "reason": self.reason,
            "requested_us": self.requested_us,
            "expires_us": self.expires_us,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> ApprovalRequest:
        program, expires = value["program"], value["expires_us"]
        namespace = value["namespace"]
        return cls(
            call_id=str(value["call_id"]),
            name=str(value["name"]),
            arguments=cast("JsonObject", value["arguments"]),
            caller=Direct() if program is None else Program(str(program)),
            namespace=None if namespace is None else str(namespace),
            reason=str(value["reason"]),
            requested_us=int(cast("int", value["requested_us"])),
            expires_us=None if expires is None else int(cast("int", expires)),
            uncertain=value.get("uncertain") is True,
            question=cast("str | None", value.get("question")),
        )


@dataclass(frozen=True, slots=True)
class Approve:
    """Yes; with `arguments`, yes to these instead, which are validated like the model's. `by`: who decided."""

    arguments: Mapping[str, JsonValue] | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """No; the reason goes to the model, and into the program as a catchable error."""

    reason: str = "the call was not approved"
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Happened:
    """For an uncertain call alone: it took effect, and this is its result, held to the tool's schema.

    (`Approve` runs such a call again; `Deny` leaves it, and the model is told that nobody knows.)
    """

    result: JsonValue = None
    by: str | None = None


Decision: TypeAlias = Approve | Deny | Happened


def worth(request: ApprovalRequest, decision: Decision, decided_us: int) -> tuple[ApprovalRequest, Decision]:
    """What was decided, by when it was: one in time stays good however late the call is made, one that was not
    is a denial."""
    if request.expires_us is None or decided_us <= request.expires_us:
        return replace(request, expires_us=None), decision
    return request, Deny("the approval came too late: it had expired")


class ApprovalPending(HostControlFlow):
    """Leaves a call that waits for a decision. Its siblings go on, and so does a local program, until nothing
    but calls that wait is left of it: then it is suspended, and the run pauses with all that it asks."""

    waits = True

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(f"{request.name} waits for an approval")
        self.request = request


class ApprovalDesk:
    """The approvals of one run: its innermost middleware, and its approver.

    As middleware it sees a call with the arguments that a decision binds to, and puts approved changes in
    their place; as approver it says yes, no, or leaves the call pending.
    """

    def __init__(
        self,
        rule: PauseForApproval,
        recorder: Recorder,
        decided: Mapping[str, tuple[ApprovalRequest, Decision]],
        *,
        asked: Iterable[ApprovalRequest] = (),
        on_ask: Callable[[ApprovalRequest, Contract], None] | None = None,
    ) -> None:
        self._asked = {request.binding: request for request in asked}
        self._latest = {request.call_id: binding for binding, request in self._asked.items()}
        self._on_ask = on_ask
        self._rule = rule
        self._recorder = recorder
        self._decided = {request.binding: (request, decision) for request, decision in decided.values()}
        self._verdicts: dict[str, Decision | None] = {}
        self._refused: dict[str, Deny] = {}
        self._behalf: dict[str, Call] = {}
        self.code_tool: str | None = None
        self.asks = None if rule.ask is None and not self._decided else self._asks
        """See `ptc_tools.policy.Approver`."""
        self.requests: dict[str, ApprovalRequest] = {}
        self.contracts: dict[str, Contract] = {}

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        call = invocation.call
        refused = self._refused.pop(call.call_id, None)
        if refused is not None:
            return Denied("not_approved", refused.reason)
        verdict = self._verdict(invocation)
        self._verdicts[call.call_id] = verdict
        if isinstance(verdict, Approve) and verdict.arguments is not None:
            invocation = invocation.with_arguments(dict(verdict.arguments))
        return await next(invocation)

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Denied | None:
        """Yes once, no, or ApprovalPending."""
        verdict = self._verdicts.pop(call.call_id, None)
        if isinstance(verdict, Approve):
            return None
        if isinstance(verdict, Deny):
            return Denied("not_approved", verdict.reason)
        if (
            contract.approval != "never"
            and self._rule.when is not None
            and not self._rule.when(call, contract, arguments, run)
        ):
            return None
        if isinstance(call.caller, Program) and run.programs.has_grants(call.caller.caller_id):
            # Its code tool is any tool to the run, and would begin the program anew: calls would be made twice.
            return Denied("not_approved", _CANNOT_WAIT)
        raise await self.hold(self._request(call, contract, arguments), contract, run)

    def refuses(self, request: ApprovalRequest) -> bool:
        """Whether somebody said no to it; then its call is refused whatever its tool has become since."""
        decision = self._decided.get(request.binding, (request, None))[1]
        if not isinstance(decision, Deny):
            return False
        self._refused[request.call_id] = decision
        return True

    def _asks(self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext) -> bool:
        """Of a local program its calls are asked about, and not that it runs. A call that somebody denied is
        refused, also where the tool or the rule of now would ask nobody."""
        if isinstance(self._verdicts.get(call.call_id), Deny):
            return True
        code_tool = isinstance(call.caller, Direct) and call.namespace is None and call.name == self.code_tool
        return not code_tool and self._rule.asks(call, contract, arguments, run)

    async def hold(self, request: ApprovalRequest, contract: Contract, run: RunContext) -> ApprovalPending:
        """What leaves a call that waits for a decision."""
        binding = request.binding
        known = self._asked.get(binding)
        before = known is not None and known.uncertain == request.uncertain
        if known is not None and before:
            request = known  # asked before the process ended: what it waits for, and until when, stays
        # A decision goes by call id: what is asked last under one, where two calls have it, is what it is about.
        if self._on_ask is not None and not (before and self._latest.get(request.call_id) == binding):
            self._on_ask(request, contract)
        self._latest[request.call_id] = binding
        self.requests[request.call_id] = request
        self.contracts[request.call_id] = contract
        data: JsonObject = {
            "call_id": request.call_id,
            "tool": contract.qualified_name,
            "reason": request.reason,
        }
        await self._recorder.event("approval.requested", data, run)
        return ApprovalPending(request)

    def open_requests(self, waiting: Collection[str]) -> tuple[ApprovalRequest, ...]:
        """What is asked of a batch in which these calls wait: of themselves, and of local programs among them."""
        return tuple(request for request in self.requests.values() if self._waits(request, waiting))

    def _waits(self, request: ApprovalRequest, waiting: Collection[str]) -> bool:
        asks = self._behalf.get(request.call_id, request)
        return asks.call_id in waiting or (
            isinstance(asks.caller, Program) and asks.caller.caller_id in waiting
        )

    def on_behalf(self, request: ApprovalRequest, call: Call) -> None:
        """A request about a read that is asked for a call: it is that call that waits."""
        self._behalf[request.call_id] = call

    def _request(self, call: Call, contract: Contract, arguments: JsonObject) -> ApprovalRequest:
        asked = None if contract.publication is None else contract.publication.confirmation
        now = time.time_ns() // 1000
        after = self._rule.expires_after
        return ApprovalRequest(
            call.call_id,
            call.name,
            dict(arguments),
            call.caller,
            call.namespace,
            requested_us=now,
            expires_us=None if after is None else now + int(after * 1_000_000),
            question=None if asked is None else asked.text(arguments),
        )

    def _verdict(self, invocation: Invocation) -> Decision | None:
        call = invocation.call
        asked = ApprovalRequest(call.call_id, call.name, invocation.arguments, call.caller, call.namespace)
        found = self._decided.pop(asked.binding, None)
        if found is None:
            return None
        return found[1]
