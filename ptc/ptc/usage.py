"""Tokens, summed over the requests of a run, in the service's own words; what it leaves out is zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens used: `cached` is part of `input_tokens`, `reasoning` part of `output_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.requests + other.requests,
        )

    @classmethod
    def of_response(cls, response: Mapping[str, object]) -> Usage:
        """The usage of one response. A service that reports none counts as one request of no tokens."""
        usage = response.get("usage")
        if not isinstance(usage, Mapping):
            return cls(requests=1)
        spent_in, spent_out = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        return cls(
            input_tokens=spent_in,
            output_tokens=spent_out,
            total_tokens=_count(usage, "total_tokens") or spent_in + spent_out,
            cached_tokens=_count(usage.get("input_tokens_details"), "cached_tokens"),
            reasoning_tokens=_count(usage.get("output_tokens_details"), "reasoning_tokens"),
            requests=1,
        )


def _count(source: object, key: str) -> int:
    value = source.get(key) if isinstance(source, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
