"""What an attack is: an act, the layers that must stop it, each of them alone, and a `Target` that exists.

The target can be had without confinement, so that a refusal proves the layer. Attacks do no harm where they
succeed; `attacks.py` lists all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from ptc_sandbox.confine.levels import Layer


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """What there is to attack: all of it outside the child, all of it open to an unconfined process."""

    directory: str
    """Absolute; may be written by the process that starts children."""
    readable: str
    root_only: str
    """A file that only root can read, where the trial runs as root."""
    setuid_id: str
    """A set-user-ID root copy of `id`, or "" where the trial cannot make one."""
    shell: str
    port: int
    abstract: str
    victim: int
    """A process id outside."""
    other_fd: int
    """A descriptor that a child inherits: one end of a pair whose peer answers."""
    file_fd: int
    """A regular file, open for writing."""
    foreign_code: int
    """Address of code that makes a 32-bit system call, or 0."""
    channel: int = -1


BECAME_ANOTHER: Final = 42
"""The exit status by which `execute` tells that it succeeded: nothing else of the child is left to tell."""

Act = Callable[[Target], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Attack:
    """One attack, by name. `stopped_by` are the layers that stop it alone; `fatal` if seccomp kills for
    it."""

    name: str
    what: str
    act: Act
    stopped_by: tuple[Layer, ...]
    fatal: bool
    landlock_abi: int
    """Since which ABI Landlock stops it."""
    root_only: bool
    """Only root can do this at all, so only there a layer is seen to stop it."""
    exempts_root: bool
    """Limits and no_new_privs stop this for ordinary users: for root the uid drop has to come first."""

    def is_stopped_by(self, layer: Layer, *, as_root: bool, landlock_abi: int) -> bool:
        """Whether `layer` alone must stop this, for whom, on a kernel of that Landlock ABI."""
        if layer not in self.stopped_by or (self.root_only and not as_root):
            return False
        if layer == "landlock":
            return landlock_abi >= self.landlock_abi
        if layer == "user":
            return as_root
        return layer == "seccomp" or not (self.exempts_root and as_root)


def attack(
    *stopped_by: Layer,
    fatal: bool = False,
    landlock_abi: int = 1,
    root_only: bool = False,
    exempts_root: bool = False,
) -> Callable[[Act], Attack]:
    """Make the decorated act an `Attack`: named like it, described by its docstring."""

    def make(act: Act) -> Attack:
        what = (act.__doc__ or "").strip().rstrip(".")
        return Attack(act.__name__, what, act, stopped_by, fatal, landlock_abi, root_only, exempts_root)

    return make
