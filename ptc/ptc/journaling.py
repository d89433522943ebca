"""A local program's journal on its way into the run's store: each entry is a step from when it is made.

It is told entries, those of the past first, and keeps only what is new. It reads nothing back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ptc_tools.call import JsonValue

if TYPE_CHECKING:
    from ptc.durable import Durable
    from ptc_sandbox.journal import Entry, JournalHeader


class KeptEntries(list["Entry"]):
    """The list that a program's entries are appended to. `recorded`: how many are in the store already."""

    def __init__(self, durable: Durable, program: str, header: JournalHeader, recorded: int) -> None:
        super().__init__()
        self._durable, self._program, self._header, self._recorded = durable, program, header, recorded

    def append(self, entry: Entry) -> None:
        from ptc_sandbox.journal import Journal

        super().append(entry)
        if len(self) > self._recorded:
            (told,) = cast("list[list[JsonValue]]", Journal(self._header, (entry,)).to_json()["entries"])
            self._durable.note("entry", {"program": self._program, "entry": told})
            if told[0] == "answer":
                self._durable.waiting.discard(f"{self._program}:{told[1]}")
