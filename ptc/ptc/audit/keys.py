"""The log's keys: for keyed digests, for signing checkpoints, for journals at rest. They live outside it.

A keyring keeps retired keys, so that old records can still be looked up and verified; the newest key of a
purpose is the one in use. The file is created for its owner alone and refused when others can read it.
Keys are never printed, never put into a record or an error message.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ptc.audit.errors import AuditKeyError
from ptc.audit.values import comparable
from ptc_tools.call import JsonValue
from ptc_tools.command_line import ptc_command

Purpose: TypeAlias = Literal["digest", "signing", "journal"]
_LETTER: Final[dict[Purpose, str]] = {"digest": "d", "signing": "s", "journal": "j"}
_SIZE: Final = 32


class _Hmac:
    """HMAC-SHA256 with the key's two blocks hashed once: a digest stands on the way of every call."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = secret.ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def hex(self, data: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()


@dataclass(frozen=True, slots=True)
class Key:
    """32 secret bytes under an id that is unique in its keyring. Its repr shows the id alone."""

    id: str
    purpose: Purpose
    secret: bytes = field(repr=False)
    _mac: _Hmac = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mac", _Hmac(self.secret))

    def digest(self, value: JsonValue) -> str:
        """HMAC-SHA256 over type and canonical value, as `id:hex`: equal values give equal digests."""
        return self.digest_of(comparable(value))

    def digest_of(self, data: bytes) -> str:
        """The same over bytes that are already in comparable form (`values.comparable`)."""
        return f"{self.id}:{self._mac.hex(data)}"


class Keyring:
    """All keys of one operator. Immutable but for `rotate`, which appends and saves."""

    def __init__(self, keys: tuple[Key, ...], path: Path | None = None) -> None:
        self._keys = keys
        self.path = path
        for purpose in get_args(Purpose):
            if not any(key.purpose == purpose for key in keys):
                raise AuditKeyError(
                    f"the keyring has no {purpose} key: make a new one with `{ptc_command()} audit keys new FILE`"
                )

    @classmethod
    def generate(cls) -> Keyring:
        """Fresh keys, in memory: for tests, or to be saved by the caller."""
        return cls(tuple(_new_key(purpose, ()) for purpose in get_args(Purpose)))

    @classmethod
    def default(cls) -> Keyring:
        """The keyring named by PTC_AUDIT_KEYS, else `ptc/audit-keys.json` in the user's configuration folder.

        It is made there at first use. Raises AuditKeyError where it can be neither read nor made.
        """
        return cls.open(default_path(), create=True)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Keyring:
        """Reads a keyring file; with `create`, makes it if there is none. Raises AuditKeyError."""
        file = Path(path)
        try:
            text = _read_private(file)
        except FileNotFoundError:
            if not create:
                raise AuditKeyError(
                    f"there is no keyring at {file}: name one with --keys or PTC_AUDIT_KEYS"
                ) from None
            return cls.generate().save(file)
        except OSError as error:
            raise AuditKeyError(
                f"the keyring {file} cannot be read ({error.strerror}): name another with PTC_AUDIT_KEYS"
            ) from error
        return cls(_parse(text, file), file)

    def save(self, path: str | os.PathLike[str]) -> Keyring:
        """Writes the keyring to a new file, mode 0600, whole or not at all; gives the keyring of that file.

        Of several processes that make one at once, the first wins and the others read what it made.
        """
        file = Path(path)
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_private(temporary, _to_text(self._keys))
            try:
                os.link(temporary, file)
            except FileExistsError:
                return type(self).open(file)
            finally:
                temporary.unlink()
            _sync_folder(file.parent)
        except OSError as error:
            raise AuditKeyError(
                f"the audit keys cannot be kept at {file} ({error.strerror}): set PTC_AUDIT_KEYS to a file"
                " in a folder of yours, or pass keys=Keyring.open(...)"
            ) from error
        return type(self)(self._keys, file)

    def rotate(self, purpose: Purpose) -> Key:
        """Adds a new key for a purpose and saves. Logs use it when they are opened next; older keys stay.

        Also those that others have added meanwhile: a key that is lost cannot be made again. Raises AuditKeyError.
        """
        if self.path is None:
            raise AuditKeyError("this keyring is in memory only: save it before its keys are rotated")
        try:
            with _held(self.path):
                saved = _parse(_read_private(self.path), self.path)
                known = {key.id for key in saved}
                kept = (*(key for key in self._keys if key.id not in known), *saved)
                key = _new_key(purpose, kept)
                temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
                _write_private(temporary, _to_text((*kept, key)))
                os.replace(temporary, self.path)
                self._keys = (*kept, key)
                _sync_folder(self.path.parent)
        except OSError as error:
            raise AuditKeyError(
                f"the keyring {self.path} cannot be written ({error.strerror}): its keys are as they were"
            ) from error
        return key

    def active(self, purpose: Purpose) -> Key:
        """The newest key of that purpose."""
        return next(key for key in reversed(self._keys) if key.purpose == purpose)

    def get(self, key_id: str) -> Key | None:
        return next((key for key in self._keys if key.id == key_id), None)

    def of(self, purpose: Purpose) -> Iterator[Key]:
        """Every key of that purpose, oldest first."""
        return (key for key in self._keys if key.purpose == purpose)


def default_path() -> Path:
    """Where the default keyring lives on this machine."""
    named = os.environ.get("PTC_AUDIT_KEYS")
    if named:
        return Path(named)
    configuration = os.environ.get("XDG_CONFIG_HOME")
    base = Path(configuration) if configuration else Path("~/.config").expanduser()
    return base / "ptc" / "audit-keys.json"


def _to_text(keys: tuple[Key, ...]) -> str:
    rows = [
        {"id": key.id, "purpose": key.purpose, "secret": base64.b64encode(key.secret).decode()}
        for key in keys
    ]
    return json.dumps({"version": 1, "keys": rows}, indent=1) + "\n"


def _new_key(purpose: Purpose, others: tuple[Key, ...]) -> Key:
    taken = {key.id for key in others}
    while (key_id := _LETTER[purpose] + secrets.token_hex(4)) in taken:
        continue
    return Key(key_id, purpose, secrets.token_bytes(_SIZE))


def _read_private(file: Path) -> str:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8") as stream:
        status = os.fstat(descriptor)
        if status.st_mode & 0o077:
            raise AuditKeyError(f"the keyring {file} can be read by others: chmod 600 {file}")
        return stream.read()


def _write_private(file: Path, text: str) -> None:
    """A new file, on the disk when this returns; none is left where that cannot be done."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Else a crash of the machine may bring back the file without a key that a log has used already."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _held(file: Path) -> Iterator[None]:
    """Nobody else changes the keyring meanwhile. Its file is replaced as a whole: the lock is on the one of now."""
    while True:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), os.stat(file)):
                yield
                return
        finally:
            os.close(descriptor)


def _parse(text: str, file: Path) -> tuple[Key, ...]:
    try:
        document = json.loads(text)
        if document["version"] != 1:
            raise AuditKeyError(f"the keyring {file} is of a later version: {document['version']}")
        return tuple(_parse_key(row) for row in document["keys"])
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise AuditKeyError(f"{file} is not a keyring of ours, or it is damaged") from None


def _parse_key(row: Mapping[str, str]) -> Key:
    secret = base64.b64decode(row["secret"], validate=True)
    purpose = row["purpose"]
    if len(secret) != _SIZE or purpose not in get_args(Purpose):
        raise ValueError("key")
    return Key(row["id"], purpose, secret)  # type: ignore[arg-type]  # checked in the line above
