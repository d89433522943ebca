"""The tables of a SQLite run store, and how a file of an earlier version gets them.

It changes a database's shape in one transaction, or not at all; it decides nothing about what the rows mean.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ptc.store.errors import StoreUnreadable

APPLICATION_ID: Final = 0x50544352
VERSION: Final = 2

# A step's id is its run's and its number: what a run adds stands at the end of its part of the tree, where SQLite
# fills one page after the other. With a key of text it balances several pages at every third call or so.
_RUNS: Final = """CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, status TEXT NOT NULL, epoch INTEGER NOT NULL, holder TEXT,
    expires INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, labels TEXT NOT NULL
) STRICT"""
_STEPS: Final = """CREATE TABLE IF NOT EXISTS steps (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, n INTEGER NOT NULL CHECK (n BETWEEN 0 AND 4294967295),
    at INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL
) STRICT"""
_NEW: Final = (
    "CREATE TABLE IF NOT EXISTS run_store (version INTEGER NOT NULL) STRICT",
    _RUNS,
    _STEPS,
    f"INSERT INTO run_store SELECT {VERSION} WHERE NOT EXISTS (SELECT 1 FROM run_store)",  # noqa: S608 - a number
)
_FROM_1: Final = (
    "ALTER TABLE runs RENAME TO runs_1",
    "ALTER TABLE steps RENAME TO steps_1",
    _RUNS,
    _STEPS,
    "INSERT INTO runs SELECT NULL, run, status, epoch, holder, expires, created, updated, labels FROM runs_1"
    " ORDER BY created, run",
    "INSERT INTO steps SELECT id << 32 | n, run, n, at, kind, data FROM steps_1 JOIN runs USING (run)",
    "DROP TABLE steps_1",
    "DROP TABLE runs_1",
    "UPDATE run_store SET version = 2",
)

# Where the step before is missing the number is NULL, which no step may have: the whole transaction is refused.
_BEFORE: Final = "EXISTS (SELECT 1 FROM steps WHERE steps.id = (runs.id << 32 | ({0} - 1)))"
_FOLLOWS: Final = f"CASE WHEN {{0}} = 1 OR {_BEFORE} THEN {{0}} END"
ADD: Final = (
    "INSERT INTO steps SELECT id << 32 | ?2, run, "  # noqa: S608 - made of this module's own words
    f"{_FOLLOWS.format('?2')}, ?3, ?4, ?5 FROM runs WHERE run = ?1"
)
READ: Final = "SELECT n, kind, data FROM steps WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32 ORDER BY id"


def add_all(count: int) -> str:
    """One statement that adds so many steps, one after the other, where the lease holds, and none where it does not.

    Fails where the run has no step before the first.
    """
    of_run = "FROM runs WHERE run = ?1 AND epoch = ?2 AND holder = ?3"
    first = range(4, 4 * count + 4, 4)
    numbers = (_FOLLOWS.format("?4") if n == 4 else f"?{n}" for n in first)
    rows = (
        f"SELECT id << 32 | ?{n}, run, {number}, ?{n + 1}, ?{n + 2}, ?{n + 3}"
        for n, number in zip(first, numbers, strict=True)
    )
    return "INSERT INTO steps " + " UNION ALL ".join(f"{row} {of_run}" for row in rows)


def prepare(db: sqlite3.Connection, path: Path, *, own_file: bool) -> None:
    """The file has the tables of this version. Raises StoreUnreadable for one that cannot get them."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'run_store'").fetchone():
        mark = (f"PRAGMA application_id={APPLICATION_ID}",) if own_file else ()
        _change(db, (*_NEW, *mark))
    if _version(db, path) == 1:
        _change(db, _FROM_1, while_version=1)
    version = _version(db, path)
    if version != VERSION:
        raise StoreUnreadable(
            f"{path} is a run store of version {version}; this library reads 1 to {VERSION}"
        )


def _version(db: sqlite3.Connection, path: Path) -> int:
    versions = db.execute("SELECT version FROM run_store").fetchall()
    if len(versions) != 1:
        raise StoreUnreadable(f"{path} is damaged: it does not say its version; take it from a backup")
    return int(versions[0][0])


def _change(db: sqlite3.Connection, statements: Sequence[str], *, while_version: int | None = None) -> None:
    """All of them or none; none where another process was quicker."""
    db.execute("BEGIN IMMEDIATE")
    try:
        if while_version is None or db.execute("SELECT version FROM run_store").fetchone() == (
            while_version,
        ):
            for statement in statements:
                db.execute(statement)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
