"""What the two forms of the log, JSON lines and SQLite, have in common: the seam the writer stands on.

A store appends whole records or none, and says where a log that is opened again ended. It assigns nothing,
signs nothing and never changes a record that is in place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from ptc.audit.errors import AuditLocked, InvalidAuditConfig
from ptc.audit.lines import Entry

_LOCK_ATTEMPTS: Final = 5
_LOCK_PAUSE: Final = 0.01
Sync: TypeAlias = Literal["each", "group", "none"]
"""`group` (default): one sync for all that wait. `each`: a sync for every record. `none`: handed to the
operating system, which survives a crash of the process and not one of the machine."""


@dataclass(frozen=True, slots=True)
class End:
    """Where an existing log ended. `tail` holds its last lines, newest last, back to the last checkpoint."""

    last: bytes
    tail: tuple[bytes, ...]
    file_first_seq: int
    file_opened_us: int
    cut: bytes = b""
    """A torn end that was removed: a record of which only a part had been written."""


class Store(Protocol):
    """One log on disk, open for writing by us alone. Methods block and may raise OSError or StoreFailed."""

    def open(self) -> End | None:
        """Takes the log over, cuts a torn end, gives where it ended; None for a new one."""

    def append(
        self, entries: Sequence[Entry], *, sync: bool, meanwhile: Callable[[], None] | None = None
    ) -> None:
        """All of them or none. With `sync`, they are durable when it returns.

        `meanwhile` is called once before the wait for the disk: others may work while this thread waits.
        """

    def size(self) -> int:
        """Bytes in the current file."""

    def rotate(self, first_seq: int) -> str | None:
        """Puts the current file aside, so that the next record begins another; the name of the file put aside.

        None where that cannot be done just now, and nothing has changed.
        """

    def release_reserve(self) -> None:
        """Frees the space kept for saying that there is no space."""

    def keep_reserve(self) -> None:
        """Takes that space again."""

    def leave(self) -> None:
        """In a forked child: lets go of the lock, which else would outlive the parent."""

    def close(self) -> None: ...


class StoreFailed(Exception):
    """The store could not append, and nothing of it was kept. `name` is the system's word, as ENOSPC."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def system_name(error: OSError | sqlite3.Error) -> str:
    """The system's word for an error, as ENOSPC."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, "EIO")
    return "SQLITE"


def lock_path(path: Path) -> Path:
    """Where the lock of a log lies: beside the log itself, also where it is reached by a symbolic link."""
    real = path.resolve()
    return real.with_name(real.name + ".lock")


class WriterLock:
    """One writer for a log: advisory locks, which the kernel drops when their holder dies.

    One is on `NAME.lock`, which stays when the log is rotated. The other is on the log's current file, since
    a lock file can be deleted and a file can have two names.
    """

    def __init__(self, path: Path) -> None:
        self._path = lock_path(path)
        self._fd = -1
        self._log = path
        self._file_fd = -1

    def acquire(self) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locked(fd):
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise self._refusal(f"process {holder}")
        self._fd = fd
        with contextlib.suppress(
            OSError
        ):  # a courtesy to who finds it locked; a full disk has no room for it
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())

    def hold_file(self) -> None:
        """Locks the log's current file, which exists. Raises AuditLocked where another writer has it."""
        fd = os.open(self._log, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _kept.append(fd)
            raise self._refusal("another writer, by another name or without its lock file") from None
        self.drop_file()
        self._file_fd = fd

    def drop_file(self) -> None:
        """Only where no database is open on the file: closing it drops SQLite's locks as well."""
        if self._file_fd >= 0:
            os.close(self._file_fd)
            self._file_fd = -1

    def release(self) -> None:
        self.drop_file()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _refusal(self, holder: str) -> AuditLocked:
        return AuditLocked(
            f"{self._log} is being written by {holder}: a log has one writer;"
            " close that one, or give this process a file of its own"
        )


def _locked(fd: int) -> bool:
    """Takes the lock. Who asks whether a log is being written holds it for an instant: that is no writer."""
    for attempt in range(_LOCK_ATTEMPTS):
        if attempt:
            time.sleep(_LOCK_PAUSE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        return True
    return False


_kept: Final[list[int]] = []
"""Descriptors of logs that were found locked. They stay open: where this process has the database open too,
closing one would drop the locks that SQLite holds on it."""


class Reserve:
    """A small file that is deleted when the disk is full, so that the log can still say so."""

    SIZE = 64 * 1024

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".reserve")

    def keep(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, self.SIZE)
        finally:
            os.close(fd)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)


def suffix_kind(path: Path) -> Literal["jsonl", "sqlite"]:
    """Which form a path names. Raises InvalidAuditConfig for any other suffix."""
    if path.suffix == ".jsonl":
        return "jsonl"
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        return "sqlite"
    raise InvalidAuditConfig(
        f"{path}: a log's form is told by its suffix: .jsonl for JSON lines, .db for SQLite"
    )


def set_aside(path: Path, first_seq: int) -> Path:
    """The name of a completed file: `audit.jsonl` becomes `audit.000000000001.jsonl`, by its first record."""
    return path.with_name(f"{path.stem}.{first_seq:012d}{path.suffix}")


def refuse_to_overwrite(aside: Path) -> None:
    """Renaming replaces what is there without a word: a part of a log must not end like that."""
    if aside.exists():
        raise FileExistsError(errno.EEXIST, "a part of the log has that name already", str(aside))


def segments(path: Path) -> list[Path]:
    """The files of a log, oldest first: those set aside, then the current one where it exists."""
    present = os.listdir(path.parent)  # one look: a writer may rename the current file at any moment
    names = sorted(
        name
        for name in present
        if name.startswith(path.stem + ".")
        and name.endswith(path.suffix)
        and (middle := name[len(path.stem) + 1 : -len(path.suffix)]).isdigit()
        and len(middle) == 12
    )
    found = [path.with_name(name) for name in names]
    return [*found, path] if path.name in present else found
