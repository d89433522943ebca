"""The file of a store: made for its owner alone, and kept so, with the files that SQLite puts beside it.

A store holds arguments and results as they are. It never opens one that others may read or write.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ptc.store.errors import StoreUnavailable

_BESIDE = ("-wal", "-shm", "-journal")


def make_file(path: Path, what: str = "run store") -> None:
    """The file, empty where it was not there; `what` it is, for the words of an error. Raises StoreUnavailable.

    SQLite gives what it puts beside a database the database's mode; what is there already loses all but its
    owner's rights.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _keep_to_owner(opened, path, what)
        finally:
            os.close(opened)
        for name in (f"{path}{end}" for end in _BESIDE):
            with suppress(FileNotFoundError):  # SQLite takes them away when the last connection is closed
                _keep_to_owner(name, Path(name), what)
    except OSError as error:
        raise StoreUnavailable(
            f"the {what} cannot be kept at {str(path)!r} ({error.strerror or error}): give it the path of a"
            " file, in a directory that can be written"
        ) from error
    except ValueError as error:  # a null byte
        raise StoreUnavailable(f"the {what} cannot be kept at {str(path)!r}: {error}") from error


def _keep_to_owner(opened: int | str, path: Path, what: str) -> None:
    status = os.stat(opened)
    if not stat.S_ISREG(status.st_mode):
        raise StoreUnavailable(f"the {what} cannot be kept at {str(path)!r}: that is no regular file")
    if not status.st_mode & 0o077:
        return
    try:
        os.chmod(opened, stat.S_IMODE(status.st_mode) & ~0o077)
    except PermissionError:
        raise StoreUnavailable(
            f"{str(path)!r} is open to others and belongs to somebody else: a {what} holds what tools were told and"
            " said, so have its owner take their rights away (chmod 600)"
        ) from None
