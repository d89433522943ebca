"""What the log does of itself between groups of records: the tree, checkpoints, rotation.

It runs in the writer's thread. It is told what became durable and says which records of the log's own are
due; it never sees content, and never delays a record by more than one of its own.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ptc.audit.anchors import Anchor, publish
from ptc.audit.errors import InvalidAuditConfig
from ptc.audit.hooks import DraftMaker, Place
from ptc.audit.lines import Draft, Entry
from ptc.audit.merkle import Frontier
from ptc.audit.notes import Checkpoint, Signer
from ptc.audit.store import Store
from ptc_tools.call import JsonValue

Reason: TypeAlias = Literal["records", "time", "rotated", "closed", "asked"]


_PATIENCE: Final = 1.0
_MOST_PATIENCE: Final = 600.0
"""Seconds until rotation is tried again after it could not be done, the first time and at most."""
_logger: Final = logging.getLogger("ptc.audit")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """When the tree head is signed: after so many records, and after so many seconds even when idle."""

    records: int = 1000
    seconds: float = 300.0

    def __post_init__(self) -> None:
        if self.records < 1 or self.seconds <= 0:
            raise InvalidAuditConfig("checkpoints come after at least 1 record and more than 0 seconds")


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is completed and the next begun: `bytes` reached, or `seconds` old. None: never."""

    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.bytes is not None and self.bytes < 4096) or (self.seconds is not None and self.seconds < 1):
            raise InvalidAuditConfig("a log rotates at 4096 bytes or more, and after a second or more")


class Keeper:
    """The writer's hooks (`writer.Hooks`) of one log."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        file_first_seq: int,
        file_opened_us: int,
        since_checkpoint: int,
        origin: str,
        digest_key: str,
        journal_key: str | None,
        signer: Signer | None,
        checkpoints: Checkpoints,
        rotation: Rotation,
        anchors: tuple[Anchor, ...],
        make: DraftMaker,
        take_counted: Callable[[], Draft | None],
        clock: Callable[[], int],
    ) -> None:
        self._frontier = frontier
        self._file_first_seq = file_first_seq
        self._file_opened_us = file_opened_us
        self._since = since_checkpoint
        self._origin = origin
        self._digest_key = digest_key
        self._journal_key = journal_key
        self._signer = signer
        self._checkpoints = checkpoints
        self._rotation = rotation
        self._anchors = anchors
        self._make = make
        self._take_counted = take_counted
        self._clock = clock
        self._last_checkpoint = time.monotonic()
        self._rotating = False
        self._not_before = 0.0
        self._patience = _PATIENCE
        self._unpublished: list[str] = []
        self._asked = False
        self._opened = False
        """Whether `audit.opened` is written: nothing of what was found may be signed before it is told."""
        self.anchor_failures = 0
        self.on_written: Callable[[list[Entry]], None] | None = None

    def ask(self) -> None:
        """A checkpoint is wanted with the next group."""
        self._asked = True

    def written(self, entries: list[Entry]) -> bool:
        self._frontier.extend([entry.leaf for entry in entries])
        self._since += len(entries)
        if not self._opened:
            self._opened = any(entry.columns.type == "audit.opened" for entry in entries)
        if self._unpublished:
            self._publish()
        if self.on_written is not None:
            self.on_written(entries)
        return self._asked or self._since >= self._checkpoints.records or self._is_full_hint()

    def due(self, store: Store, place: Place) -> Draft | None:
        if not self._opened:
            return None
        if self._rotating:
            self._rotating = False
            return self._rotate(store, place)
        if self._should_rotate(store, place):
            counted = self._take_counted()
            if counted is not None:
                return counted
            self._rotating = True  # first the checkpoint, as the file's last record
            return self.checkpoint("rotated")
        reason = self._checkpoint_reason()
        if reason is None:
            return None
        return self._take_counted() or self.checkpoint(reason)

    def _should_rotate(self, store: Store, place: Place) -> bool:
        if place.seq < self._file_first_seq or time.monotonic() < self._not_before:
            return False
        return self._too_big(store) or self._too_old()

    def _rotate(self, store: Store, place: Place) -> Draft | None:
        reason = "size" if self._too_big(store) else "age"
        records = place.seq - self._file_first_seq + 1
        try:
            file = store.rotate(self._file_first_seq)
        except (OSError, sqlite3.Error) as error:
            _logger.warning("the audit log could not be rotated (%s) and goes on in its file", error)
            file = None
        if file is None:
            self._not_before = time.monotonic() + self._patience
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
            return None
        self._not_before, self._patience = 0.0, _PATIENCE
        self._file_first_seq = place.seq + 1
        self._file_opened_us = self._clock()
        return self._make("audit.rotated", {"file": file, "records": records, "reason": reason})

    def next_due(self) -> float | None:
        if not self._opened:
            return None
        due = self._last_checkpoint + self._checkpoints.seconds
        if self._rotation.seconds is not None:
            left = self._rotation.seconds - (self._clock() - self._file_opened_us) / 1_000_000
            due = min(due, max(time.monotonic() + max(left, 0.05), self._not_before))
        if self._asked or self._since >= self._checkpoints.records:
            return 0.0
        return due

    def closing(self, entries: list[Entry]) -> Draft:
        return self.checkpoint("closed", entries)

    def checkpoint(self, reason: Reason, entries: Sequence[Entry] = ()) -> Draft:
        """The record of a checkpoint over everything written so far, and `entries`, which are written with it.

        It is published once it is durable.
        """
        tree, note = self._head(entries)
        frontier: list[JsonValue] = [node.hex() for node in tree.roots]
        self._since = 0
        self._asked = False
        self._last_checkpoint = time.monotonic()
        self._unpublished.append(note)
        return self._make(
            "audit.checkpoint",
            {
                "note": note,
                "frontier": frontier,
                "reason": reason,
                "anchor_failures": self.anchor_failures,
                "digest_key": self._digest_key,
                "journal_key": self._journal_key,
                "signing_key": self._signer.verifier_key if self._signer else None,
            },
        )

    def note(self, entries: Sequence[Entry]) -> str:
        """The tree head over everything written so far, and `entries`: for the record that closes the log."""
        return self._head(entries)[1]

    def _head(self, entries: Sequence[Entry]) -> tuple[Frontier, str]:
        tree = Frontier(self._frontier.size, self._frontier.roots)
        tree.extend([entry.leaf for entry in entries])
        head = Checkpoint(self._origin, tree.size, tree.root())
        return tree, self._signer.sign(head) if self._signer else head.text()

    def _checkpoint_reason(self) -> Reason | None:
        if self._asked:
            return "asked"
        if self._since >= self._checkpoints.records:
            return "records"
        if time.monotonic() >= self._last_checkpoint + self._checkpoints.seconds:
            return "time"
        return None

    def _publish(self) -> None:
        notes, self._unpublished = self._unpublished, []
        for note in notes:
            self.anchor_failures += publish(self._anchors, note)

    def _too_big(self, store: Store) -> bool:
        return self._rotation.bytes is not None and store.size() >= self._rotation.bytes

    def _too_old(self) -> bool:
        age = self._clock() - self._file_opened_us
        return self._rotation.seconds is not None and age >= self._rotation.seconds * 1_000_000

    def _is_full_hint(self) -> bool:
        return self._rotation.bytes is not None or self._rotation.seconds is not None
