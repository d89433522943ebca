"""`ptc audit`: checks, shows and searches audit logs. It reads them and never writes to one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ptc.cli import audit_proof, audit_search, audit_view
from ptc.cli.audit_options import AsJson, Log, dump

app = typer.Typer(
    help="Check, show and search audit logs.", no_args_is_help=True, pretty_exceptions_enable=False
)
app.command()(audit_proof.verify)


@app.command()
def show(
    log: Log,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run id; without one, the runs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one run, or list the runs."""
    from ptc.audit.query import Filter, select
    from ptc.cli.records import print_records

    if run is None:
        _show_runs(log, as_json)
        return
    found = list(select(log, Filter(run=run)))
    if not found:
        from ptc.audit.errors import RecordNotFound
        from ptc_tools.command_line import ptc_command

        raise RecordNotFound(
            f"{log} has no record of the run {run!r}; `{ptc_command()} audit show {log}` lists the runs"
        )
    print_records(found, as_json)


@app.command()
def tail(
    log: Log,
    number: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many records.")] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as records are written.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the last records."""
    from ptc.audit.query import follow as follow_log
    from ptc.audit.query import last
    from ptc.cli.records import print_records

    records = last(log, number)
    print_records(records, as_json)
    if not follow:
        return
    sys.stdout.flush()
    try:
        for record in follow_log(log, records[-1]["seq"] if records else 0):
            print_records([record], as_json, header=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        raise typer.Exit from None


app.command()(audit_search.query)
app.command("hash")(audit_search.hash_value)
app.command()(audit_search.export)
app.command()(audit_search.stats)
app.command()(audit_proof.prove)
app.command()(audit_proof.replay)
app.command()(audit_view.view)
app.command()(audit_view.serve)
app.add_typer(audit_proof.keys_app, name="keys")


def _show_runs(log: Path, as_json: bool) -> None:
    from rich import box
    from rich.table import Table

    from ptc.audit.query import runs
    from ptc.cli.console import duration, one_line, stdout, text
    from ptc.cli.records import moment

    found = runs(log)
    if as_json:
        dump([run.to_json() for run in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "began (UTC)", "took", "actor", "calls", "denied", "failed", "open", "status"):
        table.add_column(name, overflow="fold")
    for run in found:
        table.add_row(
            text(one_line(run.run), "bold"),
            text(moment(run.began_us)),
            text(duration(run.ended_us - run.began_us)),
            text(one_line(run.actor or "")),
            *(text(str(n)) for n in (run.calls, run.denied, run.failed, run.open)),
            text(one_line(run.status or "")),
        )
    stdout().print(table)
