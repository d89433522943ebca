"""Where a value came from and who may see it, carried beside the value.

A tool returns `Traced(value, …)`; helpers for the common shapes (summarise, join, flatten) hand the trace
on, and the invoker takes it off the value and gives it to the audit record. The model never sees it. A
derived value is as confidential as the most confidential thing that went into it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

from ptc_tools.call import JsonObject

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")

Classification: TypeAlias = Literal["public", "internal", "confidential", "restricted"]
LEVELS: tuple[Classification, ...] = get_args(Classification)


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One origin: `system` and, where known, the record in it and its version or time."""

    system: str
    record: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """All origins of a value, in a fixed order, and its classification."""

    sources: tuple[Source, ...] = ()
    classification: Classification = "internal"

    def __post_init__(self) -> None:
        if self.classification not in LEVELS:
            raise ValueError(f"classification must be one of {', '.join(LEVELS)}")
        object.__setattr__(self, "sources", tuple(sorted(set(self.sources))))

    def __or__(self, other: Provenance) -> Provenance:
        """The provenance of something made from both."""
        level = max(LEVELS.index(self.classification), LEVELS.index(other.classification))
        return Provenance((*self.sources, *other.sources), LEVELS[level])

    def to_json(self) -> JsonObject:
        """For the audit record."""
        return {
            "classification": self.classification,
            "sources": [
                {"system": source.system, "record": source.record, "version": source.version}
                for source in self.sources
            ],
        }


NOTHING = Provenance((), "public")
"""What is made from nothing confines nothing: the neutral element of `|`."""


@dataclass(frozen=True, slots=True)
class Traced(Generic[T]):
    """A value and its provenance. A tool annotated `-> Traced[Report]` has the output schema of `Report`."""

    value: T
    provenance: Provenance = field(default=NOTHING)

    @classmethod
    def of(cls, value: T, *sources: Source, classification: Classification = "internal") -> Traced[T]:
        """A value as it was read from its sources."""
        return cls(value, Provenance(sources, classification))

    def map(self, function: Callable[[T], U]) -> Traced[U]:
        """Something computed from this value alone."""
        return Traced(function(self.value), self.provenance)


def combined(items: Iterable[Traced[T]]) -> Provenance:
    """The provenance of something made from all of these."""
    whole = NOTHING
    for item in items:
        whole |= item.provenance
    return whole


def summarise(items: Iterable[Traced[T]], function: Callable[[list[T]], U]) -> Traced[U]:
    """One value computed from many: it comes from all of them, those it no longer shows as well."""
    listed = list(items)
    return Traced(function([item.value for item in listed]), combined(listed))


def flatten(nested: Iterable[Traced[Iterable[T]]]) -> Traced[list[T]]:
    """Many lists as one list."""
    listed = list(nested)
    return Traced([value for item in listed for value in item.value], combined(listed))


def join(
    left: Iterable[Traced[T]],
    right: Iterable[Traced[U]],
    *,
    left_key: Callable[[T], Hashable],
    right_key: Callable[[U], Hashable],
    function: Callable[[T, U], V],
) -> Traced[list[V]]:
    """An inner join. That a row has no partner is itself knowledge of both sides, so all rows are sources."""
    rows, partners = list(left), list(right)
    by_key: dict[Hashable, list[U]] = {}
    for partner in partners:
        by_key.setdefault(right_key(partner.value), []).append(partner.value)
    joined = [function(row.value, partner) for row in rows for partner in by_key.get(left_key(row.value), ())]
    return Traced(joined, combined(rows) | combined(partners))
