"""Who holds a lease: names of processes, and whether one of this machine is still alive.

A name says boot, pid namespace, pid and start time, so that a pid that was given again is not mistaken for
its predecessor. Of a process elsewhere nothing is known: its lease has to run out.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def _place() -> str | None:
    """This kernel and pid namespace, or None where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    after = stat.rpartition(")")[2].split()
    return None if after[0] in ("Z", "X") else after[19]


def new_holder() -> str:
    """A name for one store object of this process."""
    pid = os.getpid()
    return f"{_place() or 'elsewhere'}:{pid}:{_started(pid) or '?'}:{secrets.token_hex(4)}"


def is_dead(holder: str) -> bool:
    """Whether the holder is known to be gone: only ever of a process of this machine."""
    place, pid, started, _ = [*holder.split(":"), "", "", ""][:4]
    if place != _place() or not pid.isdigit() or started == "?":
        return False
    return _started(int(pid)) != started
