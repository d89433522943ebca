"""How one record becomes one line: canonical JSON put together from parts that are encoded once and kept.

A line is what is hashed, chained and kept; `v` is 1. Keys stand in sorted order, so that the line equals the
canonical form of what it says. The sequence number and the previous hash join at the last moment, when the
record's place in the log is certain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

VERSION: Final = 1
GENESIS: Final = "0" * 64
"""`prev` of the first record."""


class Columns(NamedTuple):
    """What the SQLite form can be searched by. The line remains the truth; a verifier compares."""

    at: int
    type: str
    run: str | None = None
    tool: str | None = None
    caller: str | None = None
    status: str | None = None
    arguments: str | None = None


Statement: TypeAlias = "tuple[str, tuple[object, ...]]"
"""SQL and its values: what a run store in the log's own file adds in the transaction of a record."""


class Draft(NamedTuple):
    """A record without its place: everything before `prev`, everything after `seq`, and its columns."""

    head: str
    tail: str
    columns: Columns
    also: tuple[Statement, ...] = ()


class Entry(NamedTuple):
    """A record in its place. `line` has no newline; `leaf` is its hash."""

    seq: int
    line: bytes
    leaf: bytes
    columns: Columns
    also: tuple[Statement, ...] = ()


@dataclass(slots=True)
class Parts:
    """The members of a record as JSON texts, in their sorted order; empty ones are left out."""

    content: str = ""
    data: str = ""
    identity: str = ""
    origin: str = ""
    outcome: str = ""
    start: int | None = None
    tool: str = ""


def call_draft(
    columns: Columns, content: str, middle: str, ending: str, start: int | None, tool: str
) -> Draft:
    """The same for a call, whose records are by far the most: `middle` is what its records share."""
    begun = "" if start is None else f',"start":{start}'
    return Draft(
        f'{{"at":{columns.at},"content":{content}{middle}{ending}',
        f'{begun},"tool":{tool},"type":"{columns.type}","v":{VERSION}}}',
        columns,
    )


def draft(log: str, columns: Columns, parts: Parts) -> Draft:
    """`log` is the log's id; type and time come from the columns."""
    head = f'{{"at":{columns.at}'
    if parts.content:
        head += f',"content":{parts.content}'
    if parts.data:
        head += f',"data":{parts.data}'
    if parts.identity:
        head += f',"identity":{parts.identity}'
    head += f',"log":"{log}"'
    if parts.origin:
        head += f',"origin":{parts.origin}'
    if parts.outcome:
        head += f',"outcome":{parts.outcome}'
    tail = f',"type":"{columns.type}","v":{VERSION}}}'
    if parts.tool:
        tail = f',"tool":{parts.tool}{tail}'
    if parts.start is not None:
        tail = f',"start":{parts.start}{tail}'
    return Draft(head, tail, columns)


def place(record: Draft, seq: int, prev: str) -> Entry:
    """The line at its place, and the hash that the next record carries as `prev`."""
    line = f'{record.head},"prev":"{prev}","seq":{seq}{record.tail}'.encode()
    return Entry(seq, line, leaf_hash(line), record.columns, record.also)


def place_all(records: Iterable[Draft], seq: int, prev: str) -> list[Entry]:
    """Lines in a row, behind record `seq` whose hash is `prev`. Written out, since it runs once for every record."""
    entries: list[Entry] = []
    sha256 = hashlib.sha256
    for head, tail, columns, also in records:
        seq += 1
        line = f'{head},"prev":"{prev}","seq":{seq}{tail}'.encode()
        leaf = sha256(b"\0" + line).digest()
        prev = leaf.hex()
        entries.append(Entry(seq, line, leaf, columns, also))
    return entries


def leaf_hash(line: bytes) -> bytes:
    """RFC 6962's leaf hash, SHA-256 over a zero byte and the line: link of the chain and leaf of the tree."""
    return hashlib.sha256(b"\0" + line).digest()
