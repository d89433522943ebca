"""How the command line prints: plain where it is piped, coloured on a terminal, and never led by the text.

Texts that a model, a program or a tool wrote may hold terminal escapes, bidirectional controls or markup;
`visible` makes them harmless and keeps them readable. Nothing prints such a text without it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from ptc.audit.visible import one_line, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

__all__ = [
    "MAX_ROWS",
    "complain",
    "duration",
    "one_line",
    "rows_left_out",
    "source",
    "stderr",
    "stdout",
    "text",
    "visible",
]

PIPED_WIDTH: Final = 140
MAX_ROWS: Final = 100
"""Rows that a table shows unless everything is asked for: a thousand of them hide what stands above."""


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


def rows_left_out(total: int, shown: int, what: str, how: str) -> str:
    """The line under a table that was cut: how many more there are, and how to see them."""
    return f"… {total - shown} more of {total} {what}: {how}"


def duration(microseconds: int | None) -> str:
    """A time in the unit that reads best."""
    if microseconds is None:
        return "–"
    if microseconds < 1_000:
        return f"{microseconds} µs"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.2f} s"
