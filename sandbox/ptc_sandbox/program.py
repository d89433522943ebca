"""A program as it is given to a child: its text, the stubs of its tools, and the header that pins its world."""

from __future__ import annotations

from dataclasses import dataclass

from ptc_sandbox.journal import JournalHeader
from ptc_sandbox.limits import Limits
from ptc_sandbox.stubs import Stubs
from ptc_tools.call import JsonObject


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run: everything that goes into a `start` frame."""

    code: str
    stubs: Stubs
    header: JournalHeader
    language_wall: bool = True

    def start_frame(self, limits: Limits) -> JsonObject:
        return {
            "code": self.code,
            "tools": self.stubs.wire,
            "seed": self.header.seed,
            "epoch_us": self.header.epoch_us,
            "language_wall": self.language_wall,
            "argument_bytes": limits.argument_bytes,
            "result_bytes": limits.result_bytes,
            "values": limits.values,
            "depth": limits.depth,
        }
