"""What signed checkpoints and anchors say of a log that is being checked: whether its tree is the one that was signed.

It is told leaves, checkpoints and anchored notes in the log's order, and adds what is wrong to the report.
Chain, columns and calls are for `verify`. It needs no secret and believes no key that nobody vouches for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ptc.audit.merkle import Frontier, root
from ptc.audit.notes import Checkpoint, Verifier, fits_key, origin, parse
from ptc.audit.reader import Line
from ptc.audit.resume import MOST_UNSIGNED, most_unsigned
from ptc.audit.verification import Verification

_UNKNOWN: Final = object()
"""The key that the log names, where the record that names it is not here."""
_SAID: Final = ("anchor_failures", "digest_key", "frontier", "journal_key", "reason", "signing_key")
"""Of a checkpoint, besides its note: a log is continued by them."""
_REWRITTEN: Final = "an anchor saw other records up to here: the log was rewritten"
_OTHER_ROOT: Final = "the records before it do not have the root that was signed"


class Heads:
    """The tree over the records so far, and who vouches for it. `tree` is None once it cannot be followed."""

    def __init__(
        self,
        report: Verification,
        verifiers: list[Verifier],
        verifier_for: Callable[[str], Sequence[str]] | None,
        anchors: Iterable[str],
    ) -> None:
        self._report = report
        self._verifiers = verifiers
        self._verifier_for = verifier_for
        self._given = self._asked_for = bool(verifiers)
        self._anchor_notes = list(anchors)
        self._anchors: dict[int, list[Checkpoint]] = {}
        self._tree: Frontier | None = Frontier()
        self._leaves: list[bytes] = []
        self._begins_late = False
        self._is_signed = False
        self._signed_at = 0
        self._most_unsigned = self._promised = MOST_UNSIGNED
        self._said_unsigned = False
        self._other_keys = self._given_signed = False
        self._named: object = _UNKNOWN

    def begin(self, log: str) -> None:
        """The log's id is known: keys and anchors are for one log."""
        if not self._verifiers and self._verifier_for is not None:
            self._verifiers = [Verifier(key) for key in self._verifier_for(log)]
            self._given = bool(self._verifiers)
        for note in self._anchor_notes:
            self._take_anchor(note, log)

    def lose(self, *, begins_late: bool = False) -> None:
        """The chain broke, or (`begins_late`) the first files are not here: the tree cannot be followed."""
        self._tree = None
        self._begins_late = begins_late

    def opened(self, line: Line, seq: int, data: dict[str, Any], last: tuple[str, str]) -> None:
        """What `audit.opened` says of the checkpoints to come, and whether what it continues was signed.

        `last`: the types of the two records before it, the newer one second.
        """
        self._named = data.get("signing_key")
        was_signed, self._is_signed = self._is_signed, isinstance(self._named, str)
        if self._report.records > 1 and (was_signed or self._is_signed or self._given):
            self._reopened(line, seq, last)
        self._most_unsigned = most_unsigned(data) or self._most_unsigned

    def _reopened(self, line: Line, seq: int, last: tuple[str, str]) -> None:
        """From here on signatures cover the records before as well, also such as nobody had signed until then."""
        before = last[1] if last[1] != "audit.recovered" else last[0]
        begins, end = self._report.first_seq or 1, seq - 1 if before == last[1] else seq - 2
        if self._tree is None and self._begins_late and begins <= end:
            # No signature so far could be compared with the records that are here, whatever it says of itself.
            self._report.unsigned.append((begins, end))
        first = max(self._signed_at + 1, begins)
        if self._tree is not None and self._signed_at >= begins:
            self._report.bare.append(self._signed_at)
        if first > end or self._tree is None:
            return
        self._report.unsigned.append((first, end))
        what = f"records {first} to {end} were not signed when the log was opened again"
        if before in ("audit.closed", "audit.checkpoint"):
            self._report.add("incomplete", f"{what}, and its end says that they were closed", line, seq)
        elif end - first >= self._promised:
            self._report.add("incomplete", f"{what}, and a crash leaves fewer so", line, seq)

    def add(self, line: Line, seq: object, leaf: bytes) -> None:
        """The next record, after it was looked at in every other way."""
        self._leaves.append(leaf)
        if isinstance(seq, int) and seq in self._anchors and self._tree is not None:
            heads = self._anchors.pop(seq)
            now = self._root()
            if all(head.root == now for head in heads):
                self._report.anchored_to = seq
            else:
                self._report.add("tampered", _REWRITTEN, line, seq)

    def cover(self, line: Line, seq: object) -> None:
        """Signed checkpoints come in intervals: where they do not, they were taken out."""
        if not isinstance(seq, int) or self._said_unsigned or not (self._given or self._is_signed):
            return
        since = seq - max(self._signed_at, (self._report.first_seq or 1) - 1)
        if since > self._most_unsigned:
            self._said_unsigned = True
            what = f"{since} records without a signed checkpoint over them"
            self._report.add("incomplete", what, line, seq)

    def checkpoint(self, line: Line, record: dict[str, Any]) -> None:
        seq, data = record["seq"], record.get("data")
        data = data if isinstance(data, dict) else {}
        named, frontier = data.get("signing_key"), data.get("frontier")
        self._named = named
        if lacking := [name for name in _SAID if name not in data]:
            self._report.add("tampered", f"its checkpoint does not say its {lacking[0]}", line, seq)
        found = self._head(line, seq, str(data.get("note", "")), named)
        if found is None:
            return
        head, signed = found
        if self._tree is None and self._begins_late:
            self._pick_up(line, seq, head, frontier, signed)
        elif self._tree is not None and frontier != [node.hex() for node in self._tree.roots]:
            self._report.add("tampered", "its frontier is not that of the tree that was signed", line, seq)
        self._say_signed(head, signed)

    def closed(self, line: Line, record: dict[str, Any]) -> None:
        """`audit.closed` is signed itself, so that a crash just behind it is no rewrite."""
        note = record.get("data", {}).get("note")
        found = self._head(line, record["seq"], note, self._named) if isinstance(note, str) else None
        if found is not None:
            self._say_signed(*found)

    def _head(self, line: Line, seq: int, text: str, named: object) -> tuple[Checkpoint, bool] | None:
        """A note of this log at this place, and whether a key that counts has signed it; None where it is not one."""
        report, head = self._report, parse(text)
        if head is None or head.origin != origin(str(report.log)) or head.size != seq - 1:
            report.add("tampered", "its checkpoint is not one of this log at this place", line, seq)
            return None
        if self._tree is not None and self._root() != head.root:
            report.add("tampered", _OTHER_ROOT, line, seq)
            return None
        signer = self._signer(text, named)
        if signer is None and self._is_of_another_ring(text, named):
            self._say_other_keys(line, seq, str(named))
            return None
        if signer is None and (self._given or isinstance(named, str)):
            what = "its checkpoint is not signed with the verifier key"
            if isinstance(named, str) and fits_key(text, named):
                what += f", but with one that the log names: {named}. Give that as well, if it is yours"
            report.add("tampered", what, line, seq)
            return None
        if signer is not None and named is not _UNKNOWN and signer != named:
            report.add("tampered", "its checkpoint names another key than it is signed with", line, seq)
            return None
        return head, signer is not None

    def _say_signed(self, head: Checkpoint, signed: bool) -> None:
        if signed:
            self._signed_at = head.size + 1
            self._given_signed = self._given
            self._promised = self._most_unsigned
        if signed and self._tree is not None:
            self._report.signed_to = head.size
            self._report.signed_by = "given" if self._given else "named by the log"

    def sealed(self, last_seq: int, last_type: str) -> None:
        """A signed log closes with a checkpoint over all of it, as its last record."""
        if not (self._given or self._is_signed) or last_seq == self._report.anchored_to:
            return
        if last_seq != self._signed_at:
            what = f"it was closed and no signature covers the records after {self._signed_at}: they were rewritten"
            self._report.add_of_log("tampered", what, last_seq)
        elif last_type == "audit.closed":
            what = "its last checkpoint was cut off: its writer was killed just then, or somebody did it"
            self._report.add_of_log("incomplete", what, last_seq)

    def end(self, last_seq: int) -> None:
        """Nothing more comes: anchors that reached nothing, and keys that nobody vouched for."""
        report = self._report
        if self._anchor_notes and report.anchored_to is None and report.verdict != "tampered":
            what = "the anchored checkpoints cannot be compared: the records that they cover are not here"
            if not report.anchors_read:
                what = "no checkpoint of this log is among the anchored ones: they show nothing"
            report.add_of_log("incomplete", what)
        beyond = max(self._anchors, default=0)
        if beyond > last_seq:
            what = f"an anchor saw {beyond} records and the log has {last_seq}: its end was cut off"
            report.add_of_log("tampered", what, last_seq)
        if self._tree is not None and report.signed_to is not None and not self._given:
            report.notes.append(
                "the checkpoints fit the key that the log itself names: give --key to trust it"
            )

    def _root(self) -> bytes:
        assert self._tree is not None
        self._tree.extend(self._leaves)
        self._leaves = []
        return self._tree.root()

    # Keys.

    def _signer(self, note: str, named: object) -> str | None:
        """The key that has signed a note: of those that were given, else the one that the log names."""
        if self._given:
            return next((v.text for v in self._verifiers if v.check(note) is not None), None)
        return named if isinstance(named, str) and fits_key(note, named) else None

    def _is_of_another_ring(self, note: str, named: object) -> bool:
        """Whether the log was signed all along with a key that the keyring just does not have."""
        if self._asked_for or self._given_signed or not isinstance(named, str):
            return False
        return fits_key(note, named)

    def _say_other_keys(self, line: Line, seq: int, named: str) -> None:
        if not self._other_keys:
            has = ", ".join(verifier.text for verifier in self._verifiers) or "none"
            what = f"its checkpoints name the key {named} and the keyring has {has}: no signature was checked"
            self._report.add("incomplete", what, line, seq)
        self._other_keys = True
        # By the key that is named: that they come in intervals can be said all the same.
        self._signed_at = seq

    # Anchors, and logs whose first files are gone.

    def _take_anchor(self, note: str, log: str) -> None:
        head = parse(note)
        if head is None or head.origin != origin(log):
            return
        if self._given and not any(verifier.check(note) is not None for verifier in self._verifiers):
            what = "an anchored checkpoint is not signed with the verifier key"
            self._report.add_of_log("tampered", what, file="anchor")
            return
        self._report.anchors_read += 1
        self._anchors.setdefault(head.size, []).append(head)

    def _pick_up(self, line: Line, seq: int, head: Checkpoint, roots: object, signed: bool) -> None:
        """Where the first files are not here, the tree is taken from a checkpoint that somebody vouches for.

        Its last subtree is compared, and the chain ties the records before to that. Where not all of them are
        here, it says nothing of those that are: anybody can put a genuine checkpoint behind records of his own.
        """
        anchored = self._anchors.get(head.size, [])
        if any(anchor.root != head.root for anchor in anchored):
            self._report.add("tampered", _REWRITTEN, line, seq)
            return
        last = head.size & -head.size
        if last > len(self._leaves) or (not signed and not anchored):
            return
        self._anchors.pop(head.size, None)
        if not isinstance(roots, list):
            raise TypeError("a frontier is a list")
        tree = Frontier(head.size, [bytes.fromhex(str(node)) for node in roots])
        if tree.root() != head.root or root(self._leaves[-last:]) != tree.roots[-1]:
            self._report.add("tampered", _OTHER_ROOT, line, seq)
            return
        self._tree, self._leaves, self._begins_late = tree, [], False
        if anchored:
            self._report.anchored_to = head.size
