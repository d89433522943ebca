"""`ptc doctor`: what this machine enforces around a program, found by attacking it.

It prints what `ptc_sandbox.confine.report` found, as tables or as JSON, and with `--self-check` what became of
the conformance suite's programs in each engine that is installed. The exit status is 1 when the default level
cannot be had here, or when a case does not hold that must.
"""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ptc.cli import console
from ptc.cli.self_check import SelfCheck
from ptc.cli.self_check import self_check as run_suites

if TYPE_CHECKING:
    from rich.text import Text

    from ptc_sandbox.confine.report import Examination


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    self_check: Annotated[
        bool,
        typer.Option("--self-check", help="Also run the conformance suite on each engine that is installed."),
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
    checks = run_suites() if self_check and fit else None
    if json:
        data = found.to_json() | (
            {
                "self_check": [dataclasses.asdict(case) for case in checks.cases],
                "engines": [dataclasses.asdict(engine) for engine in checks.engines],
            }
            if checks
            else {}
        )
        typer.echo(jsonlib.dumps(data, indent=2))
    else:
        _print(found)
        if checks is not None:
            _print_checks(checks)
    if not fit or (checks is not None and not checks.passed):
        raise typer.Exit(1)


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


def _print_checks(checks: SelfCheck) -> None:
    """All of an engine's cases as one line; each that failed or is excepted as a row."""
    from rich.table import Table

    out = console.stdout()
    for engine in checks.engines:
        if not engine.available:
            out.print(console.text(f"Engine {engine.engine}: not checked. {engine.note}", "yellow"))
            continue
        said = f"Engine {engine.engine}: {engine.held} cases hold, {engine.failed} do not"
        said += f", {engine.excepted} need not" if engine.excepted else ""
        said += f"; {engine.note}." if engine.note else "."
        out.print(console.text(said, "bold red" if engine.failed else "green"))
    table = Table("engine", "a program", "as it must", "how it ended, and why it may")
    for case in checks.cases:
        if not case.passed or case.excepted:
            more = f"\n→ {case.excepted}" if case.excepted else ""
            table.add_row(
                case.engine,
                case.name,
                console.text("excepted", "yellow") if case.passed else _yes(False),
                console.text(f"{console.visible(case.found, 200)}{more}"),
            )
    if table.row_count:
        out.print(table)


def _yes(holds: bool, otherwise: str = "bold red") -> Text:
    return console.text("yes", "green") if holds else console.text("no", otherwise)
