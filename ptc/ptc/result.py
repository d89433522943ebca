"""What a run gives: the answer, the transcript as raw wire items, and a report of each call and program.

Plain values. `items` are the wire's own dicts: `to_input()` gives them back for the next turn unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias

from typing_extensions import TypeVar

from ptc.usage import Usage
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.outcome import Outcome

if TYPE_CHECKING:
    from ptc.approval import ApprovalRequest
    from ptc.state import RunState

OutputT = TypeVar("OutputT", default=JsonValue)

Language: TypeAlias = Literal["javascript", "python"]
RunStatus: TypeAlias = Literal["completed", "refused", "terminated", "paused"]
"""`paused`: calls wait for an approval, see `approvals` and `state`. `terminated`: middleware ended the run
with what there was. Errors are exceptions, not results."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call, whoever made it. Times in microseconds, `started_us` since the epoch.

    `request` is the number (from 1) of the request whose response asked for it; for a call from inside a
    local program, the one that asked for the program. `reused`: the call had been executed before in this
    run, and its outcome was given again without running it. `ran`: it was let in to run, so that it may have
    had its effect, whatever the outcome says: a middleware may deny a call after its tool has run.
    """

    call: Call
    outcome: Outcome
    started_us: int
    duration_us: int
    request: int
    reused: bool = False
    ran: bool = True


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """One program: `result` is what went back to the model; `status` `open` when the run ended before it."""

    call_id: str
    code: str
    language: Language
    result: str | None
    status: str


@dataclass(frozen=True, slots=True)
class UncertainCall:
    """A call that was admitted, and of which the outcome is missing: the process ended in between.

    `resolution`: `run_again` (a read, or somebody decided so), `same_key` (an idempotent mutation, run again
    with the same idempotency key), `reconciled` (the declared read told), `decided` (somebody did), `waiting`.
    `attempt` is the number of the attempt that nobody saw the end of.
    """

    call: Call
    attempt: int
    resolution: Literal["run_again", "same_key", "reconciled", "decided", "waiting"]


@dataclass(frozen=True, slots=True)
class RunResult(Generic[OutputT]):
    """A finished run.

    `output_text` is the answer alone, without commentary; `output` the answer as the output type that was
    asked for, and else None. `refusal` is set when the model refused. `incomplete_reason` is set when the
    service cut what followed the answer. `limit` names the limit after which the last answer was given.
    A paused run has `approvals`, the calls that wait, and `state`, from which `Runner.resume` goes on.
    `uncertain`: for a recovered run, the calls that ran when its process ended, and what was done about each.
    `unsent`: where the service keeps the history, what it has not got of it: the outputs of the calls after which
    the run was ended. The next turn is `[*result.unsent, message]` there, after `response_id`.
    """

    run_id: str
    output_text: str
    items: tuple[JsonObject, ...]
    calls: tuple[CallReport, ...]
    programs: tuple[ProgramReport, ...]
    usage: Usage
    requests: int
    status: RunStatus = "completed"
    refusal: str | None = None
    output: OutputT | None = None
    incomplete_reason: str | None = None
    limit: str | None = None
    response_id: str | None = None
    approvals: tuple[ApprovalRequest, ...] = ()
    state: RunState | None = None
    uncertain: tuple[UncertainCall, ...] = ()
    unsent: tuple[JsonObject, ...] = ()

    def to_input(self, message: object = None) -> list[JsonObject]:
        """The input of the next turn: this run's items, and the new message (text or items) after them.

        For a service that keeps no history. One that does has them: see `unsent`.
        """
        from ptc.items import as_items

        return [*self.items, *([] if message is None else as_items(message))]

    def output_as(self, kind: type[OutputT]) -> OutputT:
        """`output`, for a type checker that cannot see which output type the run was asked for."""
        if not isinstance(self.output, kind):
            raise TypeError(f"the run's output is a {type(self.output).__name__}, not a {kind.__name__}")
        return self.output
