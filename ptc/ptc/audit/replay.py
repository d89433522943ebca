"""Replay as proof: runs a recorded local program again and says whether the log explains what it gave.

It is told a log and a keyring. The program runs in the sandbox with the recorded journal and no tools: every
answer comes from the journal, nothing has an effect. Before that, the journal is compared with the log,
record by record. It never changes the log, and never says `proven` for what it could not check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ptc.audit.accounts import account_for_calls, compare_records, unrecorded
from ptc.audit.errors import AuditCorrupt, AuditError, RecordNotFound
from ptc.audit.explain import (
    SUSPENDED,
    Life,
    Parted,
    Unprovable,
    check_begun_here,
    compare_before,
    compare_calls,
    compare_end,
    compare_once,
    compare_said,
    compare_start,
    lives,
    the_ends,
)
from ptc.audit.journals import read
from ptc.audit.keys import Keyring
from ptc.audit.query import Filter, select
from ptc.audit.reader import Record
from ptc_sandbox.errors import JournalError, ReplayDiverged, ReplayIncompatible
from ptc_sandbox.events import CallRequested, Ended
from ptc_sandbox.execution import Execution
from ptc_sandbox.journal import CallMade, Journal
from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.sandbox import Sandbox
from ptc_sandbox.stubs import ToolStub
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.command_line import ptc_command

Verdict: TypeAlias = Literal["proven", "diverged", "not provable"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What replaying one program showed. `seq` is the record at which log and program part, where they do."""

    program: str
    verdict: Verdict
    why: str
    seq: int | None = None
    calls: int = 0

    def to_json(self) -> JsonObject:
        return {
            "program": self.program,
            "verdict": self.verdict,
            "why": self.why,
            "seq": self.seq,
            "calls": self.calls,
        }


async def replay(path: Path, run_id: str, keys: Keyring, sandbox: Sandbox | None = None) -> list[Proof]:
    """A proof for each program of the run, in the order in which they began.

    Raises RecordNotFound where the log holds nothing of the run.
    """
    found = list(select(path, Filter(run=run_id)))
    if not found:
        raise RecordNotFound(
            f"{path} has no record of the run {run_id!r}; `{ptc_command()} audit show {path}` lists the runs"
        )
    return [await _prove(path, life, keys, sandbox) for life in lives(found)]


def overall(proofs: Iterable[Proof]) -> Verdict:
    """One word for a run: what is worst for any of its programs."""
    verdicts = {proof.verdict for proof in proofs}
    return "diverged" if "diverged" in verdicts else "proven" if verdicts == {"proven"} else "not provable"


async def _prove(path: Path, life: Life, keys: Keyring, sandbox: Sandbox | None) -> Proof:
    call_id, calls = life.call_id, 0
    try:
        ends = the_ends(life)
        bundles = [_bundle(path, life, end, keys) for end in ends]
        bundle = bundles[-1]
        journal = Journal.from_json(bundle["journal"])
        calls = sum(isinstance(entry, CallMade) for entry in journal.entries)
        compare_start(life, bundle, journal, keys)
        compare_once(life)
        check_begun_here(life, bundle)
        _compare_calls(life, list(zip(ends, bundles, strict=True)), journal, keys)
        result = await _again(life.starts[-1], bundle, journal, sandbox)
        for end, told in zip(ends, bundles, strict=True):
            if end is ends[-1] or end["data"].get("status") != SUSPENDED:
                compare_end(end, result, keys)
            compare_said(life, end, told, keys)
        account_for_calls(life, bundle, journal, keys)
    except Unprovable as reason:
        return Proof(call_id, "not provable", str(reason), calls=calls)
    except Parted as parting:
        return Proof(call_id, "diverged", str(parting), parting.seq, calls)
    except ReplayIncompatible as error:
        return Proof(call_id, "not provable", f"it cannot be run again here: {error.message}", calls=calls)
    except ReplayDiverged as error:
        return Proof(
            call_id, "diverged", f"run again, the program did something else: {error.message}", calls=calls
        )
    except (AuditCorrupt, JournalError) as error:
        return Proof(call_id, "diverged", error.message, calls=calls)
    except AuditError as error:
        return Proof(call_id, "not provable", error.message, calls=calls)
    return Proof(call_id, "proven", "run again, it gave the same output and value", calls=calls)


def _compare_calls(
    life: Life, times: list[tuple[Record, JsonObject]], journal: Journal, keys: Keyring
) -> None:
    """What differs is said in so many words where it can be; that a record was changed at all, in any case."""
    bundle = times[-1][1]
    unsure: Unprovable | None = None
    try:
        compare_calls(life, journal, keys, unrecorded(bundle))
    except Unprovable as reason:
        unsure = reason
    for end, told in times:
        try:
            compare_records(life, end, told)
        except Unprovable as reason:
            unsure = unsure or reason
    if unsure is not None:
        raise unsure
    compare_before(life, bundle)


def _bundle(path: Path, life: Life, end: Record, keys: Keyring) -> JsonObject:
    link = end["data"].get("journal")
    if not isinstance(link, dict):
        raise Unprovable(
            "not at this level: no journal was kept. AuditLog(..., journals=True), or the level full, keeps one"
        )
    return read(path, end["log"], end["identity"]["run"], life.call_id, link, keys)


async def _again(
    program: Record, bundle: JsonObject, journal: Journal, sandbox: Sandbox | None
) -> ProgramResult:
    code, stubs = bundle["code"], bundle["stubs"]
    assert isinstance(code, str)
    assert isinstance(stubs, list)
    limits = _limits(program["data"].get("limits"))
    if sandbox is not None:
        return await _run(sandbox, code, _stubs(stubs), journal)
    async with Sandbox(limits=limits, ahead=1) as own:
        return await _run(own, code, _stubs(stubs), journal)


async def _run(sandbox: Sandbox, code: str, stubs: list[ToolStub], journal: Journal) -> ProgramResult:
    execution: Execution = await sandbox.start(code, tools=stubs, journal=journal)
    try:
        made = {entry.number for entry in journal.entries if isinstance(entry, CallMade)}
        while True:
            event = await execution.next_event()
            if isinstance(event, Ended):
                return event.result
            if isinstance(event, CallRequested) and event.number not in made:
                raise Parted(f"run again, the program made a call {event.number} that it had not made")
    finally:
        await execution.aclose()


def _limits(recorded: object) -> Limits:
    if not isinstance(recorded, dict):
        return Limits()
    known = {name: value for name, value in recorded.items() if name in Limits.__slots__}
    try:
        return Limits(**known)
    except (TypeError, ValueError):
        raise Parted("the limits in the log are none that a program can run under") from None


def _stubs(stubs: list[JsonValue]) -> list[ToolStub]:
    made: list[ToolStub] = []
    for stub in stubs:
        assert isinstance(stub, list)
        program_name, name, namespace, parameters, doc = stub
        assert isinstance(parameters, list)
        made.append(
            ToolStub(
                str(program_name),
                str(name),
                None if namespace is None else str(namespace),
                tuple(str(parameter) for parameter in parameters),
                str(doc),
            )
        )
    return made
