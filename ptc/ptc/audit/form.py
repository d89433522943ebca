"""Whether a parsed record has the form of one: what those who read it look for is there, and of the type they expect.

It is told whatever stood in the file. Whether a record is genuine is for `verify` to say.
"""

from __future__ import annotations

from typing import Any, Final

_LAST_US: Final = 253_402_300_799_000_000
"""The end of the year 9999: no clock of ours goes on from there."""
_CALL: Final = ("identity", "origin", "tool", "content")
_NEEDED: Final = {
    "tool.started": _CALL,
    "tool.finished": (*_CALL, "outcome"),
    "tool.denied": (*_CALL, "outcome"),
}
_PARTS: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("identity", ("actor", "call", "response", "run", "span", "tenant", "trace"), ()),
    ("origin", ("caller", "program"), ("line",)),
    ("tool", ("name", "namespace"), ()),
    ("content", ("arguments_digest", "asked_digest", "level", "result_digest"), ()),
    ("outcome", ("code", "status"), ("duration_us",)),
    ("data", (), ()),
)
"""Members that are objects, and which of theirs are texts and which are numbers, where they are there."""
_NOTHING: Final[dict[str, Any]] = {}
_ALWAYS: Final = {
    "tool.started": (("identity", "run"), ("identity", "call"), ("tool", "name")),
    "tool.finished": (
        ("identity", "run"),
        ("identity", "call"),
        ("tool", "name"),
        ("outcome", "status"),
        ("outcome", "duration_us"),
    ),
    "tool.denied": (("identity", "run"), ("identity", "call"), ("tool", "name"), ("outcome", "status")),
    "audit.checkpoint": (("data", "note"),),
    "audit.counted": (("data", "calls"),),
}


def is_formed(record: dict[str, Any]) -> bool:
    """Written out, since it runs once for every record that is read."""
    at, type_ = record.get("at"), record.get("type")
    if type(record.get("seq")) is not int or type(at) is not int or not 0 <= at <= _LAST_US:
        return False
    if (
        type(type_) is not str
        or type(record.get("log")) is not str
        or type(record.get("start", 0)) is not int
    ):
        return False
    for name, texts, numbers in _PARTS:
        part = record.get(name, _NOTHING)
        if type(part) is not dict:
            return False
        for field in texts:
            if type(part.get(field, "")) is not str:
                return False
        for field in numbers:
            if type(part.get(field, 0)) is not int:
                return False
    for name in _needed(type_):
        if name not in record:
            return False
    for member, name in _ALWAYS.get(type_, ()):
        if name not in record.get(member, _NOTHING):
            return False
    return type_ not in ("audit.counted", "audit.checkpoint") or _is_own(record["data"])


def _needed(type_: str) -> tuple[str, ...]:
    if type_.startswith("tool."):
        return _NEEDED.get(type_, ())
    return ("data",) if type_.startswith(("program.", "run.", "audit.", "sandbox.")) else ()


def _is_own(data: dict[str, Any]) -> bool:
    calls = data.get("calls", {})
    counts = isinstance(calls, dict) and all(type(count) is int for count in calls.values())
    return counts and isinstance(data.get("note", ""), str)
