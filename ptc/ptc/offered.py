"""What a durable run offers its model, as its steps keep it, so that a recovered run offers the same.

It reads and restores a run's exposure; it decides nothing about what may be called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ptc.exposure import LiveExposure
from ptc.past import Past
from ptc.toolbox import Entry, entry_name
from ptc_tools.call import JsonObject, JsonValue


class Offered:
    """Of a run whose exposure is not known, nothing: it offers what it began with."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._exposure: LiveExposure | None = None
        self._known: Sequence[Entry] = ()
        self._version = 0

    def watch(self, exposure: LiveExposure, known: Sequence[Entry]) -> None:
        """Told once: what the run offers, and the tools that it may find in its past."""
        self._exposure, self._known = exposure, known
        self._version = exposure.version

    def restore(self, number: int) -> None:
        """What the run offered when it sent this request before. Raises ContractChanged."""
        sent = self._past.sent.get(number)
        self._restore(sent.get("offered") if sent is not None else None)

    def restore_late(self, number: int) -> None:
        """What tools of the batch that was cut off after this request had changed already."""
        if number == max(self._past.sent, default=0):
            self._restore(self._past.offered)

    def _restore(self, offered: JsonValue) -> None:
        if self._exposure is None or not isinstance(offered, dict) or offered == self.to_json():
            return
        names = cast("list[str]", offered["names"])
        self._exposure.restore(names, offered["hosted_tool"] is True, self._known)
        self._version = self._exposure.version

    def changed(self) -> bool:
        """Whether it is another one than when this was asked last."""
        if self._exposure is None or self._exposure.version == self._version:
            return False
        self._version = self._exposure.version
        return True

    def to_json(self) -> JsonObject | None:
        if self._exposure is None:
            return None
        names: list[JsonValue] = [
            ".".join(part for part in entry_name(entry) if part) for entry in self._exposure.entries
        ]
        return {"names": names, "hosted_tool": self._exposure.hosted_tool}
