"""A rehearsal: one small program through every step, so that the first real one finds it all loaded.

What is imported lazily, specialised or cached on first use happens here, before any program is there.
"""

from __future__ import annotations

import importlib
from typing import Any

from ptc_sandbox.guest.channel import Channel
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.stage import Stage

_LAZY = ("_strptime", "encodings.idna", "encodings.latin_1", "encodings.ascii", "traceback", "unicodedata")
"""What the standard library imports only when it is needed, when nothing can be opened any more."""

_PROGRAM = """
import asyncio, collections, dataclasses, datetime, json, math, re, statistics

@dataclasses.dataclass
class Row:
    name: str
    units: int = 0

async def one(i: int):
    return await rehearse(i=i)

async def main():
    rows = [Row(f"{i:>3}", units=n) for i, n in enumerate(await asyncio.gather(one(1), one(2)))]
    rows[0].units += 1
    totals = collections.Counter()
    for row in rows:
        totals[row.name] += row.units
    day = datetime.datetime(2024, 1, 2).isoformat()
    print("{:.2f}".format(math.sqrt(2)), re.findall(r"\\d+", "a1b22"), json.loads(json.dumps(dict(totals))), day)
    try:
        raise ValueError("rehearsal")
    except ValueError as error:
        return [str(error), max(totals.values()), statistics.mean([1, 2])]

await main()
"""


class _Nowhere(Channel):
    """A channel that leads nowhere: what is sent is forgotten, every call is answered at once."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.calls: list[int] = []
        self.ending: Any = None

    def put(self, frame: list[Any], limit: int | None = None) -> None:
        super().put(frame, limit)
        if frame[0] == "call":
            self.calls.append(frame[1])
        elif frame[0] == "end":
            self.ending = frame[1]

    def flush(self) -> None:
        self._outgoing.clear()

    def get(self) -> list[Any]:
        self.flush()
        return ["answer", self.calls.pop(0), 1, True, 1] if self.calls else ["tick", 1 << 50]


def load() -> None:
    """Load every module that programs may use: later nothing can be opened any more."""
    for name in (*table.modules(), *_LAZY):
        importlib.import_module(name)


def rehearse() -> None:
    """Run one small program through every step. Raises RuntimeError where it does not complete.

    In the fork server, it loads and specialises for all children what runs the first time. In a child that
    waits, it takes the page faults of a first run ahead of the program. It leaves nothing behind that a
    program could see: whether it was run or not, the program computes the same.
    """
    channel = _Nowhere()
    stage = Stage(channel)
    start: dict[str, Any] = {
        "code": _PROGRAM,
        "tools": [["rehearse", ["i"], ""]],
        "seed": 1,
        "epoch_us": 0,
        "language_wall": True,
        "argument_bytes": 1 << 20,
        "result_bytes": 1 << 20,
        "values": 1 << 20,
        "depth": 64,
    }
    stage.run(start)
    stage.close()
    if channel.ending is None or channel.ending["status"] != "completed":
        raise RuntimeError(f"the rehearsal failed: {channel.ending}")
