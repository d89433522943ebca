"""A control group for one fork server and its children: a bound on all of them together, where one is
delegated.

The host makes it, puts the fork server in before it forks, reads how often the kernel had to kill in it, and
removes it. Only cgroup v2; it is told a directory or finds one, and it never changes the group the host is
in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ptc_sandbox.confine.levels import Confinement, LayerReport, LayerUnavailable, Resources

_CONTROLLERS: Final = frozenset({"memory", "pids"})
_PREFIX: Final = "ptc-sandbox-"
_ATTEMPTS: Final = 100
_PAUSE_S: Final = 0.01
_OVERHEAD: Final = 256 * 1024 * 1024
"""Bytes for the fork server and for what children touch of its memory."""
_OTHER_PROCESSES: Final = 8
"""The fork server, the first process of its pid namespace, and what it tries in a fork."""

_ADVICE: Final = (
    "delegate a cgroup v2 directory with the memory and pids controllers (systemd: Delegate=yes and a group for the "
    "service itself below it) and pass its path: Confinement.with_cgroup(path)"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Cgroup:
    """A group that we made. `add` the fork server, `remove` after its end."""

    path: Path

    @classmethod
    def create(cls, parent: Path, *, memory: int, pids: int) -> Cgroup:
        """Make a group below `parent` with `memory` bytes (no swap) and `pids` processes for all in it
        together.

        OSError where the kernel refuses; nothing is left then. Groups of hosts that died are swept first.
        """
        _sweep(parent)
        group = cls(parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
        group.path.mkdir()
        try:
            group._set("memory.max", memory)
            with contextlib.suppress(OSError):  # a kernel without swap accounting
                group._set("memory.swap.max", 0)
            group._set("pids.max", pids)
        except OSError:
            group.remove()
            raise
        return group

    def add(self, pid: int) -> None:
        """Put a process in; what it forks from then on is in as well."""
        self._set("cgroup.procs", pid)

    def out_of_memory_kills(self) -> int:
        """How many processes the kernel killed in this group for want of memory: evidence for
        `killed:memory`."""
        for line in (self.path / "memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
        return 0

    def remove(self) -> None:
        """End whatever is left in the group and remove it; blocks until it is empty. Does nothing if it is gone."""
        for _ in range(_ATTEMPTS):
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                with contextlib.suppress(OSError):  # before Linux 5.14; the processes are dying anyway
                    self._set("cgroup.kill", 1)
                time.sleep(_PAUSE_S)
            else:
                return

    def _set(self, name: str, value: int) -> None:
        # No O_CREAT: in a cgroup the files are there, and nowhere else shall we make any.
        fd = os.open(self.path / name, os.O_WRONLY)
        try:
            os.write(fd, str(value).encode())
        finally:
            os.close(fd)


def enter_group(
    confinement: Confinement, resources: Resources, pid: int
) -> tuple[Cgroup | None, LayerReport]:
    """Make a group for a fork server that waits to be told what to do, and put it in.

    LayerUnavailable when the policy requires a group and none can be had; a group that was made is removed then.
    """
    parent, report = find_parent(confinement)
    if parent is None:
        return None, report
    memory = confinement.cgroup_memory or resources.programs * resources.memory + _OVERHEAD
    group = None
    try:
        group = Cgroup.create(parent, memory=memory, pids=resources.programs + _OTHER_PROCESSES)
        group.add(pid)
    except OSError as error:
        if group is not None:
            group.remove()
        report = LayerReport("cgroup", confinement.cgroup, False, str(error), _ADVICE)
        if report.missing:
            raise LayerUnavailable(report) from error
        return None, report
    evidence = f"{group.path}: {memory >> 20} MiB and {resources.programs} programs together"
    return group, LayerReport("cgroup", confinement.cgroup, True, evidence)


def is_inside_one() -> bool:
    """Whether the calling process is in a group that `enter_group` made."""
    with contextlib.suppress(OSError):
        for row in Path("/proc/self/cgroup").read_text().splitlines():
            hierarchy, _, path = row.split(":", 2)
            if hierarchy == "0":
                return Path(path).name.startswith(_PREFIX)
    return False


def find_parent(confinement: Confinement) -> tuple[Path | None, LayerReport]:
    """Where groups can be made under this policy, and the report of the layer.

    LayerUnavailable when the policy requires it and nothing was delegated.
    """
    want = confinement.cgroup
    if want == "off":
        return None, LayerReport("cgroup", want, False, "off")
    if confinement.cgroup_parent is not None:
        candidates, why = [Path(confinement.cgroup_parent)], ""
    else:
        candidates, why = _own_groups()
    for candidate in candidates:
        why = _unfit(candidate)
        if not why:
            return candidate, LayerReport(
                "cgroup", want, True, f"memory and pids are delegated at {candidate}"
            )
    report = LayerReport("cgroup", want, False, why, _ADVICE)
    if report.missing:
        raise LayerUnavailable(report)
    return None, report


def _unfit(directory: Path) -> str:
    """Why no group with our controllers can be made there; "" if one can."""
    try:
        given = set((directory / "cgroup.subtree_control").read_text().split())
    except OSError as error:
        return f"{directory} is no cgroup v2 directory ({error.strerror})"
    missing = sorted(_CONTROLLERS - given)
    if missing:
        return f"{directory} does not hand on {' and '.join(missing)}"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"{directory} is not writable"
    return ""


def _own_groups() -> tuple[list[Path], str]:
    """The group this process is in and the one above, if cgroup v2 is mounted; else the reason."""
    mount = next(_cgroup2_mounts(), None)
    if mount is None:
        return [], "cgroup v2 is not mounted (v1 cannot be delegated safely)"
    try:
        rows = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError as error:
        return [], f"/proc/self/cgroup: {error.strerror}"
    for row in rows:
        hierarchy, _, path = row.split(":", 2)
        if hierarchy == "0":
            own = mount / path.lstrip("/")
            return ([own, own.parent] if own != mount else [own]), ""
    return [], "this process is in no cgroup v2 group"


def _cgroup2_mounts() -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            if after.startswith("cgroup2 "):
                yield Path(before.split()[4])


def _sweep(parent: Path) -> None:
    """Remove groups that hosts left behind which were killed: empty ones, of processes that are no more."""
    for group in parent.glob(f"{_PREFIX}*"):
        owner = group.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                group.rmdir()
