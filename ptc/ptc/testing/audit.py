"""`capture_audit`: an audit recorder that keeps what it is told in a list, for a test to look at.

It promises what a recorder must (a record before the tool runs, one before its result is released) and keeps
nothing on disk. It never changes a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied, Outcome


@dataclass(frozen=True, slots=True)
class Captured:
    """One record. `name` is the tool's qualified name, or the event's type; what does not apply is None."""

    kind: Literal["started", "finished", "denied", "event"]
    name: str
    run_id: str
    call: Call | None = None
    arguments: JsonValue = None
    outcome: Outcome | None = None
    duration_us: int | None = None
    data: JsonObject | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Token:
    """One start: the same call may start again, in another attempt or another run."""

    call: Call
    run: RunContext


@dataclass(slots=True)
class AuditCapture:
    """A `Recorder` for tests. `records` holds everything, in the order in which it was told."""

    records: list[Captured] = field(default_factory=list)
    _open: dict[object, Call] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> _Token:
        self.records.append(Captured("started", call.qualified_name, run.run_id, call, arguments))
        token = _Token(call, run)
        self._open[token] = call
        return token

    async def finished(self, token: object, outcome: Outcome, duration_us: int) -> None:
        assert isinstance(token, _Token)
        call, run = token.call, token.run
        del self._open[token]  # a start has one end
        self.records.append(
            Captured("finished", call.qualified_name, run.run_id, call, None, outcome, duration_us)
        )

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        self.records.append(Captured("denied", call.qualified_name, run.run_id, call, outcome=outcome))

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        self.records.append(Captured("event", type, run.run_id, data=data))

    def names(self, kind: Literal["started", "finished", "denied", "event"]) -> list[str]:
        """The tools, or the types of events, of the records of a kind."""
        return [record.name for record in self.records if record.kind == kind]

    @property
    def unfinished(self) -> list[Call]:
        """Calls that were started and have no end: none, in any run that is over."""
        return list(self._open.values())


@contextmanager
def capture_audit() -> Iterator[AuditCapture]:
    """`with capture_audit() as audit: Runner(..., audit=audit)`, and then look at `audit.records`."""
    yield AuditCapture()
