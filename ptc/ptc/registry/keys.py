"""Who may use a registry: keys in a file, one a line, kept as hashes alone.

    publisher  records-team   sha256:9f86d0…   records,records-*
    consumer   assistant      sha256:60303a…   *

A publisher registers and serves toolsets, a consumer reads and calls them; the last column says which, `*` is
all of them. Nothing here logs or stores a key as it was given.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, get_args

from ptc.errors import ConfigurationError

Role: TypeAlias = Literal["publisher", "consumer"]
PREFIX: Final = "ptcreg_"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PATTERN = re.compile(r"[A-Za-z0-9_*?-]{1,64}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Key:
    """One line of the file. `toolsets` are names or patterns."""

    role: Role
    name: str
    hash: str
    toolsets: tuple[str, ...] = ("*",)

    def covers(self, toolset: str) -> bool:
        """Whether the key is for a toolset of this name."""
        return any(fnmatchcase(toolset, pattern) for pattern in self.toolsets)

    def line(self) -> str:
        """The line of the file."""
        return f"{self.role} {self.name} {self.hash} {','.join(self.toolsets)}"


def new_key(role: Role, name: str, toolsets: Iterable[str] = ("*",)) -> tuple[str, Key]:
    """A fresh key, which is shown once, and its line. Raises ConfigurationError for a name that is none."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, _key([role, name, hash_of(text), ",".join(toolsets)], "the new key")


def hash_of(text: str) -> str:
    """What the file has of a key: keys are random, so a plain hash gives nothing away."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Keys:
    """The keys of a registry; with a file, as it is at each request, so that a removed line works at once."""

    def __init__(self, keys: Iterable[Key] = (), *, path: Path | None = None) -> None:
        self._keys = tuple(keys)
        self._path = path
        self._seen: tuple[int, int] | None = None
        if path is not None:
            self._read(path)

    @classmethod
    def read(cls, path: str | Path) -> Keys:
        """The keys of a file. Raises ConfigurationError, with the line, for what is none."""
        return cls(path=Path(path))

    def of(self, text: str, role: Role | None = None) -> Key | None:
        """The key that was given, or None. The time that this takes does not depend on how much of it fits."""
        if self._path is not None:
            self._read(self._path)
        given, found = hash_of(text), None
        for key in self._keys:
            if hmac.compare_digest(key.hash, given) and role in (None, key.role):
                found = key
        return found

    def _read(self, path: Path) -> None:
        try:
            status = path.stat()
            seen = (status.st_mtime_ns, status.st_size)
            if seen == self._seen:
                return
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"the keys of the registry cannot be read from {path}: {error}"
            ) from None
        self._keys = tuple(
            _key(line.split(), f"{path}:{number}")
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        )
        self._seen = seen


def _key(fields: list[str], where: str) -> Key:
    if len(fields) not in (3, 4):
        raise ConfigurationError(f"{where}: a key is `publisher|consumer name sha256:… [toolset,…]`")
    role, name, digest = fields[:3]
    toolsets = tuple(fields[3].split(",")) if len(fields) == 4 else ("*",)
    if role not in get_args(Role):
        raise ConfigurationError(f"{where}: {role!r} is no role; it is publisher or consumer")
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{where}: a key's name is 1 to 64 letters, digits, dots, dashes and underscores"
        )
    if not _HASH.fullmatch(digest):
        raise ConfigurationError(
            f"{where}: a key is kept as sha256: and 64 hexadecimal digits; `ptc registry key`"
        )
    if not all(_PATTERN.fullmatch(pattern) for pattern in toolsets):
        raise ConfigurationError(
            f"{where}: toolsets are names or patterns such as records-*, separated by commas"
        )
    return Key(cast("Role", role), name, digest, toolsets)
