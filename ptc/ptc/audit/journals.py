"""Keeps beside the log what replaying a program needs: its code, stubs and journal, encrypted.

AES-256-GCM with the keyring's journal key; log, run and program are bound to it, so that one program's
journal cannot stand for another's. The record `program.finished` holds the hash of the file. Nothing is
readable here without the key, and a file that was changed is refused.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ptc.audit.errors import AuditCorrupt, AuditKeyError, RecordNotFound
from ptc.audit.keys import Keyring
from ptc.audit.values import canonical
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

_MAGIC: Final = b"ptcj1\n"
_NONCE: Final = 12
MAX_BYTES: Final = 256 * 1024 * 1024


class Journals:
    """The folder `NAME.journals` beside a log. Writing blocks: call it off the event loop."""

    def __init__(self, log: Path, log_id: str, keys: Keyring) -> None:
        self._folder = folder_of(log)
        self._log_id = log_id
        self._keys = keys

    def keep(self, run_id: str, call_id: str, bundle: JsonValue) -> JsonObject:
        """Writes it durably; gives the link for the record: file, SHA-256, bytes, key id."""
        key = self._keys.active("journal")
        nonce = secrets.token_bytes(_NONCE)
        plain = zlib.compress(_in_order(bundle), 1)
        bound = _bound(self._log_id, run_id, call_id)
        sealed = _MAGIC + key.id.encode() + b"\n" + nonce + AESGCM(key.secret).encrypt(nonce, plain, bound)
        digest = hashlib.sha256(sealed).hexdigest()
        name = f"{digest[:32]}.journal"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        temporary = self._folder / f".{name}.{secrets.token_hex(4)}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as stream:
                stream.write(sealed)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.rename(self._folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return {"file": name, "sha256": digest, "bytes": len(sealed), "key": key.id}


def folder_of(log: Path) -> Path:
    return log.with_name(log.name + ".journals")


def read(log: Path, log_id: str, run_id: str, call_id: str, link: JsonObject, keys: Keyring) -> JsonObject:
    """The bundle that a record links to.

    Raises RecordNotFound where the file is gone, AuditCorrupt where it is not the one that was linked,
    AuditKeyError where the keyring cannot open it.
    """
    name, digest = str(link.get("file")), str(link.get("sha256"))
    if name != f"{digest[:32]}.journal":
        raise AuditCorrupt(f"the link to the journal {name!r} is not one of ours")
    try:
        sealed = (folder_of(log) / name).read_bytes()
    except OSError as error:
        raise RecordNotFound(f"the journal {name} is not beside the log ({error.strerror})") from None
    if hashlib.sha256(sealed).hexdigest() != digest or not sealed.startswith(_MAGIC):
        raise AuditCorrupt(f"the journal {name} is not the one that the log links to: it was changed")
    key_id, _, rest = sealed[len(_MAGIC) :].partition(b"\n")
    key = keys.get(key_id.decode("ascii", "replace"))
    if key is None or key.purpose != "journal":
        raise AuditKeyError(
            f"the keyring has no key {key_id.decode('ascii', 'replace')!r} to open the journal"
        )
    try:
        plain = AESGCM(key.secret).decrypt(rest[:_NONCE], rest[_NONCE:], _bound(log_id, run_id, call_id))
    except InvalidTag:
        raise AuditCorrupt(f"the journal {name} belongs to another program, or was changed") from None
    inflate = zlib.decompressobj()
    text = inflate.decompress(plain, MAX_BYTES)
    if inflate.unconsumed_tail:
        raise AuditCorrupt(f"the journal {name} is larger than {MAX_BYTES} bytes")
    bundle = strict_json.loads(text, max_depth=200)
    assert isinstance(bundle, dict)
    return bundle


def _in_order(bundle: JsonValue) -> bytes:
    """With members in their order: a program that prints a result prints them in it."""
    try:
        return strict_json.dumps(bundle, max_depth=200).encode()
    except InvalidJson:
        return canonical(bundle)  # lone surrogates, which only the canonical form writes out


def _bound(log_id: str, run_id: str, call_id: str) -> bytes:
    return canonical([log_id, run_id, call_id])
