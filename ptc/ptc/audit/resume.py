"""Where a log that is opened again stands: its id, its place in the chain, its tree, what was left undone.

It reads back to the last checkpoint, checks its signature and the chain from there, and refuses to continue a
log whose end does not hold together, or says that it was closed and cannot show it. What a crash left unsigned
is told, so that the log says it for ever. Nothing is repaired here; the store has already cut a torn end.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ptc.audit.errors import AuditCorrupt
from ptc.audit.keys import Keyring
from ptc.audit.lines import GENESIS, leaf_hash
from ptc.audit.merkle import Frontier
from ptc.audit.notes import fits_key, origin, parse, verifier_key
from ptc.audit.store import End, Store
from ptc_tools.call import JsonObject
from ptc_tools.command_line import ptc_command

DEFAULT_INTERVAL: Final = 1000
_GROUP_SLACK: Final = 1024
_INLINE_SLACK: Final = 10_000
"""Records by which a checkpoint may come late: with the group that made it due, or, where callers write with
their own hands, when the log's thread gets its turn."""
MOST_UNSIGNED: Final = DEFAULT_INTERVAL + _INLINE_SLACK
"""Records that a writer without settings of its own can leave unsigned as it dies, whatever its `sync`."""


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
    journal_key: str | None
    recovered: JsonObject | None
    unsigned: tuple[int, int] | None = None
    """First and last of the records at the end that no key of the keyring has signed."""


def most_unsigned(opened: dict[str, Any]) -> int | None:
    """Records that a writer leaves unsigned at most, by what its `audit.opened` says; None where it does not."""
    interval = opened.get("checkpoint_records")
    if not isinstance(interval, int):
        return None
    return interval + (_INLINE_SLACK if opened.get("sync") == "none" else _GROUP_SLACK)


def standing(end: End | None, path: Path, store: Store, keys: Keyring) -> Standing:
    """Raises AuditCorrupt, and then has closed the store."""
    if end is None:
        return Standing(None, 0, GENESIS, Frontier(), 1, 0, 0, None, None, None, None, None)
    try:
        return _standing(end, keys)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        store.close()
        raise AuditCorrupt(
            f"the end of {path} does not hold together ({error}): it was changed, or it is no log of ours, and is"
            f" not continued. `{ptc_command()} audit verify {path}` says where; keep it as evidence, and to go on,"
            " give the log another path"
        ) from None


def _standing(end: End, ring: Keyring) -> Standing:
    records = [json.loads(line) for line in end.tail]
    frontier, since = _tree(records[0], end.tail[0])
    ring_keys = [verifier_key(records[0]["log"], key) for key in ring.of("signing")]
    sealed, signed = _last_signed(records[0], ring_keys)
    told = ("audit.opened", "audit.checkpoint")  # both say which keys are in use
    keys = next((r["data"] for r in reversed(records) if r["type"] in told), None)
    named = keys["signing_key"] if keys else None
    prev = leaf_hash(end.tail[0]).hex()
    seq = records[0]["seq"]
    for record, line in zip(records[1:], end.tail[1:], strict=True):
        seq += 1
        if record["seq"] != seq or record["prev"] != prev or record["log"] != records[0]["log"]:
            raise ValueError(f"the chain breaks at record {seq}")
        if record["type"] == "audit.closed":
            by = _signer(record, frontier, [*ring_keys, named])
            sealed = seq if by is not None else sealed
            signed = seq if by in ring_keys else signed
        leaf = leaf_hash(line)
        prev = leaf.hex()
        frontier.add(leaf)
        since += 1
    if named is not None and sealed < seq:
        _hold_to_promise(records, seq - sealed, sealed)
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
        signing_key=named,
        journal_key=keys.get("journal_key") if keys else None,
        recovered=cut,
        unsigned=(signed + 1, seq) if signed < seq else None,
    )


def _last_signed(first: dict[str, Any], ring: list[str]) -> tuple[int, int]:
    """Up to where the first line of the tail shows the log to be signed by any key, and by one of the keyring.

    Its own number, since a checkpoint covers the records before it and is its own witness, or 0. Raises
    ValueError for one whose signature is not what it says. One of a key that the keyring does not hold shows
    nothing, since anybody has keys; but an operator may have lost his.
    """
    if first["type"] != "audit.checkpoint":
        return 0, 0
    note, named, seq = first["data"]["note"], first["data"]["signing_key"], int(first["seq"])
    if any(fits_key(note, key) for key in ring):
        return seq, seq
    if named is not None and (named in ring or not fits_key(note, named)):
        raise ValueError("its last checkpoint is not signed with the key that it names")
    return (0 if named is None else seq), 0


def _signer(closed: dict[str, Any], tree: Frontier, keys: list[str | None]) -> str | None:
    """Which of these keys has signed `audit.closed`, over the tree of everything before it."""
    note = str(closed["data"].get("note"))
    head = parse(note)
    if head is None or (head.size, head.root) != (tree.size, tree.root()):
        return None
    return next((key for key in keys if key is not None and fits_key(note, key)), None)


def _hold_to_promise(records: list[dict[str, Any]], unsigned: int, signed: int) -> None:
    """Raises ValueError where the end has more records without a signature than a crash can leave.

    A log is closed with a signature over all of it, and signs again after so many records. An end that has it
    not was rewritten by somebody without the key: continued, it would be signed with everything in it.
    """
    if records[-1]["type"] == "audit.closed":
        raise ValueError(f"it was closed, and no signature covers the records after {signed}")
    opened = next((record for record in reversed(records) if record["type"] == "audit.opened"), None)
    most = most_unsigned(opened["data"]) if opened else None
    if most is not None and unsigned > most:
        raise ValueError(f"its last {unsigned} records are not signed, and no crash leaves more than {most}")


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
