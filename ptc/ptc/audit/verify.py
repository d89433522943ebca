"""Checks a log from its first record to its last, and says which guarantee held, up to which record.

A chain alone does not show a cut end, a change of the last record or a rewrite of the whole; signed
checkpoints show a rewrite by anybody without the key; anchors show a cut and a rewrite even by who has it.
Verification needs no secret: a verifier key is public. It never repairs anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ptc.audit.columns import call_of, columns_agree
from ptc.audit.heads import Heads
from ptc.audit.lines import GENESIS, VERSION, leaf_hash
from ptc.audit.notes import Verifier
from ptc.audit.reader import Damage, Line, database_damage, decoded, files_of, is_being_written, lines
from ptc.audit.verification import Kind, Verification
from ptc_tools.call import JsonObject

MAX_FINDINGS: Final = 50
_ATTEMPTS: Final = 5
_CLOCK_SLACK_US: Final = 100_000
"""Records are stamped before they are ordered, so neighbours may differ by the time a group takes."""


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
    """One pass over the records: the chain, the calls, the clock. `Heads` is told what it needs."""

    def __init__(
        self,
        path: Path,
        verifiers: list[Verifier],
        verifier_for: Callable[[str], Sequence[str]] | None,
        anchors: Iterable[str],
    ) -> None:
        self.report = Verification(str(path))
        self._heads = Heads(self.report, verifiers, verifier_for, anchors)
        self._find = self.report.add
        self._seq = 0
        self._prev = GENESIS
        self._open: dict[int, JsonObject] = {}
        self._torn = False
        self._zeros: Line | None = None
        self._counts = False
        self._fail_open = self._is_blocked = False
        self._counted_to = 0
        self._last: dict[str, Any] = {}
        self._before_last_type = ""
        self._latest = 0
        self._went_back = 0

    def line(self, line: Line) -> None:
        if self._zeros is not None:
            self._damaged_line(self._zeros)
        self._zeros = line if line.columns is None and b"\0" in line.data else None
        if self._zeros is not None:
            return  # a crash of the machine leaves zeros in a file of lines, but only at the end
        try:
            self._judge(line, decoded(line.data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Whatever stands there: a verifier that stops at it would be the attacker's friend.
            self._damaged_line(line)

    def _damaged_line(self, line: Line) -> None:
        self._find("tampered", "this is no record: damaged, or overwritten", line)
        self._heads.lose()

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
        self._heads.cover(line, seq)
        if type == "tool.started":
            self._open[seq] = call_of(record)
        elif type == "tool.finished":
            self._finished(line, record)
        elif type == "audit.checkpoint":
            self._heads.checkpoint(line, record)
        elif type == "audit.closed":
            self._heads.closed(line, record)
        elif type == "audit.gap":
            lost = record.get("data", {}).get("lost")
            self._find("incomplete", f"the writer lost {lost} records here (fail=open)", line, seq)
        elif type == "audit.opened":
            self._opened(line, record)
        elif type in ("audit.blocked", "audit.resumed"):
            self._is_blocked = type == "audit.blocked"
        elif type == "audit.counted":
            self._counted_to = seq
        elif type == "audit.recovered":
            self._recovered(record)
        self._heads.add(line, seq, leaf)
        self._before_last_type = self._last.get("type", "")
        self._last = record

    def _clock(self, at: int) -> None:
        if at < self._latest - _CLOCK_SLACK_US:
            self._went_back += 1
        self._latest = max(self._latest, at)

    def damaged(self, damage: Damage) -> None:
        kind: Kind = "incomplete" if damage.whole else "tampered"
        if damage.reason not in (finding.what for finding in self.report.findings):
            self.report.add_of_log(kind, damage.reason, file=str(damage.file))
        self._heads.lose()

    def torn(self, line: Line) -> None:
        if self._zeros is not None:
            self._damaged_line(self._zeros)
        self._zeros = None
        if self.report.live:
            self.report.notes.append("the last record is being written just now")
            return
        self._torn = True
        self._find("incomplete", f"the last write is torn: {len(line.data)} bytes of a record", line)

    def end(self) -> None:
        report = self.report
        if self._zeros is not None:
            zeros, self._zeros = self._zeros, None
            self.torn(zeros)
        report.last_seq = self._seq or None
        report.chained_to = None if any(f.kind == "tampered" for f in report.findings) else report.last_seq
        if report.records == 0 and not report.findings:
            report.add_of_log("incomplete", "the log is empty")
            return
        last = self._last.get("type")
        ended = last == "audit.closed" or (
            last == "audit.checkpoint" and self._before_last_type == "audit.closed"
        )
        if ended and not self._torn:
            self._heads.sealed(self._seq, str(last))
        if not ended and report.live:
            report.notes.append("the log is open: its writer is at work")
        elif not ended:
            self._say_uncounted()
            if what := self._unknown_losses(self._seq):
                report.add_of_log("incomplete", what, self._seq)
            report.add_of_log(
                "incomplete",
                "the log does not end with audit.closed: its writer died, or its end was cut off",
                self._seq,
            )
        report.indeterminate = list(self._open.values())
        if self._went_back:
            report.notes.append(
                f"the clock went back before {self._went_back} records; their order is by number"
            )
        self._heads.end(self._seq)

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
        self._heads.lose()

    def _first(self, line: Line, record: dict[str, Any]) -> None:
        seq = record["seq"]
        self.report.log = str(record["log"])
        self.report.first_seq = seq if isinstance(seq, int) else None
        self._heads.begin(self.report.log)
        if seq == 1 and record["prev"] == GENESIS:
            return
        if isinstance(seq, int) and seq > 1 and record["type"] in ("audit.rotated", "audit.opened"):
            self._find("incomplete", f"the files with records 1 to {seq - 1} are not here", line, seq)
            self._heads.lose(begins_late=True)
        else:
            self._find(
                "tampered",
                "the log does not begin with its first record",
                line,
                seq if isinstance(seq, int) else None,
            )
            self._heads.lose()

    def _opened(self, line: Line, record: dict[str, Any]) -> None:
        data, last = record.get("data", {}), (self._before_last_type, str(self._last.get("type")))
        self._heads.opened(line, record["seq"], data, last)
        if self.report.records > 1 and data.get("clean") is False:
            self.report.notes.append(f"the writer before record {record['seq']} died without closing the log")
            self._say_uncounted()
            if what := self._unknown_losses(record["seq"] - 1):
                self._find("incomplete", what, line, record["seq"])
        self._fail_open, self._is_blocked = data.get("fail") == "open", False
        rules = (data.get("levels") or {}).get("rules") or []
        self._counts = any(rule.get("level") == "none" for rule in rules)
        self._counted_to = record["seq"]

    def _say_uncounted(self) -> None:
        """Counts of calls are written with checkpoints: those since the last ones died with the writer."""
        if self._counts:
            self.report.notes.append(
                f"how many calls of level none there were between record {self._counted_to} and the end of that"
                " writer is unknown"
            )

    def _unknown_losses(self, last: int) -> str | None:
        """A writer with fail=open that died: what it had not written it took with it. A finding where that is sure."""
        if not self._fail_open:
            return None
        if self._is_blocked:
            return "its writer (fail=open) ended while it could not write: how many calls ran unrecorded is unknown"
        self.report.notes.append(
            f"a writer with fail=open died after record {last}: if it could not write just then, calls ran that are"
            " in no record"
        )
        return None

    def _recovered(self, record: dict[str, Any]) -> None:
        cut = record.get("data", {}).get("cut_bytes")
        self.report.notes.append(
            f"before record {record['seq']} a torn end of {str(cut)[:20]} bytes was cut off: one record that was"
            " being written, or what somebody left of it"
        )

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
