"""Dropping who we are: user and group ids, supplementary groups, capabilities.

It is told an id or to choose one that no account has. It never keeps a way back: real, effective and saved
ids change together, and the bounding set is emptied.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import struct
from pathlib import Path
from typing import Final

from ptc_sandbox.confine import kernel

_UNIQUE_FIRST: Final = 0x7000_0000
"""Start of a range that systemd's table of ids leaves to nobody (0x70000000 to 0x7ffffffe)."""
_UNIQUE_COUNT: Final = 0x0FFF_FFFF

_NOBODY: Final = 65534
_CAPABILITIES_V3: Final = 0x2008_0522

_EMPTY_CAPABILITIES: Final = ctypes.create_string_buffer(24)
_CAPABILITIES_HEADER: Final = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITIES_V3, 0), 8)


@dataclasses.dataclass(frozen=True, slots=True)
class UserPlan:
    """What the child does about its ids. `fixed` is the id for all; `offset` is where this server's own range
    of unique ones starts; neither leaves the ids as they are."""

    evidence: str
    fixed: int | None = None
    offset: int | None = None
    clear_groups: bool = False

    def uid(self) -> int | None:
        """The id for the calling process."""
        if self.offset is None:
            return self.fixed
        # Two living processes of one server have different pids; servers start at random places.
        return _UNIQUE_FIRST + (self.offset + os.getpid()) % _UNIQUE_COUNT

    @property
    def changes_ids(self) -> bool:
        """Whether CAP_SETUID and CAP_SETGID are needed."""
        return self.fixed is not None or self.offset is not None


def id_map(kind: str) -> list[tuple[int, int, int]]:
    """Which ids exist in this user namespace, as (first, first outside, count); `kind` is "uid" or "gid"."""
    rows = [line.split() for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]
    return [(int(inside), int(outside), int(count)) for inside, outside, count in rows]


def _mapped(ranges: list[tuple[int, int, int]], first: int, count: int = 1) -> bool:
    return any(start <= first and first + count <= start + length for start, _, length in ranges)


def plan(wanted: int | None) -> UserPlan:
    """How to stop being root here. An ordinary user stays who it is and loses what capabilities it has."""
    if os.geteuid() != 0:
        return UserPlan(f"already the ordinary user {os.geteuid()}; no capability is kept")
    uids, gids = id_map("uid"), id_map("gid")
    clear_groups = _may_set_groups()
    groups = "" if clear_groups else "; groups stay, this user namespace froze them"
    if wanted is not None:
        if not (_mapped(uids, wanted) and _mapped(gids, wanted)):
            raise OSError(errno.EINVAL, f"id {wanted} is not mapped in this user namespace")
        return UserPlan(
            f"root becomes the fixed id {wanted}{groups}", fixed=wanted, clear_groups=clear_groups
        )
    if _mapped(uids, _UNIQUE_FIRST, _UNIQUE_COUNT) and _mapped(gids, _UNIQUE_FIRST, _UNIQUE_COUNT):
        return UserPlan(
            f"root becomes an id that no account has, another for each program{groups}",
            offset=int.from_bytes(os.urandom(4), "little"),
            clear_groups=clear_groups,
        )
    last_mapped = max((start + length - 1 for start, _, length in uids), default=0)
    for candidate in (_NOBODY, last_mapped):
        if candidate and _mapped(uids, candidate) and _mapped(gids, candidate):
            return UserPlan(
                f"root becomes {candidate}, as few ids are mapped here{groups}",
                fixed=candidate,
                clear_groups=clear_groups,
            )
    if any(inside == outside == 0 for inside, outside, _ in uids):
        raise OSError(errno.EINVAL, "root has no other id to become in this user namespace")
    return UserPlan("root of a user namespace only, an ordinary user outside; no capability is kept")


def _may_set_groups() -> bool:
    """Whether this user namespace lets its groups be set (one made without privilege does not)."""
    try:
        return Path("/proc/self/setgroups").read_text().strip() == "allow"
    except FileNotFoundError:
        return True


def shed(plan: UserPlan) -> None:
    """In the fork server, once: lose what no child may inherit and the server does not need."""
    if plan.changes_ids and plan.clear_groups:
        os.setgroups([])
    if kernel.holds_capabilities(kernel.CAP_SETPCAP):
        _empty_bounding_set()


def _empty_bounding_set() -> None:
    """No program run from here on can have a capability, whatever its file says. Needs CAP_SETPCAP."""
    capability = 0
    while True:
        try:
            held = kernel.prctl(kernel.PR_CAPBSET_READ, capability)
        except OSError:  # EINVAL: the kernel knows no such capability, so that was all
            return
        if held:
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
        capability += 1


def dropping_capabilities() -> kernel.Call:
    """The call that empties the effective, permitted and inheritable sets, and the ambient set with them."""
    return kernel.system_call(
        "capset", kernel.address(_CAPABILITIES_HEADER), kernel.address(_EMPTY_CAPABILITIES)
    )
