"""Where a log that is opened again stands: its id, its place in the chain, its tree, what was left undone.

It reads back to the last checkpoint, checks the chain from there, and refuses to continue a log whose end
does not hold together. Nothing is repaired here; the store has already cut a torn end.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from ptc.audit.errors import AuditCorrupt
from ptc.audit.lines import GENESIS, leaf_hash
from ptc.audit.merkle import Frontier
from ptc.audit.notes import origin, parse
from ptc.audit.store import End, Store
from ptc_tools.call import JsonObject
from ptc_tools.command_line import ptc_command


@dataclass(frozen=True, slots=True)
class Standing:
    """`log` is None for a new log; then everything else is as at the beginning of time."""

    log: str | None
    seq: int
    prev: str
    frontier: Frontier
    file_first_seq: int
    file_opened_us: int
    since_checkpoint: int
    clean: bool | None
    digest_key: str | None
    signing_key: str | None
    recovered: JsonObject | None


def standing(end: End | None, path: Path, store: Store) -> Standing:
    """Raises AuditCorrupt, and then has closed the store."""
    if end is None:
        return Standing(None, 0, GENESIS, Frontier(), 1, 0, 0, None, None, None, None)
    try:
        return _standing(end)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        store.close()
        raise AuditCorrupt(
            f"the end of {path} does not hold together ({error}): it was changed, or it is no log of ours."
            f" `{ptc_command()} audit verify {path}` says where; to go on, give the log another path"
        ) from None


def _standing(end: End) -> Standing:
    records = [json.loads(line) for line in end.tail]
    frontier, since = _tree(records[0], end.tail[0])
    prev = leaf_hash(end.tail[0]).hex()
    seq = records[0]["seq"]
    for record, line in zip(records[1:], end.tail[1:], strict=True):
        seq += 1
        if record["seq"] != seq or record["prev"] != prev or record["log"] != records[0]["log"]:
            raise ValueError(f"the chain breaks at record {seq}")
        leaf = leaf_hash(line)
        prev = leaf.hex()
        frontier.add(leaf)
        since += 1
    told = ("audit.opened", "audit.checkpoint")  # both say which keys are in use
    keys = next((r["data"] for r in reversed(records) if r["type"] in told), None)
    cut: JsonObject | None = None
    if end.cut:
        cut = {"cut_bytes": len(end.cut), "cut_sha256": hashlib.sha256(end.cut).hexdigest()}
    return Standing(
        log=records[0]["log"],
        seq=seq,
        prev=prev,
        frontier=frontier,
        file_first_seq=end.file_first_seq,
        file_opened_us=end.file_opened_us,
        since_checkpoint=since,
        clean=_is_clean(records) and not end.cut,
        digest_key=keys["digest_key"] if keys else None,
        signing_key=keys["signing_key"] if keys else None,
        recovered=cut,
    )


def _tree(first: dict[str, object], line: bytes) -> tuple[Frontier, int]:
    """The tree with the first line of the tail in it: from its checkpoint, or from the log's beginning."""
    if first["type"] == "audit.checkpoint":
        data = first["data"]
        assert isinstance(data, dict)
        note = parse(data["note"])
        seq = first["seq"]
        if note is None or note.size + 1 != seq or note.origin != origin(str(first["log"])):
            raise ValueError("its last checkpoint is not one")
        frontier = Frontier(note.size, [bytes.fromhex(node) for node in data["frontier"]])
        if frontier.root() != note.root:
            raise ValueError("its last checkpoint does not fit its own tree")
    elif first["seq"] == 1 and first["prev"] == GENESIS:
        frontier = Frontier()
    else:
        raise ValueError("it begins in the middle and has no checkpoint")
    frontier.add(leaf_hash(line))
    return frontier, 1


def _is_clean(records: list[dict[str, object]]) -> bool:
    data = records[-1].get("data")
    reason = data.get("reason") if isinstance(data, dict) else None
    return records[-1]["type"] == "audit.closed" or reason == "closed"
