"""Takes secrets out of what the log shows: by schema, by path, by detectors.

Told a JSON value and, where there is one, its schema, it gives a copy in which each secret is replaced by
`{"$redacted": reason, "bytes": n, "hmac": …}`. The HMAC is keyed, so that equal values can be matched by
whoever holds the key and by nobody else. It never changes the value it is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ptc.audit.errors import InvalidAuditConfig
from ptc.audit.keys import Key
from ptc.audit.sensitive import NOTHING, Sensitivity
from ptc.audit.values import Unencodable, canonical, comparable
from ptc_tools.call import JsonObject, JsonValue

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

MAX_SCANNED: Final = 1_000_000
"""Characters of one text that detectors look through; a longer text is redacted whole, as `size`."""


class Sensitive:
    """Marks a type as secret in tool signatures: `token: Annotated[str, Sensitive]`.

    It puts `"x-sensitive": true` into the JSON schema, which raw definitions may write themselves.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "x-sensitive": True}


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind of secret inside texts: what the pattern matches; a `card_number` is checked further."""

    name: str
    pattern: re.Pattern[str]

    def find(self, text: str) -> list[str]:
        if self.name == "card_number":
            if _ENOUGH_DIGITS.search(text) is None:  # nearly every text: all the rest is dear beside this
                return []
            text = _UUID.sub("x", text.translate(_PLAIN_SPACES))
            dotted = [run.group() for run in _DOTTED.finditer(text) if _is_card(run.group())]
            return dotted + [card for run in self.pattern.finditer(text) for card in _cards(run.group())]
        return [match.group() for match in self.pattern.finditer(text)]


def _cards(run: str) -> list[str]:
    """Card numbers in digits that single spaces or hyphens group: the whole run, else groups next to another."""
    if _is_card(run):
        return [run]
    groups = [match.span() for match in re.finditer(r"\d+", run)]
    cards: list[str] = []
    end = 0
    for first, (start, _) in enumerate(groups):
        digits, found = 0, end
        for begin, stop in groups[first : first + 7]:
            digits += stop - begin
            if start < end or digits > 19:
                break
            if digits >= 13 and _is_card(run[start:stop]):
                found = stop  # the longest: what comes after a number may fit as well, and is hidden with it
        if found > end:
            cards.append(run[start:found])
            end = found
    return cards


def _is_card(text: str) -> bool:
    """Luhn, the length, and a first digit that issuers have: a time in micro- or milliseconds begins with 1."""
    digits = [int(character) for character in text if character.isdigit()]
    if not 13 <= len(digits) <= 19 or digits[0] == 0 or (digits[0] == 1 and len(digits) != 15):
        return False
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


# Digits that stand alone. Inside a word, a decimal, a hash or a UUID they are part of something else: one in
# two hundred SHA-256 digests holds digits that would pass for a card.
_DIGITS: Final = r"(?<![^\W_])(?<!\d\.)\d++(?![^\W_])(?!\.\d)"
_ENOUGH_DIGITS: Final = re.compile(r"\d(?:[ .\u00a0\u2007\u2009\u202f-]?\d){12}")
_PLAIN_SPACES: Final = dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), " ")
_DOTTED: Final = re.compile(r"(?<![\w.])(?:\d{4}(?:\.\d{4}){3}|\d{4}\.\d{6}\.\d{5})(?![\w]|\.\d)")
_UUID: Final = re.compile(r"(?<![^\W_])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![^\W_])")


_PATTERNS: Final = {
    "private_key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    "api_key": r"(?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{30,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-Ag[A-Za-z0-9_-]{16,}|\bwhsec_[A-Za-z0-9+/=_-]{16,}",
    "token": r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}"
    r"|\b[Bb]earer\s+[A-Za-z0-9._~+/=-]{16,}|\bya29\.[A-Za-z0-9_-]{20,}"
    r"|(?i:\bauthorization[\"']?\s*[:=]\s*[\"']?basic\s+[A-Za-z0-9+/_-]{4,}=*)"
    r"|\b[Bb]asic\s+[A-Za-z0-9+/]{6,}={1,2}(?![A-Za-z0-9=])"
    r"|[?&;](?:sig|X-Amz-Signature)=[A-Za-z0-9%+/_-]{16,}",
    "credential": r"(?i:(?<![A-Za-z0-9])(?:password|passwd|pwd|passphrase|secret|api[_-]?key|account[_-]?key"
    r"|(?:secret[_-]?)?access[_-]?key|(?:secret|signing|encryption)[_-]?key|(?:auth|access|refresh)[_-]?token"
    r"|client[_-]?secret)(?![A-Za-z0-9_])[\"']?\s*[:=]\s*[\"']?[^\s\"',;&]{4,})"
    r"|\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@]{1,256}:[^\s/@]{1,256}@",
    "card_number": rf"{_DIGITS}(?:[ -]{_DIGITS})*",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+",
}
DETECTORS: Final = tuple(Detector(name, re.compile(pattern)) for name, pattern in _PATTERNS.items())
"""Keys and tokens by their well-known shapes, credentials in texts, card numbers (Luhn), e-mail addresses."""

_NAMES: Final = re.compile(
    r"(?i)(?:^|[_\-. ])(?:pass(?:words?|wd|phrases?)?|pwd|secrets?|token|api[_-]?keys?|private[_-]?keys?"
    r"|(?:secret|access|account|signing|encryption|master)[_-]?keys?|connection[_-]?strings?|credentials?"
    r"|authorization|bearer|jwt|otp|cookies?|ssn|cvv|cvc|iban)$"
)
_TOKENS: Final = re.compile(
    r"(?i)^(?:.*[_\-. ])?(?:access|api|auth|bearer|csrf|id|refresh|session)[_\-. ]?tokens$|^tokens$"
)
"""Several tokens are secrets where they are texts; a model's tokens are counted, and are nobody's secret."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Redaction:
    """How secrets are found, besides the schema's own marks.

    `paths` are dotted patterns from the root of arguments or result, `*` for one step and `**` for any
    number: `customer.ssn`, `rows.*.iban`, `**.password`. `names` also redacts members that are called like
    a secret (`api_key`, `password`, `…_token`). Both apply to arguments, results and event fields alike.
    """

    paths: tuple[str, ...] = ()
    detectors: tuple[Detector, ...] = DETECTORS
    names: bool = True

    def __post_init__(self) -> None:
        for path in self.paths:
            if not path or any(not step for step in path.split(".")):
                raise InvalidAuditConfig(
                    f"a redaction path is dotted steps such as 'customer.ssn', not {path!r}"
                )


class Redactor:
    """Applies a `Redaction` with one key."""

    def __init__(self, redaction: Redaction, key: Key) -> None:
        self._detectors = redaction.detectors
        self._names = redaction.names
        self._paths = tuple(_steps(path) for path in redaction.paths)
        self._key = key

    def shown(self, value: JsonValue, sensitivity: Sensitivity = NOTHING) -> JsonValue:
        """The value as the log may show it. Raises Unencodable for what is not JSON."""
        try:
            return self._walk(value, sensitivity, self._paths)
        except RecursionError:
            raise Unencodable("nested too deeply") from None

    def mark(self, value: JsonValue, reason: str) -> JsonObject:
        """What stands where the value stood."""
        return {
            "$redacted": reason,
            "bytes": len(canonical(value)),
            "hmac": self._key.digest_of(comparable(value)),
        }

    def _walk(
        self, value: JsonValue, sensitivity: Sensitivity, paths: Sequence[tuple[str, ...]]
    ) -> JsonValue:
        if sensitivity.whole:
            return self.mark(value, "schema")
        if paths and any(_is_end(path) for path in paths):
            return self.mark(value, "path")
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._members(value, sensitivity, paths)
        if isinstance(value, (list, tuple)):
            return [
                self._walk(item, sensitivity.item(index), _step(paths, str(index)))
                for index, item in enumerate(value)
            ]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) >= 10**12:
            found = self._found(str(int(value)) if value == value // 1 else str(value))
            return self.mark(value, f"detector:{found[0][0]}") if found else value
        return value

    def _members(
        self, value: Mapping[str, JsonValue], sensitivity: Sensitivity, paths: Sequence[tuple[str, ...]]
    ) -> JsonValue:
        members: JsonObject = {}
        for name, item in value.items():
            shown_name = self.name(name)
            if self._names and is_secret(_CAMEL.sub("_", name), item):
                members[shown_name] = self.mark(item, "name")
            else:
                members[shown_name] = self._walk(item, sensitivity.member(name), _step(paths, name))
        if "$redacted" in value:
            # A tool's own object must not pass for a redaction of ours: it is shown one level down.
            return {"$quoted": members}
        return members

    def _text(self, text: str) -> JsonValue:
        if len(text) > MAX_SCANNED:
            return self.mark(text, "size")
        found = self._found(text)
        if not found:
            return text
        shown = self.mark(text, f"detector:{found[0][0]}")
        if found[0][1] != text:
            shown["found"] = [
                {"detector": name, "hmac": self._key.digest(match)} for name, match in found[:20]
            ]
        return shown

    def name(self, name: str) -> str:
        """A name that somebody untrusted made up, or what stands in its place where a secret is in it."""
        found = self._found(name[:MAX_SCANNED])
        return (
            f"$redacted {found[0][0]} {self._key.digest(name)}" if found or len(name) > MAX_SCANNED else name
        )

    def _found(self, text: str) -> list[tuple[str, str]]:
        return [(detector.name, match) for detector in self._detectors for match in detector.find(text)]


def is_secret(name: str, value: JsonValue) -> bool:
    """Whether a member is called like a secret, and holds what can be one."""
    if isinstance(value, bool) or value in (None, ""):
        return False
    return _NAMES.search(name) is not None or (_TOKENS.search(name) is not None and _has_text(value))


def _has_text(value: JsonValue) -> bool:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, str) or any(isinstance(item, str) for item in inside)


def hides(text: str) -> bool:
    """Whether a detector finds a secret in a text."""
    return len(text) > MAX_SCANNED or any(detector.find(text) for detector in DETECTORS)


def _steps(path: str) -> tuple[str, ...]:
    """The steps of a path pattern; `**` behind `**` says nothing more."""
    steps = path.split(".")
    return tuple(
        step for index, step in enumerate(steps) if step != "**" or index == 0 or steps[index - 1] != "**"
    )


def _is_end(path: tuple[str, ...]) -> bool:
    return not path or path == ("**",)


def _step(paths: Sequence[tuple[str, ...]], name: str) -> list[tuple[str, ...]]:
    after: list[tuple[str, ...]] = []
    for path in paths:
        if path and path[0] == "**":
            after.append(path)
            if len(path) > 1 and path[1] in (name, "*"):
                after.append(path[2:])
        elif path and path[0] in (name, "*"):
            after.append(path[1:])
    return after
