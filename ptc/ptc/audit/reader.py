"""Reads a log, both forms and every file of it, without touching it and without a key.

It gives lines as they are on disk, damaged ones included: what they mean, and whether they are what was
written, is for `verify` to say.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

from pydantic_core import from_json

from ptc.audit.errors import AuditCorrupt, RecordNotFound
from ptc.audit.form import is_formed
from ptc.audit.schema import APPLICATION_ID, STATEMENTS
from ptc.audit.store import lock_path, segments, suffix_kind
from ptc_tools.command_line import ptc_command

_ATTEMPTS: Final = 20

Record: TypeAlias = dict[str, Any]
"""One record, parsed. Its members are described in docs/audit.md."""


class Line(NamedTuple):
    """One record's bytes. `number` is its line in the file, or its row in the database, from 1."""

    file: Path
    number: int
    data: bytes
    columns: tuple[object, ...] | None = None
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that could not be read on. `whole`: nothing says that it was changed; it just cannot be read now."""

    file: Path
    reason: str
    whole: bool = False


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """The files of the log, oldest first. Raises RecordNotFound where there is none."""
    log = Path(path)
    suffix_kind(log)
    try:
        found = segments(log) if log.parent.is_dir() else []
    except OSError as error:
        raise RecordNotFound(f"the audit log {log} cannot be read: {error.strerror}") from error
    if not found:
        raise RecordNotFound(f"there is no audit log at {log}")
    for file in found:
        with suppress(OSError):  # put aside meanwhile; one look, since the next would be at another file
            if not S_ISREG(file.stat().st_mode):
                raise RecordNotFound(f"there is no audit log at {log}: {file.name} is no file")
    return found


def lines(path: str | os.PathLike[str]) -> Iterator[Line | Damage]:
    """Every line of every file, in the order in which the log has them."""
    with opened(path) as files:
        for file in files:
            try:
                yield from json_lines(file) if file.is_lines else _rows(file)
            except OSError as error:
                yield _unreadable(file.path, error)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log. The one that is being written is open already, if it could be opened."""

    path: Path
    stream: IO[bytes] | None = None
    database: sqlite3.Connection | None = None

    @property
    def is_lines(self) -> bool:
        return self.path.suffix == ".jsonl"

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The database. Raises sqlite3.Error where it cannot be opened."""
        if self.database is not None:
            yield self.database
        else:
            with closing(connect(self.path)) as db:
                yield db


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[list[LogFile]]:
    """The files of the log, the current one already open.

    A writer may rename the current file at any moment; once it is open, that no longer matters. Files that
    were set aside keep their names and are opened when their turn comes.
    """
    log = Path(path)
    for _ in range(_ATTEMPTS):
        files = files_of(log)
        with ExitStack() as stack:
            current = LogFile(log)
            if log in files:
                try:
                    current = _current(log, stack)
                except FileNotFoundError:
                    continue
            if files_of(log) == files:
                yield [current if file == log else LogFile(file) for file in files]
                return
    raise AuditCorrupt(f"{log} is rotated faster than it can be read: give Rotation a larger size")


def _current(log: Path, stack: ExitStack) -> LogFile:
    try:
        if log.suffix == ".jsonl":
            return LogFile(log, stream=stack.enter_context(log.open("rb", buffering=1 << 20)))
        db = stack.enter_context(closing(connect(log)))
        db.execute("SELECT 1 FROM sqlite_master").fetchone()  # now it has what it reads by name
    except FileNotFoundError:
        raise
    except (OSError, sqlite3.Error):
        return LogFile(log)  # whoever reads it finds out what is wrong with it
    return LogFile(log, database=db)


def records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """Every whole record, parsed. Raises AuditCorrupt at one that cannot be read."""
    for line in lines(path):
        if isinstance(line, Damage):
            raise _cannot_read(line)
        if line.torn:
            return
        yield parse(line)


def unreadable(file: Path, error: sqlite3.DatabaseError | OSError) -> AuditCorrupt:
    """What a search raises for a file that cannot be read on."""
    return _cannot_read(_unreadable(file, error))


def _cannot_read(damage: Damage) -> AuditCorrupt:
    return AuditCorrupt(f"{damage.file}: {damage.reason}; `{ptc_command()} audit verify` says more")


def parse(line: Line) -> Record:
    try:
        record = decoded(line.data)
    except (ValueError, TypeError, RecursionError):
        record = None
    if not isinstance(record, dict) or not is_formed(record):
        raise AuditCorrupt(
            f"{line.file}, record {line.number} is no record of ours; `{ptc_command()} audit verify` says more"
        )
    return record


def decoded(data: bytes) -> Any:
    """What a line says. Raises ValueError, TypeError or RecursionError where it is no JSON, or too deep."""
    try:
        return from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError:  # nested deeper than that reader goes, or no JSON at all
        return json.loads(data)


def is_being_written(path: str | os.PathLike[str]) -> bool:
    """Whether a living writer holds the log."""
    log = Path(path)
    try:
        fd = os.open(lock_path(log), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def connect(file: Path) -> sqlite3.Connection:
    """A database of a log, for reading alone. Raises sqlite3.Error where it cannot be opened.

    SQLite reads a WAL database through files beside it and makes them where they are not there. Where it cannot
    and they are not, the log was closed (a writer would have made them): it is read as a file that does not change.
    """
    live = os.access(file.parent, os.W_OK) or os.path.exists(f"{file}-wal")
    how = "mode=ro" if live else "immutable=1"
    uri = f"file:{quote(os.path.abspath(file))}?{how}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None)
    db.text_factory = bytes
    return db


def database_damage(file: Path) -> Iterator[Damage]:
    """What would lead a search of this database astray: damage, and a schema that is not the log's."""
    try:
        with closing(connect(file)) as db:
            found = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
            if not found:
                return  # its writer died before it had made the table: no record was there
            (identity,) = db.execute("PRAGMA application_id").fetchone()
            if identity != APPLICATION_ID:
                yield Damage(
                    file, "the database does not say that it is an audit log of ours (application_id)"
                )
            ours = {_text(row[3]) for row in found if _text(row[2]) == "records"}
            foreign = [_text(row[1]) for row in found if _text(row[0]) in ("trigger", "view")]
            if foreign:
                yield Damage(
                    file, f"the database has a trigger or view that is not the log's: {foreign[0]!r:.80}"
                )
            if ours != STATEMENTS:
                yield Damage(file, "the table of records or an index of it is not as the log made it")
            problems = db.execute("PRAGMA integrity_check(1)").fetchall()
            if [_text(row[0]) for row in problems] != ["ok"]:
                yield Damage(file, f"the database does not agree with itself: {_text(problems[0][0])!s:.200}")
    except sqlite3.DatabaseError as error:
        yield _unreadable(file, error)


def _unreadable(file: Path, error: sqlite3.DatabaseError | OSError) -> Damage:
    if isinstance(error, OSError):
        return Damage(file, f"the file cannot be read: {error.strerror or error}", whole=True)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_READONLY:
        what = "its writer died in the middle of a change that is undone when the log is opened next"
        return Damage(file, f"the database cannot be read: {what}", whole=True)
    passing = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
    return Damage(file, f"the database cannot be read: {error}", whole=code in passing)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def json_lines(file: LogFile) -> Iterator[Line]:
    """The lines of one file, which is opened where it is not yet."""
    path, stream = file.path, file.stream
    with nullcontext(stream) if stream is not None else path.open("rb", buffering=1 << 20) as reading:
        for number, data in enumerate(reading, 1):
            if data.endswith(b"\n"):
                yield Line(path, number, data[:-1])
            else:
                yield Line(path, number, data, torn=True)


def _rows(file: LogFile) -> Iterator[Line | Damage]:
    try:
        with file.reading() as db:
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return  # its writer has just made the file; that a closed one is empty is for `verify` to say
            rows = db.execute(
                "SELECT record, seq, at, type, run, tool, caller, status, arguments FROM records ORDER BY seq"
            )
            for number, row in enumerate(rows, 1):
                yield Line(file.path, number, row[0], row[1:])
    except sqlite3.DatabaseError as error:
        yield _unreadable(file.path, error)
