"""The few file operations the log stands on, as a seam: tests put one underneath that fails.

Nothing here decides anything. A disk that is nearly full may write 20 of 332 bytes and raise nothing, so
`write` returns what was written and the store looks at it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """What a store asks of the operating system; every method may raise OSError."""

    def open(self, path: Path, *, durable: bool = False) -> int:
        """A descriptor for reading and appending; the file is made, mode 0600, where it is not there.

        With `durable`, what `write` wrote is on the disk when it returns, as after `datasync`.
        """

    def write(self, fd: int, data: bytes) -> int: ...

    def datasync(self, fd: int) -> None: ...

    def truncate(self, fd: int, size: int) -> None: ...

    def close(self, fd: int) -> None: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def sync_directory(self, path: Path) -> None: ...


class SystemFiles:
    """The real ones."""

    def open(self, path: Path, *, durable: bool = False) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.open(path, flags | os.O_DSYNC if durable else flags, 0o600)

    def write(self, fd: int, data: bytes) -> int:
        return os.write(fd, data)

    def datasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)
        os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
