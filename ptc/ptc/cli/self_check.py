"""What `ptc doctor --self-check` runs: the conformance suite, on our own engine and on others that are installed.

It is told nothing; it gives a row for each case and says of each engine whether it was there. Progress goes to
standard error, and only to a terminal.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ptc.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress

    from ptc_sandbox.engines.engine import Engine
    from ptc_sandbox.limits import Limits

OURS: Final = "ptc"
MONTY: Final = "monty"


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """One case on one engine. `excepted` is why the engine need not keep it; then it passes, holding or not."""

    engine: str
    name: str
    passed: bool
    holds: bool
    found: str
    excepted: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class EngineFound:
    """Whether an engine could be checked here, and of how many cases each was said. `note` says what to know."""

    engine: str
    available: bool
    held: int
    excepted: int
    failed: int
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class SelfCheck:
    """Everything that was run."""

    cases: tuple[Checked, ...]
    engines: tuple[EngineFound, ...]

    @property
    def passed(self) -> bool:
        return all(case.passed for case in self.cases)


def self_check() -> SelfCheck:
    """Run the suite on every engine that is installed. Takes ten seconds or so for each."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    out = console.stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        return asyncio.run(_all(progress))


async def _all(progress: Progress) -> SelfCheck:
    from ptc_sandbox import Sandbox
    from ptc_sandbox.engines.monty import EXCEPTIONS, MontyEngine
    from ptc_sandbox.errors import EngineUnavailable

    ours = await _suite(OURS, lambda limits: Sandbox(limits=limits), {}, progress)
    try:
        MontyEngine()
    except EngineUnavailable as missing:
        absent = EngineFound(MONTY, False, 0, 0, 0, missing.message)
        return SelfCheck(ours, (_summary(OURS, ours), absent))
    engines: list[MontyEngine] = []

    def make(limits: Limits) -> MontyEngine:
        engines.append(MontyEngine(limits=limits))
        return engines[-1]

    monty = await _suite(MONTY, make, EXCEPTIONS, progress)
    held = ", ".join(report.layer for report in engines[-1].layers if report.holds) or "nothing"
    summary = dataclasses.replace(_summary(MONTY, monty), note=f"around its worker: {held}")
    return SelfCheck(ours + monty, (_summary(OURS, ours), summary))


async def _suite(
    name: str, make: Callable[[Limits], Engine], exceptions: Mapping[str, str], progress: Progress
) -> tuple[Checked, ...]:
    from ptc_sandbox.engines.conformance import CASES, prove
    from ptc_tools.errors import PtcError

    task = progress.add_task(f"engine {name}", total=len(CASES))
    rows: list[Checked] = []
    try:
        async for verdict in prove(make, exceptions):
            found = verdict.found
            if verdict.stale:
                found = f"{found} (holds in spite of its exception, which can be taken off the list)"
            rows.append(Checked(name, verdict.name, verdict.ok, verdict.holds, found, verdict.excepted))
            progress.advance(task)
    except (
        PtcError
    ) as error:  # it cannot be confined here, say: nothing of it was run, and that is the finding
        rows.append(Checked(name, "the engine runs", False, False, str(error)))
    return tuple(rows)


def _summary(name: str, rows: tuple[Checked, ...]) -> EngineFound:
    held, passed = sum(row.holds for row in rows), sum(row.passed for row in rows)
    return EngineFound(name, True, held, passed - held, len(rows) - passed)
