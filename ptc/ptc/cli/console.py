"""How the command line prints: plain where it is piped, coloured on a terminal, and never led by the text.

Texts that a model, a program or a tool wrote may hold terminal escapes, bidirectional controls or markup;
`visible` makes them harmless and keeps them readable. Nothing prints such a text without it.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

# C0 and C1 controls but tab and newline; bidirectional and zero-width controls; line separators; tag
# characters, which hide text from readers; surrogates, which no terminal can be sent.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)

PIPED_WIDTH: Final = 140


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


def stdout() -> Console:
    """Standard output. Markup, emoji codes and automatic highlighting are off: text is text."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, width=_width(sys.stdout))


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False, width=_width(sys.stderr))


def _width(stream: TextIO) -> int | None:
    """The terminal's; where the output is piped, enough that nothing folds too soon."""
    return None if stream.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH


def text(content: str, style: str = "", limit: int | None = None) -> Text:
    """One untrusted text for rich."""
    from rich.text import Text

    return Text(visible(content, limit), style=style)


def source(code: str, language: str, marks: set[int] | None = None) -> Syntax:
    """A program, numbered and highlighted; `marks` are lines to stand out."""
    from rich.syntax import Syntax

    return Syntax(
        visible(code, 50_000),
        language,
        line_numbers=True,
        word_wrap=True,
        theme="ansi_dark",
        background_color="default",
        highlight_lines=marks,
    )


def complain(message: str) -> None:
    """One line on standard error: what was wrong and what to do."""
    sys.stderr.write(f"ptc: {visible(message)}\n")
    sys.stderr.flush()


def duration(microseconds: int | None) -> str:
    """A time in the unit that reads best."""
    if microseconds is None:
        return "–"
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.2f} s"
