"""The program's text, kept for messages: which line failed, and what stood there."""

from __future__ import annotations

from types import TracebackType

PROGRAM = "<program>"
"""The file name that a program's code objects carry."""

_EXCERPT_LINES = 2


def failing_line(traceback: TracebackType | None) -> int | None:
    """The innermost line of the program on a traceback."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == PROGRAM:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def excerpt(source: str, line: int | None) -> str | None:
    """The lines around `line`, numbered and marked, at most five of 200 characters."""
    lines = source.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return None
    first, last = max(1, line - _EXCERPT_LINES), min(len(lines), line + _EXCERPT_LINES)
    return "\n".join(
        f"{'>' if number == line else ' '} {number:4} | {lines[number - 1][:200]}"
        for number in range(first, last + 1)
    )
