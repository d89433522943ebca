"""Whether a parsed record has the form of one: what those who read it look for is there, and of the type they expect.

It is told whatever stood in the file. Whether a record is genuine is for `verify` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MEMBERS: Final = ("identity", "origin", "tool", "content", "outcome", "data")
_LAST_US: Final = 253_402_300_799_000_000
"""The end of the year 9999: no clock of ours goes on from there."""
_CALL: Final = ("identity", "origin", "tool", "content")
_NEEDED: Final = {
    "tool.started": _CALL,
    "tool.finished": (*_CALL, "outcome"),
    "tool.denied": (*_CALL, "outcome"),
}
_TEXTS: Final = {
    "identity": ("actor", "call", "response", "run", "span", "tenant", "trace"),
    "origin": ("caller", "program"),
    "tool": ("name", "namespace"),
    "content": ("arguments_digest", "asked_digest", "level", "result_digest"),
    "outcome": ("code", "status"),
}
_NUMBERS: Final = {"origin": ("line",), "outcome": ("duration_us",)}
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
    seq, at, type_ = record.get("seq"), record.get("at"), record.get("type")
    if type(seq) is not int or type(at) is not int or not isinstance(type_, str):
        return False
    if not 0 <= at <= _LAST_US or any(not isinstance(record.get(name, {}), dict) for name in _MEMBERS):
        return False
    if type(record.get("start", 0)) is not int:
        return False
    if any(name not in record for name in _needed(type_)) or not isinstance(record.get("log"), str):
        return False
    if not _fits(record, _TEXTS, str) or not _fits(record, _NUMBERS, int):
        return False
    if any(name not in record.get(member, {}) for member, name in _ALWAYS.get(type_, ())):
        return False
    return type_ not in ("audit.counted", "audit.checkpoint") or _is_own(record["data"])


def _needed(type_: str) -> tuple[str, ...]:
    if type_.startswith("tool."):
        return _NEEDED.get(type_, ())
    return ("data",) if type_.startswith(("program.", "run.", "audit.", "sandbox.")) else ()


def _fits(record: dict[str, Any], fields: Mapping[str, tuple[str, ...]], kind: type) -> bool:
    for member, names in fields.items():
        found = record.get(member)
        if found and any(name in found and type(found[name]) is not kind for name in names):
            return False
    return True


def _is_own(data: dict[str, Any]) -> bool:
    calls = data.get("calls", {})
    counts = isinstance(calls, dict) and all(type(count) is int for count in calls.values())
    return counts and isinstance(data.get("note", ""), str)
