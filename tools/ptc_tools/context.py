"""What the host knows about a run and says to the tools: trusted, never from the model's words."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from ptc_tools.call import Call, JsonValue, Program
from ptc_tools.experimental import PROGRESSIVE_TOOLS, warn_experimental
from ptc_tools.outcome import Outcome
from ptc_tools.secret import Secret
from ptc_tools.strict_json import MAX_DEPTH, canonical, loads

if TYPE_CHECKING:
    from ptc_tools.record import Recorder
    from ptc_tools.tool import AnyTool


Resolve: TypeAlias = "Callable[[str | None, str], AnyTool | None]"

_REFUSALS: Final = 100
"""Refused changes of one program that wait to be recorded one by one; a tool can try for ever, and more are counted."""


class ToolsFixed(RuntimeError):
    """A program, or a tool that a local program called, tried to change what tools there are."""


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """Such an attempt: the helper that was called, for which program, in which call (None: in no call's context).

    `more`: how many further attempts this one stands for, where there were too many to be told one by one.
    """

    helper: str
    caller_id: str
    call_id: str | None = None
    more: int = 0


class OpenPrograms:
    """The programs of one run that may make calls now, by their call id.

    A call whose `caller_id` is not in here is forged, or too late, and does not run (wire.md, rule 6).
    """

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._local: set[str] = set()
        self._refusals: dict[str, list[RefusedChange]] = {}
        self._granted: dict[str, Resolve] = {}
        self._late: dict[str, Callable[[RefusedChange], bool]] = {}
        self._lock = threading.Lock()

    def open(self, caller_id: str, *, local: bool = False) -> None:
        """From here on it may make calls. `local`: it runs in our sandbox, and nothing it reaches changes the tools."""
        if local:
            self._local.add(caller_id)
        self._open.add(caller_id)

    def close(self, caller_id: str) -> None:
        self._open.discard(caller_id)
        self._granted.pop(caller_id, None)

    def grant(self, caller_id: str, resolve: Resolve) -> None:
        """Give a program tools of its own, until it is closed: those of the code tool that runs it.

        The path of its calls is the same; only where it looks a name up is this as well, after its own catalog.
        """
        self._granted[caller_id] = resolve

    def has_grants(self, caller_id: str) -> bool:
        """Whether it is a program with tools of its own."""
        return caller_id in self._granted

    def granted(self, caller_id: str, namespace: str | None, name: str) -> AnyTool | None:
        """What such a program was granted under this name."""
        resolve = self._granted.get(caller_id)
        return None if resolve is None else resolve(namespace, name)

    def __contains__(self, caller_id: object) -> bool:
        return caller_id in self._open

    def is_local(self, caller_id: str) -> bool:
        """Whether this program ran in our sandbox, also after it has ended: a tool may have kept its context."""
        return caller_id in self._local

    def tell_late(self, caller_id: str, tell: Callable[[RefusedChange], bool]) -> None:
        """Give each later refusal of this program to `tell`, in any thread; False: it could not take it."""
        with self._lock:
            self._late[caller_id] = tell

    def refuse_change(self, change: RefusedChange) -> ToolsFixed:
        """The error for somebody who tried to change a local program's tools; kept until it is recorded. Any thread."""
        with self._lock:
            tell = self._late.get(change.caller_id)
            if tell is None or not tell(change):
                self._keep(change)
        return ToolsFixed(
            f"{change.helper}() was refused: the tools of a local program are fixed while it runs. They are changed"
            " between runs, by the application: CodeAct.add_tools and remove_tool, or Runner(tools=…)"
        )

    def _keep(self, change: RefusedChange) -> None:
        kept = self._refusals.setdefault(change.caller_id, [])
        if len(kept) <= _REFUSALS:
            kept.append(change)
        else:
            kept[-1] = replace(kept[-1], more=kept[-1].more + 1)

    def take_refusals(self, caller_id: str | None = None) -> list[RefusedChange]:
        """The refused changes that nobody has recorded yet: of one program, or of all."""
        with self._lock:
            if caller_id is not None:
                return self._refusals.pop(caller_id, [])
            taken = [change for kept in self._refusals.values() for change in kept]
            self._refusals.clear()
            return taken


class Exposure(Protocol):
    """The tools that a run offers to the model, which a tool may change (`ptc.exposure` implements it)."""

    @property
    def tools(self) -> Sequence[object] | None:
        """The live list: it shows every change at once. None once the run is over."""

    def fixed_for(self, call: Call) -> bool:
        """Whether the program that made this call is a local one: nothing it reaches changes the tools."""

    def add(self, call: Call, tools: object) -> None:
        """Offer more tools on behalf of a running call."""

    def remove(self, call: Call, tools: object) -> None:
        """Offer fewer tools on behalf of a running call."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run, as the host sees it.

    `principal` is who the run acts for and `tenant` whose data it may see; `labels` are the application's own
    words about the run. They come from the application alone and reach policy, tools and the audit record.
    `credentials` reach the tools and nobody else. `exposure` is None outside a loop with a model.
    """

    run_id: str
    principal: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    programs: OpenPrograms = field(default_factory=OpenPrograms)
    exposure: Exposure | None = None
    tenant: str | None = None
    credentials: Mapping[str, Secret] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    attach: Callable[[Call, str, JsonValue], None] | None = field(default=None, repr=False)
    """Takes what tools give beside their results (`ToolContext.attach`); None where nobody does."""

    def __post_init__(self) -> None:
        """No tool and no middleware changes what the others are told about the run."""
        for name in ("labels", "credentials"):
            given = getattr(self, name)
            if not isinstance(given, MappingProxyType):
                object.__setattr__(self, name, MappingProxyType(dict(given)))


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to a tool that declares a parameter of this type; never part of what the model sees.

    `invoke` is the one path itself: a tool that runs a program passes the program's calls through it, and
    tells `recorder` of the program. `attempt` counts from 1; `deadline` is when the call is given up, on
    `time.monotonic()`'s clock, or None.
    """

    run: RunContext
    call: Call
    invoke: Callable[[Call, RunContext], Awaitable[Outcome]]
    attempt: int = 1
    recorder: Recorder | None = None
    deadline: float | None = None

    @property
    def principal(self) -> str | None:
        return self.run.principal

    @property
    def tenant(self) -> str | None:
        return self.run.tenant

    @property
    def labels(self) -> Mapping[str, str]:
        return self.run.labels

    @property
    def credentials(self) -> Mapping[str, Secret]:
        return self.run.credentials

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of one call, and for no other call: hand it to the service.

        It binds run, call id, tool, arguments and caller, so a call id that is used again inherits nothing
        (wire.md, rule 15).
        """
        return idempotency_key(self.run, self.call)

    def attach(self, kind: str, data: JsonValue) -> None:
        """Gives data beside the result: of a kind that the tool's publication declares, for the application alone.

        No model sees it. Where nobody takes such data it is dropped. Raises ValueError for a kind that is not
        declared, and for data that does not fit its schema.
        """
        if self.run.attach is not None:
            self.run.attach(self.call, kind, data)

    @property
    def tools(self) -> Sequence[object] | None:
        """The tools that this run offers now, a live list; None outside a run."""
        return None if self.run.exposure is None else self.run.exposure.tools

    def add_tools(self, tools: object) -> None:
        """Offer a tool, or several, to the model from the run's next request on: all of them or none.

        The same object again is no change. Raises ValueError for another tool of a name that is taken,
        TypeError for what is not a tool, RuntimeError outside a run and in a call of a local program. If
        the tool that calls this fails, the change is undone.
        """
        self._change("add_tools", tools)

    def remove_tools(self, tools: object) -> None:
        """Stop offering tools, by name, tool or function; names that are not offered are passed over.

        Calls of the running batch still run. Raises TypeError and RuntimeError as `add_tools` does.
        """
        self._change("remove_tools", tools)

    def _change(self, helper: Literal["add_tools", "remove_tools"], tools: object) -> None:
        run, caller = self.run, self.call.caller
        if isinstance(caller, Program) and (
            run.programs.is_local(caller.caller_id)
            or run.exposure is None
            or run.exposure.fixed_for(self.call)
        ):
            raise run.programs.refuse_change(RefusedChange(helper, caller.caller_id, self.call.call_id))
        if run.exposure is None:
            raise RuntimeError(f"{helper}() works inside a run with a model only; there is none here")
        warn_experimental(PROGRESSIVE_TOOLS, helper)
        (run.exposure.add if helper == "add_tools" else run.exposure.remove)(self.call, tools)


def idempotency_key(run: RunContext, call: Call) -> str:
    """See `ToolContext.idempotency_key`. Raises `InvalidJson` if the call's arguments are none."""
    given = call.arguments
    text = isinstance(given, str)
    arguments = (loads(given) if given else {}) if isinstance(given, str) else dict(given or {})
    caller = call.caller.caller_id if isinstance(call.caller, Program) else None
    bound = [run.run_id, call.call_id, call.namespace, call.name, arguments, caller]
    return "ptc-" + hashlib.sha256(canonical(bound, max_depth=MAX_DEPTH + 1, checked=text)).hexdigest()[:40]
