"""The table of system calls: what a confined program may do, what ends it, and the numbers on each machine.

Each allowed call has its reason beside it (`docs/confinement.md` prints this table). What is in neither table
is refused with EPERM, so that ordinary CPython code sees a PermissionError; what no honest program tries is
fatal, so that the wait status proves the attempt. Numbers follow the kernel's headers, and a test compares
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Check = Literal["none", "channel", "channel_plain", "mapping", "protection", "advice", "futex", "clock"]
"""What of a call's arguments is looked at; `seccomp.py` has one block of the filter for each."""


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """A call that a confined program may make, under `check`, and why it has to."""

    name: str
    check: Check
    reason: str


# In the order of how often CPython makes them: the filter tests them in this order.
ALLOWED: Final[tuple[Allowed, ...]] = (
    Allowed("recvfrom", "channel_plain", "answers from the host arrive on the channel"),
    Allowed("sendto", "channel_plain", "calls and results leave by the channel"),
    Allowed("read", "channel", "the same by file functions"),
    Allowed("write", "channel", "the same by file functions"),
    Allowed("mmap", "mapping", "malloc and Python's arenas: private, anonymous, never executable"),
    Allowed("munmap", "none", "memory is given back"),
    Allowed("brk", "none", "malloc's heap grows and shrinks"),
    Allowed("mremap", "none", "large blocks grow in place; protection stays as it is"),
    Allowed("madvise", "advice", "the allocator gives pages back (DONTNEED, FREE) or asks for huge ones"),
    Allowed("mprotect", "protection", "malloc's further heaps; never executable"),
    Allowed("futex", "futex", "locks inside the process: wait and wake only"),
    Allowed("clock_gettime", "clock", "clocks where the vDSO cannot answer; not those of other processes"),
    Allowed("rt_sigprocmask", "none", "the C library masks signals around abort and thread calls"),
    Allowed("rt_sigreturn", "none", "a signal handler returns"),
    Allowed("restart_syscall", "none", "a wait goes on after the host stopped and continued the process"),
    Allowed("sched_yield", "none", "spin locks of the C library"),
    Allowed("getpid", "none", "harmless, and the C library asks in abort"),
    Allowed("gettid", "none", "harmless, and the C library asks in locks"),
    Allowed("exit_group", "none", "the program ends"),
    Allowed("exit", "none", "a thread ends; the C library's last resort in _exit"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Fatal:
    """Calls that end the process with SIGSYS, and what an attempt means."""

    reason: str
    names: tuple[str, ...]


FATAL: Final[tuple[Fatal, ...]] = (
    Fatal("run another program", ("execve", "execveat")),
    Fatal(
        "reach into another process",
        (
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "process_madvise",
            "pidfd_getfd",
            "kcmp",
            "perf_event_open",
        ),
    ),
    Fatal(
        "leave or rebuild the namespaces",
        (
            "unshare",
            "setns",
            "mount",
            "umount2",
            "pivot_root",
            "chroot",
            "move_mount",
            "open_tree",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "open_by_handle_at",
        ),
    ),
    Fatal(
        "use a kernel interface known for exploits, or change the filter",
        (
            "bpf",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "userfaultfd",
            "seccomp",
            "keyctl",
            "add_key",
            "request_key",
        ),
    ),
    Fatal(
        "change the machine",
        (
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_load",
            "kexec_file_load",
            "reboot",
            "swapon",
            "swapoff",
            "acct",
            "ioperm",
            "iopl",
        ),
    ),
    Fatal(
        "turn data into code, or change how the processor reads it",
        ("personality", "modify_ldt", "map_shadow_stack"),
    ),
)

# name: (x86-64, aarch64). None: the architecture has no such call.
_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "brk": (12, 214),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_gettime": (228, 113),
    "clone": (56, 220),
    "close_range": (436, 436),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futex": (202, 98),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "madvise": (28, 233),
    "map_shadow_stack": (453, 453),
    "mmap": (9, 222),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "pkey_mprotect": (329, 288),
    "prctl": (157, 167),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "read": (0, 63),
    "reboot": (169, 142),
    "recvfrom": (45, 207),
    "request_key": (249, 218),
    "restart_syscall": (219, 128),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "seccomp": (317, 277),
    "sendto": (44, 206),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "write": (1, 64),
}

NEWEST_KNOWN: Final = 470
"""Calls above this number did not exist when the tables were written: the honest answer is ENOSYS, on which
the C library falls back to older calls."""

X32_BIT: Final = 0x4000_0000
"""Set in the numbers of x86-64's second ABI, whose calls would walk past a filter written for the first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Architecture:
    """A machine our tables know: how the kernel names it to a filter, and its call numbers."""

    machine: str
    audit_arch: int
    has_x32: bool
    numbers: Mapping[str, int]


def _numbers(column: int) -> Mapping[str, int]:
    return MappingProxyType({name: row[column] for name, row in _NUMBERS.items() if row[column] is not None})  # type: ignore[misc]


X86_64: Final = Architecture("x86_64", 0xC000_003E, True, _numbers(0))
AARCH64: Final = Architecture("aarch64", 0xC000_00B7, False, _numbers(1))
ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(
    {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
)
