"""Items that the script sent under an id of its own, as far as they are remembered: a digest and a turn of each.

Such an id has no place for the peer's signature, so that the peer has to know what it said. It keeps the
latest ones, in memory; a peer that is restarted has forgotten them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from ptc_tools import strict_json
from ptc_tools.call import JsonObject

_CAPACITY = 10_000


class Verbatim:
    """What one peer has said in the script's own words."""

    def __init__(self) -> None:
        self._turns: OrderedDict[bytes, int] = OrderedDict()

    def remember(self, item: JsonObject, turn: int) -> None:
        digest = _digest(item)
        self._turns[digest] = turn
        self._turns.move_to_end(digest)
        while len(self._turns) > _CAPACITY:
            self._turns.popitem(last=False)

    def turn_of(self, item: JsonObject) -> int | None:
        """The turn in which exactly this item was sent, None if none is known."""
        return self._turns.get(_digest(item)) if self._turns else None


def _digest(item: JsonObject) -> bytes:
    # `created_by` is output only: a client strips it (wire.md, rule 1), and the rest must be as it was.
    rest = {name: value for name, value in item.items() if name != "created_by"}
    return hashlib.sha256(strict_json.canonical(rest)).digest()
