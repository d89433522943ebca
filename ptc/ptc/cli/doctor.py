"""`ptc doctor`: what this machine enforces around a program, found by attacking it.

It prints what `ptc_sandbox.confine.report` found, as tables or as JSON, and with `--self-check` what became of
real programs in a real sandbox. The exit status is 1 when the default level cannot be had here, or when a
self-check failed.
"""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ptc.cli import console

if TYPE_CHECKING:
    from rich.text import Text

    from ptc_sandbox.confine.report import Examination


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One program of the self-check: what it must end as, and with which value or message."""

    name: str
    code: str
    status: str
    value: object = None
    wall_seconds: float = 30.0
    """Enough for a loaded machine; little where the program is meant to exhaust it."""


_GATHER: Final = "import asyncio\nawait asyncio.gather(double(number=1), double(number=2))"
_CATCH: Final = "try:\n    await double(number='x')\nexcept Exception:\n    r = 'caught'\nr"

_CHECKS: Final = (
    Check("computes", "sum(i * i for i in range(10))", "completed", 285),
    Check("calls a tool", "await double(number=21)", "completed", 42),
    Check("gathers calls", _GATHER, "completed", [2, 4]),
    Check("catches a tool's failure", _CATCH, "completed", "caught"),
    Check("is told of its own error", "1 / 0", "raised"),
    Check("cannot import the system", "import os", "denied"),
    Check("cannot reach the interpreter", "().__class__.__base__", "denied"),
    Check("ends for want of memory", "x = []\nwhile True:\n    x.append('a' * 1000000)", "killed:memory"),
    Check("ends when its time is over", "while True:\n    pass", "killed:time", wall_seconds=1.0),
)


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one."""

    name: str
    passed: bool
    found: str


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    self_check: Annotated[
        bool, typer.Option("--self-check", help="Also run programs in a sandbox, and compare how they end.")
    ] = False,
) -> None:
    """Show what the kernel enforces here, layer by layer, by trying to break out.

    Use it on each kind of machine that is to run programs, and when a sandbox says that a layer is missing.

    Exit status: 1 when the default level cannot be had here, or a self-check failed.

    \b
    Examples:
      ptc doctor
      ptc doctor --self-check
      ptc doctor --json
    """
    if sys.platform != "linux":
        console.complain(f"{sys.platform} can enforce nothing of the kernel wall: run programs on Linux")
        raise typer.Exit(1)
    from ptc_sandbox.confine.levels import Confinement
    from ptc_sandbox.confine.report import examine

    found = examine()
    default = next(level for level in found.levels if level.name == Confinement.default().name)
    fit = default.reachable and found.together is not None and found.together.holds
    checks = _self_check() if self_check and fit else []
    if json:
        data = found.to_json() | (
            {"self_check": [dataclasses.asdict(check) for check in checks]} if checks else {}
        )
        typer.echo(jsonlib.dumps(data, indent=2))
    else:
        _print(found)
        _print_checks(checks)
    if not fit or not all(check.passed for check in checks):
        raise typer.Exit(1)


def _self_check() -> list[CheckResult]:
    """Programs that must compute, fail and be stopped as documented, in a sandbox of the default level."""
    from ptc_sandbox import Limits, Sandbox
    from ptc_tools import tool

    @tool(allowed_callers=["programmatic"])
    def double(number: int) -> int:
        """Return twice the number."""
        return 2 * number

    results = []
    for check in _CHECKS:
        sandbox = Sandbox(limits=Limits(wall_seconds=check.wall_seconds, memory_bytes=64 * 1024 * 1024))
        try:
            result = sandbox.run_sync(check.code, tools=[double])
        finally:
            sandbox.close()
        passed = result.status == check.status and (check.value is None or result.value == check.value)
        found = result.status if result.value is None else f"{result.status}: {result.value!r}"
        results.append(CheckResult(check.name, passed, found))
    return results


def _print(found: Examination) -> None:
    from rich.table import Table

    out = console.stdout()
    out.print(" · ".join(found.machine.values()), style="bold")
    layers = Table("layer", "holds", "evidence, and what to do")
    for report in found.layers:
        more = f"\n→ {report.advice}" if report.advice and not report.holds else ""
        layers.add_row(report.layer, _yes(report.holds, "bold yellow"), console.text(report.evidence + more))
    out.print(layers)
    levels = Table("level", "can be had", "without")
    for level in found.levels:
        levels.add_row(f"Confinement.{level.name}()", _yes(level.reachable), ", ".join(level.missing))
    out.print(levels)
    if found.together is not None:
        style = "green" if found.together.holds else "bold red"
        out.print(console.text(f"All layers together: {found.together.evidence}.", style))


def _print_checks(checks: list[CheckResult]) -> None:
    from rich.table import Table

    if not checks:
        return
    table = Table("a program", "as it must", "how it ended")
    for check in checks:
        table.add_row(check.name, _yes(check.passed), console.text(check.found, limit=200))
    console.stdout().print(table)


def _yes(holds: bool, otherwise: str = "bold red") -> Text:
    return console.text("yes", "green") if holds else console.text("no", otherwise)
