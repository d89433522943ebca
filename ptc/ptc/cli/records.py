"""Audit records as table rows: when, what, by whom, how it ended. Everything in them is shown as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ptc.cli.console import duration, one_line, rows_left_out, stdout, text

if TYPE_CHECKING:
    from rich.table import Table

_QUIET = {"program.started": ("code",), "audit.checkpoint": ("frontier", "note", "signing_key", "digest_key")}


def print_records(
    records: list[dict[str, Any]], as_json: bool, header: bool = True, *, most: int | None = None
) -> None:
    """Records as JSON lines, or as a table; of at most so many rows, where `most` is given."""
    from ptc.cli.audit_options import dump

    if not as_json:
        out = stdout()
        if not records and header:
            out.print(text("no record fits", "dim"))
            return
        shown = records[:most]
        out.print(records_table(shown, header))
        if len(records) > len(shown):
            how = "--all shows them, --json prints them"
            out.print(text(rows_left_out(len(records), len(shown), "records", how), "dim"))
        return
    for record in records:
        dump(record)


def moment(microseconds: int) -> str:
    """A time of the log, to the second (UTC)."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def records_table(records: Iterable[dict[str, Any]], header: bool = True) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if header else None, pad_edge=False, show_header=header)
    for name in ("seq", "time (UTC)", "event", "tool", "caller", "outcome", "what"):
        fixed = name in ("seq", "time (UTC)", "event")
        table.add_column(name, overflow="fold", justify="right" if name == "seq" else "left", no_wrap=fixed)
    for record in records:
        outcome = record.get("outcome", {})
        table.add_row(
            text(str(record["seq"])),
            text(datetime.fromtimestamp(record["at"] / 1_000_000, UTC).strftime("%H:%M:%S.%f")),
            text(one_line(record["type"])),
            text(one_line(tool_name(record)), "bold"),
            text(one_line(caller(record))),
            text(_outcome(record), _style(outcome.get("status"))),
            text(one_line(what(record), 160)),
        )
    return table


def tool_name(record: dict[str, Any]) -> str:
    tool = record.get("tool", {})
    return f"{tool['namespace']}.{tool['name']}" if "namespace" in tool else str(tool.get("name", ""))


def caller(record: dict[str, Any]) -> str:
    origin = record.get("origin", {})
    if origin.get("caller") != "program":
        return str(origin.get("caller", ""))
    line = f" line {origin['line']}" if "line" in origin else ""
    return f"program {origin.get('program', '')}{line}"


def what(record: dict[str, Any]) -> str:
    """The content that the record's level shows, in one line."""
    content = record.get("content")
    if isinstance(content, dict):
        shown = [content[name] for name in ("arguments", "result", "message") if name in content]
        return " ".join(_short(value) for value in shown)
    data = record.get("data", {})
    quiet = _QUIET.get(record["type"], ())
    return " ".join(f"{name}={_short(value)}" for name, value in data.items() if name not in quiet)


def _short(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("$redacted"), str):
        return f"⟨{value['$redacted']}, {value.get('bytes', '?')} bytes⟩"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _outcome(record: dict[str, Any]) -> str:
    outcome = record.get("outcome", {})
    status = str(outcome.get("status", ""))
    code = f" ({one_line(str(outcome['code']))})" if "code" in outcome else ""
    took = f" {duration(outcome['duration_us'])}" if "duration_us" in outcome else ""
    return one_line(status) + code + took


def _style(status: object) -> str:
    return {"success": "green", "denied": "red", "failure": "red", "cancelled": "yellow"}.get(str(status), "")
