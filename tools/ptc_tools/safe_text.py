"""What of an exception a model may see: its type and its words, without where the host keeps things."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptc_tools.schema import printable, shorten

# An absolute path of at least one directory, not the path of an address (`https://host/a/b`), and Windows'.
_PATH = re.compile(
    r"""\bfile:/+[^\s'"<>|,;()]+|(?<![\w:/.\\])(?:~?/|\\\\|[A-Za-z]:[\\/])(?:[^\s/\\:'"<>|,;()]+[\\/])+[^\s/\\:'"<>|,;()]*"""
)
_LIMIT = 400
_LOOKED_AT = 4_000


def safe_text(text: str) -> str:
    """One short line, paths replaced by `<path>`, no control characters."""
    line = next((line for line in text.strip().splitlines() if line.strip()), "")
    if "Traceback (most recent call last)" in text:
        return ""
    return shorten(printable(_PATH.sub("<path>", line.strip()[:_LOOKED_AT])), _LIMIT)


def describe_exception(error: BaseException, hide: Callable[[str], str] | None = None) -> str:
    """`ValueError: the SKU is unknown`. For an operating system's error, what went wrong but not where.

    `hide` takes out what must not be read, before the text is shortened.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a task group of one says nothing by itself
    name = shorten(type(error).__name__, 100)
    try:
        name = name if hide is None else hide(name)
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        text = str(text)
        text = safe_text(text if hide is None else hide(text))
    except Exception:  # noqa: BLE001 - a __str__ that fails must not hide the failure it was asked about
        text = ""
    return f"{name}: {text}" if text else name
