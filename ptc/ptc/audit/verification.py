"""What checking a log found: findings with their place, the verdict, and which guarantee held up to where.

Values only: `verify` and `heads` fill them, the command line and the viewer show them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ptc.audit.reader import Line
from ptc_tools.call import JsonObject

Verdict: TypeAlias = Literal["intact", "tampered", "incomplete"]
Kind: TypeAlias = Literal["tampered", "incomplete"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, and where. `seq` is the record's number as it says itself, where it says one."""

    kind: Kind
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
    unsigned: list[tuple[int, int]] = field(default_factory=list)
    """First and last of records that nobody had signed when the log was opened again: a crash left them so, or
    somebody without the key wrote them. Signatures that came later say only that they have not changed since."""
    bare: list[int] = field(default_factory=list)
    """Signed records that the log was opened again behind: they sign everything before them, and of themselves the
    note alone."""
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
        if self.chained_to is None:
            return "There is no whole record in it, so nothing is shown."
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
        return f"{said} {self.exception()}".rstrip()

    def exception(self) -> str:
        """Which records the signatures of a log do not speak for, though they stand before them; "" for none."""
        reach = max(self.anchored_to or 0, (self.signed_to or 0) if self.signed_by == "given" else 0)
        bare, said = [seq for seq in self.bare if seq <= reach], ""
        if bare:
            which = f"record {bare[0]}" if len(bare) == 1 else f"{len(bare)} records"
            said = f"Of {which} that the log was opened again behind, the note alone was signed until then. "
        if not self.unsigned:
            return said.rstrip()
        spans = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in self.unsigned)
        return (
            f"{said}Records {spans} were not signed when the log was opened again: until then only the chain held"
            " them, which anybody can recompute."
        )

    def add(self, kind: Kind, what: str, line: Line, seq: int | None = None) -> None:
        self.findings.append(Finding(kind, what, str(line.file), line.number, seq))

    def add_of_log(self, kind: Kind, what: str, seq: int | None = None, *, file: str | None = None) -> None:
        """What is wrong with the log, and with no single record of it."""
        self.findings.append(Finding(kind, what, file or self.path, 0, seq))
