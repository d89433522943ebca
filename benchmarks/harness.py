"""What every benchmark shares: figures with a peer and a goal, interleaved rounds, a table and JSON.

A figure is a value beside a peer's, measured in the same minutes, and their ratio; absolute numbers say
nothing on another machine. A peer that is not installed is said to be missing, never left out in silence.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a benchmark. `goal` bounds the ratio: at most, or at least where `at_least`."""

    name: str
    value: float | None
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    goal: float | None = None
    at_least: bool = False
    p99: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        if self.value is None or not self.peer_value:
            return None
        return self.value / self.peer_value

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal or without a peer to compare with."""
        if self.goal is None or self.ratio is None:
            return None
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio, "reached": self.reached}


def interleaved(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run each contender once a round, so that what disturbs the machine disturbs all of them alike."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            samples[name].append(measure())
    return samples


def median(samples: Iterable[float]) -> float:
    return statistics.median(samples)


def p99(samples: Iterable[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def report(title: str, run: Callable[[], list[Figure]]) -> None:
    """The command line of a benchmark module: a table, or JSON with `--json`."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    figures = run()
    if as_json:
        json.dump(
            {"machine": machine(), "figures": [figure.to_json() for figure in figures]}, sys.stdout, indent=1
        )
        print()
        return
    print(f"{title}\n{machine()}\n")
    print(table(figures))


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| figure | ours | p99 | peer | peer's | ratio | goal | reached |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for figure in figures:
        goal = "" if figure.goal is None else f"{'≥' if figure.at_least else '≤'} {figure.goal:g}"
        peer_value = "" if figure.peer is None else _number(figure.peer_value, figure.unit)
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        reached = {True: "yes", False: "no", None: ""}[figure.reached]
        name = f"{figure.name} ({figure.note})" if figure.note else figure.name
        lines.append(
            f"| {name} | {_number(figure.value, figure.unit)} | {_number(figure.p99, figure.unit, blank=True)}"
            f" | {figure.peer or ''} | {peer_value} | {ratio} | {goal} | {reached} |"
        )
    return "\n".join(lines)


def _number(value: float | None, unit: str, *, blank: bool = False) -> str:
    if value is None:
        return "" if blank else NOT_INSTALLED
    return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
