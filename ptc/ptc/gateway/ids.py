"""The ids that the peer gives to items and calls: unguessable, and readable by the peer alone.

An id carries the turn of the script that made the item, so that a stateless request tells how far the
conversation is; whether a reasoning item stood before it; and a signature over the item, so that fields and
types the API does not know are taken back only as they were sent.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from ptc.gateway.seal import Seal
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue

_ITEM_ID = re.compile(r"[a-z]+_([0-9a-f]{4})([0-9a-f]{3})([rx])([0-9a-f]{10})([0-9a-f]{16})\Z")
_CALL_ID = re.compile(r"call_([0-9a-f]{4})([0-9a-f]{24})\Z")
MAX_TURNS = 0xFFFF
OF_A_PROGRAM = 0xFFF
"""The place in its turn of an item that a program made, which is no part of the script's turn."""

PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "program": "prog",
    "program_output": "po",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "mcp_approval_request": "mcpr",
}
"""The beginning of an item's id by its type; any other type has `item`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item came from: turn of the script, place in that turn, and whether reasoning precedes it."""

    turn: int
    ordinal: int
    after_reasoning: bool


def place_of(item_id: JsonValue) -> Place | None:
    """What an item's id says, or None for an id that has not the peer's form."""
    match = _ITEM_ID.match(item_id) if isinstance(item_id, str) else None
    if match is None:
        return None
    return Place(int(match[1], 16), int(match[2], 16), match[3] == "r")


def turn_of_call(call_id: JsonValue) -> int | None:
    match = _CALL_ID.match(call_id) if isinstance(call_id, str) else None
    return int(match[1], 16) if match else None


class Mint:
    """Gives ids, and recognises an item that it gave one to and that is unchanged."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def identify(self, item: JsonObject, place: Place, nonce: str) -> JsonObject:
        """The item with its id, which comes second, after `type`. `nonce`: ten hexadecimal digits."""
        prefix = PREFIXES.get(str(item.get("type")), "item")
        flag = "r" if place.after_reasoning else "x"
        stem = f"{prefix}_{place.turn:04x}{place.ordinal:03x}{flag}{nonce}"
        rest = {name: value for name, value in item.items() if name not in ("type", "id")}
        return {"type": item["type"], "id": stem + self._mac(stem, item), **rest}

    def is_unchanged(self, item: JsonObject) -> bool:
        """Whether this mint gave the item its id and nothing of it was changed since."""
        item_id = item.get("id")
        if not isinstance(item_id, str) or place_of(item_id) is None:
            return False
        stem, mac = item_id[:-16], item_id[-16:]
        return hmac.compare_digest(mac, self._mac(stem, item))

    def call_id(self, turn: int, *about: str) -> str:
        """A call id for this turn: the same for the same words, and not to be guessed without the key."""
        return f"call_{turn:04x}{self._seal.mac('call id', strict_json.canonical(list(about)))[:24]}"

    def nonce(self, *about: str) -> str:
        return self._seal.mac("nonce", strict_json.canonical(list(about)))[:10]

    def _mac(self, stem: str, item: JsonObject) -> str:
        # `created_by` is output only: a client strips it (wire.md, rule 1), and the rest must be as it was.
        rest = {name: value for name, value in item.items() if name not in ("id", "created_by")}
        return self._seal.mac("item " + stem, strict_json.canonical(rest))[:16]
