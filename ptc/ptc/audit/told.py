"""What the log was told of each program in flight: a digest of every record about it, for its journal.

The journal is sealed with a key that whoever may write to the log's file does not have. With these digests in
it, replay finds a record that was removed, added or changed, also of a call that the program gave up and of
which its own journal knows no outcome. Only digests are kept, and only until the program ends.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from ptc.audit.lines import Draft
from ptc_tools.call import Caller, JsonObject, Program

MAX_PROGRAMS: Final = 10_000


class Line:
    """One record. `sure`: it is known to be durable; else it may or may not have reached the log."""

    __slots__ = ("call", "digest", "sure")

    def __init__(self, call: str, digest: str) -> None:
        self.call = call
        self.digest = digest
        self.sure = False


class ProgramTold:
    """The records about one program, in the order in which they were made, and its calls of level `none`."""

    __slots__ = ("_lines", "_recovered", "_unrecorded")

    def __init__(self, *, recovered: bool = False) -> None:
        self._recovered = recovered
        self._lines: list[Line] = []
        self._unrecorded: list[str] = []

    def draft(self, call: str, record: Draft) -> Line:
        line = Line(call, digest_of(record.head + record.tail))
        self._lines.append(line)
        return line

    def unrecorded(self, call: str) -> None:
        """A call whose level is `none`: counted, and in no record."""
        self._unrecorded.append(call)

    def to_json(self) -> JsonObject:
        return {
            "records": [[line.call, line.digest, line.sure] for line in self._lines],
            "unrecorded": list(self._unrecorded),
            "recovered": self._recovered,
        }


class Told:
    """The programs in flight, by run and program. The oldest is forgotten first; then nothing proves it."""

    def __init__(self) -> None:
        self._programs: OrderedDict[tuple[str, str], ProgramTold] = OrderedDict()
        self._recovered: OrderedDict[str, None] = OrderedDict()

    def recovered(self, run_id: str) -> None:
        """The run was taken up again: its programs may have an earlier time, told by another process."""
        self._recovered[run_id] = None
        if len(self._recovered) > MAX_PROGRAMS:
            self._recovered.popitem(last=False)

    def begin(self, run_id: str, program: str) -> ProgramTold:
        """A program starts, or starts again: what was told before is of an earlier time."""
        told = self._programs[run_id, program] = ProgramTold(recovered=run_id in self._recovered)
        self._programs.move_to_end((run_id, program))
        if len(self._programs) > MAX_PROGRAMS:
            self._programs.popitem(last=False)
        return told

    def of(self, run_id: str, caller: Caller) -> ProgramTold | None:
        return self._programs.get((run_id, caller.caller_id)) if isinstance(caller, Program) else None

    def take(self, run_id: str, program: str) -> JsonObject | None:
        """For the journal of a program that ends; None where its start was not told."""
        told = self._programs.pop((run_id, program), None)
        return None if told is None else told.to_json()


def digest_of(text: str) -> str:
    """Of a record's canonical JSON without `prev` and `seq`, which it gets last."""
    return hashlib.sha256(text.encode()).hexdigest()
