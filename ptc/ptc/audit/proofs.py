"""Proofs about single records, for somebody who does not have the log: inclusion and consistency (RFC 6962).

A proof is made from the whole log and can be checked with the record, the checkpoint and the verifier key
alone, by any implementation of RFC 6962 and C2SP signed notes.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ptc.audit.errors import AuditCorrupt, RecordNotFound
from ptc.audit.lines import leaf_hash
from ptc.audit.merkle import consistency_proof, inclusion_proof
from ptc.audit.notes import Checkpoint, parse
from ptc.audit.reader import Damage, lines
from ptc.audit.reader import parse as parse_line
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.command_line import ptc_command


def prove(path: Path, seq: int) -> JsonObject:
    """That record `seq` is in the tree of the first checkpoint after it, and that every checkpoint grew from the last.

    `record`: the line; `leaf`: its hash; `checkpoint`: the signed note; `inclusion`: the audit path, base 16;
    `consistency`: for each pair of checkpoints their sizes and the proof between them. Raises RecordNotFound
    where there is no such record or no checkpoint covers it yet, AuditCorrupt for a damaged log.
    """
    leaves: list[bytes] = []
    notes: list[tuple[Checkpoint, str]] = []
    wanted: bytes | None = None
    for line in lines(path):
        if isinstance(line, Damage):
            raise AuditCorrupt(f"{line.file}: {line.reason}; `{ptc_command()} audit verify` says more")
        if line.torn:
            break
        leaves.append(leaf_hash(line.data))
        if len(leaves) == seq:
            wanted = line.data
        if b'"type":"audit.checkpoint"' in line.data:
            record = parse_line(line)
            head = parse(record["data"]["note"]) if record["type"] == "audit.checkpoint" else None
            if head is not None:
                notes.append((head, record["data"]["note"]))
    if wanted is None:
        raise RecordNotFound(f"{path} has {len(leaves)} records; there is no record {seq}")
    covering = next(((head, note) for head, note in notes if head.size >= seq), None)
    if covering is None:
        raise RecordNotFound(
            f"no checkpoint covers record {seq} yet: the next one does, at the latest when the log closes"
        )
    head, note = covering
    inclusion: list[JsonValue] = [node.hex() for node in inclusion_proof(leaves[: head.size], seq - 1)]
    return {
        "record": wanted.decode(),
        "seq": seq,
        "leaf": leaf_hash(wanted).hex(),
        "size": head.size,
        "root": head.root.hex(),
        "checkpoint": note,
        "inclusion": inclusion,
        "consistency": [_between(leaves, old, new) for (old, _), (new, _) in pairwise(notes)],
    }


def _between(leaves: list[bytes], old: Checkpoint, new: Checkpoint) -> JsonValue:
    proof: list[JsonValue] = [node.hex() for node in consistency_proof(leaves[: new.size], old.size)]
    return {
        "from": old.size,
        "from_root": old.root.hex(),
        "to": new.size,
        "to_root": new.root.hex(),
        "proof": proof,
    }
