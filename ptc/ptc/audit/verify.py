"""Checks a log from its first record to its last, and says which guarantee held, up to which record.

A chain alone does not show a cut end, a change of the last record or a rewrite of the whole; signed
checkpoints show a rewrite by anybody without the key; anchors show a cut and a rewrite even by who has it.
Verification needs no secret: a verifier key is public. It never repairs anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json

from ptc.audit.columns import call_of, columns_agree
from ptc.audit.errors import AuditKeyError
from ptc.audit.lines import GENESIS, VERSION, leaf_hash
from ptc.audit.merkle import Frontier, root
from ptc.audit.notes import Checkpoint, Verifier, origin, parse
from ptc.audit.reader import Damage, Line, database_damage, files_of, is_being_written, lines
from ptc_tools.call import JsonObject

Verdict: TypeAlias = Literal["intact", "tampered", "incomplete"]
MAX_FINDINGS: Final = 50
_ATTEMPTS: Final = 5
_DEFAULT_INTERVAL: Final = 1000
_GROUP_SLACK: Final = 1024
_INLINE_SLACK: Final = 10_000
"""Records by which a checkpoint may come late: with the group that made it due, or, where callers write with
their own hands, when the log's thread gets its turn."""
_CLOCK_SLACK_US: Final = 100_000
"""Records are stamped before they are ordered, so neighbours may differ by the time a group takes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, and where. `seq` is the record's number as it says itself, where it says one."""

    kind: Literal["tampered", "incomplete"]
    what: str
    file: str
    number: int
    seq: int | None = None


@dataclass(slots=True)
class Verification:
    """What was found. `chained_to`, `signed_to`, `anchored_to`: the last record each guarantee reaches."""

    path: str
    log: str | None = None
    records: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    chained_to: int | None = None
    signed_to: int | None = None
    signed_by: str | None = None
    anchored_to: int | None = None
    anchors_read: int = 0
    live: bool = False
    indeterminate: list[JsonObject] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        kinds = {finding.kind for finding in self.findings}
        return "tampered" if "tampered" in kinds else "incomplete" if kinds else "intact"

    def guarantee(self) -> str:
        """In one sentence, what this verification does and does not exclude."""
        if self.verdict == "tampered":
            return "The log is not what was written."
        said = f"No record up to {self.chained_to} was changed, removed, added or moved, unless "
        if self.anchored_to is not None:
            said += f"after record {self.anchored_to}: up to there anchors outside the log agree with it."
        elif self.signed_to is not None and self.signed_by == "given":
            said += (
                f"by a holder of the signing key; records after {self.signed_to} could be rewritten,"
                " and the end cut off: an anchor would show that."
            )
        else:
            said += (
                "somebody recomputed the whole chain or cut off its end: give the verifier key (--key)"
                " to exclude a rewrite, and an anchor (--anchor) to exclude a cut."
            )
        return said


def verify(
    path: str | os.PathLike[str],
    *,
    verifier_keys: Sequence[str] = (),
    verifier_for: Callable[[str], Sequence[str]] | None = None,
    anchors: Iterable[str] = (),
) -> Verification:
    """Reads the whole log. `verifier_keys` are trusted; `verifier_for` gives them for a log id.

    `anchors` are signed notes that were kept elsewhere (`anchors.read_notes`). Raises RecordNotFound where
    there is no log, AuditKeyError for a text that is no verifier key.
    """
    notes = list(anchors)
    for _ in range(_ATTEMPTS):
        before = files_of(path)
        report = _verify(Path(path), verifier_keys, verifier_for, notes)
        if files_of(path) == before:
            break  # else a live log was rotated meanwhile, and what was read is of two moments
    return report


def _verify(
    path: Path,
    verifier_keys: Sequence[str],
    verifier_for: Callable[[str], Sequence[str]] | None,
    anchors: list[str],
) -> Verification:
    check = _Check(path, [Verifier(key) for key in verifier_keys], verifier_for, anchors)
    check.report.live = is_being_written(path)
    for file in files_of(path):
        if file.suffix != ".jsonl":
            for damage in database_damage(file):
                check.damaged(damage)
    for line in lines(path):
        if len(check.report.findings) >= MAX_FINDINGS:
            check.report.notes.append("there is more; reading stopped here")
            return check.report
        if isinstance(line, Damage):
            check.damaged(line)
        elif line.torn:
            check.torn(line)
        else:
            check.line(line)
    check.end()
    return check.report


class _Check:
    def __init__(
        self,
        path: Path,
        verifiers: list[Verifier],
        verifier_for: Callable[[str], Sequence[str]] | None,
        anchors: Iterable[str],
    ) -> None:
        self.report = Verification(str(path))
        self._verifiers = verifiers
        self._verifier_for = verifier_for
        self._given = bool(verifiers)
        self._anchor_notes = list(anchors)
        self._anchors: dict[int, list[Checkpoint]] = {}
        self._seq = 0
        self._prev = GENESIS
        self._frontier: Frontier | None = Frontier()
        self._leaves: list[bytes] = []
        self._open: dict[int, JsonObject] = {}
        self._is_signed = False
        self._signed_at = 0
        self._most_unsigned = _DEFAULT_INTERVAL + _INLINE_SLACK
        self._said_unsigned = False
        self._torn = False
        self._begins_late = False
        self._asked_for = self._given
        self._other_keys = False
        self._last: dict[str, Any] = {}
        self._before_last_type = ""
        self._latest = 0
        self._went_back = 0

    def line(self, line: Line) -> None:
        try:
            self._judge(line, _parsed(line.data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Whatever stands there: a verifier that stops at it would be the attacker's friend.
            self._find("tampered", "this is no record: damaged, or overwritten", line)
            self._frontier = None

    def _judge(self, line: Line, record: dict[str, Any]) -> None:
        seq, prev, log, type = record["seq"], record["prev"], record["log"], record["type"]
        if seq != self._seq + 1 or prev != self._prev or log != self.report.log:
            self._out_of_place(line, record)
        leaf = leaf_hash(line.data)
        self._seq = seq if isinstance(seq, int) else self._seq + 1
        self._prev = leaf.hex()
        if record.get("v") != VERSION:
            self._find("tampered", f"version {record.get('v')!r} is unknown", line, seq)
        if line.columns is not None and not columns_agree(line.columns, record):
            self._find("tampered", "the columns of this row do not agree with its record", line, seq)
        self.report.records += 1
        self._clock(record["at"])
        self._covered(line, seq)
        if type == "tool.started":
            self._open[seq] = call_of(record)
        elif type == "tool.finished":
            self._finished(line, record)
        elif type == "audit.checkpoint":
            self._checkpoint(line, record)
        elif type == "audit.gap":
            lost = record.get("data", {}).get("lost")
            self._find("incomplete", f"the writer lost {lost} records here (fail=open)", line, seq)
        elif type == "audit.opened":
            self._opened(record)
        self._leaves.append(leaf)
        if seq in self._anchors:
            self._anchored(line, seq)
        self._before_last_type = self._last.get("type", "")
        self._last = record

    def _clock(self, at: int) -> None:
        if at < self._latest - _CLOCK_SLACK_US:
            self._went_back += 1
        self._latest = max(self._latest, at)

    def damaged(self, damage: Damage) -> None:
        self._add(Finding("tampered", damage.reason, str(damage.file), 0))
        self._frontier = None

    def torn(self, line: Line) -> None:
        if self.report.live:
            self.report.notes.append("the last record is being written just now")
            return
        self._torn = True
        self._find("incomplete", f"the last write is torn: {len(line.data)} bytes of a record", line)

    def end(self) -> None:
        report = self.report
        report.last_seq = self._seq or None
        report.chained_to = None if any(f.kind == "tampered" for f in report.findings) else report.last_seq
        if report.records == 0 and not report.findings:
            self._add(Finding("incomplete", "the log is empty", report.path, 0))
            return
        last = self._last.get("type")
        ended = last == "audit.closed" or (
            last == "audit.checkpoint" and self._before_last_type == "audit.closed"
        )
        if ended and not self._torn:
            self._sealed()
        if not ended and report.live:
            report.notes.append("the log is open: its writer is at work")
        elif not ended:
            self._add(
                Finding(
                    "incomplete",
                    "the log does not end with audit.closed: its writer died, or its end was cut off",
                    report.path,
                    0,
                    self._seq,
                )
            )
        report.indeterminate = list(self._open.values())
        if self._went_back:
            report.notes.append(
                f"the clock went back before {self._went_back} records; their order is by number"
            )
        self._unreached_anchors()
        if self._frontier is not None and report.signed_to is not None and not self._given:
            report.notes.append(
                "the checkpoints fit the key that the log itself names: give --key to trust it"
            )

    def _out_of_place(self, line: Line, record: dict[str, Any]) -> None:
        seq = record["seq"]
        if self.report.log is None:
            self._first(line, record)
            return
        if record["log"] != self.report.log:
            self._find(
                "tampered", f"this record belongs to another log ({str(record['log'])[:40]})", line, seq
            )
        elif not isinstance(seq, int):
            self._find("tampered", "the sequence number is no number", line)
        elif seq > self._seq + 1:
            missing = (
                f"record {seq - 1} is"
                if seq == self._seq + 2
                else f"records {self._seq + 1} to {seq - 1} are"
            )
            self._find("tampered", f"{missing} missing before this one", line, seq)
        elif seq <= self._seq:
            self._find("tampered", f"out of order or doubled: it comes after record {self._seq}", line, seq)
        else:
            self._find(
                "tampered",
                f"it does not follow record {seq - 1} as that stands: one of the two was changed",
                line,
                seq,
            )
        self._frontier = None
        self._begins_late = False

    def _first(self, line: Line, record: dict[str, Any]) -> None:
        seq = record["seq"]
        self.report.log = str(record["log"])
        self.report.first_seq = seq if isinstance(seq, int) else None
        self._find_key(record)
        for note in self._anchor_notes:
            self._take_anchor(note)
        if seq == 1 and record["prev"] == GENESIS:
            return
        if isinstance(seq, int) and seq > 1 and record["type"] in ("audit.rotated", "audit.opened"):
            self._find("incomplete", f"the files with records 1 to {seq - 1} are not here", line, seq)
            self._frontier = None
            self._begins_late = True
        else:
            self._find(
                "tampered",
                "the log does not begin with its first record",
                line,
                seq if isinstance(seq, int) else None,
            )
            self._frontier = None

    def _find_key(self, record: dict[str, Any]) -> None:
        log = str(record["log"])
        if not self._verifiers and self._verifier_for is not None:
            self._verifiers = [Verifier(key) for key in self._verifier_for(log)]
            self._given = bool(self._verifiers)

    def _covered(self, line: Line, seq: object) -> None:
        """Signed checkpoints come in intervals: where they do not, they were taken out."""
        if not isinstance(seq, int) or self._said_unsigned or not (self._given or self._is_signed):
            return
        since = seq - max(self._signed_at, (self.report.first_seq or 1) - 1)
        if since > self._most_unsigned:
            self._said_unsigned = True
            self._find("incomplete", f"{since} records without a signed checkpoint over them", line, seq)

    def _sealed(self) -> None:
        """A signed log closes with a checkpoint over all of it, as its last record."""
        if not (self._given or self._is_signed) or self._seq in (self._signed_at, self.report.anchored_to):
            return
        what = (
            f"it was closed and no signed checkpoint covers the records after {self._signed_at}: they were"
            " rewritten, or the checkpoint was cut off (by hand, or as its writer was killed while closing)"
        )
        self._add(Finding("tampered", what, self.report.path, 0, self._seq))

    def _opened(self, record: dict[str, Any]) -> None:
        data = record.get("data", {})
        self._is_signed = isinstance(data.get("signing_key"), str)
        interval = data.get("checkpoint_records")
        slack = _INLINE_SLACK if data.get("sync") == "none" else _GROUP_SLACK
        if isinstance(interval, int):
            self._most_unsigned = interval + slack
        if self.report.records > 1 and record.get("data", {}).get("clean") is False:
            self.report.notes.append(f"the writer before record {record['seq']} died without closing the log")

    def _finished(self, line: Line, record: dict[str, Any]) -> None:
        start = record.get("start")
        begun = self._open.pop(start, None) if isinstance(start, int) else None
        if start is None and self.report.log is not None:
            return  # fail=open lost its start: the gap says so
        if begun is None:
            early = (
                isinstance(start, int) and self.report.first_seq is not None and start < self.report.first_seq
            )
            if not early:
                self._find(
                    "tampered", f"it ends a call that record {start} did not start", line, record["seq"]
                )
        elif begun["call"] != call_of(record)["call"] or begun["run"] != call_of(record)["run"]:
            self._find("tampered", f"it ends another call than record {start} started", line, record["seq"])

    # Checkpoints and anchors.

    def _checkpoint(self, line: Line, record: dict[str, Any]) -> None:
        seq = record["seq"]
        data = record.get("data")
        data = data if isinstance(data, dict) else {}
        text = str(data.get("note", ""))
        head = parse(text)
        if head is None or head.origin != origin(str(self.report.log)) or head.size != seq - 1:
            self._find("tampered", "its checkpoint is not one of this log at this place", line, seq)
            return
        if self._frontier is not None and self._root() != head.root:
            self._find("tampered", "the records before it do not have the root that was signed", line, seq)
            return
        signed = self._signed(text, data.get("signing_key"))
        if signed is False and self._is_of_another_ring(text, data.get("signing_key")):
            self._say_other_keys(line, seq, str(data["signing_key"]))
            return
        if signed is False:
            self._find("tampered", "its checkpoint is not signed with the verifier key", line, seq)
            return
        if signed:
            self._signed_at = seq
        if self._frontier is None and self._begins_late:
            self._pick_up(line, seq, head, data.get("frontier"), bool(signed))
        if signed and self._frontier is not None:
            self.report.signed_to = head.size
            self.report.signed_by = "given" if self._given else "named by the log"

    def _signed(self, note: str, named: object) -> bool | None:
        """None where the checkpoint carries no signature and none was asked for."""
        if self._given:
            return any(verifier.check(note) is not None for verifier in self._verifiers)
        if not isinstance(named, str):
            return None
        try:
            return Verifier(named).check(note) is not None
        except AuditKeyError:
            return False

    def _is_of_another_ring(self, note: str, named: object) -> bool:
        """Whether the log was signed all along with a key that the keyring just does not have."""
        if self._asked_for or self._signed_at or not isinstance(named, str):
            return False
        try:
            return Verifier(named).check(note) is not None
        except AuditKeyError:
            return False

    def _say_other_keys(self, line: Line, seq: int, named: str) -> None:
        if not self._other_keys:
            has = ", ".join(verifier.text for verifier in self._verifiers) or "none"
            what = f"its checkpoints name the key {named} and the keyring has {has}: no signature was checked"
            self._find("incomplete", what, line, seq)
        self._other_keys = True
        self._signed_at = (
            seq  # by the key that is named: that they come in intervals can be said all the same
        )

    def _pick_up(self, line: Line, seq: int, head: Checkpoint, roots: object, signed: bool) -> None:
        """Where the first files are not here, the tree is taken from a checkpoint that somebody vouches for.

        Its last subtree is compared where its records are here; the chain ties the ones before to them, and
        the next checkpoint covers this one.
        """
        anchored = self._anchors.pop(head.size, [])
        if any(anchor.root != head.root for anchor in anchored):
            self._find("tampered", "an anchor saw other records up to here: the log was rewritten", line, seq)
            return
        if not signed and not anchored:
            return
        frontier = Frontier(head.size, [bytes.fromhex(str(node)) for node in _as_list(roots)])
        last = head.size & -head.size
        if frontier.root() != head.root or (
            last <= len(self._leaves) and root(self._leaves[-last:]) != frontier.roots[-1]
        ):
            self._find("tampered", "the records before it do not have the root that was signed", line, seq)
            return
        self._frontier, self._leaves, self._begins_late = frontier, [], False
        if anchored:
            self.report.anchored_to = head.size

    def _root(self) -> bytes:
        assert self._frontier is not None
        self._frontier.extend(self._leaves)
        self._leaves = []
        return self._frontier.root()

    def _take_anchor(self, note: str) -> None:
        head = parse(note)
        if head is None or head.origin != origin(str(self.report.log)):
            return
        if self._given and not any(verifier.check(note) is not None for verifier in self._verifiers):
            self._add(
                Finding("tampered", "an anchored checkpoint is not signed with the verifier key", "anchor", 0)
            )
            return
        self.report.anchors_read += 1
        self._anchors.setdefault(head.size, []).append(head)

    def _anchored(self, line: Line, seq: int) -> None:
        if self._frontier is None:
            return
        heads = self._anchors.pop(seq)
        now = self._root()
        if all(head.root == now for head in heads):
            self.report.anchored_to = seq
        else:
            self._find("tampered", "an anchor saw other records up to here: the log was rewritten", line, seq)

    def _unreached_anchors(self) -> None:
        report = self.report
        if self._anchor_notes and report.anchored_to is None and report.verdict != "tampered":
            what = "the anchored checkpoints cannot be compared: the records that they cover are not here"
            if not report.anchors_read:
                what = "no checkpoint of this log is among the anchored ones: they show nothing"
            self._add(Finding("incomplete", what, report.path, 0))
        beyond = max(self._anchors, default=0)
        if beyond > self._seq:
            what = f"an anchor saw {beyond} records and the log has {self._seq}: its end was cut off"
            self._add(Finding("tampered", what, self.report.path, 0, self._seq))

    def _find(
        self, kind: Literal["tampered", "incomplete"], what: str, line: Line, seq: int | None = None
    ) -> None:
        self._add(Finding(kind, what, str(line.file), line.number, seq))

    def _add(self, finding: Finding) -> None:
        self.report.findings.append(finding)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        record: dict[str, Any] = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError:  # nested deeper than that reader goes, or no JSON at all
        record = json.loads(data)
    return record


def _as_list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("a frontier is a list")
    return value
