"""A run as the viewer shows it: turns, in them programs, in them calls. Built from records, values only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ptc.audit.query import tool_of
from ptc.audit.reader import Record


@dataclass(slots=True)
class CallView:
    """One call: `status` is success, failure, cancelled, denied, or indeterminate where it has no end."""

    seq: int
    call_id: str
    tool: str
    program: str | None
    line: int | None
    turn: int
    began_us: int
    ended_us: int | None
    status: str
    code: str | None
    duration_us: int | None
    level: str
    arguments: Any
    result: Any
    message: Any
    tool_facts: dict[str, Any]


@dataclass(slots=True)
class ProgramView:
    """One program and what it did."""

    call_id: str
    language: str
    where: str
    turn: int
    began_us: int
    ended_us: int | None
    status: str
    code: Any
    facts: dict[str, Any]
    calls: list[CallView] = field(default_factory=list)


@dataclass(slots=True)
class TurnView:
    """One request and what followed from it; number 0 is what came before any request."""

    number: int
    response: str | None
    programs: list[ProgramView] = field(default_factory=list)
    calls: list[CallView] = field(default_factory=list)


@dataclass(slots=True)
class RunView:
    """One run."""

    run: str
    log: str
    actor: str | None
    began_us: int
    ended_us: int
    facts: dict[str, Any]
    turns: list[TurnView]
    violations: list[Record]
    records: list[Record]

    @property
    def calls(self) -> list[CallView]:
        """Every call, in the order in which they began."""
        found = [call for turn in self.turns for call in turn.calls]
        found += [call for turn in self.turns for program in turn.programs for call in program.calls]
        return sorted(found, key=lambda call: call.seq)


def run_view(run: str, records: Iterable[Record]) -> RunView:
    """The run's view, from its records in the log's order."""
    found = list(records)
    calls: dict[int, CallView] = {}
    programs: dict[str, ProgramView] = {}
    turns: dict[int, TurnView] = {}
    facts: dict[str, Any] = {}
    for record in found:
        type, data = record["type"], record.get("data", {})
        identity = record.get("identity", {})
        turn = turns.setdefault(_turn(identity), TurnView(_turn(identity), None))
        turn.response = identity.get("response") or turn.response
        if type in ("tool.started", "tool.denied"):
            calls[record["seq"]] = _call(record)
        elif type == "tool.finished":
            _end(calls, record)
        elif type == "program.started":
            program = programs[str(data.get("call_id"))] = _program(record)
            turn.programs.append(program)
        elif type == "program.finished":
            _end_program(programs, record)
        elif type in ("run.started", "run.finished"):
            facts.update(data)
    for call in calls.values():
        owner = programs.get(call.program) if call.program is not None else None
        (turns[call.turn].calls if owner is None else owner.calls).append(call)
    shown = [turns[number] for number in sorted(turns) if turns[number].programs or turns[number].calls]
    return RunView(
        run=run,
        log=found[0]["log"],
        actor=next((r["identity"]["actor"] for r in found if "actor" in r.get("identity", {})), None),
        began_us=min(record["at"] for record in found),
        ended_us=max(record["at"] for record in found),
        facts=facts,
        turns=shown,
        violations=[r for r in found if r["type"] in ("sandbox.violation", "sandbox.killed")],
        records=found,
    )


def _turn(identity: dict[str, Any]) -> int:
    turn = identity.get("turn")
    return turn if isinstance(turn, int) else 0


def _call(record: Record) -> CallView:
    content, outcome, origin = record["content"], record.get("outcome", {}), record["origin"]
    denied = record["type"] == "tool.denied"
    return CallView(
        seq=record["seq"],
        call_id=record["identity"].get("call", ""),
        tool=tool_of(record) or "",
        program=origin.get("program"),
        line=origin.get("line"),
        turn=_turn(record["identity"]),
        began_us=record["at"],
        ended_us=record["at"] if denied else None,
        status="denied" if denied else "indeterminate",
        code=outcome.get("code"),
        duration_us=0 if denied else None,
        level=content.get("level", ""),
        arguments=content.get("arguments"),
        result=None,
        message=content.get("message"),
        tool_facts=record["tool"],
    )


def _end(calls: dict[int, CallView], record: Record) -> None:
    call = calls.get(record.get("start", -1))
    if call is None:
        return
    outcome, content = record["outcome"], record["content"]
    call.ended_us = record["at"]
    call.status = outcome["status"]
    call.code = outcome.get("code")
    call.duration_us = outcome["duration_us"]
    call.result = content.get("result")
    call.message = content.get("message")


def _program(record: Record) -> ProgramView:
    data = record["data"]
    return ProgramView(
        call_id=str(data.get("call_id")),
        language=str(data.get("language", "")),
        where=str(data.get("where", "")),
        turn=_turn(record["identity"]),
        began_us=record["at"],
        ended_us=None,
        status="open",
        code=data.get("code"),
        facts={name: value for name, value in data.items() if name not in ("code", "call_id")},
    )


def _end_program(programs: dict[str, ProgramView], record: Record) -> None:
    data = record["data"]
    program = programs.get(str(data.get("call_id")))
    if program is not None:
        program.ended_us = record["at"]
        program.status = str(data.get("status"))
        program.facts.update(
            (name, value) for name, value in data.items() if name not in ("call_id", "status")
        )
