"""What somebody who may write to a log's file can do to it: put other records there, recompute the chain, sign anew."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from ptc.audit.keys import Keyring
from ptc.audit.lines import leaf_hash
from ptc.audit.merkle import Frontier
from ptc.audit.notes import Checkpoint, Signer, origin
from ptc.audit.values import canonical


def rewrite(path: Path, lines: list[bytes], seqs: list[int] | None = None) -> None:
    """Puts these lines in the place of a log's, as somebody who may write to the file would."""
    if path.suffix == ".jsonl":
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT * FROM records ORDER BY seq").fetchall()
        db.execute("DELETE FROM records")
        for number, line in enumerate(lines):
            old = rows[min(number, len(rows) - 1)]
            seq = seqs[number] if seqs else number + 1
            db.execute(
                "INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?)", (seq, *_columns(line, old), line.decode())
            )
        db.commit()


def _columns(line: bytes, old: tuple[object, ...]) -> tuple[object, ...]:
    try:
        record = json.loads(line)
        assert isinstance(record["type"], str)
    except (ValueError, KeyError, TypeError):
        return old[1:8]
    tool = record.get("tool", {})
    name = f"{tool['namespace']}.{tool['name']}" if "namespace" in tool else tool.get("name")
    run = record.get("identity", {}).get("run")
    caller = {"program": "programmatic", "direct": "direct"}.get(record.get("origin", {}).get("caller"))
    status = record.get("outcome", {}).get("status") or (run and record.get("data", {}).get("status"))
    digest = record.get("content", {}).get("arguments_digest")
    return record.get("at"), record.get("type"), run, name, caller, status or None, digest


def rechain(lines: list[bytes], first: int = 1, previous: str = "0" * 64) -> list[bytes]:
    """Recomputes the chain, as a careful forger would: from record `first` on, behind the hash `previous`."""
    done: list[bytes] = []
    for number, line in enumerate(lines, first):
        record = {**json.loads(line), "seq": number, "prev": previous}
        done.append(canonical(record))
        previous = leaf_hash(done[-1]).hex()
    return done


def resign(lines: list[bytes], keys: Keyring) -> list[bytes]:
    """Recomputes the chain and signs every tree head anew: what a forger with a key of his own can do."""
    signer = Signer(origin(json.loads(lines[0])["log"]), keys.active("signing").secret)
    tree, done, previous = Frontier(), [], "0" * 64
    for number, line in enumerate(lines, 1):
        record = {**json.loads(line), "seq": number, "prev": previous}
        data = record.get("data", {})
        if "signing_key" in data:
            data["signing_key"] = signer.verifier_key
        if "note" in data:
            data["note"] = signer.sign(Checkpoint(signer.name, tree.size, tree.root()))
        if "frontier" in data:
            data["frontier"] = [node.hex() for node in tree.roots]
        done.append(canonical(record))
        leaf = leaf_hash(done[-1])
        tree.add(leaf)
        previous = leaf.hex()
    return done
