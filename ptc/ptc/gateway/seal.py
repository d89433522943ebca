"""The peer's own signature: on a program's fingerprint, on reasoning content, and on the ids it mints.

A sealed text is readable and cannot be altered or made up by whoever holds it. The key comes from
`PTC_STATE_KEY` or from a file of mode 0600 in the state directory; it is never sent, logged or printed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, PtcError

_MAGIC = "ptc1"
_KEY_FILE = "state.key"
_MIN_KEY_CHARACTERS = 16


class StateKeyError(PtcError):
    """The key of the peer's state cannot be read, or is not safe to use. The text says what to do."""

    code = "state_key_error"


class SealError(Exception):
    """A text that the holder of this key did not seal as it is now."""


class MalformedSeal(SealError):
    """Not a sealed text at all."""


class ForeignSeal(SealError):
    """Sealed with another key: by another peer, or for another deployment."""


class BrokenSeal(SealError):
    """Sealed with this key and altered since, or sealed for another purpose."""


class Seal:
    """Seals JSON values with one key. `purpose` keeps a text sealed for one use from serving another."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._key_id = hashlib.sha256(b"ptc key id\0" + key).hexdigest()[:12]

    def seal(self, purpose: str, value: JsonObject) -> str:
        payload = _encode(strict_json.canonical(value))
        return f"{_MAGIC}.{self._key_id}.{payload}.{self.mac(purpose, payload.encode())}"

    def open(self, purpose: str, text: str) -> JsonObject:
        """The sealed value; raises `MalformedSeal`, `ForeignSeal` or `BrokenSeal`."""
        parts = text.split(".")
        if len(parts) != 4 or parts[0] != _MAGIC:
            raise MalformedSeal("not a sealed text")
        _, key_id, payload, mac = parts
        if not hmac.compare_digest(key_id.encode(), self._key_id.encode()):
            raise ForeignSeal("sealed with another key")
        if not hmac.compare_digest(mac.encode(), self.mac(purpose, payload.encode()).encode()):
            raise BrokenSeal("altered since it was sealed")
        value = _decode(payload)
        if not isinstance(value, dict):
            raise MalformedSeal("not an object")
        return value

    def mac(self, purpose: str, data: bytes) -> str:
        return hmac.new(self._key, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()


def load_key(state_dir: Path, environ: Mapping[str, str] = os.environ) -> bytes:
    """The key of `PTC_STATE_KEY`, or the one of the state directory, made at the first use.

    Raises `StateKeyError` for a key that is too short, or a file that others may read or own.
    """
    given = environ.get("PTC_STATE_KEY")
    if given is not None:
        if len(given) < _MIN_KEY_CHARACTERS:
            raise StateKeyError(
                f"PTC_STATE_KEY is shorter than {_MIN_KEY_CHARACTERS} characters; make one with "
                "`python3 -c 'import secrets; print(secrets.token_hex(32))'`"
            )
        return hashlib.sha256(b"ptc state key\0" + given.encode()).digest()
    path = state_dir / _KEY_FILE
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        _create(path)
    return _read(path)


def _create(path: Path) -> None:
    """Write a new key so that a reader sees all of it or no file; of two writers the first one wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(32).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise StateKeyError(f"cannot read the state key {path}: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise StateKeyError(f"{path} must belong to this user with mode 0600; fix it or remove the file")
        text = file.read(4096).strip()
    if len(text) < _MIN_KEY_CHARACTERS:
        raise StateKeyError(f"{path} holds no key; remove the file and a new one is made")
    return hashlib.sha256(b"ptc state key\0" + text).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(payload: str) -> JsonValue:
    try:
        return strict_json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, InvalidJson, ValueError) as error:
        raise MalformedSeal("not a sealed text") from error
