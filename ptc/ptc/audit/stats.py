"""Sums over a log: calls by tool, how they ended, how long they took, when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ptc.audit.query import status_of, tool_of
from ptc.audit.reader import Record
from ptc_tools.call import JsonObject


@dataclass(slots=True)
class ToolStats:
    """One tool's calls. Times in microseconds."""

    tool: str
    calls: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    durations_us: list[int] = field(default_factory=list)

    def quantile(self, share: float) -> int | None:
        """The duration below which this share of the calls ended; None without any."""
        ordered = sorted(self.durations_us)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def to_json(self) -> JsonObject:
        return {
            "tool": self.tool,
            "calls": self.calls,
            "ended": dict(self.ended),
            "p50_us": self.quantile(0.5),
            "p99_us": self.quantile(0.99),
        }


@dataclass(slots=True)
class Stats:
    """A log, added up. `moments_us`: when calls started or were denied."""

    records: int = 0
    runs: set[str] = field(default_factory=set)
    programs: int = 0
    uncounted: Counter[str] = field(default_factory=Counter)
    tools: dict[str, ToolStats] = field(default_factory=dict)
    moments_us: list[int] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        return {
            "records": self.records,
            "runs": len(self.runs),
            "programs": self.programs,
            "unrecorded_calls": dict(self.uncounted),
            "tools": [tool.to_json() for tool in self.by_calls()],
        }

    def by_calls(self) -> list[ToolStats]:
        """The tools, most called first."""
        return sorted(self.tools.values(), key=lambda tool: (-tool.calls, tool.tool))

    def histogram(self, bins: int) -> list[int]:
        """Calls in equal slices of the time between the first and the last."""
        if not self.moments_us:
            return []
        first, last = min(self.moments_us), max(self.moments_us)
        counts = [0] * bins
        for moment in self.moments_us:
            counts[min(bins - 1, (moment - first) * bins // max(1, last - first))] += 1
        return counts


def stats(records: Iterable[Record]) -> Stats:
    sums = Stats()
    for record in records:
        sums.records += 1
        run = record.get("identity", {}).get("run")
        if isinstance(run, str):
            sums.runs.add(run)
        if record["type"] == "program.started":
            sums.programs += 1
        elif record["type"] == "audit.counted":
            sums.uncounted.update(record["data"]["calls"])
        name = tool_of(record)
        if name is None:
            continue
        tool = sums.tools.setdefault(name, ToolStats(name))
        if record["type"] == "tool.finished":
            tool.ended[str(status_of(record))] += 1
            tool.durations_us.append(record["outcome"]["duration_us"])
        else:
            tool.calls += 1
            sums.moments_us.append(record["at"])
            if record["type"] == "tool.denied":
                tool.ended["denied"] += 1
    return sums
