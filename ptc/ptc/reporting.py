"""Listens to the one path for a run's own report, and passes everything on to the application's recorder.

Because it stands where the audit record stands, no call escapes it, whoever made it. It decides nothing,
and a recorder that refuses stays in charge: what it raises goes through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ptc.result import CallReport, Language, ProgramReport
from ptc.toolbox import HOSTED_PROGRAMS
from ptc_tools import strict_json
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Cancelled, Denied, Outcome
from ptc_tools.record import Recorder
from ptc_tools.settle import Done


@dataclass(slots=True)
class _Running:
    call: Call
    request: int
    started_us: int
    order: int
    token: object


class RunReporter:
    """The recorder of one run. `heard` is told of each call's start and end, for streams."""

    def __init__(
        self,
        recorder: Recorder | None,
        *,
        on_start: Callable[[Call], None] | None = None,
        on_finish: Callable[[CallReport], None] | None = None,
    ) -> None:
        self.request = 0
        self._recorder = recorder
        self._on_start = on_start
        self._on_finish = on_finish
        self._reports: list[tuple[int, CallReport]] = []
        self._order = 0
        self._told: set[tuple[int, str]] = set()
        self._let_in: set[tuple[int, str]] = set()
        self._programs: dict[str, ProgramReport] = {}
        self.suspended: dict[str, JsonObject] = {}

    @property
    def programs(self) -> tuple[ProgramReport, ...]:
        """Every program so far, hosted and local, in the order in which they started."""
        return tuple(self._programs.values())

    @property
    def calls(self) -> tuple[CallReport, ...]:
        """Every call so far, in the order in which they started."""
        return tuple(report for _, report in sorted(self._reports, key=lambda entry: entry[0]))

    @property
    def ran(self) -> frozenset[str]:
        """Qualified names of the tools that really ran; programs of the service are one of them."""
        names = {report.call.qualified_name for _, report in self._reports if report.ran}
        hosted = any(program.language == "javascript" for program in self._programs.values())
        return frozenset(names | {HOSTED_PROGRAMS} if hosted else names)

    @property
    def anything_ran(self) -> bool:
        """Whether any call was let in to run, also one that has no report."""
        return bool(self._let_in) or any(report.ran for _, report in self._reports)

    def has_run(self, call: Call) -> bool:
        """Whether this call of the current response was let in to run. The path says so, not the outcome."""
        return (self.request, call.call_id) in self._let_in

    def restore(self, calls: Sequence[CallReport], programs: Sequence[ProgramReport]) -> None:
        """Begins with what the run did before it was paused."""
        self._reports = list(enumerate(calls, 1))
        self._order = len(calls)
        self._programs = {program.call_id: program for program in programs}

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> object:
        token = None
        if self._recorder is not None:
            token = await self._recorder.started(call, contract, arguments, run)
        self._order += 1
        self._let_in.add((self.request, call.call_id))
        if self._on_start is not None:
            self._on_start(call)
        return _Running(call, self.request, time.time_ns() // 1000, self._order, token)

    def finished(self, token: object, outcome: Outcome, duration_us: int) -> Coroutine[Any, Any, None]:
        assert isinstance(token, _Running)
        report = CallReport(token.call, outcome, token.started_us, duration_us, token.request)
        step: Coroutine[Any, Any, None] = Done(None)
        if self._recorder is not None:
            step = self._recorder.finished(token.token, outcome, duration_us)
        if not isinstance(step, Done):
            return self._finished(step, token.order, report)
        step.result()
        self._add(token.order, report)
        return step

    async def _finished(self, step: Coroutine[Any, Any, None], order: int, report: CallReport) -> None:
        await step
        self._add(order, report)

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        if self._recorder is not None:
            await self._recorder.denied(call, contract, outcome, run)
        self.note(call, Cancelled(outcome.message) if outcome.code == "cancelled" else outcome)

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        if self._recorder is not None:
            await self._recorder.event(type, data, run)
        self.hear(type, data)

    def hear(self, type: str, data: JsonObject) -> None:
        """Takes an event into the report alone: one that was recorded before."""
        if type == "program.started":
            self._program_started(data)
        elif type == "program.finished":
            self._program_finished(data)

    def _program_started(self, data: JsonObject) -> None:
        call_id = str(data["call_id"])
        language: Language = "python" if data.get("language") == "python" else "javascript"
        self._programs[call_id] = ProgramReport(call_id, str(data.get("code") or ""), language, None, "open")

    def _program_finished(self, data: JsonObject) -> None:
        replay = data.get("replay")
        if data.get("status") == "suspended" and isinstance(replay, dict):
            journal = replay.get("journal")
            if isinstance(journal, dict):
                self.suspended[str(data["call_id"])] = journal
        program = self._programs.get(str(data["call_id"]))
        if program is not None:
            result = data.get("result")
            if "result" not in data:  # a local program: the hosted one's output is a text
                value = data.get("value")
                result = data.get("output") if value is None else strict_json.dumps(value)
            text = result if isinstance(result, str) else None
            self._programs[program.call_id] = replace(program, result=text, status=str(data.get("status")))

    def note(self, call: Call, outcome: Outcome, *, reused: bool = False) -> None:
        """Reports a call that did not run: denied, cancelled before it started, or given again."""
        self._order += 1
        ran = self.has_run(call) or (reused and outcome.status != "denied")
        report = CallReport(call, outcome, time.time_ns() // 1000, 0, self.request, reused, ran)
        self._add(self._order, report)

    def note_missing(self, call: Call, outcome: Outcome) -> None:
        """Reports a call's outcome unless the path did: one that was given up before it could start."""
        if (self.request, call.call_id) not in self._told:
            self.note(call, outcome)

    def _add(self, order: int, report: CallReport) -> None:
        self._told.add((report.request, report.call.call_id))
        self._reports.append((order, report))
        if self._on_finish is not None:
            self._on_finish(report)
