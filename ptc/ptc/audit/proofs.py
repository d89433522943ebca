"""Proofs about single records, for somebody who does not have the log: inclusion and consistency (RFC 6962).

A proof is made from the whole log and can be checked with the record, the checkpoint and the verifier key
alone, by any implementation of RFC 6962 and C2SP signed notes.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ptc.audit.errors import AuditCorrupt, RecordNotFound
from ptc.audit.lines import leaf_hash
from ptc.audit.merkle import Frontier, consistency_proof, inclusion_proof
from ptc.audit.notes import Checkpoint, parse
from ptc.audit.reader import Damage, Line, lines
from ptc.audit.reader import parse as parse_line
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.command_line import ptc_command


def prove(path: Path, seq: int) -> JsonObject:
    """That record `seq` is in the tree of the first checkpoint after it, and that every checkpoint grew from the last.

    `record`: the line; `leaf`: its hash; `checkpoint`: the signed note; `inclusion`: the audit path, base 16;
    `consistency`: for each pair of checkpoints their sizes and the proof between them. Raises RecordNotFound
    where there is no such record, no checkpoint covers it yet or the log's first files are gone; AuditCorrupt for a
    log that is damaged, or whose records are not those that its checkpoints saw.
    """
    leaves: list[bytes] = []
    notes: list[tuple[Checkpoint, str]] = []
    wanted: bytes | None = None
    tree, closing = Frontier(), False
    for line in lines(path):
        if isinstance(line, Damage):
            raise AuditCorrupt(f"{line.file}: {line.reason}; `{ptc_command()} audit verify` says more")
        if line.torn:
            break
        if not leaves and (first := parse_line(line)["seq"]) != 1:
            raise RecordNotFound(
                f"{path} begins with record {first}: a proof is made from every record, so put the files before it back"
            )
        closing = b'"type":"audit.checkpoint"' in line.data
        if closing and (found := _head(path, line, tree)) is not None:
            notes.append(found)
        leaves.append(leaf_hash(line.data))
        tree.add(leaves[-1])
        if len(leaves) == seq:
            wanted = line.data
    if wanted is None:
        raise RecordNotFound(f"{path} has {len(leaves)} records; there is no record {seq}")
    covering = next(((head, note) for head, note in notes if head.size >= seq), None)
    if covering is None:
        if closing and seq == len(leaves):
            raise RecordNotFound(f"record {seq} is the last checkpoint itself, which none covers")
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


def _head(path: Path, line: Line, tree: Frontier) -> tuple[Checkpoint, str] | None:
    """The checkpoint of a line, if it is one. Raises AuditCorrupt where the records before it are not those it saw."""
    record = parse_line(line)
    if record["type"] != "audit.checkpoint":
        return None
    note = record["data"]["note"]
    head = parse(note)
    if head is None or (head.size, head.root) != (tree.size, tree.root()):
        raise AuditCorrupt(
            f"the records of {path} are not those that checkpoint {record['seq']} saw, so nothing can be proven by"
            f" it: `{ptc_command()} audit verify {path}` says more"
        )
    return head, note


def _between(leaves: list[bytes], old: Checkpoint, new: Checkpoint) -> JsonValue:
    proof: list[JsonValue] = [node.hex() for node in consistency_proof(leaves[: new.size], old.size)]
    return {
        "from": old.size,
        "from_root": old.root.hex(),
        "to": new.size,
        "to_root": new.root.hex(),
        "proof": proof,
    }
