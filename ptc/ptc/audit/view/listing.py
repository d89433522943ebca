"""The page that lists the runs of a log, with filters that work without the script."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from ptc.audit.query import RunSummary
from ptc.audit.verification import Verification
from ptc.audit.view.document import document
from ptc.audit.view.markup import Markup, tag
from ptc.audit.view.parts import banner, duration, moment


def runs_page(
    log: str, runs: Sequence[RunSummary], total: int, chosen: dict[str, str], verification: Verification
) -> str:
    """The list of runs that fit the filters, newest first. Works without the script."""
    rows = [
        tag(
            "tr",
            tag("td", tag("a", run.run, href=f"run/{quote(run.run, safe='')}")),
            tag("td", moment(run.began_us)),
            tag("td", duration(run.ended_us - run.began_us), class_="num"),
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
        banner(verification, None),
        _runs_form(chosen),
        tag("p", f"{len(runs)} of {total} runs", role="status"),
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll"),
    ]
    return document(f"Runs of {log}", body)


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
