"""What the writer keeps of where the log stands, and whom it asks between groups of records. Values and seams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ptc.audit.lines import GENESIS, Draft, Entry
from ptc.audit.store import Store
from ptc_tools.call import JsonObject

DraftMaker: TypeAlias = Callable[[str, JsonObject], Draft]
"""Makes a draft of an event of the log's own: type, data."""


@dataclass(slots=True)
class Place:
    """Where the log stands: the last record's number and hash."""

    seq: int = 0
    prev: str = GENESIS


@dataclass(slots=True)
class Losses:
    """What was refused (fail=closed) or lost (fail=open) while the log could not write."""

    since_us: int = 0
    refused: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    first_us: int = 0
    last_us: int = 0

    def count(self, record: Draft, *, is_open: bool) -> None:
        """One that could not be written. With fail=open its call went on, else it was refused."""
        if not is_open:
            self.refused += 1
            return
        self.lost[record.columns.type] += 1
        self.first_us = self.first_us or record.columns.at
        self.last_us = record.columns.at

    def told(self, name: str) -> str:
        """In words, for a log that closes without having been able to say it itself."""
        return f"{name}: {self.refused} records were refused and {self.lost.total()} lost since it could not write"


class Hooks(Protocol):
    """What the log wants to do in the writer's thread, between groups."""

    def written(self, entries: list[Entry]) -> bool:
        """After entries are durable: the tree grows. Whether `due` has something to do. Must not raise."""

    def due(self, store: Store, place: Place) -> Draft | None:
        """One record of the log's own that is due now, asked until there is none. May rotate the store."""

    def closing(self, entries: list[Entry]) -> Draft:
        """The log's very last record, over everything and these entries, with which it is written."""

    def next_due(self) -> float | None:
        """Monotonic time at which `due` wants to be asked though nobody writes; None for never."""
