"""A file layer underneath SQLite that fails as it is told: errors, a process killed at an operation, power lost.

It stands around SQLite's own file layer, by ctypes, in the library that the `sqlite3` module uses. It counts
writes, syncs, truncations and deletions of the files in one folder, and leaves every other database alone.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, Final

OK, FULL = 0, 13
IOERR_WRITE, IOERR_FSYNC, IOERR_TRUNCATE, IOERR_DELETE = 778, 1034, 1546, 2570
_SHORT_READ: Final = 522

_Close = CFUNCTYPE(c_int, c_void_p)
_Move = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Size = CFUNCTYPE(c_int, c_void_p, POINTER(c_int64))
# SQLite keeps the pointer to a name for as long as the file is open: a copy would be gone by then.
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)


class _Methods(ctypes.Structure):
    _fields_ = (
        ("version", c_int),
        ("close", _Close),
        ("read", _Move),
        ("write", _Move),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("size", _Size),
        ("others", c_void_p * 12),
    )


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("delete", _Delete),
        ("others", c_void_p * 14),
    )


def library() -> ctypes.CDLL | None:
    """The SQLite that Python's module was linked with, or None where it is inside the module itself."""
    for name in (None, "libsqlite3.so.0", getattr(_sqlite3, "__file__", None)):
        try:
            found = ctypes.CDLL(name)
            found.sqlite3_libversion.restype = c_char_p
            if found.sqlite3_libversion().decode() == _sqlite3.sqlite_version:
                return found
        except (OSError, AttributeError):
            continue
    return None


class FaultyDisk:
    """`on_operation` is asked before each operation; what it returns, if not None, is SQLite's error instead.

    Its arguments are the operation (`write`, `sync`, `truncate`, `delete`), the file, and for a write a function
    that writes only so many bytes. Use it in a `with`: it is the process's default for databases meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self.on_operation: Callable[[str, str, Callable[[int], None]], int | None] = lambda *_: None
        self._folder = str(folder)
        self._undo: dict[int, list[tuple[int, bytes, int]]] = {}
        """By inode, since files are renamed: place, what stood there, size of the file."""
        self._lock = threading.Lock()
        self._kept: list[Any] = []
        sqlite = library()
        assert sqlite is not None, "ask library() first"
        self._sqlite = sqlite
        sqlite.sqlite3_vfs_find.restype = POINTER(_Vfs)
        sqlite.sqlite3_vfs_find.argtypes = (c_char_p,)
        sqlite.sqlite3_vfs_register.argtypes = (c_void_p, c_int)
        sqlite.sqlite3_vfs_unregister.argtypes = (c_void_p,)

    def __enter__(self) -> FaultyDisk:
        self._real = self._sqlite.sqlite3_vfs_find(None)
        real = self._real.contents
        self._vfs = _Vfs.from_buffer_copy(real)
        self._vfs.name, self._vfs.next = b"faulty", None
        self._open, self._delete = real.open, real.delete
        self._vfs.open, self._vfs.delete = _Open(self._on_open), _Delete(self._on_delete)
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._sqlite.sqlite3_vfs_register(self._real, 1)
        self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def lose_unsynced(self, kept: float) -> None:
        """After the power went and every database was closed: of what was not synced, this share stays."""
        for entry in os.scandir(self._folder):
            writes = self._undo.get(entry.inode(), [])
            for offset, before, size in reversed(writes[round(len(writes) * kept) :]):
                with open(entry.path, "r+b") as file:
                    file.seek(offset)
                    file.write(before)
                    file.truncate(size)
        self._undo.clear()

    # SQLite's calls, in whatever thread.

    def _on_open(self, vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        result: int = self._open(vfs, name, file, flags, out)
        path = ctypes.string_at(name).decode() if name else ""
        if result != OK or not path.startswith(self._folder):
            return result
        place = ctypes.cast(file, POINTER(c_void_p))
        real = ctypes.cast(place[0] or 0, POINTER(_Methods)).contents
        ours = _Methods.from_buffer_copy(real)
        inode = os.stat(path).st_ino if os.path.exists(path) else 0
        ours.write = _Move(lambda *args: self._on_write(real, path, inode, *args))
        ours.sync = _Sync(lambda *args: self._on_sync(real, path, inode, *args))
        ours.truncate = _Truncate(lambda *args: self._on_truncate(real, path, inode, *args))
        self._kept.append(ours)
        place[0] = ctypes.addressof(ours)
        return result

    def _on_write(
        self, real: _Methods, path: str, inode: int, file: int, data: int, amount: int, offset: int
    ) -> int:
        def part(size: int) -> None:
            if size:
                real.write(file, data, size, offset)

        self._remember(real, inode, file, amount, offset)
        fault = self.on_operation("write", path, part)
        return int(real.write(file, data, amount, offset)) if fault is None else fault

    def _on_sync(self, real: _Methods, path: str, inode: int, file: int, flags: int) -> int:
        fault = self.on_operation("sync", path, lambda _: None)
        if fault is not None:
            return fault
        with self._lock:
            self._undo.pop(inode, None)
        return int(real.sync(file, flags))

    def _on_truncate(self, real: _Methods, path: str, inode: int, file: int, size: int) -> int:
        fault = self.on_operation("truncate", path, lambda _: None)
        if fault is not None:
            return fault
        with self._lock:
            self._undo.pop(
                path, None
            )  # a journalling file system orders it; what went before it is on the disk
        return int(real.truncate(file, size))

    def _on_delete(self, vfs: int, name: bytes, sync: int) -> int:
        path = name.decode()
        if path.startswith(self._folder):
            fault = self.on_operation("delete", path, lambda _: None)
            if fault is not None:
                return fault
        return int(self._delete(vfs, name, sync))

    def _remember(self, real: _Methods, inode: int, file: int, amount: int, offset: int) -> None:
        size = c_int64()
        real.size(file, ctypes.byref(size))
        before = ctypes.create_string_buffer(max(1, amount))
        there = max(0, min(amount, size.value - offset))
        if there:
            assert real.read(file, before, there, offset) in (OK, _SHORT_READ)
        with self._lock:
            self._undo.setdefault(inode, []).append((offset, before.raw[:there], size.value))
