"""The kernel wall: what holds a program whose language wall has fallen.

The fork server calls `enter_namespaces` once before it forks, `prepare` once after preloading, and each child
`Prepared.confine_child` before it reads a byte of a program. The host uses `ptc_sandbox.confine.report`.
Importing this package costs nothing and works anywhere; calling it needs Linux.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ptc_sandbox.confine.levels import (
    LAYERS,
    NAMESPACES,
    Confinement,
    Layer,
    LayerReport,
    LayerUnavailable,
    Namespace,
    Resources,
    Want,
)

if TYPE_CHECKING:
    from ptc_sandbox.confine.child import Prepared

__all__ = [
    "LAYERS",
    "NAMESPACES",
    "Confinement",
    "Layer",
    "LayerReport",
    "LayerUnavailable",
    "Namespace",
    "Resources",
    "Want",
    "confine_child",
    "enter_namespaces",
    "leave_namespaces",
    "prepare",
]

# The modules that do the work need Linux (`resource`, `ctypes` on the C library), so they are imported by the
# call.


def enter_namespaces(confinement: Confinement) -> list[LayerReport]:
    """Put the fork server itself where its children will be: call once, single-threaded, before any fork.

    Also raises the process's OOM score, which children inherit. LayerUnavailable when a required namespace
    cannot be had; otherwise a report of what holds. With a pid namespace this forks its first process, which
    `leave_namespaces` ends; so does the death of the calling process, and with it all others in the
    namespace.
    """
    _require_linux()
    from ptc_sandbox.confine import server

    return server.enter_namespaces(confinement)


def leave_namespaces() -> None:
    """End every process of the pid namespace, if there is one, and reap them: call before exiting.

    The statuses of children that still ran are lost; a fork server that reports them reaps them before.
    """
    from ptc_sandbox.confine import server

    server.leave_namespaces()


def prepare(confinement: Confinement, resources: Resources) -> Prepared:
    """Compute what every child needs: call in the fork server, after `enter_namespaces` and after preloading.

    `.reports` says what holds; LayerUnavailable when a required layer cannot be had.
    """
    _require_linux()
    from ptc_sandbox.confine import server
    from ptc_sandbox.confine.child import Prepared

    return Prepared(confinement, resources, server.entered())


def confine_child(confinement: Confinement, resources: Resources, channel_fd: int) -> None:
    """Confine the calling process, without preparation. The fork server uses `prepare` and
    `Prepared.confine_child`.

    The process's parent must be the process that entered the namespaces.
    """
    _require_linux()
    from ptc_sandbox.confine import server
    from ptc_sandbox.confine.child import Prepared

    Prepared(confinement, resources, server.entered()).confine_child(channel_fd)


def _require_linux() -> None:
    if sys.platform != "linux":
        raise LayerUnavailable(
            LayerReport(
                "linux",
                "required",
                False,
                f"{sys.platform} has no seccomp, Landlock, namespaces or pidfd: nothing can be enforced",
                "run the sandbox on Linux, in a container or a virtual machine",
            )
        )
