"""Replay as proof: runs a recorded local program again and says whether the log explains what it gave.

It is told a log and a keyring. The program runs in the sandbox with the recorded journal and no tools: every
answer comes from the journal, nothing has an effect. Before that, the journal is compared with the log,
record by record. It never changes the log, and never says `proven` for what it could not check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ptc.audit.errors import AuditCorrupt, AuditError, RecordNotFound
from ptc.audit.journals import read
from ptc.audit.keys import Key, Keyring
from ptc.audit.query import SUCCEEDED, Filter, select
from ptc.audit.reader import Record
from ptc.audit.showing import shows
from ptc_sandbox.errors import JournalError, ReplayDiverged, ReplayIncompatible
from ptc_sandbox.events import CallRequested, Ended
from ptc_sandbox.execution import Execution
from ptc_sandbox.journal import CallAnswered, CallMade, Journal
from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.sandbox import Sandbox
from ptc_sandbox.stubs import ToolStub
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.command_line import ptc_command

Verdict: TypeAlias = Literal["proven", "diverged", "not provable"]
_DETERMINED = ("completed", "raised", "denied")


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


class _Parted(Exception):
    def __init__(self, why: str, record: Record | None = None) -> None:
        super().__init__(why)
        self.seq: int | None = record["seq"] if record else None


class _Unprovable(Exception):
    pass


async def replay(path: Path, run_id: str, keys: Keyring, sandbox: Sandbox | None = None) -> list[Proof]:
    """A proof for each program of the run, in the order in which they began.

    Raises RecordNotFound where the log holds nothing of the run.
    """
    found = list(select(path, Filter(run=run_id)))
    if not found:
        raise RecordNotFound(
            f"{path} has no record of the run {run_id!r}; `{ptc_command()} audit show {path}` lists the runs"
        )
    return [
        await _prove(path, program, found, keys, sandbox) for program in _of_type(found, "program.started")
    ]


def overall(proofs: Iterable[Proof]) -> Verdict:
    """One word for a run: what is worst for any of its programs."""
    verdicts = {proof.verdict for proof in proofs}
    return "diverged" if "diverged" in verdicts else "proven" if verdicts == {"proven"} else "not provable"


async def _prove(
    path: Path, program: Record, found: list[Record], keys: Keyring, sandbox: Sandbox | None
) -> Proof:
    call_id = str(program["data"].get("call_id"))
    calls = 0
    try:
        end = _end_of(program, call_id, found)
        bundle = _bundle(path, program, end, call_id, keys)
        journal = Journal.from_json(bundle["journal"])
        calls = sum(isinstance(entry, CallMade) for entry in journal.entries)
        _compare_start(program, bundle, journal, keys)
        _compare_once(program, call_id, found)
        _compare_calls(call_id, found, journal, keys)
        result = await _again(program, bundle, journal, sandbox)
        _compare_end(end, result, keys)
    except _Unprovable as reason:
        return Proof(call_id, "not provable", str(reason), calls=calls)
    except _Parted as parting:
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


def _end_of(program: Record, call_id: str, found: list[Record]) -> Record:
    if program["data"].get("where") == "hosted":
        raise _Unprovable(
            "the provider ran this program; only programs of the local sandbox can be run again"
        )
    ends = [
        record
        for record in _while_it_ran(program, call_id, found)
        if record["type"] == "program.finished" and record["data"].get("call_id") == call_id
    ]
    if not ends:
        raise _Unprovable("the log does not hold the program's end: it is indeterminate")
    if len(ends) > 1:
        raise _Parted("the log says twice how the program ended", ends[1])
    return ends[0]


def _while_it_ran(program: Record, call_id: str, found: list[Record]) -> Iterator[Record]:
    """The records from this start of the program to its next, where a recovered run began it again."""
    for record in found:
        if record["seq"] <= program["seq"]:
            continue
        if record["type"] == "program.started" and record["data"].get("call_id") == call_id:
            return
        yield record


def _compare_once(program: Record, call_id: str, found: list[Record]) -> None:
    """A call has one start and one end, or one refusal: a second one would tell another story."""
    starts: dict[str, Record] = {}
    ends: Counter[str] = Counter()
    for record in _calls_of(call_id, list(_while_it_ran(program, call_id, found))):
        name = record["identity"]["call"]
        if record["type"] == "tool.started":
            if name in starts or ends[name]:
                raise _Parted(f"the log says twice that {name} started", record)
            starts[name] = record
            continue
        ends[name] += 1
        if ends[name] > 1:
            raise _Parted(f"the log says twice how {name} ended", record)
        start = record.get("start")
        if name in starts and start is not None and start != starts[name]["seq"]:
            raise _Parted(f"the end of {name} does not belong to its start", record)


def _bundle(path: Path, program: Record, end: Record, call_id: str, keys: Keyring) -> JsonObject:
    link = end["data"].get("journal")
    if not isinstance(link, dict):
        raise _Unprovable(
            "not at this level: no journal was kept. AuditLog(..., journals=True), or the level full, keeps one"
        )
    return read(path, program["log"], program["identity"]["run"], call_id, link, keys)


def _compare_start(program: Record, bundle: JsonObject, journal: Journal, keys: Keyring) -> None:
    data = program["data"]
    if (data.get("seed"), data.get("policy_hash")) != (journal.header.seed, journal.header.policy):
        raise _Parted("the seed or the policy in the log is not the one that the program ran with", program)
    if "limits" in bundle and data.get("limits") != bundle["limits"]:
        raise _Parted("the limits in the log are not those that the program ran under", program)
    if not _fits(program["data"].get("code_digest"), bundle["code"], keys):
        raise _Parted("the program text in the journal is not the one that the log recorded", program)
    if not _shown(program["data"], "code", bundle["code"], keys):
        raise _Parted("the program text in the log is not the one that ran", program)


def _compare_calls(call_id: str, found: list[Record], journal: Journal, keys: Keyring) -> None:
    """The log's calls of this program and the journal's are the same, with the same arguments and answers."""
    made = {f"{call_id}:{entry.number}": entry for entry in journal.entries if isinstance(entry, CallMade)}
    answers = {
        f"{call_id}:{entry.number}": entry for entry in journal.entries if isinstance(entry, CallAnswered)
    }
    for record in _calls_of(call_id, found):
        name = record["identity"]["call"]
        entry = made.get(name)
        if entry is None:
            raise _Parted(f"the log has a call {name} that the program never made", record)
        tool = record["tool"]
        told = tuple(
            _name_told(shown, real, keys)
            for shown, real in ((tool.get("namespace"), entry.namespace), (tool["name"], entry.name))
        )
        if told != (entry.namespace, entry.name):
            raise _Parted(f"the log says that {name} called another tool than the program did", record)
        if record["type"] in ("tool.started", "tool.denied"):
            _compare_content(record, "arguments", entry.arguments, keys)
        elif not _fits(record["content"].get("arguments_digest"), entry.arguments, keys):
            raise _Parted(f"the arguments at the end of {name} are not those of its start", record)
        if record["type"] in ("tool.finished", "tool.denied"):
            answer = answers.pop(name, None)
            if answer is not None:
                _compare_answer(record, answer, keys)
    if answers:
        raise _Parted(f"the program was given an answer for {min(answers)} that the log does not know")


def _name_told(shown: object, real: str | None, keys: Keyring) -> object:
    """The name in a record; where it was redacted, the real one if the digest is of it."""
    mark, _, digest = str(shown).rpartition(" ")
    if real is not None and mark.startswith("$redacted ") and _fits(digest, real, keys):
        return real
    return shown


def _compare_answer(record: Record, entry: CallAnswered, keys: Keyring) -> None:
    outcome = record["outcome"]
    if entry.answer.ok != (outcome["status"] in SUCCEEDED):
        raise _Parted("the log says that a call ended otherwise than the program was told", record)
    if entry.answer.ok:
        _compare_content(record, "result", entry.answer.value, keys)
        return
    told = entry.answer.value
    if not isinstance(told, dict) or (told.get("status"), told.get("code")) != (
        outcome["status"],
        outcome["code"],
    ):
        raise _Parted("the log says that a call failed otherwise than the program was told", record)
    key = _digest_key(record["content"].get("arguments_digest"), keys)
    if not shows(record["content"].get("message"), told.get("message"), key):
        raise _Parted("the log says another message than the program was told", record)


def _compare_content(record: Record, name: str, value: JsonValue, keys: Keyring) -> None:
    content = record["content"]
    if not _fits(content.get(f"{name}_digest"), value, keys):
        raise _Parted(
            f"the {name} in the log of {record['identity']['call']} are not what the program had", record
        )
    if not _shown(content, name, value, keys):
        raise _Parted(f"the {name} shown in the log of {record['identity']['call']} were changed", record)


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
                raise _Parted(f"run again, the program made a call {event.number} that it had not made")
    finally:
        await execution.aclose()


def _compare_end(end: Record, result: ProgramResult, keys: Keyring) -> None:
    data = end["data"]
    status = data.get("status")
    if status not in _DETERMINED:
        raise _Unprovable(f"the program was ended from outside ({status}): the same need not happen again")
    if result.status != status:
        raise _Parted(f"run again, the program ended as {result.status} and the log says {status}", end)
    for name, value in (("output", result.output), ("value", result.value)):
        if not _fits(data.get(f"{name}_digest"), value, keys):
            raise _Parted(f"run again, the program's {name} is another than the log says", end)
        if not _shown(data, name, value, keys):
            raise _Parted(f"the {name} shown in the log was changed", end)
    error, key = result.error, _digest_key(data.get("output_digest"), keys)
    said: JsonObject = {
        "wall": error.wall if error else None,
        "error_type": error.type if error else None,
        "message": error.message if error else None,
        "line": error.line if error else None,
    }
    for name, value in said.items():
        if not shows(data.get(name), value, key):
            raise _Parted(f"run again, the program's {name} is another than the log says", end)


def _fits(digest: object, value: JsonValue, keys: Keyring) -> bool:
    """Whether a keyed digest from the log is this value's. Raises _Unprovable without its key."""
    return _digest_key(digest, keys).digest(value) == digest


def _digest_key(digest: object, keys: Keyring) -> Key:
    key_id, _, _ = str(digest).partition(":")
    key = keys.get(key_id)
    if key is None or key.purpose != "digest":
        raise _Unprovable(f"the keyring has no digest key {key_id!r}, with which this log was written")
    return key


def _shown(members: Record, name: str, value: JsonValue, keys: Keyring) -> bool:
    """Whether a record shows this value under a name, and nothing else where it is not redacted."""
    return name in members and shows(members[name], value, _digest_key(members[f"{name}_digest"], keys))


def _limits(recorded: object) -> Limits:
    if not isinstance(recorded, dict):
        return Limits()
    known = {name: value for name, value in recorded.items() if name in Limits.__slots__}
    try:
        return Limits(**known)
    except (TypeError, ValueError):
        raise _Parted("the limits in the log are none that a program can run under") from None


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


def _of_type(found: list[Record], type: str) -> Iterator[Record]:
    return (record for record in found if record["type"] == type)


def _calls_of(call_id: str, found: list[Record]) -> Iterator[Record]:
    return (
        record
        for record in found
        if record["type"] in ("tool.started", "tool.finished", "tool.denied")
        and record.get("origin", {}).get("program") == call_id
    )
