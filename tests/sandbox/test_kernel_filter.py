"""The seccomp filter as a program: interpreted here for both architectures, whatever machine the tests run
on."""

from __future__ import annotations

import errno
import mmap
import re
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptc_sandbox.confine import bpf
from ptc_sandbox.confine.seccomp import Filter
from ptc_sandbox.confine.syscalls import (
    AARCH64,
    ALLOWED,
    FATAL,
    NEWEST_KNOWN,
    X86_64,
    Architecture,
)

CHANNEL = 3
KILL, ALLOW = "kill", "allow"
EPERM, ENOSYS = errno.EPERM, errno.ENOSYS

FILTERS = {arch.machine: Filter(arch) for arch in (X86_64, AARCH64)}
both = pytest.mark.parametrize("arch", [X86_64, AARCH64], ids=lambda arch: arch.machine)


def decide(
    arch: Architecture, number: int, *arguments: int, audit_arch: int | None = None, channel: int = CHANNEL
) -> str | int:
    """What the filter says to one call: "allow", "kill" or the errno."""
    padded = [argument & (2**64 - 1) for argument in (*arguments, *(0,) * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, audit_arch or arch.audit_arch, 0, *padded)
    verdict = run(FILTERS[arch.machine].code(channel), data)
    match verdict & 0xFFFF_0000:
        case 0x8000_0000:
            return KILL
        case 0x7FFF_0000:
            return ALLOW
        case 0x0005_0000:
            return verdict & 0xFFFF
    raise AssertionError(f"{verdict:#x}")


def run(code: bytes, data: bytes) -> int:
    """Classic BPF, as much of it as a filter of ours may hold."""
    instructions = list(struct.iter_unpack("=HBBI", code))
    at, a = 0, 0
    while True:
        operation, if_true, if_false, k = instructions[at]
        at += 1
        match operation:
            case 0x20:
                a = struct.unpack_from("=I", data, k)[0]
            case 0x54:
                a &= k
            case 0x15:
                at += if_true if a == k else if_false
            case 0x25:
                at += if_true if a > k else if_false
            case 0x45:
                at += if_true if a & k else if_false
            case 0x06:
                return k
            case _:
                raise AssertionError(f"operation {operation:#x}")


ALLOWED_ANYHOW = {allowed.name for allowed in ALLOWED if allowed.check == "none"}
FATAL_NAMES = {name for group in FATAL for name in group.names}
CHECKED = {allowed.name for allowed in ALLOWED} - ALLOWED_ANYHOW | {"clone", "pkey_mprotect"}


@both
def test_only_the_table_is_allowed_and_fatal(arch: Architecture) -> None:
    """Every number there is, and thousands there is not yet: a slip in the search tree cannot open a call."""
    names = {number: name for name, number in arch.numbers.items()}
    for number in range(8192):
        name = names.get(number, "")
        if name in CHECKED:
            continue
        expected = ALLOW if name in ALLOWED_ANYHOW else KILL if name in FATAL_NAMES else EPERM
        if number > NEWEST_KNOWN:
            expected = ENOSYS
        assert decide(arch, number) == expected, (number, name)


@both
@given(st.data())
def test_a_foreign_architecture_is_fatal(arch: Architecture, data: st.DataObject) -> None:
    """Numbers mean other calls there: 11 is munmap on x86-64 and execve on i386."""
    foreign = data.draw(st.integers(0, 2**32 - 1).filter(lambda value: value not in (0, arch.audit_arch)))
    assert decide(arch, data.draw(st.sampled_from(sorted(arch.numbers.values()))), audit_arch=foreign) == KILL


@given(st.integers(0, 600))
def test_the_second_abi_of_x86_64_is_fatal(number: int) -> None:
    """x32 shares the architecture's mark but not the numbers."""
    assert decide(X86_64, 0x4000_0000 | number) == KILL


@both
@pytest.mark.parametrize("name", ["read", "write", "recvfrom", "sendto"])
@given(fd=st.integers(0, 2**64 - 1) | st.integers(0, 8), channel=st.integers(0, 1 << 20))
def test_only_the_channel_is_read_and_written(arch: Architecture, name: str, fd: int, channel: int) -> None:
    """All 64 bits of the descriptor count."""
    expected = ALLOW if fd == channel else EPERM
    assert decide(arch, arch.numbers[name], fd, 0x1000, 10, channel=channel) == expected
    assert decide(arch, arch.numbers[name], channel, 0x1000, 10, channel=channel) == ALLOW
    assert decide(arch, arch.numbers[name], channel | 1 << 32, 0x1000, 10, channel=channel) == EPERM


@both
@pytest.mark.parametrize("name", ["recvfrom", "sendto"])
def test_messages_are_plain(arch: Architecture, name: str) -> None:
    """Out-of-band data and addresses are how kernels were entered from here."""
    number = arch.numbers[name]
    for flags in (0, socket.MSG_DONTWAIT, socket.MSG_NOSIGNAL, socket.MSG_WAITALL):
        assert decide(arch, number, CHANNEL, 0x1000, 10, flags) == ALLOW
    for bit in range(32):
        flag = 1 << bit
        if flag not in (socket.MSG_DONTWAIT, socket.MSG_NOSIGNAL, socket.MSG_WAITALL):
            assert decide(arch, number, CHANNEL, 0x1000, 10, flag) == EPERM
    assert decide(arch, number, CHANNEL, 0x1000, 10, 0, 0x2000) == EPERM
    assert decide(arch, number, CHANNEL, 0x1000, 10, 0, 1 << 32) == EPERM


@both
@given(protection=st.integers(0, 2**64 - 1), flags=st.integers(0, 2**32 - 1))
def test_no_mapping_is_executable_shared_or_of_a_file(
    arch: Architecture, protection: int, flags: int
) -> None:
    """Private and anonymous memory is what RLIMIT_DATA counts; code stays what was loaded."""
    number = arch.numbers["mmap"]
    verdict = decide(arch, number, 0, 4096, protection, flags)
    if protection & mmap.PROT_EXEC:
        assert verdict == KILL
    elif verdict == ALLOW:
        assert flags & mmap.MAP_PRIVATE
        assert flags & mmap.MAP_ANONYMOUS
        assert not flags & (mmap.MAP_SHARED | 0x40000)
    else:
        assert verdict == EPERM
    read_write = mmap.PROT_READ | mmap.PROT_WRITE
    for extra in (0, 0x4000, 0x20000, 0x10, 0x4000 | 0x10):
        assert decide(arch, number, 0, 4096, read_write, 0x22 | extra) == ALLOW


@both
@given(protection=st.integers(0, 2**64 - 1))
def test_memory_never_becomes_executable(arch: Architecture, protection: int) -> None:
    """Data that a program made cannot become code."""
    executable = bool(protection & mmap.PROT_EXEC)
    assert decide(arch, arch.numbers["mprotect"], 0x1000, 4096, protection) == (KILL if executable else ALLOW)
    assert decide(arch, arch.numbers["pkey_mprotect"], 0x1000, 4096, protection) == (
        KILL if executable else EPERM
    )


@both
@given(flags=st.integers(0, 2**64 - 1))
def test_clone_never_succeeds_and_a_namespace_is_fatal(arch: Architecture, flags: int) -> None:
    """CPython's own fork sees a PermissionError; the first step of a kernel exploit leaves its evidence."""
    new = 0x7E02_0080
    assert decide(arch, arch.numbers["clone"], flags) == (KILL if flags & new else EPERM)


@both
def test_what_shares_a_number_is_narrowed_by_its_command(arch: Architecture) -> None:
    """futex, madvise and clock_gettime are many calls in one."""
    futex, madvise, clock = (arch.numbers[name] for name in ("futex", "madvise", "clock_gettime"))
    commands = range(0x80)
    allowed = {command for command in commands if decide(arch, futex, 0x1000, command | 0x80) == ALLOW}
    assert allowed == {0, 1, 9, 10}
    assert {advice for advice in range(128) if decide(arch, madvise, 0, 4096, advice) == ALLOW} == {
        4,
        8,
        14,
        15,
    }
    assert {which for which in range(64) if decide(arch, clock, which) == ALLOW} == set(range(12))
    assert decide(arch, clock, (~1234 << 3) | 2) == EPERM


def header(path: str) -> dict[str, int]:
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", Path(path).read_text(), re.MULTILINE)
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize(
    ("arch", "path"),
    [
        (X86_64, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        (AARCH64, "/usr/include/asm-generic/unistd.h"),
    ],
    ids=["x86_64", "aarch64"],
)
def test_the_numbers_are_those_of_the_kernels_headers(arch: Architecture, path: str) -> None:
    """A wrong number would allow one call for another."""
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed (linux-libc-dev)")
    numbers = header(path)
    newer_than_headers = {"map_shadow_stack"}
    assert {name: number for name, number in arch.numbers.items() if name not in newer_than_headers} == {
        name: numbers[name] for name in arch.numbers if name not in newer_than_headers
    }


def test_the_assembler_refuses_what_classic_bpf_cannot_encode() -> None:
    """A jump too long, or a filter that runs off its end, is an error here and not in the kernel."""
    program = bpf.Program()
    program.if_equal(1, then="far")
    for _ in range(256):
        program.load(bpf.NR)
    with pytest.raises(ValueError, match="must end in a return"):
        program.assemble()
    program.label("far")
    program.give(0)
    with pytest.raises(ValueError, match="0 to 255"):
        program.assemble()
    with pytest.raises(ValueError, match="twice"):
        program.label("far")


@both
def test_the_filter_is_short_enough_to_install_fast(arch: Architecture) -> None:
    """Installing costs by length and by depth: the kernel tries the filter for every call there is."""
    assert FILTERS[arch.machine].instructions < 200
