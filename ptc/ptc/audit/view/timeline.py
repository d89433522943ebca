"""Swim lanes as SVG: a turn's programs, under each its calls, by when they began and how long they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ptc.audit.view.markup import Markup, tag
from ptc.audit.view.model import CallView, ProgramView, TurnView

WIDTH: Final = 1000
ROW: Final = 14
_NARROWEST: Final = 3.0
_LABELS: Final = 150


def swim_lanes(turn: TurnView) -> Markup:
    """One picture for a turn. The table beside it says the same in words, so it is hidden from readers."""
    began, ended = _span(turn)
    scale = (WIDTH - _LABELS) / max(1, ended - began)
    rows: list[Markup] = []
    height = 4
    for program in turn.programs:
        height = _program_lanes(rows, program, height, began, ended, scale)
    if turn.calls:
        rows.append(_label("direct calls", height))
        height = _call_lanes(rows, turn.calls, height, began, ended, scale)
    summary = (
        f"Timeline of turn {turn.number}: {len(turn.programs)} programs; the same in words in the table below"
    )
    return tag(
        "svg",
        *rows,
        viewBox=f"0 0 {WIDTH} {height + 4}",
        class_="lanes",
        role="img",
        aria_label=summary,
        preserveAspectRatio="xMinYMin meet",
    )


def legend(turn: TurnView) -> Markup:
    """What the colours of the picture mean: of what is in it, most frequent first."""
    calls = [*turn.calls, *(call for program in turn.programs for call in program.calls)]
    counts = Counter(call.status for call in calls).most_common()
    named = [("program", "program", len(turn.programs))] if turn.programs else []
    named += [(f"call {status}", status, count) for status, count in counts]
    entries = [
        tag(
            "span",
            tag(
                "svg",
                tag("rect", width=10, height=10, class_=kind),
                viewBox="0 0 10 10",
                role="img",
                aria_label=f"colour of {name}",
            ),
            f"{name} {count}",
        )
        for kind, name, count in named
    ]
    return tag("p", entries, class_="legend")


def _program_lanes(
    rows: list[Markup], program: ProgramView, height: int, began: int, ended: int, scale: float
) -> int:
    title = f"program {program.call_id}: {program.status}"
    rows.append(_label("program", height))
    rows.append(_bar(program.began_us, program.ended_us or ended, height, began, scale, "program", title))
    return _call_lanes(rows, program.calls, height + ROW, began, ended, scale) + 4


def _call_lanes(
    rows: list[Markup], calls: Iterable[CallView], height: int, began: int, ended: int, scale: float
) -> int:
    """Calls that overlap stand under one another, others share a lane."""
    free: list[int] = []
    for call in calls:
        end = call.ended_us or ended
        lane = next((index for index, until in enumerate(free) if until <= call.began_us), len(free))
        free[lane : lane + 1] = [max(end, call.began_us + round(_NARROWEST / scale))]
        title = f"{call.tool}: {call.status}"
        rows.append(_bar(call.began_us, end, height + lane * ROW, began, scale, f"call {call.status}", title))
    return height + len(free) * ROW


def _bar(start: int, end: int, y: int, began: int, scale: float, kind: str, title: str) -> Markup:
    x = _LABELS + (start - began) * scale
    width = max(_NARROWEST, (end - start) * scale)
    x = min(x, WIDTH - width)
    box = tag("rect", x=f"{x:.1f}", y=y + 2, width=f"{width:.1f}", height=ROW - 4, rx=2, class_=kind)
    return tag("g", tag("title", title), box)


def _label(text: str, y: int) -> Markup:
    return tag("text", text, x=0, y=y + ROW - 4, class_="lane")


def _span(turn: TurnView) -> tuple[int, int]:
    calls = [*turn.calls, *(call for program in turn.programs for call in program.calls)]
    starts = [call.began_us for call in calls] + [program.began_us for program in turn.programs]
    ends = [call.ended_us or call.began_us for call in calls]
    ends += [program.ended_us or program.began_us for program in turn.programs]
    return min(starts), max([*ends, min(starts) + 1])
