"""Whether what a record shows of a value is what a log shows of it: the value, with marks where it was redacted.

It is told both and the digest key. Every mark is checked by its digest, so that a forged one hides nothing;
everything that is not marked must be as it was. It never looks at what is not in the record.
"""

from __future__ import annotations

import json
from typing import Final

from ptc.audit.keys import Key
from ptc.audit.values import canonical, comparable
from ptc_tools.call import JsonObject, JsonValue

_WHOLE: Final = ("level", "size", "unchecked", "unencodable")
"""Reasons for which a value as a whole is left out; its digest stands beside it in the record."""


def shows(shown: JsonValue, value: JsonValue, key: Key) -> bool:
    """Whether `shown`, out of a record, is this value as far as it is not redacted."""
    try:
        if isinstance(shown, dict) and shown.get("$redacted") in _WHOLE and "hmac" not in shown:
            return shown["$redacted"] != "level" or set(shown) == {"$redacted", "bytes"}
        return _same(shown, json.loads(canonical(value)), key)
    except (ValueError, RecursionError):
        return False


def _same(shown: JsonValue, value: JsonValue, key: Key) -> bool:
    if isinstance(shown, dict):
        if "$redacted" in shown:
            return shown.get("hmac") == key.digest(value)
        if not isinstance(value, dict):
            return False
        if "$redacted" in value:
            quoted = shown.get("$quoted")
            return len(shown) == 1 and isinstance(quoted, dict) and _members(quoted, value, key)
        return _members(shown, value, key)
    if isinstance(shown, list):
        return (
            isinstance(value, list)
            and len(shown) == len(value)
            and all(_same(*pair, key) for pair in zip(shown, value, strict=True))
        )
    return comparable(shown) == comparable(value)


def _members(shown: JsonObject, value: JsonObject, key: Key) -> bool:
    if len(shown) != len(value):
        return False
    hidden: dict[str, str] = {}
    if any(name.startswith("$redacted ") for name in shown):
        hidden = {key.digest(name): name for name in value}
    for name, item in shown.items():
        real = name if name in value else hidden.get(name.rpartition(" ")[2])
        if real is None or not _same(item, value[real], key):
            return False
    return True
