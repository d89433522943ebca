"""A tiny assembler for classic BPF, the language of seccomp filters.

It may be told instructions, labels and one patchable constant; it resolves forward jumps and returns the
bytes that the kernel wants. It knows nothing of system calls, and it never loads a filter.
"""

from __future__ import annotations

import struct
from typing import Final

# Offsets into struct seccomp_data (linux/seccomp.h), which is what the filter's loads see.
NR: Final = 0
ARCH: Final = 4


def argument_low(index: int) -> int:
    """Offset of the low 32 bits of argument `index`; both architectures we know are little-endian."""
    return 16 + 8 * index


def argument_high(index: int) -> int:
    """Offset of the high 32 bits of argument `index`."""
    return 16 + 8 * index + 4


_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_GREATER: Final = 0x25  # BPF_JMP | BPF_JGT | BPF_K
_JUMP_SET: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

INSTRUCTION: Final = struct.Struct("=HBBI")  # struct sock_filter: code, jt, jf, k
_NEXT: Final = ""


class Program:
    """Instructions in order. A jump names a label that comes later; "" is the next instruction.

    >>> p = Program()
    >>> p.load(NR)
    >>> p.if_equal(39, then="allow")
    >>> p.give(0x00050001)
    >>> p.label("allow")
    >>> p.give(0x7FFF0000)
    >>> len(p.assemble()) // INSTRUCTION.size
    4
    """

    def __init__(self) -> None:
        self._code: list[tuple[int, str, str, int]] = []
        self._labels: dict[str, int] = {}
        self._patches: list[int] = []

    def label(self, name: str) -> None:
        """The next instruction is what jumps to `name` reach."""
        if name in self._labels:
            raise ValueError(f"label {name!r} twice")
        self._labels[name] = len(self._code)

    def load(self, offset: int) -> None:
        """A = 32 bits of seccomp_data at `offset`."""
        self._code.append((_LOAD, _NEXT, _NEXT, offset))

    def mask(self, bits: int) -> None:
        """A &= bits."""
        self._code.append((_AND, _NEXT, _NEXT, bits & 0xFFFF_FFFF))

    def if_equal(self, constant: int, *, then: str = _NEXT, otherwise: str = _NEXT) -> None:
        """Jump by A == constant."""
        self._code.append((_JUMP_EQUAL, then, otherwise, constant & 0xFFFF_FFFF))

    def if_greater(self, constant: int, *, then: str = _NEXT, otherwise: str = _NEXT) -> None:
        """Jump by A > constant, unsigned."""
        self._code.append((_JUMP_GREATER, then, otherwise, constant & 0xFFFF_FFFF))

    def if_any_bit(self, bits: int, *, then: str = _NEXT, otherwise: str = _NEXT) -> None:
        """Jump by A & bits != 0."""
        self._code.append((_JUMP_SET, then, otherwise, bits & 0xFFFF_FFFF))

    def if_equals_patched(self, *, then: str = _NEXT, otherwise: str = _NEXT) -> None:
        """Jump by A == a constant that `patch_offsets` tells where to write, known only in the child."""
        self._patches.append(len(self._code))
        self.if_equal(0xFFFF_FFFF, then=then, otherwise=otherwise)

    def give(self, action: int) -> None:
        """Return `action` to the kernel."""
        self._code.append((_RETURN, _NEXT, _NEXT, action))

    @property
    def patch_offsets(self) -> tuple[int, ...]:
        """Byte offsets, in the assembled program, of each 32-bit constant left open."""
        return tuple(index * INSTRUCTION.size + 4 for index in self._patches)

    def assemble(self) -> bytes:
        """The program as an array of struct sock_filter. ValueError for a jump that classic BPF cannot
        make."""
        if not self._code or self._code[-1][0] != _RETURN:
            raise ValueError("a filter must end in a return: the kernel refuses anything else")
        return b"".join(
            INSTRUCTION.pack(code, self._distance(at, then), self._distance(at, otherwise), constant)
            for at, (code, then, otherwise, constant) in enumerate(self._code)
        )

    def _distance(self, at: int, label: str) -> int:
        if label == _NEXT:
            return 0
        distance = self._labels[label] - at - 1
        if not 0 <= distance <= 255:
            raise ValueError(
                f"jump from {at} to {label!r} is {distance} instructions: 0 to 255 can be encoded"
            )
        return distance
