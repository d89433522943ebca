"""The log as an SQLite database in WAL mode: the same lines, with columns to search them by.

`records.record` is the truth; the other columns are copied from it and a verifier compares them. Rows are
appended in one statement for each group, so that the writer asks for Python's global lock once and not
once for every row. Nothing is ever updated or deleted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from ptc.audit.errors import AuditCorrupt, AuditLocked
from ptc.audit.lines import Entry
from ptc.audit.schema import APPLICATION_ID, SCHEMA
from ptc.audit.store import End, Reserve, StoreFailed, WriterLock, refuse_to_overwrite, segments, set_aside
from ptc_tools.command_line import ptc_command

_ROWS: Final = 64
_BUSY_MS: Final = 5_000
_TABLES: Final = f"BEGIN;{SCHEMA}PRAGMA application_id={APPLICATION_ID};PRAGMA user_version=1;COMMIT;"
_DISK: Final = {
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
}


class SqliteStore:
    """A store (see `store.Store`) in one database, and further ones as it is rotated."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path = path
        self._durable = durable
        self._lock = WriterLock(path)
        self._reserve = Reserve(path)
        self._db: sqlite3.Connection | None = None
        self._size = 0

    def open(self) -> End | None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            self._connect()
            end = self._end()
            self._reserve.keep()
        except sqlite3.DatabaseError as error:
            self.close()
            system = _DISK.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
            if system is not None:  # the disk's fault or another's lock, and no fault of what is on it
                raise OSError(system, f"{os.strerror(system)}: {error}") from error
            raise AuditCorrupt(
                f"{self._path} is not an audit log of ours, or it is damaged ({error}):"
                f" look at it with `{ptc_command()} audit verify {self._path}`; to go on, give the log another path"
            ) from error
        except BaseException:
            self.close()
            raise
        return end

    def append(
        self, entries: Sequence[Entry], *, sync: bool, meanwhile: Callable[[], None] | None = None
    ) -> None:
        if meanwhile is not None:
            meanwhile()
        try:
            db = self._connection()
        except (OSError, AuditLocked, sqlite3.DatabaseError) as error:
            raise StoreFailed("EIO", f"{self._path}: {error}") from error
        try:
            others = [statement for entry in entries for statement in entry.also]
            if len(entries) <= _ROWS and not others:
                self._insert(db, entries)
            else:
                db.execute("BEGIN IMMEDIATE")
                for start in range(0, len(entries), _ROWS):
                    self._insert(db, entries[start : start + _ROWS])
                for statement, values in others:
                    db.execute(statement, values)
                db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            name = "ENOSPC" if error.sqlite_errorname == "SQLITE_FULL" else error.sqlite_errorname
            raise StoreFailed(name, f"{self._path}: {error}") from error
        finally:
            if db.in_transaction:
                db.rollback()
        self._size += sum(len(entry.line) for entry in entries)

    def size(self) -> int:
        return self._size

    def rotate(self, first_seq: int) -> str | None:
        aside = set_aside(self._path, first_seq)
        refuse_to_overwrite(aside)
        db = self._connection()
        db.execute("PRAGMA busy_timeout=0")
        try:
            (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                return None  # somebody reads: not everything is in the one file that is to stand alone
            with contextlib.suppress(sqlite3.OperationalError):  # somebody has it open: then it stays WAL
                db.execute("PRAGMA journal_mode=DELETE").fetchall()
        finally:
            db.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        db.close()
        self._db = None
        self._lock.drop_file()
        os.rename(self._path, aside)
        for suffix in (
            "-wal",
            "-shm",
        ):  # empty, and open in a reader: it must not be taken for the next file's
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{self._path}{suffix}", f"{aside}{suffix}")
        return aside.name

    def release_reserve(self) -> None:
        """And what the write-ahead log holds twice: on a small disk that alone may be what fills it."""
        self._reserve.release()
        if self._db is not None:
            with contextlib.suppress(sqlite3.DatabaseError):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def keep_reserve(self) -> None:
        self._reserve.keep()

    def leave(self) -> None:
        self._lock.release()

    def close(self) -> None:
        db, self._db = self._db, None
        try:
            if db is not None:
                db.close()
        finally:
            self._lock.release()

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._connect()
        assert self._db is not None
        return self._db

    def _connect(self) -> None:
        real = self._path.resolve()
        if not real.exists() or real.stat().st_size == 0:
            _make(real)
        self._lock.hold_file()
        db = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1000
        )
        self._db = db
        db.execute("PRAGMA journal_mode=WAL").fetchall()
        db.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
        (identity,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if identity == 0 and tables == 0:
            db.executescript(_TABLES)
        elif identity != APPLICATION_ID:
            raise sqlite3.DatabaseError("it is another application's database")
        (filled,) = db.execute("SELECT EXISTS (SELECT 1 FROM records)").fetchone()
        self._size = self._path.stat().st_size if filled else 0  # an empty one is never too big

    def _end(self) -> End | None:
        db = self._connection()
        (first,) = db.execute("SELECT min(seq) FROM records").fetchone()
        opened_us = 0
        if first is not None:
            (opened_us,) = db.execute("SELECT at FROM records WHERE seq = ?", (first,)).fetchone()
        tail, marked = _tail(db)
        before = [file for file in segments(self._path) if file != self._path]
        while not marked and before:
            # Rotated, and not one checkpoint since: the tree is picked up in the file before.
            older = sqlite3.connect(before.pop(), isolation_level=None)
            try:
                lines, marked = _tail(older)
                last = older.execute("SELECT max(seq), max(at) FROM records").fetchone()
            finally:
                older.close()
            tail = lines + tail
            if first is None:
                first, opened_us = last[0] + 1, last[1]
        return End(tail[-1], tuple(tail), first, opened_us) if tail else None

    def _insert(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        values: list[object] = []
        for entry in entries:
            values += (entry.seq, *entry.columns, entry.line.decode())
        db.execute(_statement(len(entries)), values)


def _make(path: Path) -> None:
    """A new database, whole from the moment it has its name: whoever reads or dies meanwhile meets no half of one.

    SQLite gives its -wal and -shm the mode of the database: for the owner alone.
    """
    temporary = path.with_name(f".{path.name}.new")
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(f"{temporary}{suffix}").unlink(missing_ok=True)
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.executescript(_TABLES)
            db.execute("PRAGMA journal_mode=WAL").fetchall()
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@lru_cache(maxsize=_ROWS)
def _statement(rows: int) -> str:
    return "INSERT INTO records VALUES " + ",".join(["(?,?,?,?,?,?,?,?,?)"] * rows)  # noqa: S608  no text


def _tail(db: sqlite3.Connection) -> tuple[list[bytes], bool]:
    (seq,) = db.execute("SELECT max(seq) FROM records WHERE type = 'audit.checkpoint'").fetchone()
    rows = db.execute("SELECT record FROM records WHERE seq >= ? ORDER BY seq", (seq or 0,)).fetchall()
    if not all(isinstance(line, str) for (line,) in rows):
        raise sqlite3.DatabaseError("a record is no text")
    return [line.encode() for (line,) in rows], seq is not None
