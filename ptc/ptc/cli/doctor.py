"""`ptc doctor`: what this machine enforces around a program, found by attacking it.

It prints what `ptc_sandbox.confine.report` and the engines' self-check found, as a table or as JSON. The exit
status is 1 when the default level cannot be had here, or when a self-check failed.
"""

from __future__ import annotations

import json as jsonlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ptc.cli import console

if TYPE_CHECKING:
    from ptc_sandbox.confine.report import Examination


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Show what the kernel enforces here, layer by layer, by trying to break out."""
    from ptc_sandbox.confine.levels import Confinement
    from ptc_sandbox.confine.report import examine

    if sys.platform != "linux":
        console.complain(f"{sys.platform} can enforce nothing of the kernel wall: run programs on Linux")
        raise typer.Exit(1)
    found = examine()
    if json:
        typer.echo(jsonlib.dumps(found.to_json(), indent=2))
    else:
        _print(found)
    default = next(level for level in found.levels if level.name == Confinement.default().name)
    if not default.reachable or (found.together is not None and not found.together.holds):
        raise typer.Exit(1)


def _print(found: Examination) -> None:
    from rich.table import Table

    out = console.stdout()
    out.print(" · ".join(found.machine.values()), style="bold")
    layers = Table("layer", "holds", "evidence, and what to do", title=None, show_lines=False)
    for report in found.layers:
        more = f"\n→ {report.advice}" if report.advice and not report.holds else ""
        holds = console.text("yes", "green") if report.holds else console.text("no", "bold yellow")
        layers.add_row(report.layer, holds, console.text(report.evidence + more))
    out.print(layers)
    levels = Table("level", "can be had", "without")
    for level in found.levels:
        reachable = console.text("yes", "green") if level.reachable else console.text("no", "bold red")
        levels.add_row(f"Confinement.{level.name}()", reachable, ", ".join(level.missing))
    out.print(levels)
    if found.together is not None:
        style = "green" if found.together.holds else "bold red"
        out.print(console.text(f"All layers together: {found.together.evidence}.", style))
