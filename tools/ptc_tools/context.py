"""What the host knows about a run and says to the tools: trusted, never from the model's words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ptc_tools.call import Call
from ptc_tools.outcome import Outcome


class OpenPrograms:
    """The programs of one run that may make calls now, by their call id.

    A call whose `caller_id` is not in here is forged, or too late, and does not run (wire.md, rule 6).
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    def open(self, caller_id: str) -> None:
        self._open.add(caller_id)

    def close(self, caller_id: str) -> None:
        self._open.discard(caller_id)

    def __contains__(self, caller_id: object) -> bool:
        return caller_id in self._open


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run, as the host sees it.

    `principal` is who the run acts for; `labels` are the application's own words about the run. Both come
    from the application alone and reach policy, tools and the audit record.
    """

    run_id: str
    principal: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    programs: OpenPrograms = field(default_factory=OpenPrograms)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Given to a tool that declares a parameter of this type; never part of what the model sees.

    `invoke` is the one path itself: a tool that runs a program passes the program's calls through it.
    """

    run: RunContext
    call: Call
    invoke: Callable[[Call, RunContext], Awaitable[Outcome]]
    attempt: int = 1
