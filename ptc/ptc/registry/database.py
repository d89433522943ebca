"""The file of a registry: its tables, and the check that a file is one before anything is written to it.

It is kept to its owner, also one that was there before. What is in the tables is `ptc.registry.store`'s matter.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from ptc.registry.errors import RegistryStoreUnreadable
from ptc.store.errors import StoreUnavailable
from ptc.store.files import make_file

APPLICATION_ID: Final = 0x50544347
VERSION: Final = 2
_SCHEMA: Final = (
    "CREATE TABLE registry (version INTEGER NOT NULL) STRICT",
    f"INSERT INTO registry VALUES ({VERSION})",  # noqa: S608 - a number
    """CREATE TABLE toolsets (
    name TEXT PRIMARY KEY, token TEXT NOT NULL, version TEXT NOT NULL, description TEXT, owner TEXT NOT NULL,
    tools TEXT NOT NULL, at REAL NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE replaced (token TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL, at REAL NOT NULL)
    STRICT, WITHOUT ROWID""",
    """CREATE TABLE calls (
    n INTEGER PRIMARY KEY, consumer TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL,
    token TEXT NOT NULL, call TEXT NOT NULL, claim TEXT, result TEXT, at REAL NOT NULL, until REAL NOT NULL,
    UNIQUE (consumer, key)
) STRICT""",
    "CREATE INDEX waiting ON calls (token, n) WHERE state = 'published' AND claim IS NULL",
    "CREATE INDEX old ON calls (at)",
    f"PRAGMA application_id={APPLICATION_ID}",
)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
PATIENCE: Final = 10.0
"""Seconds for which a file that another process is at work on is waited for."""


def open_database(path: Path) -> sqlite3.Connection:
    """The connection; makes the file if there is none. Raises RegistryStoreUnreadable."""
    try:
        make_file(path, "registry")
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=PATIENCE)
    except StoreUnavailable as error:
        raise RegistryStoreUnreadable(error.message) from error
    except sqlite3.Error as error:
        raise RegistryStoreUnreadable(f"{path} cannot be opened: {error}") from error
    try:
        _prepare(db, path)
    except sqlite3.Error as error:
        db.close()
        raise RegistryStoreUnreadable(f"{path} is no registry, or it is damaged: {error}") from error
    except RegistryStoreUnreadable:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """The tables, made by whoever comes first: several processes may start on one file at once."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            _make_tables(db, path)
            db.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            # SQLite itself waits for a lock, but not for that of a change of the journal's mode.
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)


def _make_tables(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        (identity,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if identity != APPLICATION_ID and (identity or tables):
            raise RegistryStoreUnreadable(f"{path} is another application's database")
        for statement in () if tables else _SCHEMA:
            db.execute(statement)
        (version,) = db.execute("SELECT version FROM registry").fetchone()
        if version != VERSION:
            raise RegistryStoreUnreadable(f"{path} is a registry of version {version}, not {VERSION}")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
