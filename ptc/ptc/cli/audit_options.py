"""What the commands of `ptc audit` share: arguments, the keyring, times, JSON, new files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptc.audit.keys import Keyring

MOST: Final = 1_000_000_000
"""Records that a command may be asked for."""
Log = Annotated[Path, typer.Argument(metavar="LOG", help="The log: a .jsonl or .db file.")]
Everything = Annotated[bool, typer.Option("--all", help="Show every row, however many there are.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Keys = Annotated[
    Path | None, typer.Option("--keys", help="Keyring file; without it PTC_AUDIT_KEYS, or your own.")
]
TrustedKeys = Annotated[
    list[str] | None, typer.Option("--key", help="Verifier key to trust; may be given again.")
]
Anchors = Annotated[
    list[Path] | None, typer.Option("--anchor", help="File of anchored checkpoints; may be given again.")
]


def keyring(keys: Path | None) -> Keyring:
    """The keyring that was named, or the default one. Raises AuditKeyError where there is none."""
    from ptc.audit.keys import Keyring, default_path

    return Keyring.open(keys or default_path())


def verifier_for(keys: Path | None) -> Callable[[str], Sequence[str]] | None:
    """Verifier keys out of the keyring, where there is one: verifying needs none."""
    from ptc.audit.keys import default_path
    from ptc.audit.notes import verifier_key

    if keys is None and not default_path().exists():
        return None
    ring = keyring(keys)
    return lambda log: [verifier_key(log, key) for key in ring.of("signing")]


def read_anchors(files: list[Path] | None) -> list[str]:
    from ptc.audit.anchors import read_notes
    from ptc.audit.errors import RecordNotFound

    try:
        notes = [note for file in files or () for note in read_notes(file)]
    except OSError as error:
        raise RecordNotFound(f"the anchor {error.filename} cannot be read: {error.strerror}") from None
    if files and not notes:
        raise RecordNotFound(f"there is no anchored checkpoint in {', '.join(map(str, files))}")
    return notes


def time_of(text: str | None) -> int | None:
    """Microseconds for an ISO time (UTC unless it says otherwise) or a time ago such as 15m, 2h, 3d."""
    from datetime import UTC, datetime, timedelta

    from ptc.audit.errors import InvalidAuditConfig

    if text is None:
        return None
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    try:
        if text[:-1].isdecimal() and text[-1] in units:
            moment = datetime.now(UTC) - timedelta(**{units[text[-1]]: int(text[:-1])})
        else:
            moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        raise InvalidAuditConfig(
            f"{text!r} is no time: write 2026-07-01T12:00, or 15m, 2h, 3d for a time ago"
        ) from None


def create(path: Path) -> IO[str]:
    """A new file for its owner alone. Raises InvalidAuditConfig where it exists or cannot be made."""
    import os

    from ptc.audit.errors import InvalidAuditConfig

    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise InvalidAuditConfig(f"{path} exists already: name another file, or remove it first") from None
    except OSError as error:
        raise InvalidAuditConfig(f"{path} cannot be written: {error.strerror}") from None
    return os.fdopen(fd, "w", encoding="utf-8", newline="")


def dump(value: object) -> None:
    """One line of JSON, in ASCII: nothing in a record can act on the terminal that it is printed to."""
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=True) + "\n")
