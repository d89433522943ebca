"""What pages show in the same way: values with their redactions, facts, times, and the verification of the log.

Told anything out of a record; gives markup in which it is text.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from ptc.audit.verification import Verification
from ptc.audit.view.markup import Markup, join, tag
from ptc.audit.view.model import RunView

_SHOWN: Final = 4000
_MANY: Final = 200


def value_of(value: object) -> Markup:
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
        members = [tag("div", tag("code", f"{name}: "), value_of(item)) for name, item in value.items()]
        return join(members)
    if isinstance(value, list) and any(_has_chip(item) for item in value):
        more = f"… {len(value) - _MANY} more" if len(value) > _MANY else None
        return join((*(tag("div", value_of(item)) for item in value[:_MANY]), more))
    text = as_json(value)
    if len(text) <= 300:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", text[:200] + "…")), tag("code", text[:_SHOWN]))


def _has_chip(value: object) -> bool:
    if isinstance(value, dict):
        return "$redacted" in value or any(_has_chip(item) for item in value.values())
    return isinstance(value, list) and any(_has_chip(item) for item in value)


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def moment(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def duration(microseconds: object) -> str:
    if not isinstance(microseconds, int):
        return "–"
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.2f} s"


def facts_list(facts: dict[str, object]) -> Markup:
    shown = [
        tag("div", tag("dt", name), tag("dd", value_of(value)))
        for name, value in facts.items()
        if value is not None and value != ""
    ]
    return tag("dl", shown, class_="facts")


def banner(report: Verification, view: RunView | None) -> Markup:
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
