"""Compares what a log says of a program with the program's journal, and with what it gave when it ran again.

It is told records and values and raises `Parted` where they differ and `Unprovable` where they cannot be
compared. What a record leaves out is compared by its digest; nothing is taken for equal unseen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from ptc.audit.keys import Key, Keyring
from ptc.audit.query import SUCCEEDED
from ptc.audit.reader import Record
from ptc.audit.showing import shows
from ptc_sandbox.journal import CallAnswered, CallMade, Journal
from ptc_sandbox.result import ProgramResult
from ptc_tools.call import JsonObject, JsonValue

DETERMINED: Final = ("completed", "raised", "denied")
SUSPENDED: Final = "suspended"
_SETTLED: Final = ("reconciled", "decided")
_WHOSE: Final = ("actor", "tenant", "trace", "span")


class Parted(Exception):
    """Log and program part, at the record with number `seq` where there is one."""

    def __init__(self, why: str, record: Record | None = None) -> None:
        super().__init__(why)
        self.seq: int | None = record["seq"] if record else None


class Unprovable(Exception):
    """What would have to be compared is not there, or cannot be."""


@dataclass(slots=True)
class Life:
    """One program as the log tells it: its starts, what happened while it ran, its ends.

    A run that a process took up again begins its programs again, also one that had ended just before, and a
    program that waited for a decision goes on: so there may be several starts and ends, oldest first.
    """

    call_id: str
    starts: list[Record] = field(default_factory=list)
    calls: list[Record] = field(default_factory=list)
    ends: list[Record] = field(default_factory=list)
    again: bool = False
    """Whether the log tells of a program by this id before, which ended."""
    settled: set[str] = field(default_factory=set)
    """Calls whose outcome a recovered run found out without running them: no record holds it."""


def lives(found: Iterable[Record]) -> list[Life]:
    """The programs of a run. An id that is used again after its program ended is another program.

    Except in a run that was recovered in between, and where it was suspended: those go on from their journals.
    """
    current: dict[str, Life] = {}
    told: list[Life] = []
    settled: set[str] = set()
    resumed: set[str] = set()
    for record in found:
        data, type = record.get("data", {}), record["type"]
        if type == "call.uncertain" and data.get("resolution") in _SETTLED:
            settled.add(str(data.get("call_id")))
        elif type == "run.recovered":
            resumed.update(current)
        program = _program_of(record)
        if program is None:
            continue
        life = current.get(program)
        again = type == "program.started" and life is not None and life.starts and life.ends
        if life is None or (again and program not in resumed and not _waits(life)):
            life = current[program] = Life(program, again=life is not None, settled=settled)
            told.append(life)
        if type == "program.started":
            resumed.discard(program)
            life.starts.append(record)
        elif type == "program.finished":
            life.ends.append(record)
        else:
            life.calls.append(record)
    return sorted((life for life in told if life.starts), key=lambda life: int(life.starts[-1]["seq"]))


def _waits(life: Life) -> bool:
    """Whether the program was suspended last, and was not begun again since."""
    end = life.ends[-1]
    return bool(end["data"].get("status") == SUSPENDED and end["seq"] > life.starts[-1]["seq"])


def _program_of(record: Record) -> str | None:
    if record["type"] in ("program.started", "program.finished"):
        return str(record.get("data", {}).get("call_id"))
    if record["type"] in ("tool.started", "tool.finished", "tool.denied"):
        program = record.get("origin", {}).get("program")
        return program if isinstance(program, str) else None
    return None


def the_ends(life: Life) -> list[Record]:
    """The records of the program's end, one for each time that it was run to it.

    Raises Unprovable where there is none, Parted where there are two of one time.
    """
    if life.starts[-1]["data"].get("where") == "hosted":
        raise Unprovable("the provider ran this program; only programs of the local sandbox can be run again")
    if not life.ends:
        raise Unprovable("the log does not hold the program's end: it is indeterminate")
    times = [sum(start["seq"] < end["seq"] for start in life.starts) for end in life.ends]
    for end, time, before in zip(life.ends, times, [0, *times], strict=False):
        if time == before:
            raise Parted("the log says twice how the program ended", end)
    return life.ends


def check_begun_here(life: Life, bundle: JsonObject) -> None:
    """Raises Unprovable where it went on from a time that the log tells as another's."""
    if life.again and len(life.starts) == 1 and bundle.get("resumed") is True:
        raise Unprovable(
            "it went on from a time from which it had gone on to an end before: the paused run was resumed twice"
        )


def compare_before(life: Life, bundle: JsonObject) -> None:
    """Nothing is told of the program from before it began, unless it went on from an earlier time.

    Whether it did, the sealed journal says. Raises Parted for a story of a time that never was, and Unprovable
    for an end that was recorded then and was not the last: no digest of it was kept.
    """
    first, begun = life.starts[0]["seq"], life.starts[-1]["seq"]
    early = [record for record in life.calls if record["seq"] < begun]
    if any(record["seq"] < first for record in early):
        raise Parted("the log has a call of this program from before it began", early[0])
    told = bundle.get("told")
    went_on = bundle.get("resumed") is True or (isinstance(told, dict) and told.get("recovered") is True)
    if len(life.starts) > 1 and not went_on:
        raise Parted(
            "the log says that the program began before, and it went on from no earlier time", life.starts[0]
        )
    last = {record["identity"]["call"]: record["seq"] for record in life.calls if _is_end(record)}
    for record in early:
        name = record["identity"]["call"]
        if _is_end(record) and last[name] != record["seq"]:
            raise Unprovable(f"an earlier end of {name} was recorded before the program was begun again")


def _is_end(record: Record) -> bool:
    return bool(record["type"] in ("tool.finished", "tool.denied"))


def compare_once(life: Life) -> None:
    """Each attempt of a call has one start and one end, or one refusal: a second one would tell another story."""
    starts: dict[tuple[str, object], Record] = {}
    ends: set[tuple[str, object]] = set()
    for record in life.calls:
        name = str(record["identity"]["call"])
        attempt = (name, record["identity"].get("attempt", 1))
        if record["type"] == "tool.started":
            if attempt in starts or attempt in ends:
                raise Parted(f"the log says twice that {name} started", record)
            starts[attempt] = record
            continue
        if attempt in ends:
            raise Parted(f"the log says twice how {name} ended", record)
        ends.add(attempt)
        start = record.get("start")
        if attempt in starts and start is not None and start != starts[attempt]["seq"]:
            raise Parted(f"the end of {name} does not belong to its start", record)


def compare_start(life: Life, bundle: JsonObject, journal: Journal, keys: Keyring) -> None:
    for program in life.starts:
        data = program["data"]
        if (data.get("seed"), data.get("policy_hash")) != (journal.header.seed, journal.header.policy):
            raise Parted(
                "the seed or the policy in the log is not the one that the program ran with", program
            )
        if "limits" in bundle and data.get("limits") != bundle["limits"]:
            raise Parted("the limits in the log are not those that the program ran under", program)
        if not _fits(data.get("code_digest"), bundle["code"], keys):
            raise Parted("the program text in the journal is not the one that the log recorded", program)
        if not _shown(data, "code", bundle["code"], keys):
            raise Parted("the program text in the log is not the one that ran", program)


def compare_calls(life: Life, journal: Journal, keys: Keyring, unrecorded: Collection[str] = ()) -> None:
    """The log's calls of this program and the journal's are the same, with the same arguments and answers.

    What the program was told is what the log says last of a call: attempts before it were not released.
    `unrecorded`: calls of level `none`, of which the log rightly holds nothing.
    """
    call_id = life.call_id
    made = {f"{call_id}:{entry.number}": entry for entry in journal.entries if isinstance(entry, CallMade)}
    answers = {
        f"{call_id}:{entry.number}": entry for entry in journal.entries if isinstance(entry, CallAnswered)
    }
    last: dict[str, Record] = {}
    for record in life.calls:
        name = str(record["identity"]["call"])
        entry = made.get(asked_for(name))
        if entry is None and _is_forged(record):
            continue  # a tool that it was not granted: the host refused it, and no journal has it
        if entry is None:
            raise Parted(f"the log has a call {name} that the program never made", record)
        if asked_for(name) != name:
            continue  # the host's own read, to find out what became of the call
        _compare_call(record, name, entry, keys)
        if record["type"] in ("tool.finished", "tool.denied"):
            last[name] = record
    for name, answer in answers.items():
        if name in last:
            _compare_answer(last[name], answer, keys)
        elif name in life.settled:
            raise Unprovable(f"the outcome of {name} was found out after a crash; the log does not hold it")
        elif name in unrecorded:
            raise Unprovable(f"{name} was made at the level none: the log holds nothing of it")
        else:
            raise Parted(f"the program was given an answer for {name} that the log does not know")


def _is_forged(record: Record) -> bool:
    """Whether it is a refusal of a call that is no call; that it is genuine, the digests of records show."""
    return record["type"] == "tool.denied" and bool(record["outcome"].get("code") == "unknown_tool")


def asked_for(name: str) -> str:
    """The call that this one is of: itself, or where it is the host's own read, what that asks about."""
    base, mark, number = name.rpartition(":reconcile:")
    return base if mark and number.isdigit() else name


def _compare_call(record: Record, name: str, entry: CallMade, keys: Keyring) -> None:
    tool, origin, content = record["tool"], record.get("origin", {}), record["content"]
    told = tuple(
        _name_told(shown, real, keys)
        for shown, real in ((tool.get("namespace"), entry.namespace), (tool["name"], entry.name))
    )
    if told != (entry.namespace, entry.name):
        raise Parted(f"the log says that {name} called another tool than the program did", record)
    if origin.get("line", entry.line) != entry.line:
        raise Parted(f"the log says that {name} was made at another line than it was", record)
    if "asked_digest" in content:  # a middleware changed the arguments: these are the program's
        if not _fits(content["asked_digest"], entry.arguments, keys):
            raise Parted(f"the arguments in the log of {name} are not what the program had", record)
    elif record["type"] in ("tool.started", "tool.denied"):
        _compare_content(record, "arguments", entry.arguments, keys)
    elif not _fits(content.get("arguments_digest"), entry.arguments, keys):
        raise Parted(f"the arguments at the end of {name} are not those of its start", record)


def _name_told(shown: object, real: str | None, keys: Keyring) -> object:
    """The name in a record; where it was redacted, the real one if the digest is of it."""
    mark, _, digest = str(shown).rpartition(" ")
    if real is not None and mark.startswith("$redacted ") and _fits(digest, real, keys):
        return real
    return shown


def _compare_answer(record: Record, entry: CallAnswered, keys: Keyring) -> None:
    outcome = record["outcome"]
    if entry.answer.ok != (outcome["status"] in SUCCEEDED):
        raise Parted("the log says that a call ended otherwise than the program was told", record)
    if entry.answer.ok:
        _compare_content(record, "result", entry.answer.value, keys)
        return
    told = entry.answer.value
    if not isinstance(told, dict) or (told.get("status"), told.get("code")) != (
        outcome["status"],
        outcome["code"],
    ):
        raise Parted("the log says that a call failed otherwise than the program was told", record)
    key = _digest_key(record["content"].get("arguments_digest"), keys)
    if not shows(record["content"].get("message"), told.get("message"), key):
        raise Parted("the log says another message than the program was told", record)


def _compare_content(record: Record, name: str, value: JsonValue, keys: Keyring) -> None:
    content = record["content"]
    if not _fits(content.get(f"{name}_digest"), value, keys):
        raise Parted(
            f"the {name} in the log of {record['identity']['call']} are not what the program had", record
        )
    if not _shown(content, name, value, keys):
        raise Parted(f"the {name} shown in the log of {record['identity']['call']} were changed", record)


def compare_said(life: Life, end: Record, bundle: JsonObject, keys: Keyring) -> None:
    """The end in the log is the one that was told, in every field: the sealed journal of that time has it."""
    said, data = bundle.get("end"), end["data"]
    start = next(start for start in reversed(life.starts) if start["seq"] < end["seq"])
    if any(end["identity"].get(name) != start["identity"].get(name) for name in _WHOSE):
        raise Parted("the log says of the program's end that it was another's", end)
    if not isinstance(said, dict):
        raise Unprovable("the journal does not say how the program's end was told")
    names = {name.removesuffix("_digest") for name in data if name != "journal"}
    if names != set(said):
        raise Parted("the program's end in the log says other things than were told", end)
    for name, value in said.items():
        digest = data.get(f"{name}_digest")
        if digest is not None and not _fits(digest, value, keys):
            raise Parted(f"the program's {name} in the log is not what was told", end)
        if not shows(data.get(name), value, _digest_key(data.get("output_digest"), keys)):
            raise Parted(f"the program's {name} in the log is not what was told", end)


def compare_end(end: Record, result: ProgramResult, keys: Keyring) -> None:
    data = end["data"]
    status = data.get("status")
    if status not in DETERMINED:
        raise Unprovable(f"the program was ended from outside ({status}): the same need not happen again")
    if result.status != status:
        raise Parted(f"run again, the program ended as {result.status} and the log says {status}", end)
    for name, value in (("output", result.output), ("value", result.value)):
        if not _fits(data.get(f"{name}_digest"), value, keys):
            raise Parted(f"run again, the program's {name} is another than the log says", end)
        if not _shown(data, name, value, keys):
            raise Parted(f"the {name} shown in the log was changed", end)
    error, key = result.error, _digest_key(data.get("output_digest"), keys)
    kind = error.type if error else None
    if "error_type_digest" in data and not _fits(data["error_type_digest"], kind, keys):
        raise Parted("run again, the program's error_type is another than the log says", end)
    said: JsonObject = {
        "wall": error.wall if error else None,
        "error_type": kind,
        "message": error.message if error else None,
        "line": error.line if error else None,
    }
    for name, value in said.items():
        if not shows(data.get(name), value, key):
            raise Parted(f"run again, the program's {name} is another than the log says", end)


def _fits(digest: object, value: JsonValue, keys: Keyring) -> bool:
    """Whether a keyed digest from the log is this value's. Raises Unprovable without its key."""
    return _digest_key(digest, keys).digest(value) == digest


def _digest_key(digest: object, keys: Keyring) -> Key:
    key_id, _, _ = str(digest).partition(":")
    key = keys.get(key_id)
    if key is None or key.purpose != "digest":
        raise Unprovable(f"the keyring has no digest key {key_id!r}, with which this log was written")
    return key


def _shown(members: Record, name: str, value: JsonValue, keys: Keyring) -> bool:
    """Whether a record shows this value under a name, and nothing else where it is not redacted."""
    return name in members and shows(members[name], value, _digest_key(members[f"{name}_digest"], keys))
