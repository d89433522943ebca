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

# Parameters have no numbers: Python 3.12 takes those for names. Where the step before is missing the number is NULL,
# which no step may have: the whole transaction is refused.
_BEFORE: Final = "EXISTS (SELECT 1 FROM steps WHERE steps.id = (runs.id << 32 | (new.n - 1)))"
_ADD: Final = (
    "INSERT INTO steps SELECT runs.id << 32 | new.n, runs.run,"  # noqa: S608 - made of this module's own words
    f" CASE WHEN NOT new.begins OR new.n = 1 OR {_BEFORE} THEN new.n END,"
    " new.at, new.kind, new.data FROM runs JOIN "
)
_NEW_STEP: Final = "SELECT ? AS n, ? AS at, ? AS kind, ? AS data, 1 AS begins"
ADD: Final = f"{_ADD}({_NEW_STEP}, ? AS run) AS new USING (run)"
READ: Final = "SELECT n, kind, data FROM steps WHERE id >= ? AND id < ? ORDER BY id"


def add_all(count: int) -> str:
    """One statement that adds so many steps, one after the other, where the lease holds, and none where it does not.

    Fails where the run has no step before the first.
    """
    new = " UNION ALL ".join((_NEW_STEP, *["SELECT ?, ?, ?, ?, 0"] * (count - 1)))
    return f"{_ADD}({new}) AS new WHERE run = ? AND epoch = ? AND holder = ?"


def add_next(count: int) -> str:
    """The same for who knows the run's own id, and that the step before the first is there: in half the time."""
    row = "SELECT id << 32 | ?, run, ?, ?, ?, ? FROM runs WHERE id = ? AND epoch = ? AND holder = ?"
    return "INSERT INTO steps " + " UNION ALL ".join([row] * count)


def steps_of(key: int) -> tuple[int, int]:
    """What `READ` is given for a run's own id."""
    return key << 32, (key + 1) << 32


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
