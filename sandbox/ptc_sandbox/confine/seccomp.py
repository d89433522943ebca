"""The seccomp filter: an allow-list by call and argument, built once and patched with the channel's number.

It is told an architecture and, in the child, which descriptor is the channel. Everything else is refused
(EPERM) or fatal (SIGSYS); a program can add filters of its own no more, since the call itself is fatal.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import socket
import struct
from typing import Final

from ptc_sandbox.confine import bpf, kernel
from ptc_sandbox.confine.syscalls import ALLOWED, FATAL, NEWEST_KNOWN, X32_BIT, Architecture, Check

_KILL_PROCESS: Final = 0x8000_0000
_ERRNO: Final = 0x0005_0000
_ALLOW: Final = 0x7FFF_0000

_SET_MODE_FILTER: Final = 1

# Anything else on a message is refused: MSG_OOB on Unix sockets was a way into the kernel (CVE-2025-38236),
# and an address or control data is never needed on a connected pair.
_MESSAGE_FLAGS: Final = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL | socket.MSG_WAITALL)

_MAP_NEEDED: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAP_TOLERATED: Final = 0x4000 | 0x8000 | 0x10 | 0x20000 | 0x100000
"""NORESERVE, POPULATE, FIXED, STACK, FIXED_NOREPLACE: what allocators add. SHARED and HUGETLB memory would
escape RLIMIT_DATA."""

_MADVISE: Final = (4, 8, 14, 15)  # DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE
_FUTEX: Final = (0, 1, 9, 10)  # WAIT, WAKE, and the same with a bitset; PI and requeue were exploited before
_FUTEX_COMMAND: Final = 0x7F  # without PRIVATE (0x80) and CLOCK_REALTIME (0x100)
_CLOCKS: Final = 11  # CLOCK_TAI; beyond, and negative, lie clocks of other processes and of descriptors

_CLONE_NEW_ANY: Final = 0x7E02_0000 | 0x80  # every CLONE_NEW* flag: a namespace of one's own


class Filter:
    """A filter for `arch`, ready to install: build it once, install it in each child."""

    def __init__(self, arch: Architecture) -> None:
        program = _build(arch)
        code = program.assemble()
        self._code: Final = ctypes.create_string_buffer(code, len(code))
        self._channel_offsets: Final = program.patch_offsets
        # struct sock_fprog: a count and, after padding, a pointer.
        header = struct.pack("=HxxxxxxQ", len(code) // bpf.INSTRUCTION.size, kernel.address(self._code))
        self._program: Final = ctypes.create_string_buffer(header, len(header))
        self.instructions: Final = len(code) // bpf.INSTRUCTION.size

    def installing(self, channel_fd: int) -> kernel.Call:
        """The call that confines the calling thread for good; it needs no_new_privs. Valid until the next one."""
        for offset in self._channel_offsets:
            struct.pack_into("=I", self._code, offset, channel_fd)
        return kernel.system_call("seccomp", _SET_MODE_FILTER, 0, kernel.address(self._program))

    def code(self, channel_fd: int) -> bytes:
        """The instructions as the kernel gets them, for tests that interpret them."""
        for offset in self._channel_offsets:
            struct.pack_into("=I", self._code, offset, channel_fd)
        return self._code.raw


def _build(arch: Architecture) -> bpf.Program:
    p = bpf.Program()
    p.load(bpf.ARCH)
    p.if_equal(arch.audit_arch, otherwise="kill")
    p.load(bpf.NR)
    if arch.has_x32:
        p.if_any_bit(X32_BIT, then="kill")
    p.if_greater(NEWEST_KNOWN, then="unknown")
    search(p, sorted(_decisions(arch).items()))
    _argument_checks(p)
    p.label("unknown")
    p.give(_ERRNO | errno.ENOSYS)
    p.label("refuse")
    p.give(_ERRNO | errno.EPERM)
    p.label("kill")
    p.give(_KILL_PROCESS)
    p.label("allow")
    p.give(_ALLOW)
    return p


def _decisions(arch: Architecture) -> dict[int, str]:
    """The label to go to for each call number that is not just refused."""
    names = {name: "kill" for group in FATAL for name in group.names}
    names |= {each.name: "allow" if each.check == "none" else each.check for each in ALLOWED}
    # clone's flags tell a thread or a fork (refused) from a namespace (fatal). clone3 hides its flags behind
    # a pointer, so it is only ever refused.
    names |= {"clone": "clone", "pkey_mprotect": "protection_refused"}
    return {arch.numbers[name]: label for name, label in names.items() if name in arch.numbers}


def search(p: bpf.Program, decisions: list[tuple[int, str]], path: str = "n") -> None:
    """A binary search for A among call numbers, with a label for each; others are refused.

    When a filter is installed the kernel runs it for every call number there is, to know which are always
    allowed; a chain of comparisons makes that three times as slow.
    """
    if len(decisions) <= 2:
        for number, label in decisions[:-1]:
            p.if_equal(number, then=label)
        number, label = decisions[-1]
        p.if_equal(number, then=label, otherwise="refuse")
        return
    middle = len(decisions) // 2
    p.if_greater(decisions[middle - 1][0], then=f"{path}r")
    search(p, decisions[:middle], f"{path}l")
    p.label(f"{path}r")
    search(p, decisions[middle:], f"{path}r")


def _argument_checks(p: bpf.Program) -> None:
    """One block for each `Check`. Jumps go forward only, so a block that falls into another stands before
    it."""
    blocks: tuple[Check, ...] = (
        "channel_plain",
        "channel",
        "mapping",
        "protection",
        "advice",
        "futex",
        "clock",
    )

    p.label(blocks[0])  # recvfrom, sendto: plain flags, no address, then the descriptor as below
    p.load(bpf.argument_low(3))
    p.if_any_bit(~_MESSAGE_FLAGS, then="refuse")
    for half in (bpf.argument_low(4), bpf.argument_high(4)):
        p.load(half)
        p.if_equal(0, otherwise="refuse")

    p.label(
        blocks[1]
    )  # the kernel takes an unsigned int, but a caller that sets the upper half is up to no good
    p.load(bpf.argument_high(0))
    p.if_equal(0, otherwise="refuse")
    p.load(bpf.argument_low(0))
    p.if_equals_patched(then="allow", otherwise="refuse")

    p.label(blocks[2])
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, then="kill")
    p.load(bpf.argument_low(3))
    p.mask(~_MAP_TOLERATED)
    p.if_equal(_MAP_NEEDED, then="allow", otherwise="refuse")

    p.label(blocks[3])
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, then="kill", otherwise="allow")
    p.label("protection_refused")
    p.load(bpf.argument_low(2))
    p.if_any_bit(mmap.PROT_EXEC, then="kill", otherwise="refuse")

    p.label(blocks[4])
    p.load(bpf.argument_low(2))
    for advice in _MADVISE:
        p.if_equal(advice, then="allow")
    p.if_equal(_MADVISE[0], then="allow", otherwise="refuse")

    p.label(blocks[5])
    p.load(bpf.argument_low(1))
    p.mask(_FUTEX_COMMAND)
    for command in _FUTEX[1:]:
        p.if_equal(command, then="allow")
    p.if_equal(_FUTEX[0], then="allow", otherwise="refuse")

    p.label(blocks[6])
    p.load(bpf.argument_low(0))
    p.if_greater(_CLOCKS, then="refuse", otherwise="allow")

    p.label("clone")
    p.load(bpf.argument_low(0))
    p.if_any_bit(_CLONE_NEW_ANY, then="kill", otherwise="refuse")
