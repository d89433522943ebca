"""`ptc audit`: checks, shows and searches audit logs. It reads them and never writes to one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ptc.audit.verify import Verification
    from ptc_tools.call import JsonObject

app = typer.Typer(
    help="Check, show and search audit logs.", no_args_is_help=True, pretty_exceptions_enable=False
)

Log = Annotated[Path, typer.Argument(metavar="LOG", help="The log: a .jsonl or .db file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Keys = Annotated[Path | None, typer.Option("--keys", help="Keyring file; PTC_AUDIT_KEYS otherwise.")]

INTACT, TAMPERED, INCOMPLETE = 0, 1, 2


@app.command()
def verify(
    log: Log,
    key: Annotated[
        list[str] | None, typer.Option("--key", help="Verifier key to trust; may be given again.")
    ] = None,
    anchor: Annotated[
        list[Path] | None, typer.Option("--anchor", help="File of anchored checkpoints; may be given again.")
    ] = None,
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Check a log. Exit status: 0 intact, 1 tampered, 2 incomplete (or it cannot be read)."""
    from ptc.audit.anchors import read_notes
    from ptc.audit.verify import verify as check

    try:
        notes = [note for file in anchor or () for note in read_notes(file)]
    except OSError as error:
        raise _unreadable(f"the anchor {error.filename}", error) from None
    report = check(
        log, verifier_keys=key or (), verifier_for=None if key else _verifier_for(keys), anchors=notes
    )
    if as_json:
        _dump(verification_object(report))
    else:
        _print_verification(report)
    raise typer.Exit({"intact": INTACT, "tampered": TAMPERED, "incomplete": INCOMPLETE}[report.verdict])


@app.command()
def show(
    log: Log,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="A run id; without one, the runs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one run, or list the runs."""
    from ptc.audit.query import Filter, select

    if run is None:
        _show_runs(log, as_json)
        return
    found = list(select(log, Filter(run=run)))
    if not found:
        from ptc.audit.errors import RecordNotFound

        raise RecordNotFound(f"{log} has no record of the run {run!r}; `ptc audit show {log}` lists the runs")
    _print_records(found, as_json)


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

    records = last(log, number)
    _print_records(records, as_json)
    if follow:
        after = records[-1]["seq"] if records else 0
        try:
            for record in follow_log(log, after):
                _print_records([record], as_json, header=False)
                sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit from None


def verification_object(report: Verification) -> JsonObject:
    """A verification as `--json` prints it."""
    from dataclasses import asdict

    return {"verdict": report.verdict, "guarantee": report.guarantee(), **asdict(report)}


def _verifier_for(keys: Path | None) -> Any:
    from ptc.audit.keys import Keyring, default_path
    from ptc.audit.notes import verifier_key

    path = keys or default_path()
    if keys is None and not path.exists():
        return None
    ring = Keyring.open(path)
    return lambda log: [verifier_key(log, key) for key in ring.of("signing")]


def _unreadable(what: str, error: OSError) -> Exception:
    from ptc.audit.errors import RecordNotFound

    return RecordNotFound(f"{what} cannot be read: {error.strerror}")


def _print_verification(report: Verification) -> None:
    from ptc.cli.console import stdout, text

    out = stdout()
    style = {"intact": "bold green", "tampered": "bold red", "incomplete": "bold yellow"}[report.verdict]
    out.print(text(f"{report.verdict}: {report.records} records of log {report.log or '?'}", style))
    for finding in report.findings:
        where = f"{Path(finding.file).name}:{finding.number}" if finding.number else Path(finding.file).name
        seq = f" record {finding.seq}" if finding.seq is not None else ""
        out.print(text(f"  {finding.kind} at {where}{seq}: {finding.what}"), soft_wrap=True)
    for call in report.indeterminate[:20]:
        state = "in flight" if report.live else "indeterminate: it may or may not have run to its end"
        out.print(
            text(f"  call {call['call']} of {call['tool']} in {call['run']}, record {call['seq']}: {state}"),
            soft_wrap=True,
        )
    for note in report.notes:
        out.print(text(f"  note: {note}", "dim"), soft_wrap=True)
    reach = [
        f"{name} to record {seq}"
        for name, seq in (
            ("chained", report.chained_to),
            ("signed", report.signed_to),
            ("anchored", report.anchored_to),
        )
        if seq is not None
    ]
    if reach:
        out.print(text(f"  {', '.join(reach)}"), soft_wrap=True)
    out.print(text(f"  {report.guarantee()}"), soft_wrap=True)


def _show_runs(log: Path, as_json: bool) -> None:
    from rich import box
    from rich.table import Table

    from ptc.audit.query import runs
    from ptc.cli.console import duration, one_line, stdout, text

    found = runs(log)
    if as_json:
        _dump([run.to_json() for run in found])
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "began", "took", "actor", "calls", "denied", "failed", "open", "status"):
        table.add_column(name, overflow="fold")
    for run in found:
        table.add_row(
            text(one_line(run.run), "bold"),
            text(_moment(run.began_us)),
            text(duration(run.ended_us - run.began_us)),
            text(one_line(run.actor or "")),
            *(text(str(n)) for n in (run.calls, run.denied, run.failed, run.open)),
            text(one_line(run.status or "")),
        )
    stdout().print(table)


def _print_records(records: list[dict[str, Any]], as_json: bool, header: bool = True) -> None:
    if as_json:
        for record in records:
            _dump(record)
        return
    from ptc.cli.console import stdout
    from ptc.cli.records import records_table

    stdout().print(records_table(records, header))


def _moment(microseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _dump(value: object) -> None:
    import json

    # ASCII: nothing in a record can act on the terminal that it is printed to.
    sys.stdout.write(json.dumps(value, ensure_ascii=True) + "\n")
