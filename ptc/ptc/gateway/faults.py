"""Faults that the peer commits on purpose, so that a client can be tried against a bad day. Sans-I/O.

A fault says when it strikes (the n-th request, how many times) and what it does. A plan is asked once for
each request and keeps the count; nothing here opens or closes a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal, TypeAlias, get_args

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import PtcError

FaultKind: TypeAlias = Literal[
    "status",  # answer with `status`, and do nothing
    "refuse",  # close the connection before anything was done
    "lose",  # do everything, then close the connection without an answer
    "truncate",  # answer with half of the body, and close
    "cut_stream",  # end a stream after `after` events
    "slow",  # wait `seconds` before the answer
    "drop_item",  # leave the last output item out
    "duplicate_item",  # send the last output item twice
    "reorder_items",  # send the output items in the opposite order
    "garbage",  # answer 200 with a body that is not JSON
]
KINDS: tuple[str, ...] = get_args(FaultKind)


class InvalidFault(PtcError, ValueError):
    """A fault that is none: an unknown kind, or a field of another."""

    code = "invalid_fault"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. It strikes at request `request` (the first is 1) and at the next `times` - 1 ones.

    `status` and `retry_after` (seconds) are for "status", `seconds` for "slow", `after` (events) for
    "cut_stream".
    """

    kind: FaultKind
    request: int = 1
    times: int = 1
    status: int = 500
    retry_after: float | None = None
    seconds: float = 1.0
    after: int = 3

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidFault(f"unknown fault {self.kind!r}; one of {', '.join(KINDS)}")
        if self.request < 1 or self.times < 1:
            raise InvalidFault("a fault's `request` and `times` count from 1")
        if self.kind == "status" and not 400 <= self.status <= 599:
            raise InvalidFault(f"a fault's `status` is an HTTP error, 400 to 599, not {self.status}")
        if self.seconds < 0 or self.after < 0 or (self.retry_after is not None and self.retry_after < 0):
            raise InvalidFault("a fault's `seconds`, `retry_after` and `after` are not negative")

    def strikes(self, request: int) -> bool:
        return self.request <= request < self.request + self.times

    def to_json(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonValue) -> Fault:
        """Raises `InvalidFault`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(value, dict) or not value.keys() <= known or "kind" not in value:
            raise InvalidFault(f"a fault is an object with a kind and of {', '.join(sorted(known))}")
        return cls(**value)  # type: ignore[arg-type]


class FaultPlan:
    """The faults of one peer, and how many requests it has had."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults = tuple(faults)
        self.requests = 0

    def replace(self, faults: Iterable[Fault]) -> None:
        """Plan anew; requests are counted from 1 again."""
        self._faults = tuple(faults)
        self.requests = 0

    def next_request(self) -> tuple[Fault, ...]:
        """The faults that strike the request that begins now."""
        self.requests += 1
        return tuple(fault for fault in self._faults if fault.strikes(self.requests))


def disturb_output(items: Sequence[JsonObject], faults: Iterable[Fault]) -> list[JsonObject]:
    """The output items as the faults leave them."""
    result = list(items)
    for fault in faults:
        match fault.kind:
            case "drop_item":
                result = result[:-1]
            case "duplicate_item":
                result = [*result, *result[-1:]]
            case "reorder_items":
                result.reverse()
    return result
