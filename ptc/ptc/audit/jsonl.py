"""The log as JSON lines: one record a line, appended, readable by every tool that reads lines.

A write that did not complete is cut back before anything else happens, so the file is whole lines always,
except where the process died in the middle of one: that torn end is cut when the log is opened next.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ptc.audit.errors import AuditCorrupt, AuditLocked
from ptc.audit.files import Files
from ptc.audit.lines import Entry
from ptc.audit.store import End, Reserve, StoreFailed, WriterLock, refuse_to_overwrite, segments, set_aside
from ptc_tools.command_line import ptc_command

_BLOCK: Final = 1 << 16
_CHECKPOINT: Final = b',"type":"audit.checkpoint","v":1}'
"""How a checkpoint's line ends. Content stands before the type, so no argument can end a line like this."""


class JsonLines:
    """A store (see `store.Store`) in one file, and further ones as it is rotated."""

    def __init__(self, path: Path, files: Files, *, durable_writes: bool = False) -> None:
        """`durable_writes` (for a sync of every record): write and sync are one system call."""
        self._path = path
        self._files = files
        self._lock = WriterLock(path)
        self._reserve = Reserve(path)
        self._fd = -1
        self._size = 0
        self._torn = False
        self._durable = durable_writes

    def open(self) -> End | None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        try:
            end = self._open()
            self._reserve.keep()
        except BaseException:
            self.close()
            raise
        return end

    def append(
        self, entries: Sequence[Entry], *, sync: bool, meanwhile: Callable[[], None] | None = None
    ) -> None:
        data = b"".join([entry.line + b"\n" for entry in entries])
        try:
            if self._fd < 0:
                self._begin_file()
            if self._torn:
                self._cut_back()
            if meanwhile is not None:
                meanwhile()
            self._torn = True  # until all of it is there, whatever ends this in between
            self._write(data)
            if sync and not self._durable:
                self._files.datasync(self._fd)
            self._torn = False
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "EIO")
            with contextlib.suppress(OSError):  # the next append tries again, before it adds anything
                self._cut_back()
            raise StoreFailed(name, f"{self._path}: {error.strerror or error}") from error
        self._size += len(data)

    def size(self) -> int:
        return self._size

    def rotate(self, first_seq: int) -> str | None:
        aside = set_aside(self._path, first_seq)
        refuse_to_overwrite(aside)
        self._files.datasync(self._fd)
        self._files.rename(self._path, aside)
        fd, self._fd, self._size = self._fd, -1, 0  # the next record opens the next file
        with contextlib.suppress(OSError):  # all of it is on the disk already
            self._files.close(fd)
        return aside.name

    def release_reserve(self) -> None:
        self._reserve.release()

    def keep_reserve(self) -> None:
        self._reserve.keep()

    def leave(self) -> None:
        self._lock.release()

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        try:
            if fd >= 0:
                self._files.close(fd)
        finally:
            self._lock.release()

    def _open(self) -> End | None:
        existed = self._path.exists()
        before = [file for file in segments(self._path) if file != self._path]
        self._fd = self._files.open(self._path, durable=self._durable)
        self._lock.hold_file()
        if not existed:
            self._files.sync_directory(self._path.parent)
        size = os.fstat(self._fd).st_size
        tail, cut, first = _read_end(self._fd, size)
        if cut:
            self._files.truncate(self._fd, size - len(cut))
        self._size = size - len(cut)
        file_first = first
        while not any(line.endswith(_CHECKPOINT) for line in tail) and before:
            # Rotated, and not one checkpoint since: the tree is picked up in the file before.
            older, _, _ = _read_file_end(before.pop())
            tail = older + tail
        if not tail:
            return None
        head = _parse(file_first or tail[-1], self._path)
        opened_seq = head["seq"] if file_first else head["seq"] + 1
        return End(tail[-1], tuple(tail), opened_seq, head["at"], cut)

    def _begin_file(self) -> None:
        fd = self._files.open(self._path, durable=self._durable)
        try:
            self._lock.hold_file()
            self._files.sync_directory(
                self._path.parent
            )  # else a synced record may be in a file without a name
        except OSError:
            self._files.close(fd)
            raise
        except AuditLocked as error:
            self._files.close(fd)
            raise OSError(errno.EBUSY, error.message) from error
        self._fd = fd

    def _write(self, data: bytes) -> None:
        written = self._files.write(self._fd, data)
        while written < len(data):
            more = self._files.write(self._fd, data[written:])
            if more <= 0:
                raise OSError(errno.EIO, "nothing was written")
            written += more

    def _cut_back(self) -> None:
        self._files.truncate(self._fd, self._size)
        self._torn = False


def _read_file_end(path: Path) -> tuple[list[bytes], bytes, bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read_end(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def _read_end(fd: int, size: int) -> tuple[list[bytes], bytes, bytes]:
    """The last lines back to the last checkpoint (or the file's start), a torn end, and the first line.

    A crash of the machine can leave a block of zeros where data had not reached the disk: a line with a zero
    byte, which no record has, was torn too. Any other line that is no record was changed: it is left as it is.
    """
    data = b""
    start = size
    while start > 0:
        step = min(start, max(_BLOCK, len(data)))
        start -= step
        data = os.pread(fd, step, start) + data
        if _CHECKPOINT + b"\n" in data[data.find(b"\n") + 1 :]:
            break
    lines = data.split(b"\n")
    cut = lines.pop()
    if start > 0:
        lines = lines[1:]
    if lines and b"\0" in lines[-1]:
        cut = lines.pop() + b"\n" + cut
    marked = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].endswith(_CHECKPOINT)), 0)
    first = lines[0] if start == 0 and lines else _first_line(fd)
    return lines[marked:], cut, first


def _first_line(fd: int) -> bytes:
    data = b""
    while b"\n" not in data:
        more = os.pread(fd, _BLOCK, len(data))
        if not more:
            return b""
        data += more
    return data.partition(b"\n")[0]


def _parse(line: bytes, path: Path) -> dict[str, int]:
    try:
        record = json.loads(line)
        return {"seq": int(record["seq"]), "at": int(record["at"])}
    except (ValueError, KeyError, TypeError):
        raise AuditCorrupt(
            f"{path} is not an audit log of ours, or its end is damaged: see `{ptc_command()} audit verify {path}`;"
            " to go on, give the log another path"
        ) from None
