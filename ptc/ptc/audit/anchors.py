"""Where checkpoints are published, so that whoever can rewrite the log cannot rewrite what was said of it.

An anchor is told signed notes, nothing else: no record and no content reaches it. One that fails does not
stop the log; the failure is counted and the next checkpoint covers what this one did.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

_logger: Final = logging.getLogger("ptc.audit")


class Anchor(Protocol):
    """A second place. `publish` may block and may raise anything; it runs in the log's writer thread."""

    def publish(self, note: str) -> None: ...


class FileAnchor:
    """Appends notes to a file: on another disk, a network share, a write-once store.

    Notes are parted by an empty line and a form feed never occurs in them, so the file reads as text.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def publish(self, note: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, (note + "\n").encode())
            os.fsync(fd)
        finally:
            os.close(fd)


class CallbackAnchor:
    """Hands notes to a function of the application's: a ticket, a message queue, a transparency log."""

    def __init__(self, function: Callable[[str], object]) -> None:
        self._function = function

    def publish(self, note: str) -> None:
        self._function(note)


class LogAnchor:
    """Writes notes to a standard-library logger: to OpenTelemetry logs or syslog, where it is bridged."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("ptc.audit.checkpoints")

    def publish(self, note: str) -> None:
        self._logger.info("audit checkpoint\n%s", note)


def publish(anchors: tuple[Anchor, ...], note: str) -> int:
    """Publishes to all of them; the number that failed, each said once in the program's log."""
    failed = 0
    for anchor in anchors:
        try:
            anchor.publish(note)
        except Exception as error:  # noqa: BLE001  somebody else's code, and the log must go on
            failed += 1
            _logger.warning("audit anchor %s failed: %s", type(anchor).__name__, type(error).__name__)
    return failed


def read_notes(path: str | os.PathLike[str]) -> list[str]:
    """The notes of a file anchor, oldest first; what is torn at its end is left out."""
    text = Path(path).read_text("utf-8", "replace")
    return [block.strip("\n") + "\n" for block in _blocks(text)]


def _blocks(text: str) -> list[str]:
    """A note is three or more lines, an empty one, and lines that begin with a dash; then an empty line."""
    paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]
    notes: list[str] = []
    for body, signatures in zip(paragraphs[::2], paragraphs[1::2], strict=False):
        notes.append(f"{body.strip()}\n\n{signatures.strip()}\n")
    return notes
