"""Takes what is personal or secret out of recorded requests and answers, so that a cassette can be shared.

It is told JSON values and texts, and finds secrets as the audit record does: by the names of members and by
their shapes. The same in gives the same out, and cleaning twice changes nothing more, so that what a client
sends back still matches. It keeps the types of values, and JSON inside texts stays JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from ptc.audit.redact import DETECTORS, is_secret

GONE: Final = "REDACTED"
_PERSONAL: Final = frozenset({"user", "safety_identifier", "authorization", "organization", "project"})
_PLACE: Final = ("type", "item_id", "output_index", "content_index", "summary_index")
_SHARED_KEYS: Final = re.compile(r"(?i:(?:AccountKey|SharedAccessKey|sig)=)[A-Za-z0-9%+/]{16,}=*")


class Cleaner:
    """`redact` is given every text after what is replaced anyway."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def value(self, value: object, name: str | None = None) -> object:
        """The value without what is personal or secret."""
        if name in _PERSONAL and value is not None:
            return GONE
        if isinstance(value, str):
            return GONE if name is not None and is_secret(name, value) else self.text(value)
        if isinstance(value, (int, float)):
            return 0 if name is not None and is_secret(name, value) else value
        if isinstance(value, list):
            named = name if name is not None and any(isinstance(entry, str) for entry in value) else None
            return [self.value(entry, named) for entry in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(entry, key) for key, entry in value.items()}
        return value

    def text(self, text: str) -> str:
        """The text without secrets; one that is JSON, as the arguments of calls are, stays JSON."""
        inner = parsed(text) if text[:1] in ("{", "[") else text
        if not isinstance(inner, str):
            cleaned = self.value(inner)
            return text if cleaned == inner else dumped(cleaned)
        text = _SHARED_KEYS.sub(GONE, text)
        for detector in DETECTORS:
            for found in detector.find(text):
                text = text.replace(found, GONE)
        return self._redact(text)

    def events(self, text: str) -> str:
        """Server-sent events without secrets, also of one that came in pieces: its first delta has all that is
        left of the text, and the others nothing."""
        lines = [_Line(line) for line in text.split("\n")]
        pieces: dict[object, list[str]] = {}
        for line in lines:
            if line.delta is not None:
                pieces.setdefault(line.place, []).append(line.delta)
        wholes = {place: "".join(deltas) for place, deltas in pieces.items()}
        cleaned = {place: self.text(whole) for place, whole in wholes.items()}
        found = {place for place, whole in wholes.items() if cleaned[place] != whole}
        return "\n".join(
            self._event(line, {"delta": cleaned.pop(line.place, "")} if line.place in found else {})
            for line in lines
        )

    def _event(self, line: _Line, more: dict[str, str]) -> str:
        if isinstance(line.told, str):
            return self.text(line.line)
        cleaned = self.value(line.told)
        return "data: " + dumped({**cleaned, **more} if isinstance(cleaned, dict) else cleaned)


class _Line:
    """One line of a stream: what it says, if that is JSON, and which text its delta is a piece of."""

    def __init__(self, line: str) -> None:
        data = line.removeprefix("data:")
        self.line = line
        self.told = parsed(data) if data != line else data
        self.delta: str | None = None
        self.place: object = None
        if isinstance(self.told, dict) and isinstance(delta := self.told.get("delta"), str):
            self.delta = delta
            self.place = tuple(str(self.told.get(name)) for name in _PLACE)


def parsed(text: str) -> object:
    """What a JSON text says, or the text itself."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def dumped(value: object, indent: int | None = None) -> str:
    """For people to read, but for a text that UTF-8 cannot write: half of a surrogate pair stays an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text
