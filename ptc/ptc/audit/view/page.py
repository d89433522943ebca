"""Puts pages together: one run, or the list of runs. Self-contained, under a strict content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from ptc.audit.query import RunSummary
from ptc.audit.verification import Verification
from ptc.audit.view.markup import Markup, join, tag
from ptc.audit.view.model import CallView, ProgramView, RunView, TurnView
from ptc.audit.view.timeline import swim_lanes

_SHOWN: Final = 4000
_TALL: Final = 40
_STATUSES: Final = (
    "success",
    "empty",
    "partial",
    "failure",
    "uncertain",
    "denied",
    "cancelled",
    "indeterminate",
)


def run_page(view: RunView, verification: Verification, home: str | None = None) -> str:
    """The page of one run. `home` is a link back to the list, where there is one."""
    calls = view.calls
    denied = [call for call in calls if call.status == "denied"]
    body = [
        tag("p", tag("a", "All runs", href=home)) if home else None,
        tag("h1", f"Run {view.run}"),
        _facts(_run_facts(view, calls)),
        _banner(verification, view),
        _denials(denied, view) if denied or view.violations else None,
        _filter_form() if calls else None,
        [_turn(turn) for turn in view.turns],
        _records(view),
    ]
    return _document(f"Run {view.run}", body)


def runs_page(
    log: str, runs: Sequence[RunSummary], total: int, chosen: dict[str, str], verification: Verification
) -> str:
    """The list of runs that fit the filters, newest first. Works without the script."""
    rows = [
        tag(
            "tr",
            tag("td", tag("a", run.run, href=f"run/{quote(run.run, safe='')}")),
            tag("td", _moment(run.began_us)),
            tag("td", _duration(run.ended_us - run.began_us), class_="num"),
            tag("td", run.actor or ""),
            tag("td", run.model or ""),
            tag("td", run.programs, class_="num"),
            tag("td", run.calls, class_="num"),
            tag("td", run.denied, class_="num"),
            tag("td", run.failed, class_="num"),
            tag("td", run.status or "open"),
        )
        for run in runs
    ]
    heads = (
        "run",
        "began (UTC)",
        "took",
        "actor",
        "model",
        "programs",
        "calls",
        "denied",
        "failed",
        "status",
    )
    numbers = ("took", "programs", "calls", "denied", "failed")
    head = tag(
        "tr", [tag("th", name, scope="col", class_="num" if name in numbers else None) for name in heads]
    )
    body = [
        tag("h1", f"Runs of {log}"),
        _banner(verification, None),
        _runs_form(chosen),
        tag("p", f"{len(runs)} of {total} runs", role="status"),
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll"),
    ]
    return _document(f"Runs of {log}", body)


def message_page(title: str, message: str) -> str:
    """A page that says one thing."""
    return _document(title, [tag("h1", title), tag("p", message)])


@cache
def policy() -> str:
    """The content security policy: our style and our script by their hashes, and nothing else from anywhere."""
    style, script = (_hash(name) for name in ("style.css", "script.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none';"
        " form-action 'self'; frame-ancestors 'none'"
    )


def _document(title: str, body: list[Any]) -> str:
    # A policy in a meta element cannot name frame-ancestors; the server's header does.
    meta_policy = policy().replace("; frame-ancestors 'none'", "")
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=meta_policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        Markup(f"<style>{_asset('style.css')}</style>"),
    ]
    main = tag("main", *body, id="content")
    skip = tag("a", "Skip to content", href="#content", class_="skip")
    footer = tag(
        "footer", "Made by ptc from an audit log. Times are UTC. What is redacted is not in this page."
    )
    script = Markup(f"<script>{_asset('script.js')}</script>")
    page = tag("html", tag("head", *head), tag("body", skip, main, footer, script), lang="en")
    return f"<!doctype html>\n{page}\n"


@cache
def _asset(name: str) -> str:
    return files("ptc.audit.view").joinpath(name).read_text("utf-8")


def _hash(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()


def _run_facts(view: RunView, calls: list[CallView]) -> dict[str, object]:
    facts = view.facts
    usage = facts.get("usage")
    return {
        "actor": view.actor,
        "model": facts.get("model"),
        "programs": facts.get("programs"),
        "status": facts.get("status", "open"),
        "began": _moment(view.began_us),
        "took": _duration(view.ended_us - view.began_us),
        "calls": len(calls),
        "tokens": json.dumps(usage) if isinstance(usage, dict) and "$redacted" not in usage else None,
    }


def _facts(facts: dict[str, object]) -> Markup:
    shown = [
        tag("div", tag("dt", name), tag("dd", _value(value)))
        for name, value in facts.items()
        if value is not None and value != ""
    ]
    return tag("dl", shown, class_="facts")


def _banner(report: Verification, view: RunView | None) -> Markup:
    ids = {record["seq"] for record in view.records} if view else None
    open_calls = [call for call in report.indeterminate if ids is None or call["seq"] in ids]
    lines = [
        tag("p", tag("strong", f"Log {report.verdict}"), f": {report.records} records. {report.guarantee()}")
    ]
    if report.findings:
        found = [tag("li", f"record {f.seq}: {f.what}" if f.seq else f.what) for f in report.findings[:20]]
        lines.append(tag("ul", found))
    if open_calls:
        state = "in flight" if report.live else "indeterminate: they may or may not have run to their end"
        lines.append(tag("p", f"{len(open_calls)} calls without an end are {state}."))
    return tag("section", *lines, class_=f"banner {report.verdict}", aria_label="Verification of the log")


def _denials(denied: list[CallView], view: RunView) -> Markup:
    alike: dict[str, list[CallView]] = {}
    for call in denied:
        alike.setdefault(_json([call.tool, call.code, call.line, call.message]), []).append(call)
    items = [
        tag(
            "li",
            tag("strong", calls[0].tool),
            f" ({calls[0].code}) ",
            _caller(calls[0]),
            f", {len(calls)} times" if len(calls) > 1 else None,
            ": ",
            _value(calls[0].message),
        )
        for calls in list(alike.values())[:200]
    ]
    for record in view.violations[:200]:
        data = record["data"]
        told = data.get("rule") or data.get("status") or ""
        items.append(
            tag(
                "li",
                tag("strong", record["type"]),
                f" ({told}, {data.get('wall', 'host')}) ",
                _value(data.get("detail")),
            )
        )
    return tag("section", tag("h2", "Denied, and why"), tag("ul", items))


def _turn(turn: TurnView) -> Markup:
    title = f"Turn {turn.number}" if turn.number else "Before any request"
    return tag(
        "section",
        tag("h2", title, f" · {turn.response}" if turn.response else None),
        swim_lanes(turn),
        [_program(program) for program in turn.programs],
        [tag("h3", "Direct calls"), _calls(turn.calls)] if turn.calls else None,
    )


def _program(program: ProgramView) -> Markup:
    facts = {
        "where": program.where,
        "language": program.language,
        "calls": len(program.calls),
        "took": _duration(program.ended_us - program.began_us) if program.ended_us else None,
        "wall": program.facts.get("wall"),
        "processor": _duration(program.facts.get("cpu_us"))
        if program.facts.get("cpu_us") is not None
        else None,
        "confinement": program.facts.get("confinement"),
    }
    ends = [
        (name, program.facts[name])
        for name in ("value", "output", "result", "message")
        if program.facts.get(name) is not None
    ]
    return tag(
        "section",
        tag("h3", f"Program {program.call_id}: ", tag("span", program.status)),
        _facts(facts),
        _source(program),
        [tag("p", f"{name}: ", _value(value)) for name, value in ends],
        _calls(program.calls) if program.calls else tag("p", "It made no call."),
    )


def _source(program: ProgramView) -> Markup:
    if not isinstance(program.code, str):
        return tag("p", "source: ", _value(program.code))
    made: dict[int, list[str]] = {}
    for call in program.calls:
        if call.line is not None:
            made.setdefault(call.line, []).append(call.tool)
    rows = []
    for number, line in enumerate(program.code[:200_000].split("\n"), 1):
        names = made.get(number)
        note = None
        if names:
            first = names[0] if len(set(names)) == 1 else f"{len(set(names))} tools"
            note = tag("span", f"  ← {first}" + (f" ×{len(names)}" if len(names) > 1 else ""), class_="made")
        no = tag("span", number, class_="no")
        rows.append(tag("span", no, line, note, class_="row called" if names else "row"))
    return tag("pre", join(rows), class_="source", tabindex="0", aria_label="Program source")


def _calls(calls: list[CallView]) -> Markup:
    heads = ("record", "tool", "by", "arguments", "result", "outcome", "time")
    head = tag(
        "tr",
        [
            tag("th", name, scope="col", class_="num" if name in ("record", "time") else None)
            for name in heads
        ],
    )
    rows = [
        tag(
            "tr",
            tag("td", call.seq, class_="num"),
            tag("td", tag("strong", call.tool), _risk(call)),
            tag("td", _caller(call)),
            tag("td", _value(call.arguments)),
            tag("td", _value(call.result) if call.message is None else _value(call.message)),
            tag("td", call.status, f" ({call.code})" if call.code else None, class_=f"status-{call.status}"),
            tag("td", _duration(call.duration_us), class_="num"),
            data_status=call.status,
        )
        for call in calls
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows))
    if len(rows) <= _TALL:
        return tag("div", table, class_="scroll")
    name = f"{len(rows)} calls, a table that scrolls"
    return tag("div", table, class_="scroll tall", tabindex="0", role="region", aria_label=name)


def _caller(call: CallView) -> Markup:
    if call.program is None:
        return join(("the model",))
    return join((f"program, line {call.line}" if call.line is not None else "program",))


def _risk(call: CallView) -> Markup | None:
    told = [f"{name} {call.tool_facts[name]}" for name in ("effects", "risk") if name in call.tool_facts]
    return tag("div", ", ".join(told), class_="made") if told else None


def _records(view: RunView) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", record["seq"], class_="num"),
            tag("td", _moment(record["at"])),
            tag("td", record["type"]),
            tag("td", tag("code", _json(record.get("data", record.get("outcome", {}))))),
        )
        for record in view.records[:5000]
    ]
    heads = [tag("th", name, scope="col") for name in ("record", "time", "event", "data")]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    summary = tag("summary", f"All {len(view.records)} records of this run")
    return tag("details", summary, tag("div", table, class_="scroll"))


def _value(value: object) -> Markup:
    """Any value: JSON as code, a redaction as a chip."""
    if value is None:
        return tag("span", "–", class_="made")
    if isinstance(value, dict) and isinstance(value.get("$redacted"), str):
        return tag(
            "span",
            f"redacted: {value['$redacted']} · {value.get('bytes', '?')} bytes",
            class_="chip",
            title=str(value.get("hmac", "")) or None,
        )
    if isinstance(value, str):
        return tag("code", value if len(value) <= _SHOWN else f"{value[:_SHOWN]}… ({len(value)} characters)")
    if isinstance(value, dict) and _has_chip(value):
        members = [tag("div", tag("code", f"{name}: "), _value(item)) for name, item in value.items()]
        return join(members)
    if isinstance(value, list) and any(_has_chip(item) for item in value):
        return join([tag("div", _value(item)) for item in value[:200]])
    text = _json(value)
    if len(text) <= 300:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", text[:200] + "…")), tag("code", text[:_SHOWN]))


def _has_chip(value: object) -> bool:
    if isinstance(value, dict):
        return "$redacted" in value or any(_has_chip(item) for item in value.values())
    return isinstance(value, list) and any(_has_chip(item) for item in value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _filter_form() -> Markup:
    options = [tag("option", "any", value=""), *(tag("option", status, value=status) for status in _STATUSES)]
    return tag(
        "form",
        tag("label", "Find in calls", tag("input", type="search", name="words")),
        tag("label", "Outcome", tag("select", options, name="status")),
        tag("span", id="shown", role="status", aria_live="polite"),
        id="filter",
        class_="filters",
        hidden=True,
    )


def _runs_form(chosen: dict[str, str]) -> Markup:
    def field(name: str, label: str) -> Markup:
        return tag("label", label, tag("input", name=name, value=chosen.get(name, "")))

    statuses = ("", "completed", "refused", "incomplete", "failed", "cancelled")
    options = [
        tag("option", status or "any", value=status, selected=chosen.get("status", "") == status)
        for status in statuses
    ]
    return tag(
        "form",
        field("run", "Run id contains"),
        field("actor", "Actor"),
        field("tool", "Called tool"),
        tag("label", "Status", tag("select", options, name="status")),
        tag(
            "label", "With denials", tag("input", type="checkbox", name="denied", checked="denied" in chosen)
        ),
        tag("button", "Filter", type="submit"),
        class_="filters",
        method="get",
    )


def _moment(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _duration(microseconds: object) -> str:
    if not isinstance(microseconds, int):
        return "–"
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.2f} s"
