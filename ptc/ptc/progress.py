"""What a streamed run says on the way: typed values, in the order in which things happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ptc.events import Commentary, Finished, ProgramClosed, ProgramOpened, ProgramPaused, Refused
from ptc.result import CallReport, RunResult
from ptc.streaming import ReasoningDelta, RefusalDelta, TextDelta
from ptc_tools.call import Call


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first event of every stream."""

    run_id: str


@dataclass(frozen=True, slots=True)
class RequestSent:
    """A request goes out. From `attempt` 2 on the deltas of the attempt before are void."""

    request: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool starts; calls from inside a local program are told as well."""

    call: Call


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call has its outcome: it ran, or it was refused."""

    report: CallReport


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of a run that came to a result."""

    result: RunResult[object]


RunEvent: TypeAlias = (
    RunStarted
    | RequestSent
    | TextDelta
    | RefusalDelta
    | ReasoningDelta
    | ProgramOpened
    | ProgramPaused
    | ProgramClosed
    | Commentary
    | CallStarted
    | CallFinished
    | Finished
    | Refused
    | RunFinished
)
