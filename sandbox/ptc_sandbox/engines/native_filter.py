"""The seccomp filter of a native worker: what a foreign binary needs to be loaded and to talk on two pipes.

It is told an architecture and the address of the one path that may be executed. Wider than the filter of our
own children, as a loader runs under it, and it never lets a program start, write to, or reach anything else.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import mmap
import os
import struct
from typing import Final, Literal

from ptc_sandbox.confine import bpf, kernel
from ptc_sandbox.confine.seccomp import search
from ptc_sandbox.confine.syscalls import FATAL, NEWEST_KNOWN, X32_BIT, Architecture

STDOUT: Final = 1
STDERR: Final = 2
TETHER: Final = 3
"""The descriptor whose other end is the host's life: it may not be closed."""

EXEC_PAGE: Final = 0x20_0000_0000
"""Where the path of the worker lies while it is executed: 128 GiB, where no kernel places anything by itself.
The filter takes no other address for `execve` and lets nothing be mapped near this one, so the one exec that
happens is the last that can."""

_KILL_PROCESS: Final = 0x8000_0000
_ERRNO: Final = 0x0005_0000
_ALLOW: Final = 0x7FFF_0000
_SET_MODE_FILTER: Final = 1

_WINDOW: Final = EXEC_PAGE >> 32
_WINDOWS_BELOW: Final = 4
"""Mappings may not be asked for in so many windows of 4 GiB below either: more than RLIMIT_AS lets one span."""
MAX_ADDRESS_SPACE: Final = _WINDOWS_BELOW << 32

_READ_ONLY: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_NONBLOCK | 0o100000
_CLONE_THREAD: Final = 0x0001_0000 | 0x0000_0100 | 0x0000_0800  # THREAD, VM, SIGHAND
_CLONE_NEW_ANY: Final = 0x7E02_0000 | 0x80
_ADVICE: Final = (4, 8, 14, 15, 102)  # DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE, GUARD_INSTALL
_FUTEX: Final = (0, 1, 9, 10)
_CLOCKS: Final = 11
_SET_NAME: Final = 15
_MAP_REFUSED: Final = 0x01 | 0x40000  # SHARED (and SHARED_VALIDATE), HUGETLB: they escape RLIMIT_DATA
_MREMAP_PLACES: Final = 0x02 | 0x04  # FIXED, DONTUNMAP

Check = Literal[
    "none",
    "opening",
    "writing",
    "closing",
    "mapping",
    "moving",
    "protection",
    "advice",
    "futex",
    "clock",
    "naming",
    "limits",
    "thread",
    "executing",
]


@dataclasses.dataclass(frozen=True, slots=True)
class NativeCall:
    """A call that a native worker may make: under `check`, why it has to, its number by architecture."""

    name: str
    check: Check
    reason: str
    x86_64: int | None
    aarch64: int | None

    def number(self, arch: Architecture) -> int | None:
        return self.x86_64 if arch.machine == "x86_64" else self.aarch64


CALLS: Final[tuple[NativeCall, ...]] = (
    NativeCall("read", "none", "requests arrive on standard input; the loader reads libraries", 0, 63),
    NativeCall("write", "writing", "events leave by standard output", 1, 64),
    NativeCall("pread64", "none", "the loader reads libraries", 17, 67),
    NativeCall("openat", "opening", "the loader opens libraries; Landlock says which", 257, 56),
    NativeCall("close", "closing", "the loader closes them again", 3, 57),
    NativeCall("fstat", "none", "the loader identifies libraries", 5, 80),
    NativeCall("newfstatat", "none", "the same, as newer C libraries ask", 262, 79),
    NativeCall("mmap", "mapping", "libraries and memory; code only from a file", 9, 222),
    NativeCall("munmap", "none", "memory is given back", 11, 215),
    NativeCall("mprotect", "protection", "the loader seals what it has relocated; never executable", 10, 226),
    NativeCall("mremap", "moving", "large blocks grow", 25, 216),
    NativeCall("brk", "none", "malloc's heap", 12, 214),
    NativeCall("madvise", "advice", "the allocator gives pages back", 28, 233),
    NativeCall("futex", "futex", "locks inside the process", 202, 98),
    NativeCall("clone", "thread", "the interpreter runs in a thread with a stack of its own", 56, 220),
    NativeCall("set_robust_list", "none", "a thread starts", 273, 99),
    NativeCall("set_tid_address", "none", "a thread starts", 218, 96),
    NativeCall("rseq", "none", "a thread starts", 334, 293),
    NativeCall("arch_prctl", "none", "thread-local storage", 158, None),
    NativeCall("prctl", "naming", "a thread's name", 157, 167),
    NativeCall("prlimit64", "limits", "limits are read", 302, 261),
    NativeCall("rt_sigaction", "none", "the handler of stack overflow", 13, 134),
    NativeCall("rt_sigprocmask", "none", "signals are masked while a thread starts", 14, 135),
    NativeCall("rt_sigreturn", "none", "a handler returns", 15, 139),
    NativeCall("sigaltstack", "none", "the stack of that handler", 131, 132),
    NativeCall("poll", "none", "waits for a request", 7, None),
    NativeCall("ppoll", "none", "waits for a request", 271, 73),
    NativeCall("getrandom", "none", "hash seeds and `random`", 318, 278),
    NativeCall("sched_getaffinity", "none", "how many processors there are", 204, 123),
    NativeCall("sched_yield", "none", "spin locks", 24, 124),
    NativeCall("clock_gettime", "clock", "clocks; not those of other processes", 228, 113),
    NativeCall("restart_syscall", "none", "a wait goes on after a stop", 219, 128),
    NativeCall("getpid", "none", "harmless", 39, 172),
    NativeCall("gettid", "none", "harmless", 186, 178),
    NativeCall("exit", "none", "a thread ends", 60, 93),
    NativeCall("exit_group", "none", "the worker ends", 231, 94),
    NativeCall("execve", "executing", "the launcher becomes the worker, once", 59, 221),
)
"""Everything else is refused (EPERM), fatal as for our own children, or, above the newest known, ENOSYS."""

_CLONE3: Final = 435  # on both; ENOSYS makes the C library fall back to clone, whose flags can be seen


class NativeFilter:
    """The filter, ready to install."""

    def __init__(self, arch: Architecture) -> None:
        code = _build(arch).assemble()
        self._code: Final = ctypes.create_string_buffer(code, len(code))
        self.instructions: Final = len(code) // bpf.INSTRUCTION.size
        header = struct.pack("=HxxxxxxQ", self.instructions, kernel.address(self._code))
        self._program: Final = ctypes.create_string_buffer(header, len(header))

    def install(self) -> None:
        """Confine the calling thread for good; needs no_new_privs. OSError if the kernel refuses."""
        kernel.syscall("seccomp", _SET_MODE_FILTER, 0, kernel.address(self._program))


def _build(arch: Architecture) -> bpf.Program:
    p = bpf.Program()
    p.load(bpf.ARCH)
    p.if_equal(arch.audit_arch, otherwise="kill")
    p.load(bpf.NR)
    if arch.has_x32:
        p.if_any_bit(X32_BIT, then="kill")
    p.if_greater(NEWEST_KNOWN, then="unknown")
    fatal = {arch.numbers.get(name): "kill" for group in FATAL for name in group.names}
    known = {call.number(arch): "allow" if call.check == "none" else call.check for call in CALLS}
    decisions = {**fatal, **known, _CLONE3: "unknown"}
    search(p, sorted((number, label) for number, label in decisions.items() if number is not None))
    _memory_checks(p)
    _other_checks(p)
    for label, action in (
        ("unknown", _ERRNO | errno.ENOSYS),
        ("refuse", _ERRNO | errno.EPERM),
        ("kill", _KILL_PROCESS),
        ("allow", _ALLOW),
    ):
        p.label(label)
        p.give(action)
    return p


def _memory_checks(p: bpf.Program) -> None:
    """Memory: data never becomes code, and nothing comes to lie where the executed path lay."""
    p.label("mapping")
    p.load(bpf.argument_high(0))
    p.if_greater(_WINDOW, then="mapping elsewhere")
    p.if_greater(_WINDOW - _WINDOWS_BELOW - 1, then="refuse")
    p.label("mapping elsewhere")
    p.load(bpf.argument_low(3))
    p.if_any_bit(_MAP_REFUSED, then="refuse")
    p.if_any_bit(mmap.MAP_ANONYMOUS, otherwise="mapping of a file")
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, then="kill", otherwise="allow")
    p.label("mapping of a file")
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, otherwise="allow")
    p.if_any_bit(mmap.PROT_WRITE, then="kill", otherwise="allow")

    p.label("moving")
    p.load(bpf.argument_low(3))
    p.if_any_bit(_MREMAP_PLACES, then="refuse", otherwise="allow")

    p.label("protection")
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, then="kill", otherwise="allow")

    p.label("advice")
    p.load(bpf.argument_low(2))
    _one_of(p, _ADVICE)


def _other_checks(p: bpf.Program) -> None:
    p.label("opening")
    p.load(bpf.argument_low(2))
    p.if_any_bit(~_READ_ONLY, then="refuse", otherwise="allow")

    p.label("writing")
    p.load(bpf.argument_high(0))
    p.if_equal(0, otherwise="refuse")
    p.load(bpf.argument_low(0))
    _one_of(p, (STDOUT, STDERR))

    p.label("closing")  # the kernel takes an unsigned int, so the upper half does not matter to it
    p.load(bpf.argument_low(0))
    p.if_equal(TETHER, then="refuse", otherwise="allow")

    p.label("futex")
    p.load(bpf.argument_low(1))
    p.mask(0x7F)
    _one_of(p, _FUTEX)

    p.label("clock")
    p.load(bpf.argument_low(0))
    p.if_greater(_CLOCKS, then="refuse", otherwise="allow")

    p.label("naming")
    p.load(bpf.argument_low(0))
    _one_of(p, (_SET_NAME,))

    p.label("limits")  # to read one's own, not to set any
    for part in (bpf.argument_low(0), bpf.argument_low(2), bpf.argument_high(2)):
        p.load(part)
        p.if_equal(0, otherwise="refuse")
    p.give(_ALLOW)

    p.label("thread")
    p.load(bpf.argument_low(0))
    p.if_any_bit(_CLONE_NEW_ANY, then="kill")
    p.mask(_CLONE_THREAD)
    p.if_equal(_CLONE_THREAD, then="allow", otherwise="refuse")

    p.label("executing")
    p.load(bpf.argument_high(0))
    p.if_equal(EXEC_PAGE >> 32, otherwise="kill")
    p.load(bpf.argument_low(0))
    p.if_equal(EXEC_PAGE & 0xFFFF_FFFF, then="allow", otherwise="kill")


def _one_of(p: bpf.Program, constants: tuple[int, ...]) -> None:
    for constant in constants[1:]:
        p.if_equal(constant, then="allow")
    p.if_equal(constants[0], then="allow", otherwise="refuse")
