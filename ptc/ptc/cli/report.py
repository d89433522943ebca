"""What happened in a run, for people: the programs with their source, the calls they made, how each ended.

It is told a finished run and prints; it reads no file and asks nobody. Everything a model or a tool wrote
is shown as text: no markup in it is followed, no terminal control in it reaches the terminal.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptc.cli.console import MAX_ROWS, duration, one_line, rows_left_out, source, stdout, text, visible
from ptc_tools.command_line import ptc_command
from ptc_tools.outcome import Outcome, Success

if TYPE_CHECKING:
    import os

    from rich.console import Console
    from rich.table import Table

    from ptc.result import CallReport, ProgramReport, RunResult
    from ptc_sandbox.result import ProgramCall
    from ptc_tools.call import JsonValue


@dataclass(frozen=True, slots=True)
class Row:
    """One call, as a table shows it."""

    tool: str
    caller: str
    line: int | None
    arguments: str
    outcome: str
    ok: bool
    duration_us: int | None


def print_report(
    result: RunResult[Any], audit_path: str | os.PathLike[str] | None = None, console: Console | None = None
) -> None:
    """Prints the programs of a run, its calls, and where its audit log is and how to look at it."""
    out = console or stdout()
    for program in result.programs:
        _print_program(out, program, result.calls)
    if result.calls:
        programs = {program.call_id for program in result.programs}
        out.print(calls_table(run_rows(result.calls[:MAX_ROWS], programs), title="calls"))
    else:
        out.print(text("no tool was called", "dim"))
    if len(result.calls) > MAX_ROWS:
        how = "`result.calls` holds them" if audit_path is None else "the audit log shows them, see below"
        out.print(text(rows_left_out(len(result.calls), MAX_ROWS, "calls", how), "dim"))
    if audit_path is not None:
        path, ptc = shlex.quote(str(audit_path)), ptc_command()
        out.print(text(f"audit log: {audit_path}", "bold"))
        out.print(text(f"  look at this run:  {ptc} audit show {path} {result.run_id}"), soft_wrap=True)
        out.print(text(f"  check the log:     {ptc} audit verify {path}"), soft_wrap=True)
        local = {program.call_id for program in result.programs} & {c.call.call_id for c in result.calls}
        if local and Path(f"{audit_path}.journals").is_dir():
            out.print(text(f"  prove it again:    {ptc} audit replay {path} {result.run_id}"), soft_wrap=True)


def calls_table(rows: Iterable[Row], title: str) -> Table:
    """The calls in the order in which they started."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("tool", "left"), ("caller", "left"), ("line", "right"), ("arguments", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    table.add_column("outcome", overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            text(one_line(row.tool), "bold"),
            text(one_line(row.caller)),
            Text("" if row.line is None else str(row.line)),
            text(one_line(row.arguments)),
            text(one_line(row.outcome), "green" if row.ok else "red"),
            Text(duration(row.duration_us), style="dim"),
        )
    return table


def run_rows(calls: Iterable[CallReport], programs: Collection[str] = ()) -> list[Row]:
    """Rows for a run's calls. A call that ran a program which is shown already does not show it again."""
    from ptc_tools.call import Program

    return [
        Row(
            report.call.qualified_name,
            f"program {report.call.caller.caller_id}"
            if isinstance(report.call.caller, Program)
            else "direct",
            report.call.origin_line,
            "the program above" if report.call.call_id in programs else _arguments(report.call.arguments),
            describe(report.outcome),
            isinstance(report.outcome, Success),
            report.duration_us,
        )
        for report in calls
    ]


def program_rows(calls: Iterable[ProgramCall]) -> list[Row]:
    return [
        Row(
            f"{call.namespace}.{call.name}" if call.namespace else call.name,
            "program",
            call.line,
            json_text(call.arguments),
            describe(call.outcome) if call.outcome else "unanswered",
            isinstance(call.outcome, Success),
            call.duration_us,
        )
        for call in calls
    ]


def describe(outcome: Outcome) -> str:
    """An outcome in one line."""
    if isinstance(outcome, Success):
        return json_text(outcome.value)
    return f"{outcome.status} ({outcome.code}): {outcome.message}"


def json_text(value: JsonValue) -> str:
    """JSON to be read: non-ASCII kept, what acts on a terminal written out."""
    return visible(json.dumps(value, ensure_ascii=False))


def _print_program(out: Console, program: ProgramReport, calls: Iterable[CallReport]) -> None:
    from rich.panel import Panel
    from rich.text import Text

    from ptc_tools.call import Program

    made = [
        c for c in calls if isinstance(c.call.caller, Program) and c.call.caller.caller_id == program.call_id
    ]
    lines = {report.call.origin_line for report in made if report.call.origin_line is not None}
    title = Text.assemble(
        "program ",
        visible(program.call_id, 80),
        f" · {visible(program.language)} · ",
        visible(program.status or "open"),
    )
    out.print(Panel(source(program.code, program.language, lines), title=title, title_align="left"))
    if program.result is not None:
        shown = program.result if isinstance(program.result, str) else json_text(program.result)
        out.print(text(f"result: {shown}", limit=2_000), soft_wrap=True)


def _arguments(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments, ensure_ascii=False, default=dict)
    except (TypeError, ValueError):
        return str(arguments)
