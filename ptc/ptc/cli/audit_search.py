"""`ptc audit query`, `hash`, `export` and `stats`: finding records, and adding them up."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ptc.cli.audit_options import MOST, AsJson, Everything, Keys, Log, dump

if TYPE_CHECKING:
    from ptc.audit.query import Filter
    from ptc.audit.stats import Stats
    from ptc_tools.call import JsonValue

_DIGEST: Final = re.compile(r"[A-Za-z0-9_-]+:[0-9a-f]{64}")
Run = Annotated[str | None, typer.Option("--run", help="Run id.")]
Tool = Annotated[str | None, typer.Option("--tool", help="Qualified tool name, or a pattern as 'billing.*'.")]
Caller = Annotated[str | None, typer.Option("--caller", help="direct or programmatic.")]
Status = Annotated[str | None, typer.Option("--status", help="success, failure, denied, cancelled …")]
Type = Annotated[str | None, typer.Option("--type", help="Event type, or a pattern as 'tool.*'.")]
Arguments = Annotated[
    str | None,
    typer.Option("--arguments", help="Arguments as JSON, found by their keyed digest; or the digest."),
]
Since = Annotated[str | None, typer.Option("--since", help="ISO time (UTC), or as 15m, 2h, 3d ago.")]
Until = Annotated[str | None, typer.Option("--until", help="The same.")]


def query(
    log: Log,
    run: Run = None,
    tool: Tool = None,
    caller: Caller = None,
    status: Status = None,
    type: Type = None,
    arguments: Arguments = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="At most so many records.")] = 1000,
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Find records. Every condition given must hold.

    Use it to answer a question over all runs: which calls were denied, who called a tool with these arguments.

    \b
    Examples:
      ptc audit query audit.db --status denied --since 2h
      ptc audit query audit.db --tool 'billing.*' --caller programmatic
      ptc audit query audit.db --tool get_order --arguments '{"order_id": "A-1"}'
    """
    from itertools import islice

    from ptc.audit.query import select
    from ptc.cli.records import print_records

    found: list[dict[str, Any]] = []
    for wanted in _filters(run, tool, caller, status, type, arguments, since, until, keys):
        found += islice(select(log, wanted), limit + 1)
    print_records(sorted(found, key=lambda record: record["seq"])[:limit], as_json)
    if len(found) > limit:
        sys.stderr.write(f"… there are more than {limit} records: --limit shows as many as you say\n")


def hash_value(
    value: Annotated[str, typer.Argument(help="A value: JSON, or a plain text.")],
    log: Annotated[Path | None, typer.Option("--log", help="Show the records in which it occurs.")] = None,
    keys: Keys = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Print the keyed digests of a value, as redactions and digests in a log show them.

    Use it to find where a value occurs that the log does not show, such as a customer's number.

    \b
    Examples:
      ptc audit hash alice@example.com --log audit.db
      ptc audit hash '{"sku": "sku_123"}'
    """
    digests = [digest for _, digest in _digests(value, keys)]
    if log is None:
        if as_json:
            dump([{"as": kind, "digest": digest} for kind, digest in _digests(value, keys)])
        else:
            for kind, digest in _digests(value, keys):
                typer.echo(f"{digest}  ({kind})")
        return
    from ptc.audit.reader import Line, lines, parse
    from ptc.cli.console import MAX_ROWS
    from ptc.cli.records import print_records

    needles = [digest.encode() for digest in digests]
    whole = (line for line in lines(log) if isinstance(line, Line) and not line.torn)
    found = [parse(line) for line in whole if any(n in line.data for n in needles)]
    print_records(found, as_json, most=None if everything else MAX_ROWS)
    if not found:
        _check_keys(log, keys)
        sys.stderr.write(
            "no digest in the log is of this value. Digests are of whole arguments, results and redacted values;"
            " what the log shows as it is has none of its own\n"
        )


def export(
    log: Log,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A new file; standard output else.")
    ] = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="One row for each record instead of JSON lines.")
    ] = False,
    run: Run = None,
    tool: Tool = None,
    caller: Caller = None,
    status: Status = None,
    type: Type = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """Write records as JSON lines or CSV, redacted as they are in the log.

    Use it to hand records to another tool: a SIEM, a spreadsheet, a script.

    \b
    Examples:
      ptc audit export audit.db -o audit-copy.jsonl
      ptc audit export audit.db --csv --since 1d -o calls.csv
    """
    from ptc.audit.query import select
    from ptc.cli.audit_options import create

    (wanted,) = _filters(run, tool, caller, status, type, None, since, until, None)
    records = select(log, wanted)
    stream = create(output) if output is not None else sys.stdout
    try:
        if csv:
            _write_csv(stream, records)
        else:
            import json

            for record in records:
                stream.write(json.dumps(record, ensure_ascii=True, separators=(",", ":")) + "\n")
    finally:
        if output is not None:
            stream.close()


def stats(log: Log, as_json: AsJson = False) -> None:
    """Add a log up: calls by tool, how they ended, how long they took, and when.

    Use it to see at a glance which tools are slow, failing or called more than you thought.

    \b
    Example:
      ptc audit stats audit.db
    """
    from ptc.audit.reader import records
    from ptc.audit.stats import stats as add_up

    sums = add_up(records(log))
    if as_json:
        dump(sums.to_json())
    else:
        _print_stats(sums)


def _print_stats(sums: Stats) -> None:
    from rich import box
    from rich.table import Table

    from ptc.cli.console import duration, one_line, stdout, text

    out = stdout()
    out.print(text(f"{sums.records} records, {len(sums.runs)} runs, {sums.programs} programs"))
    if sums.uncounted:
        told = ", ".join(f"{name} {count}" for name, count in sorted(sums.uncounted.items()))
        out.print(text(f"calls of level none, only counted: {told}"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("tool", "calls", "", "success", "failure", "denied", "cancelled", "p50", "p99"):
        table.add_column(name, justify="left" if name in ("tool", "") else "right")
    most = max((tool.calls for tool in sums.tools.values()), default=1)
    for tool in sums.by_calls():
        table.add_row(
            text(one_line(tool.tool), "bold"),
            text(str(tool.calls)),
            text("█" * max(1, round(24 * tool.calls / max(1, most))), "cyan"),
            *(text(str(tool.ended[name])) for name in ("success", "failure", "denied", "cancelled")),
            text(duration(tool.quantile(0.5))),
            text(duration(tool.quantile(0.99))),
        )
    out.print(table)
    _print_plot(sums)


def _print_plot(sums: Stats) -> None:
    from ptc.cli.console import stdout, text
    from ptc.cli.records import moment

    counts = sums.histogram(72)
    if not counts:
        return
    height, top = 6, max(counts)
    out = stdout()
    out.print(text(f"calls over time, at most {top} in a column"))
    blocks = " ▁▂▃▄▅▆▇█"
    for row in range(height - 1, -1, -1):
        filled = [max(0, min(8, round((count / top * height - row) * 8))) for count in counts]
        out.print(text("  " + "".join(blocks[level] for level in filled), "cyan"))
    first, last = moment(min(sums.moments_us)), moment(max(sums.moments_us))
    out.print(text(f"  {first}{last:>{72 - len(first)}}", "dim"))


def _filters(
    run: str | None,
    tool: str | None,
    caller: str | None,
    status: str | None,
    type: str | None,
    arguments: str | None,
    since: str | None,
    until: str | None,
    keys: Path | None,
) -> list[Filter]:
    """One filter, or one for each key that the arguments may have been digested with."""
    from ptc.audit.errors import InvalidAuditConfig
    from ptc.audit.query import Filter
    from ptc.cli.audit_options import time_of

    if caller == "program":  # as records call it
        caller = "programmatic"
    if caller not in (None, "direct", "programmatic"):
        raise InvalidAuditConfig(f"a caller is direct or programmatic, not {caller!r}")
    digests: list[str | None] = [None]
    if arguments is not None:
        found = [digest for kind, digest in _digests(arguments, keys) if kind != "text"]
        if not found and not _DIGEST.fullmatch(arguments):
            raise InvalidAuditConfig(
                f"--arguments takes the arguments as JSON, or their digest (KEY:HEX, as records show it);"
                f" {arguments!r:.80} is neither"
            )
        digests = list(found) or [arguments]
    return [
        Filter(
            run=run,
            tool=tool,
            caller=caller,
            status=status,
            type=type,
            arguments=digest,
            since_us=time_of(since),
            until_us=time_of(until),
        )
        for digest in digests
    ]


def _digests(value: str, keys: Path | None) -> list[tuple[str, str]]:
    """(kind, digest) with every digest key, of the text itself and of the JSON that it may be."""
    from ptc.cli.audit_options import keyring
    from ptc_tools.errors import InvalidJson
    from ptc_tools.strict_json import loads

    ring = keyring(keys)
    found = [("text", key.digest(value)) for key in ring.of("digest")]
    try:
        parsed = loads(value)
    except InvalidJson:
        return found
    for value_of in (parsed, _whole(parsed)):
        found[:0] = [("JSON", key.digest(value_of)) for key in ring.of("digest")]
    return list(dict.fromkeys(found))


def _check_keys(log: Path, keys: Path | None) -> None:
    """Raises AuditKeyError where the log has digests by keys that the keyring does not hold."""
    from ptc.audit.errors import AuditKeyError
    from ptc.audit.query import Filter, select
    from ptc.cli.audit_options import keyring

    opened = select(log, Filter(type="audit.opened"))
    used = {str(record["data"].get("digest_key")) for record in opened}
    missing = sorted(used - {key.id for key in keyring(keys).of("digest")})
    if missing:
        raise AuditKeyError(
            f"no digest that this keyring can make is in the log, which was written with {', '.join(missing)!s:.200}"
            " too: the keyring does not have that digest key, so the value may be there all the same"
        )


def _whole(value: JsonValue) -> JsonValue:
    """With 7.0 as 7, which it was validated to where a tool wants an integer."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _write_csv(stream: Any, records: Any) -> None:
    import csv

    from ptc.audit.query import caller_of, status_of, tool_of
    from ptc.cli.records import what

    writer = csv.writer(stream)
    writer.writerow(
        ["seq", "at_us", "type", "run", "call", "tool", "caller", "status", "code", "duration_us", "what"]
    )
    for record in records:
        identity, outcome = record.get("identity", {}), record.get("outcome", {})
        cells = [
            record["seq"],
            record["at"],
            record["type"],
            identity.get("run"),
            identity.get("call"),
            tool_of(record),
            caller_of(record),
            status_of(record),
            outcome.get("code"),
            outcome.get("duration_us"),
            what(record),
        ]
        writer.writerow([_harmless(cell) for cell in cells])


def _harmless(cell: object) -> object:
    """Spreadsheets run what begins like a formula: such a text gets a quote in front."""
    from ptc.cli.console import one_line

    if not isinstance(cell, str):
        return cell
    shown = one_line(cell, 30_000)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown
