"""What one run starts from: the runner's settings with what the run has of its own, and where it was before.

Values, worked out once before a run begins: for a new run, a paused one, and one that is recovered. It starts
nothing; what does not fit together is refused here.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, cast

from ptc.acting import Acting, ActingOptions
from ptc.approval import ApprovalRequest, Approve, Decision, Deny, PauseForApproval, worth
from ptc.choice import ToolChoice
from ptc.durable import Durable
from ptc.errors import ConfigurationError, InvalidInput
from ptc.limits import Limits
from ptc.past import Past
from ptc.pausing import decisions_for
from ptc.settings import Settings
from ptc.setup import check_limits
from ptc.state import RunState
from ptc.store.protocol import OVER, StoredRun, StoredStatus
from ptc.structured import OutputFormat
from ptc.toolbox import Entry, ToolLike, as_entry, entry_name, is_programs_tool
from ptc_tools.call import JsonObject
from ptc_tools.registry import Registry, RegistryToolset
from ptc_tools.settle import settled
from ptc_tools.sources import RegistryTools, Sources
from ptc_tools.sources.selecting import is_choice
from ptc_tools.tool import AnyTool
from ptc_tools.toolset import Toolset, Use, use


class RunOptions(ActingOptions, total=False):
    """What one run may have of its own.

    `principal`, `tenant` and `labels` say for whom and what, to policy, tools and audit; `credentials`, each
    a `ptc.Secret`, are for the tools alone. `labels` and `credentials` add to the runner's.
    `tool_choice` and `limits` replace the runner's. `previous_response_id` and `conversation_id` go on where
    the service holds the history. `run_id` is made where it is not given.
    """

    tool_choice: object
    limits: Limits | None
    previous_response_id: str | None
    conversation_id: str | None
    run_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A new run has an input; a paused one a state; a recovered one the past that `durable` holds."""

    run_id: str
    input: object
    acting: Acting
    previous_response_id: str | None = None
    conversation_id: str | None = None
    state: RunState | None = None
    durable: Durable | None = None
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    decided_us: int = field(default_factory=lambda: time.time_ns() // 1000)
    """When `decisions` came."""

    @property
    def journals(self) -> Mapping[str, JsonObject]:
        """Of local programs that the run had begun before, by call id."""
        if self.durable is not None:
            return self.durable.past.journals
        return {} if self.state is None else self.state.journals

    @property
    def asked(self) -> Iterable[ApprovalRequest]:
        """What was asked before: where it still waits, it waits as it did, and until then."""
        if self.durable is not None:
            return self.durable.past.asked.values()
        return () if self.state is None else self.state.approvals

    @property
    def new_decisions(self) -> Mapping[str, Decision]:
        """Those that still decide something: in a store a run may have gone on since somebody was asked, and a
        no that is kept there stands."""
        if self.durable is None:
            return self.decisions
        past = self.durable.past
        denied = {call_id for call_id, decision in past.decisions.items() if isinstance(decision, Deny)}
        return {
            call_id: decision
            for call_id, decision in self.decisions.items()
            if not past.is_done(call_id) and call_id not in denied
        }

    @property
    def approved_again(self) -> Mapping[str, tuple[ApprovalRequest, Decision]]:
        """Approvals of calls that were cut off, and that somebody says are to run again: they are not asked twice."""
        approved = {} if self.durable is None else self.durable.past.approved
        return {
            call_id: (replace(approved[call_id][0], expires_us=None), approved[call_id][1])
            for call_id, (request, decision) in self.decided().items()
            if request.uncertain and isinstance(decision, Approve) and call_id in approved
        }

    def to_json(self, settings: Settings, items: Sequence[JsonObject]) -> JsonObject:
        """What a store keeps of it. `items`: the input as the conversation took it."""
        return {
            "model": settings.model,
            "mode": settings.history,
            "input": list(items),
            "previous_response_id": self.previous_response_id,
            "conversation_id": self.conversation_id,
        }

    def decided(self) -> Mapping[str, tuple[ApprovalRequest, Decision]]:
        """What was decided, beside the requests. Raises InvalidInput for a decision that answers nothing."""
        if self.durable is not None:
            past = self.durable.past
            decisions_for(past.asked.values(), self.decisions)
            new = self.new_decisions
            pairs = decisions_for(past.asked.values(), {**past.decisions, **new})
            came = {**past.decided_us, **dict.fromkeys(new, self.decided_us)}
        else:
            pairs = {} if self.state is None else decisions_for(self.state.approvals, self.decisions)
            came = {}
        return {
            call_id: worth(request, decision, came.get(call_id, self.decided_us))
            for call_id, (request, decision) in pairs.items()
        }


@dataclass(frozen=True, slots=True)
class GivenTools:
    """Tools as an application gives them: `functions` are those it gave as plain callables."""

    entries: tuple[Entry, ...]
    functions: Mapping[object, Entry]
    programs_tool: bool
    uses: tuple[Use | RegistryTools, ...] = ()

    @property
    def sources(self) -> Sources | None:
        """What is read at each step, if there is any. Raises InvalidSource, DuplicateTool."""
        return Sources(self.uses) if self.uses else None

    @property
    def deferring(self) -> str | None:
        """The name of a source of which tools are deferred, if there is one."""
        deferring = (one for one in self.uses if isinstance(one, Use) and (one.defers_all or one.deferred))
        return next((one.source.name for one in deferring), None)

    @property
    def local_tools(self) -> tuple[AnyTool, ...]:
        """The tools of toolsets, which are the same at each step."""
        return tuple(tool for one in self.uses if isinstance(one, Use) for tool in one.tools)

    @classmethod
    def of(cls, tools: Iterable[ToolLike]) -> GivenTools:
        uses: list[Use | RegistryTools] = []
        entries: list[Entry] = []
        functions: dict[object, Entry] = {}
        programs_tool = False
        if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
            raise ConfigurationError(f"tools= is a list of tools, not a {type(tools).__name__}")
        for given in tools:
            if isinstance(given, (Use, Toolset, Registry, RegistryToolset)):
                uses.append(given if isinstance(given, Use) else use(given))
                continue
            if is_choice(given):
                uses.append(given)
                continue
            entry = as_entry(given)
            if is_programs_tool(entry):
                programs_tool = True
                continue
            if entry is not given and callable(given):
                functions[given] = entry
            entries.append(entry)
        return cls(tuple(entries), functions, programs_tool, tuple(uses))


def new_start(
    settings: Settings, own: Acting, input: object, output_type: object, options: RunOptions
) -> tuple[Settings, Start]:
    """A run from its input. Raises TypeError for an option that no run has."""
    unknown = sorted(set(options) - set(RunOptions.__annotations__))
    if unknown:
        raise TypeError(
            f"a run has no option {', '.join(unknown)}; it has {', '.join(RunOptions.__annotations__)}"
        )
    settings = _with_own(settings, output_type, options.get("tool_choice"), options.get("limits"))
    run_id = options.get("run_id") or f"run_{uuid.uuid4().hex}"
    if not isinstance(run_id, str):
        raise ConfigurationError(f"run_id= is a {type(run_id).__name__}; give a text")
    acting = own.given(
        principal=options.get("principal"),
        labels=options.get("labels"),
        tenant=options.get("tenant"),
        credentials=options.get("credentials"),
    )
    store = settings.store
    return settings, Start(
        run_id=run_id,
        input=input,
        acting=acting,
        durable=None if store is None else Durable(store, run_id, labels=acting.labels),
        previous_response_id=options.get("previous_response_id"),
        conversation_id=options.get("conversation_id"),
    )


def resumed_start(
    settings: Settings,
    acting: Acting,
    state: RunState,
    decisions: Mapping[str, Decision],
    tools: Iterable[ToolLike],
    output_type: object,
) -> tuple[Settings, Start]:
    """A paused run from its state. Raises ConfigurationError where this is not the runner for it."""
    if state.model != settings.model or state.mode != settings.history:
        raise ConfigurationError(
            f"the run was paused on {state.model!r} with history {state.mode!r}; it goes on there only"
        )
    if not isinstance(settings.approver, PauseForApproval):
        raise ConfigurationError("only a runner with approver=ptc.PauseForApproval() resumes a paused run")
    settings = _with_own(_with_tools(settings, tools), output_type)
    if state.choice is not None:
        settings = replace(settings, tool_choice=ToolChoice.from_json(state.choice))
    return settings, Start(
        run_id=state.run_id,
        input=None,
        acting=acting,
        conversation_id=state.conversation_id,
        state=state,
        decisions=_given(decisions),
    )


def added_tools(settings: Settings, state: RunState, tools: Iterable[ToolLike]) -> list[ToolLike]:
    """What a state still has of the tools that its run offered, and nobody gives now."""
    given = {entry_name(entry) for entry in (*settings.entries, *GivenTools.of(tools).entries)}
    return [entry for entry in state.added if entry_name(entry) not in given]


class RecoverOptions(ActingOptions, total=False):
    """What is said anew of a run that goes on from its store: it is not in there.

    `decisions`: by call id, what somebody decided. `tools`: those that the run had added. `resend` sends a
    request again that may have reached a conversation kept by the service.
    """

    decisions: Mapping[str, Decision] | None
    tools: Iterable[ToolLike]
    output_type: object
    tool_choice: object
    limits: Limits | None
    resend: bool


async def recovered_start(
    settings: Settings, own: Acting, run_id: str, options: RecoverOptions
) -> tuple[Settings, Start]:
    """A run from its steps in the store, held by us from now on, unless this raises.

    Raises RunUnknown, RunLeased, and ConfigurationError where this is not the runner for it.
    """
    if unknown := sorted(set(options) - set(RecoverOptions.__annotations__)):
        raise TypeError(f"recovering has no option {', '.join(unknown)}")
    store = settings.store
    if store is None:
        raise ConfigurationError("a runner without store= has nothing to recover from")
    acting = own.given(**cast("ActingOptions", {key: options[key] for key in _ACTING if key in options}))  # type: ignore[literal-required]
    stored, cancelled = await settled(store.acquire(run_id))
    try:
        if cancelled:
            raise asyncio.CancelledError
        return _from_past(settings, acting, stored, options)
    except BaseException:
        with suppress(Exception):  # why it is not gone on with matters more; the lease runs out by itself
            await store.append(stored.lease, (), status=stored.status)  # as it was: a run that waits, waits
        raise


_ACTING: Final = tuple(ActingOptions.__annotations__)


def _from_past(
    settings: Settings, acting: Acting, stored: StoredRun, options: RecoverOptions
) -> tuple[Settings, Start]:
    past = Past.of(stored.run_id, stored.steps)
    start = past.start
    if (start.get("model"), start.get("mode")) != (settings.model, settings.history):
        raise ConfigurationError(
            f"the run is one of {start.get('model')!r} with history {start.get('mode')!r};"
            " it goes on there only"
        )
    assert settings.store is not None
    durable = Durable(
        settings.store,
        stored.run_id,
        labels=acting.labels,
        past=past,
        lease=stored.lease,
        was=stored.status,
        resend=options.get("resend", False),
    )
    settings = _with_own(
        _with_tools(settings, options.get("tools", ())),
        options.get("output_type"),
        options.get("tool_choice"),
        options.get("limits"),
    )
    made = Start(
        run_id=stored.run_id,
        input=start["input"],
        acting=acting,
        previous_response_id=cast("str | None", start["previous_response_id"]),
        conversation_id=cast("str | None", start["conversation_id"]),
        decisions=_given(options.get("decisions")),
        durable=durable,
    )
    made.decided()  # what answers nothing is refused before anything begins
    _check_approver(settings, past, stored.status)
    return settings, made


def _given(decisions: object) -> dict[str, Decision]:
    if decisions is not None and not isinstance(decisions, Mapping):
        raise InvalidInput(
            f"decisions= is a {type(decisions).__name__}; give a mapping of call ids to ptc.Approve(), ptc.Deny(…)"
        )
    return dict(decisions or {})


def _check_approver(settings: Settings, past: Past, status: StoredStatus) -> None:
    """A call that waits for somebody is never denied for want of an approver."""
    if isinstance(settings.approver, PauseForApproval) or status in OVER:
        return
    if waiting := past.waiting:
        names = ", ".join(f"{request.name} ({call_id})" for call_id, request in sorted(waiting.items()))
        raise ConfigurationError(
            f"the run waits for an approval of {names}: only a runner with approver=ptc.PauseForApproval()"
            " goes on with it"
        )


def _with_own(
    settings: Settings, output_type: object, tool_choice: object = None, limits: Limits | None = None
) -> Settings:
    if output_type is not None:
        settings = replace(settings, output=OutputFormat.of(output_type))
    if tool_choice is not None:
        settings = replace(settings, tool_choice=ToolChoice.of(tool_choice))
    if limits is None:
        return settings
    check_limits(limits)
    return replace(settings, limits=limits)


def _with_tools(settings: Settings, tools: Iterable[ToolLike]) -> Settings:
    """With the tools that the run had added, where they are not the runner's own."""
    given = GivenTools.of(tools)
    if given.uses:
        raise ConfigurationError(
            "a run that goes on has its runner's sources; tools= takes the single tools that it had added"
        )
    known = {id(entry) for entry in settings.entries}
    new = tuple(entry for entry in given.entries if id(entry) not in known)
    if not new:
        return settings
    return replace(
        settings, entries=(*settings.entries, *new), functions={**settings.functions, **given.functions}
    )
