"""The kernel calls that Python has no function for, by `ctypes`.

Every function raises `OSError` with the call's name when the kernel refuses. Nothing here decides a policy,
and nothing is imported but the standard library: the fork server runs this before it has a site directory.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import platform
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ptc_sandbox.confine.syscalls import ARCHITECTURES, Architecture

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38

CAP_SETGID: Final = 6
CAP_SETUID: Final = 7
CAP_SETPCAP: Final = 8
CAP_SYS_CHROOT: Final = 18
CAP_SYS_ADMIN: Final = 21

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000


def _architecture() -> Architecture | None:
    if sys.platform != "linux" or sys.maxsize < 2**32 or sys.byteorder != "little":
        return None
    return ARCHITECTURES.get(platform.machine())


ARCHITECTURE: Final = _architecture()
"""The one this interpreter runs on, or None where our tables do not reach (also for 32-bit interpreters)."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_prctl: Final = _libc.prctl
_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_syscall: Final = _libc.syscall
_syscall.restype = ctypes.c_long
# `syscall` is variadic: without types ctypes would pass 32-bit integers and leave the upper halves to chance.
_syscall.argtypes = [ctypes.c_ulong] * 7
_fork: Final = ctypes.PyDLL(None, use_errno=True).fork  # PyDLL: the interpreter's lock stays with this thread
_socketpair: Final = _libc.socketpair
_two_fds: Final = (ctypes.c_int * 2)()


def syscall(name: str, *arguments: int) -> int:
    """Make system call `name`; integers and addresses only. OSError when it fails or has no number here."""
    return make(system_call(name, *arguments))


def raw(number: int, *arguments: int) -> int:
    """Make a system call that has no name in our table, by its number."""
    return make(Call(f"call {number}", _syscall, (number, *arguments, *(0,) * (6 - len(arguments)))))


def prctl(option: int, value: int) -> int:
    """prctl(2) with one argument; by the C library's function, so that it works on any machine."""
    return make(prctl_call(option, value))


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A call into the kernel, ready to be made: nothing about it has to be looked up any more."""

    name: str
    function: Callable[..., int]
    arguments: tuple[int, ...]


def prctl_call(option: int, value: int) -> Call:
    """`prctl`, to be made later."""
    return Call(f"prctl({option}, {value})", _prctl, (option, value, 0, 0, 0))


def system_call(name: str, *arguments: int) -> Call:
    """`syscall`, to be made later. OSError (ENOSYS) where `name` has no number on this machine."""
    number = ARCHITECTURE.numbers.get(name) if ARCHITECTURE else None
    if number is None:
        raise OSError(errno.ENOSYS, f"{name}: not in the table for {platform.machine()}")
    return Call(name, _syscall, (number, *arguments, *(0,) * (6 - len(arguments))))


def make(call: Call) -> int:
    """Make it now. OSError with its name when the kernel refuses."""
    result = call.function(*call.arguments)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{call.name}: {os.strerror(code)}")
    return result


def fork() -> int:
    """fork(2), and nothing else: 0 in the child. For a process with one thread only.

    `os.fork` also runs what modules have registered for forks (a new seed for `random`, locks of `threading` and
    `logging` made anew) and remakes the interpreter's own locks, which only other threads could hold. In a child
    that is to be cheap that is a third of all the pages it copies, and nothing that it needs.
    """
    pid: int = _fork()
    if pid == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"fork: {os.strerror(code)}")
    return pid


def socket_pair() -> tuple[int, int]:
    """Two connected stream sockets, as descriptors that exec closes: no objects, which would cost pages."""
    if _socketpair(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0, _two_fds) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"socketpair: {os.strerror(code)}")
    return _two_fds[0], _two_fds[1]


def holds_capabilities(*capabilities: int) -> bool:
    """Whether all of these are in the calling process's effective set."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            return all(effective >> capability & 1 for capability in capabilities)
    return False


def address(buffer: ctypes.Array[ctypes.c_char]) -> int:
    """Where a `ctypes` buffer lies; the caller keeps it alive during the call."""
    return ctypes.addressof(buffer)
