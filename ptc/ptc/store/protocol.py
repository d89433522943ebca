"""What a run store is: an append-only list of steps for each run, and a lease that says who may add to it.

A store keeps what it is given, in order, and nothing else; what the steps mean is the loop's. It never lets
two holders write to one run, and never says that a step is there before it is durable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, cast

from ptc_tools.call import JsonObject

StoredStatus: TypeAlias = Literal[
    "running", "paused", "completed", "refused", "terminated", "incomplete", "failed", "cancelled"
]
OVER: frozenset[str] = frozenset({"completed", "refused", "terminated"})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened in a run. `n` counts from 1 and has no gaps; `data` is plain JSON."""

    n: int
    kind: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a run. `epoch` rises with each holder, so that a late one is found out."""

    run_id: str
    epoch: int
    holder: str


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was when its lease was taken. Times in microseconds since 1970."""

    run_id: str
    status: StoredStatus
    steps: tuple[Step, ...]
    lease: Lease
    created_us: int


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run in a list. `held`: whether somebody has its lease now."""

    run_id: str
    status: StoredStatus
    created_us: int
    updated_us: int
    held: bool
    labels: Mapping[str, str]


class RunStore(Protocol):
    """Keeps runs. One store may serve many runs, and many processes one store.

    `ptc.store.conformance` proves an implementation. Every method may raise StoreUnavailable.
    """

    lease_seconds: float
    """How long a lease holds unless it is renewed. Read at each lease and renewal."""

    async def create(self, run_id: str, steps: Sequence[Step], labels: Mapping[str, str]) -> Lease:
        """A new run, held by the caller, with its first steps; durable. Raises RunExists."""

    async def acquire(self, run_id: str) -> StoredRun:
        """The run, held by the caller from now on. Raises RunUnknown, RunLeased.

        A lease that has run out, or whose holder is known to be dead, is no obstacle.
        """

    async def append(
        self, lease: Lease, steps: Sequence[Step], *, status: StoredStatus | None = None
    ) -> None:
        """Adds steps: all or none, durable when it returns. With `status` the run is let go with it.

        Raises LeaseLost where another one holds the run, and StoreUnavailable where the run's last step is not the
        one before the first of these: a step that was refused is never followed. Then nothing was added.
        """

    async def renew(self, lease: Lease) -> None:
        """The lease holds for another `lease_seconds`. Raises LeaseLost."""

    async def release(self, lease: Lease) -> None:
        """Lets the run go; a lost lease is let be."""

    async def runs(self, *, status: StoredStatus | None = None) -> tuple[RunInfo, ...]:
        """What the store holds, oldest first."""

    async def aclose(self) -> None:
        """Lets go of everything. Runs that were held become free."""


class ImmediateStore(RunStore, Protocol):
    """What a store may have besides: a step that is durable before the call returns, where that takes no wait."""

    def append_here(self, lease: Lease, steps: Sequence[Step]) -> bool:
        """`append` without giving way to other tasks, for a run that is alone. False: nothing was done.

        Raises as `append` does. Only for a disk that is quick: the event loop waits for it.
        """


def immediate(store: RunStore) -> ImmediateStore | None:
    """The store, if it is one; not where a class of its own overrides `append` alone, to see every step."""
    for kind in type(store).__mro__:
        if "append_here" in vars(kind):
            return cast("ImmediateStore", store)
        if "append" in vars(kind):
            return None
    return None
