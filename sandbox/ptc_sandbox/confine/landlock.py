"""Landlock: no file, no TCP port, no abstract socket and no signal to anybody outside, by a ruleset without
rules.

It is told nothing but to begin; it uses what the kernel's ABI has and says which one that is. It never grants
an exception: what a program needs is loaded before.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Final

from ptc_sandbox.confine import kernel

_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION

# How many access rights each ABI knows (linux/landlock.h); rights of later ABIs are unknown flags, an EINVAL.
_FS_RIGHTS: Final = ((1, 13), (2, 14), (3, 15), (5, 16))
_NET_RIGHTS: Final = ((4, 2),)
_SCOPES: Final = ((6, 2),)


def abi() -> int:
    """The kernel's Landlock ABI, or 0: not built in, or not among the active security modules."""
    try:
        return kernel.syscall("landlock_create_ruleset", 0, 0, _VERSION)
    except OSError:
        return 0


def _all_rights(table: tuple[tuple[int, int], ...], version: int) -> int:
    return max(((1 << count) - 1 for since, count in table if since <= version), default=0)


def deny_all_attributes(version: int) -> bytes:
    """struct landlock_ruleset_attr that handles, and so denies, all that ABI `version` can."""
    fields = [_all_rights(_FS_RIGHTS, version)]
    if version >= 4:
        fields.append(_all_rights(_NET_RIGHTS, version))
    if version >= 6:
        fields.append(_all_rights(_SCOPES, version))
    return struct.pack(f"={len(fields)}Q", *fields)


def create_ruleset() -> int:
    """A descriptor of the deny-all ruleset, made once and shared by all children. OSError without
    Landlock."""
    attributes = deny_all_attributes(abi())
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return kernel.syscall("landlock_create_ruleset", kernel.address(buffer), len(attributes), 0)


def restricting_self(ruleset: int) -> kernel.Call:
    """The call that confines its maker for good; needs no_new_privs."""
    return kernel.system_call("landlock_restrict_self", ruleset, 0)


def describe(version: int) -> str:
    """What the ABI covers, for reports."""
    covered = ["files"]
    if version >= 4:
        covered.append("TCP")
    if version >= 6:
        covered.append("signals and abstract sockets")
    return f"ABI {version}: {', '.join(covered)}"
