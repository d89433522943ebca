"""A rehearsal in the fork server: one small program through every step, so that children find it all loaded.

What is imported lazily, specialised or cached on first use happens here, once, before any child exists.
"""

from __future__ import annotations

import importlib
from typing import Any

from ptc_sandbox.guest import child
from ptc_sandbox.guest.channel import Channel
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.loop import ProgramLoop

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


class _Stage(Channel):
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


def warm() -> None:
    """Load every module that programs may use, then run the rehearsal.

    Raises RuntimeError where it does not complete: a server that cannot run this runs nothing.
    """
    for name in (*table.modules(), *_LAZY):
        importlib.import_module(name)
    stage = _Stage()
    loop = ProgramLoop(stage)
    start = {
        "code": _PROGRAM,
        "tools": [["rehearse", ["i"], ""]],
        "seed": 1,
        "epoch_us": 0,
        "language_wall": True,
        "argument_bytes": 1 << 20,
        "result_bytes": 1 << 20,
    }
    child.run(stage, loop, start)
    loop.close()
    if stage.ending is None or stage.ending["status"] != "completed":
        raise RuntimeError(f"the rehearsal of the fork server failed: {stage.ending}")
