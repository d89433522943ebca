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
