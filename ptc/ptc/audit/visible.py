"""Makes text that somebody untrusted wrote harmless to look at, on a terminal or on a page.

Characters that act instead of showing (terminal controls, bidirectional and zero-width controls, hidden
tags) are written out. Nothing is dropped, so nothing can hide.
"""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str, limit: int | None = None) -> str:
    """The text with every character that acts instead of showing written out, and cut after `limit`."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}… ({len(text)} characters)"
    return _HIDDEN.sub(_written_out, text)


def one_line(text: str, limit: int = 200) -> str:
    """`visible`, with newlines written out as well: for a cell of a table."""
    return visible(text, limit).replace("\n", "\\n").replace("\t", " ")


def _written_out(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
