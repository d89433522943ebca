"""The page of one run: turns, in them programs with their source, in them calls; what was denied and why."""

from __future__ import annotations

from typing import Final

from ptc.audit.verification import Verification
from ptc.audit.view.document import document
from ptc.audit.view.markup import Markup, join, tag
from ptc.audit.view.model import CallView, ProgramView, RunView, TurnView
from ptc.audit.view.parts import as_json, banner, duration, facts_list, moment, value_of
from ptc.audit.view.timeline import legend, swim_lanes

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
        facts_list(_run_facts(view, calls)),
        banner(verification, view),
        _denials(denied, view) if denied or view.violations else None,
        _filter_form() if calls else None,
        [_turn(turn) for turn in view.turns],
        _records(view),
    ]
    return document(f"Run {view.run}", body)


def _run_facts(view: RunView, calls: list[CallView]) -> dict[str, object]:
    facts = view.facts
    usage = facts.get("usage")
    return {
        "actor": view.actor,
        "model": facts.get("model"),
        "programs": facts.get("programs"),
        "status": facts.get("status", "open"),
        "began": moment(view.began_us),
        "took": duration(view.ended_us - view.began_us),
        "calls": len(calls),
        "tokens": as_json(usage) if isinstance(usage, dict) and "$redacted" not in usage else None,
    }


def _denials(denied: list[CallView], view: RunView) -> Markup:
    alike: dict[str, list[CallView]] = {}
    for call in denied:
        alike.setdefault(as_json([call.tool, call.code, call.line, call.message]), []).append(call)
    items = [
        tag(
            "li",
            tag("strong", calls[0].tool),
            f" ({calls[0].code}) ",
            _caller(calls[0]),
            f", {len(calls)} times" if len(calls) > 1 else None,
            ": ",
            value_of(calls[0].message),
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
                value_of(data.get("detail")),
            )
        )
    return tag("section", tag("h2", "Denied, and why"), tag("ul", items))


def _turn(turn: TurnView) -> Markup:
    title = f"Turn {turn.number}" if turn.number else "Before any request"
    return tag(
        "section",
        tag("h2", title, f" · {turn.response}" if turn.response else None),
        swim_lanes(turn),
        legend(turn),
        [_program(program) for program in turn.programs],
        [tag("h3", "Direct calls"), _calls(turn.calls)] if turn.calls else None,
    )


def _program(program: ProgramView) -> Markup:
    facts = {
        "where": program.where,
        "language": program.language,
        "calls": len(program.calls),
        "took": duration(program.ended_us - program.began_us) if program.ended_us else None,
        "wall": program.facts.get("wall"),
        "processor": duration(program.facts.get("cpu_us"))
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
        facts_list(facts),
        _source(program),
        [tag("p", f"{name}: ", value_of(value)) for name, value in ends],
        _calls(program.calls) if program.calls else tag("p", "It made no call."),
    )


def _source(program: ProgramView) -> Markup:
    if not isinstance(program.code, str):
        return tag("p", "source: ", value_of(program.code))
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
            tag("td", value_of(call.arguments)),
            tag("td", value_of(call.result) if call.message is None else value_of(call.message)),
            tag("td", call.status, f" ({call.code})" if call.code else None, class_=f"status-{call.status}"),
            tag("td", duration(call.duration_us), class_="num"),
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
            tag("td", moment(record["at"])),
            tag("td", record["type"]),
            tag("td", tag("code", as_json(record.get("data", record.get("outcome", {}))))),
        )
        for record in view.records[:5000]
    ]
    heads = [tag("th", name, scope="col") for name in ("record", "time", "event", "data")]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows))
    summary = tag("summary", f"All {len(view.records)} records of this run")
    return tag("details", summary, tag("div", table, class_="scroll"))


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
