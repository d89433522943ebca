"""Resource limits: what one process may take, by setrlimit.

It is told `Resources` and how much the interpreter has mapped already. It never raises a limit above what the
operator's hard limits allow, and it bounds no wall clock: only the host can.
"""

from __future__ import annotations

import math
import resource
import signal
from pathlib import Path
from typing import Final

from ptc_sandbox.confine.levels import Resources

_SHARED_SLACK: Final = 64 * 1024 * 1024
"""Address space beyond RLIMIT_DATA: stack growth and mappings that cost no memory."""

_NOTHING_EVER: Final = (
    resource.RLIMIT_CORE,  # no image of the process on disk
    resource.RLIMIT_MEMLOCK,
    resource.RLIMIT_MSGQUEUE,
    resource.RLIMIT_SIGPENDING,
    resource.RLIMIT_NICE,
    resource.RLIMIT_RTPRIO,
)
"""What the fork server does not need either: set there, once, and inherited."""

_NOTHING_MORE: Final = (
    resource.RLIMIT_FSIZE,  # no byte into any file, were one open (the server's own output may be a file)
    resource.RLIMIT_NPROC,  # no process, no thread (root ignores this one: hence the uid drop)
    resource.RLIMIT_NOFILE,  # no further descriptor; the channel is open already
)

Limit = tuple[int, int, int]


def mapped() -> tuple[int, int]:
    """Bytes of address space and of private data that this process has mapped (VmSize, VmData)."""
    fields = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line
    )
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmSize", "VmData"))  # type: ignore[return-value]


def plan(resources: Resources) -> tuple[Limit, ...]:
    """The limits for a child to set, as (resource, soft, hard). Call after preloading: memory counts from what is
    mapped."""
    size, data = mapped()
    cpu = math.ceil(resources.cpu_s)
    wanted = [(which, 0, 0) for which in _NOTHING_MORE]
    wanted += [
        # DATA counts private memory, what a program can really fill; AS bounds the rest.
        (resource.RLIMIT_DATA, data + resources.memory, data + resources.memory),
        (resource.RLIMIT_AS, *(size + resources.memory + resources.stack + _SHARED_SLACK,) * 2),
        (resource.RLIMIT_STACK, resources.stack, resources.stack),
        # SIGXCPU at the soft limit can be blocked, SIGKILL a second later cannot.
        (resource.RLIMIT_CPU, cpu, cpu + 1),
    ]
    return tuple((which, *_within(which, soft, hard)) for which, soft, hard in wanted)


def _within(which: int, soft: int, hard: int) -> tuple[int, int]:
    ceiling = resource.getrlimit(which)[1]
    if ceiling == resource.RLIM_INFINITY:
        return soft, hard
    return min(soft, ceiling), min(hard, ceiling)


def apply_to_server() -> None:
    """Set what children inherit. A write to a file must fail, not kill, so SIGXFSZ is ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for which in _NOTHING_EVER:
        resource.setrlimit(which, (0, 0))
