"""`ptc audit`: checks, shows and searches audit logs. It reads them and never writes to one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ptc.cli import audit_proof, audit_search, audit_view
from ptc.cli.audit_options import MOST, AsJson, Everything, Log, dump

app = typer.Typer(
    help=(
        "Check, show and search audit logs.\n\nUse it after a run, to see who called what and to prove it. It only"
        " reads: logs are written by ptc.AuditLog and by ptc exec --audit.\n\n\b\nExamples:\n"
        "  ptc audit show audit.db            the runs\n"
        "  ptc audit show audit.db RUN        what happened in one of them\n"
        "  ptc audit verify audit.db          whether anything was changed"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(audit_proof.verify)


@app.command()
def show(
    log: Log,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run id; without one, the runs.")] = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Show one run, or list the runs.

    Use it first: the list names the runs that the other commands take.

    \b
    Examples:
      ptc audit show audit.db
      ptc audit show audit.db run_4f0c…
      ptc audit show audit.db run_4f0c… --json | jq .
    """
    from ptc.audit.query import Filter, select
    from ptc.cli.console import MAX_ROWS
    from ptc.cli.records import print_records

    most = None if everything else MAX_ROWS
    if run is None:
        _show_runs(log, as_json, most)
        return
    found = list(select(log, Filter(run=run)))
    if not found:
        from ptc.audit.errors import RecordNotFound
        from ptc_tools.command_line import ptc_command

        raise RecordNotFound(
            f"{log} has no record of the run {run!r}; `{ptc_command()} audit show {log}` lists the runs"
        )
    print_records(found, as_json, most=most)


@app.command()
def tail(
    log: Log,
    number: Annotated[int, typer.Option("-n", "--lines", min=1, max=MOST, help="How many records.")] = 10,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as records are written.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the last records.

    Use it to watch a log while something writes it.

    \b
    Examples:
      ptc audit tail audit.db -n 50
      ptc audit tail audit.db -f
    """
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


def _show_runs(log: Path, as_json: bool, most: int | None) -> None:
    from rich import box
    from rich.table import Table

    from ptc.audit.query import runs
    from ptc.cli.console import duration, one_line, rows_left_out, stdout, text
    from ptc.cli.records import moment

    found = runs(log)
    if as_json:
        dump([run.to_json() for run in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "began (UTC)", "took", "actor", "calls", "denied", "failed", "open", "status"):
        table.add_column(name, overflow="fold")
    shown = found if most is None else found[-most:]
    for run in shown:
        table.add_row(
            text(one_line(run.run), "bold"),
            text(moment(run.began_us)),
            text(duration(run.ended_us - run.began_us)),
            text(one_line(run.actor or "")),
            *(text(str(n)) for n in (run.calls, run.denied, run.failed, run.open)),
            text(one_line(run.status or "")),
        )
    out = stdout()
    if len(found) > len(shown):
        how = "these are the last; --all shows them, --json prints them"
        out.print(text(rows_left_out(len(found), len(shown), "runs", how), "dim"))
    out.print(table)
