"""The journal: what a program's run depends on, and what happened to it, in order.

A program is a pure function of its code and its journal. The header pins everything else that matters
(Python minor version, architecture, policy, stubs, seed, clock); the entries are the frames that went
either way, without the program's own computation. Format: docs/journal.md. A journal that leaves the host
is sealed with a key, and a seal that does not fit is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import platform
import secrets
import sys
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from ptc_sandbox.errors import JournalError, JournalForged, ReplayIncompatible
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.outcome import Outcome, Success, Uncertain

VERSION = 1
_DEPTH = 128
"""Levels of a journal as JSON: what may cross the wire, and the journal around it."""
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_MACHINE = platform.machine()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the program was told: a result, or an error by status, code and message (and which read tells)."""

    ok: bool
    value: JsonValue

    @classmethod
    def of(cls, outcome: Outcome) -> Answer:
        if isinstance(outcome, Success):
            return cls(True, outcome.value)
        error: JsonObject = {"status": outcome.status, "code": outcome.code, "message": outcome.message}
        if isinstance(outcome, Uncertain) and outcome.reconciliation is not None:
            error["reconciliation"] = outcome.reconciliation
        return cls(False, error)


@dataclass(frozen=True, slots=True)
class CallMade:
    """The program made a call."""

    number: int
    namespace: str | None
    name: str
    arguments: JsonObject
    line: int | None = None
    kind: ClassVar[str] = "call"


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """The host answered a call, at `clock_us` microseconds after the start."""

    number: int
    answer: Answer
    clock_us: int
    kind: ClassVar[str] = "answer"


@dataclass(frozen=True, slots=True)
class CallDropped:
    """The program gave up waiting for a call that had not been answered."""

    number: int
    kind: ClassVar[str] = "drop"


@dataclass(frozen=True, slots=True)
class Ticked:
    """The host told the program the time, since a timer of its was due."""

    clock_us: int
    kind: ClassVar[str] = "tick"


Entry: TypeAlias = CallMade | CallAnswered | CallDropped | Ticked


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """What a run depends on besides its code and its entries. `epoch_us`: the program's clock at its start."""

    seed: int
    epoch_us: int
    python: str
    machine: str
    policy: str = ""
    stubs: str = ""
    code: str = ""
    clock: Literal["real", "virtual"] = "real"
    version: int = VERSION

    @classmethod
    def new(
        cls,
        *,
        seed: int | None = None,
        epoch_us: int | None = None,
        policy: str = "",
        stubs: str = "",
        code: str = "",
        clock: Literal["real", "virtual"] = "real",
    ) -> JournalHeader:
        """A header for this interpreter and machine; a random seed and the time of day unless given."""
        return cls(
            # Always 19 digits: what carries it is always as long, and so is a request that a service counts.
            seed=secrets.randbits(62) + (1 << 62) if seed is None else seed,
            epoch_us=time.time_ns() // 1000 if epoch_us is None else epoch_us,
            python=_PYTHON,
            machine=_MACHINE,
            policy=policy,
            stubs=stubs,
            code=code,
            clock=clock,
        )

    def check(self, here: JournalHeader) -> None:
        """Raise ReplayIncompatible at the first field in which a run here would differ."""
        for field in ("version", "python", "machine", "policy", "stubs", "code", "clock"):
            if getattr(self, field) != getattr(here, field):
                raise ReplayIncompatible(field, getattr(self, field), getattr(here, field))


@dataclass(frozen=True, slots=True)
class Journal:
    """A header and what followed."""

    header: JournalHeader
    entries: tuple[Entry, ...] = ()

    def to_json(self) -> JsonObject:
        return {"header": asdict(self.header), "entries": [_entry_to_json(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, value: JsonValue) -> Journal:
        """Raises JournalError for what is not a journal of a version that this code knows."""
        try:
            data: Any = value
            header = _header_from_json(data["header"])
            if header.version != VERSION:
                raise ReplayIncompatible("version", header.version, VERSION)
            return cls(header, tuple(_entry_from_json(entry) for entry in data["entries"]))
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise JournalError(f"this is not a journal: {error}") from None

    def seal(self, key: bytes) -> str:
        """The journal as a token that shows any change. It is authenticated, not secret.

        Raises JournalError for an empty key, or one that is not bytes.
        """
        _check_key(key)
        body = strict_json.canonical(self.to_json(), max_depth=_DEPTH)
        return f"j1.{_b64(body)}.{_b64(_mac(key, body))}"

    @classmethod
    def unseal(cls, token: str, key: bytes) -> Journal:
        """Raises JournalForged where the token was changed or was sealed with another key, JournalError for no key."""
        _check_key(key)
        if not isinstance(token, str):
            raise JournalForged(f"this is not a sealed journal: it is a {type(token).__name__}, not a text")
        try:
            kind, body_text, mac_text = token.split(".")
            body, mac = _unb64(body_text), _unb64(mac_text)
        except ValueError:
            raise JournalForged("this is not a sealed journal") from None
        if kind != "j1" or not hmac.compare_digest(mac, _mac(key, body)):
            raise JournalForged("the journal's seal does not fit: it was changed, or sealed with another key")
        return cls.from_json(strict_json.loads(body, max_depth=_DEPTH))


def digest(text: str | bytes) -> str:
    """The short name of a text in headers and records: SHA-256, hexadecimal."""
    return hashlib.sha256(
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    ).hexdigest()


def _check_key(key: object) -> None:
    if not isinstance(key, bytes) or not key:
        raise JournalError(
            "a journal is sealed with a key of bytes that is not empty: keep one such as secrets.token_bytes(32)"
        )


_HEADER_TYPES: dict[str, type] = {
    **dict.fromkeys(("seed", "epoch_us", "version"), int),
    **dict.fromkeys(("python", "machine", "policy", "stubs", "code", "clock"), str),
}


def _header_from_json(data: Any) -> JournalHeader:
    """Raises JournalError for a field of another type; TypeError for one that is missing or unknown."""
    header = JournalHeader(**data)
    for name, kind in _HEADER_TYPES.items():
        if type(getattr(header, name)) is not kind:
            raise JournalError(
                f"this is not a journal: its {name} is {getattr(header, name)!r:.80}, not {kind.__name__}"
            )
    if header.clock not in ("real", "virtual"):
        raise JournalError(f"this is not a journal: its clock is {header.clock!r:.80}, not real or virtual")
    return header


def _mac(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, b"ptc journal 1\0" + body, "sha256")


def _b64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _entry_to_json(entry: Entry) -> JsonValue:
    match entry:
        case CallMade(number, namespace, name, arguments, line):
            return ["call", number, namespace, name, arguments, line]
        case CallAnswered(number, answer, clock_us):
            return ["answer", number, answer.ok, answer.value, clock_us]
        case CallDropped(number):
            return ["drop", number]
        case Ticked(clock_us):
            return ["tick", clock_us]


def _entry_from_json(entry: Any) -> Entry:
    match entry:
        case [
            "call",
            int(number),
            None | str() as namespace,
            str(name),
            dict(arguments),
            None | int() as line,
        ]:
            return CallMade(number, namespace, name, arguments, line)
        case ["answer", int(number), True, value, int(clock_us)]:
            return CallAnswered(number, Answer(True, value), clock_us)
        case [
            "answer",
            int(number),
            False,
            {"status": str(), "code": str(), "message": str()} as error,
            int(clock_us),
        ]:
            return CallAnswered(number, Answer(False, error), clock_us)
        case ["drop", int(number)]:
            return CallDropped(number)
        case ["tick", int(clock_us)]:
            return Ticked(clock_us)
    raise JournalError(f"the journal has an entry that this version does not know: {str(entry)[:80]}")
