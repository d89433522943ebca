"""Namespaces, entered once by the fork server and inherited by every child at no cost.

It is told which kinds; with a user namespace where the host is an ordinary user, without one where it is
root. It leaves no mount point and no file behind: the empty root that children change to is attached nowhere.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ptc_sandbox.confine import kernel
from ptc_sandbox.confine.levels import Namespace

_FLAGS: Final[dict[Namespace, int]] = {
    "net": kernel.CLONE_NEWNET,
    "ipc": kernel.CLONE_NEWIPC,
    "uts": kernel.CLONE_NEWUTS,
    "mnt": kernel.CLONE_NEWNS,
    "pid": kernel.CLONE_NEWPID,
}

_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 0x40000
_CLOEXEC: Final = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC
_SET_STRING: Final = 1  # FSCONFIG_SET_STRING
_CREATE: Final = 6  # FSCONFIG_CMD_CREATE
_READ_ONLY_NOSUID_NODEV_NOEXEC: Final = 0xF


@dataclasses.dataclass(frozen=True, slots=True)
class Entered:
    """What this process has entered, and what its children do about it."""

    kinds: tuple[Namespace, ...] = ()
    own_user: bool = False
    """Whether this was done through a user namespace in which only the host's own id is mapped."""
    root_fd: int | None = None
    """An empty, read-only file system that is mounted nowhere; children take it as their root."""

    def describe(self) -> str:
        """For reports."""
        kinds = ", ".join((("user",) if self.own_user else ()) + self.kinds)
        return f"own {kinds} namespaces" + (", empty root" if self.root_fd is not None else "")


def enter(kinds: Sequence[Namespace]) -> Entered:
    """Enter new namespaces of these kinds. OSError where the machine refuses; the process is then unfit to go
    on.

    With "pid" among them the caller's *next* child becomes the first of the new namespace and has to stay
    alive: without it every later fork is ENOMEM.
    """
    flags = 0
    for kind in kinds:
        flags |= _FLAGS[kind]
    uid, gid = os.geteuid(), os.getegid()
    own_user = uid != 0
    kernel.syscall("unshare", flags | (kernel.CLONE_NEWUSER if own_user else 0))
    if own_user:
        # Only one's own id can be mapped without privilege, to itself; groups must be frozen before.
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    root_fd = None
    if "mnt" in kinds:
        slash = _text("/")
        kernel.syscall("mount", 0, kernel.address(slash), 0, _MS_REC | _MS_PRIVATE, 0)
        root_fd = _empty_root()
    return Entered(tuple(kinds), own_user, root_fd)


def take_empty_root(entered: Entered) -> None:
    """In the child, before it loses CAP_SYS_CHROOT: leave the machine's file system for the empty one."""
    if entered.root_fd is not None:
        os.fchdir(entered.root_fd)
        os.chroot(".")
        os.close(entered.root_fd)


def _empty_root() -> int:
    tmpfs, mode, value = _text("tmpfs"), _text("mode"), _text("0555")
    context = kernel.syscall("fsopen", kernel.address(tmpfs), _CLOEXEC)
    try:
        kernel.syscall("fsconfig", context, _SET_STRING, kernel.address(mode), kernel.address(value), 0)
        kernel.syscall("fsconfig", context, _CREATE, 0, 0, 0)
        return kernel.syscall("fsmount", context, _CLOEXEC, _READ_ONLY_NOSUID_NODEV_NOEXEC)
    finally:
        os.close(context)


def _text(value: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(value.encode())


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)
