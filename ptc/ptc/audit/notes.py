"""Checkpoints as C2SP signed notes (tlog-checkpoint): origin, size, root, and an Ed25519 signature.

Any verifier of that format reads them. Signing needs the signing key; checking needs the verifier key
alone, which is public: `origin+hash+key`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ptc.audit.errors import AuditKeyError
from ptc.audit.keys import Key
from ptc_tools.command_line import ptc_command

_ED25519: Final = b"\x01"
_DASH: Final = "\u2014"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree head: the first `size` records of the log `origin` have this root."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The note's text, with its final newline."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def origin(log_id: str) -> str:
    return f"ptc-audit/{log_id}"


class Signer:
    """Signs with one Ed25519 key under the name of one log."""

    def __init__(self, name: str, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.name = name
        public = self._key.public_key().public_bytes_raw()
        self._hash = _key_hash(name, public)
        self.verifier_key = f"{name}+{self._hash.hex()}+{base64.b64encode(_ED25519 + public).decode()}"

    def sign(self, checkpoint: Checkpoint) -> str:
        """The whole signed note."""
        text = checkpoint.text()
        signature = base64.b64encode(self._hash + self._key.sign(text.encode())).decode()
        return f"{text}\n{_DASH} {self.name} {signature}\n"


def verifier_key(log_id: str, key: Key) -> str:
    """The public half of a signing key, as a verifier key for that log."""
    return Signer(origin(log_id), key.secret).verifier_key


class Verifier:
    """Checks notes against one verifier key. Raises AuditKeyError for a text that is no such key."""

    def __init__(self, verifier_key: str) -> None:
        self.text = verifier_key
        try:
            self.name, hash_text, key_text = verifier_key.strip().split("+", 2)
            blob = base64.b64decode(key_text, validate=True)
            self._hash = bytes.fromhex(hash_text)
            if blob[:1] != _ED25519 or len(blob) != 33 or self._hash != _key_hash(self.name, blob[1:]):
                raise ValueError("key")
            self._key = Ed25519PublicKey.from_public_bytes(blob[1:])
        except (ValueError, binascii.Error):
            raise AuditKeyError(
                f"a verifier key reads `name+hash+base64`, as `{ptc_command()} audit keys show` prints it"
            ) from None

    def check(self, note: str) -> Checkpoint | None:
        """The checkpoint, if the note is well formed and signed with this key; else None."""
        text, separator, signatures = note.partition("\n\n")
        checkpoint = parse(text + "\n")
        if not separator or checkpoint is None:
            return None
        for line in signatures.splitlines():
            mark, _, rest = line.partition(" ")
            name, _, encoded = rest.partition(" ")
            blob = _decode(encoded)
            if mark != _DASH or name != self.name or blob[:4] != self._hash:
                continue
            try:
                self._key.verify(blob[4:], (text + "\n").encode())
            except InvalidSignature:
                return None
            return checkpoint
        return None


def fits_key(note: str, named: str) -> bool:
    """Whether a note is signed with the verifier key that somebody names; False for a text that is no key."""
    try:
        return Verifier(named).check(note) is not None
    except AuditKeyError:
        return False


def parse(text: str) -> Checkpoint | None:
    """The body of a checkpoint note, unsigned or with its signatures cut off; None where it is none."""
    lines = text.partition("\n\n")[0].rstrip("\n").split("\n")
    if len(lines) < 3 or not lines[1].isdigit() or (len(lines[1]) > 1 and lines[1][0] == "0"):
        return None
    head = _decode(lines[2])
    if len(head) != 32:
        return None
    return Checkpoint(lines[0], int(lines[1]), head)


@lru_cache(maxsize=64)
def verifier(verifier_key: str) -> Verifier:
    return Verifier(verifier_key)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""


def _key_hash(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]
