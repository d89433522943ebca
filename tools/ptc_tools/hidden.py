"""What a call knows and a model must not read, and how it is found in a text and in a result.

It knows common ways to write a value, not each: what must hold without exception is `ptc_tools.disclosure`'s.
It looks at values that an application gave, and calls nothing of theirs but what a text is made by. A text is
scrubbed whole, before anything is cut off it: half a credential would not be recognised.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, ModuleType
from urllib.parse import quote, quote_plus, unquote, urlsplit
from uuid import UUID

from ptc_tools.call import JsonValue
from ptc_tools.markers import REDACTED
from ptc_tools.secret import Secret

SHORTEST = 4  # shorter values would blot out ordinary words, and are no secrets
_SHORTEST_ENCODED = 6
_SHORTEST_LINE = 8
_DEPTH, _MOST = 16, 10_000
_CONTAINERS = (Mapping, list, tuple, set, frozenset, deque)
_NOT_LOOKED_INTO = (bool, type, ModuleType, FunctionType, BuiltinFunctionType)


def scrub(text: str, hidden: Iterable[str]) -> str:
    """The text with `[redacted]` for each hidden one in any of the forms of `written`, or a line of it.

    In upper or lower case. Of a text where one can be found and not be taken out, nothing is left.
    """
    folded = text.casefold()
    found: set[str] = set()
    for value in hidden:
        forms = _lines(value)
        if len(value.strip()) >= SHORTEST:
            forms = {*forms, *written(value)}
        found.update(form for form in forms if form.casefold() in folded)
    if not found:
        return text
    # The longest first: a part of a value must not keep the rest of it from being recognised.
    one_of_them = "|".join(re.escape(form) for form in sorted(found, key=len, reverse=True))
    text = re.sub(one_of_them, REDACTED, text, flags=re.IGNORECASE)
    left = text.replace(REDACTED, "\0").casefold()
    if any(form.casefold() in left for form in found):
        return REDACTED  # a letter of it folds to several
    return text


def _lines(value: str) -> set[str]:
    lines = value.splitlines()
    if len(lines) < 2:
        return set()
    return {line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE}


def written(value: str) -> frozenset[str]:
    """How a value may stand in a text: as it is, as Python and JSON quote it, in an address, in base64 and hex.

    Of an address with a password, the password as well.
    """
    forms = {value, value.strip(), *_quoted(value)}
    try:
        password = urlsplit(value).password if "@" in value else None
    except ValueError:
        password = None
    for part in (value, unquote(password)) if password and len(password) >= SHORTEST else (value,):
        forms |= {part, *_quoted(part)}
        encoded = part.encode("utf-8", "replace")
        for form in (quote(part, safe=""), quote(part), quote_plus(part), encoded.hex(), *_base64(encoded)):
            if len(form) >= _SHORTEST_ENCODED:
                forms.add(form)
    return frozenset(form for form in forms if form)


def _quoted(value: str) -> Iterator[str]:
    yield repr(value)[1:-1]
    yield repr('"' + value)[2:-1]  # with an apostrophe escaped, as beside a quotation mark
    yield repr(value.encode("utf-8", "backslashreplace"))[2:-1]
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _base64(data: bytes) -> Iterator[str]:
    """Of the value wherever it stands in what is encoded, without the characters that its neighbours decide."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        encoded = encoded[(0, 2, 3)[before] :]
        if (before + len(data)) % 3:
            encoded = encoded[:-1]
        yield encoded
        yield encoded.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


class Sought:
    """Credentials that no result may hold, in the forms of `written`."""

    __slots__ = ("_folded",)

    def __init__(self, texts: Iterable[str]) -> None:
        self._folded = tuple(
            {
                form.casefold()
                for text in texts
                if text
                for form in (written(text) if len(text) >= SHORTEST else (text,))
            }
        )

    def are_in(self, value: JsonValue) -> bool:
        """Whether a text or a key of the value has one of them in it."""
        folded = "\0".join(_texts(value)).casefold()
        return any(form in folded for form in self._folded)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def texts_of(value: object) -> Iterator[str]:
    """The texts in a value that a designer set: in fields, keys, containers, secrets, also what is no string.

    The nearest first, down to a depth and up to a number that no configuration has.
    """
    for item in _walk(value):
        yield from _secret(item) or _plain(item) or _said(item)


def secrets_of(value: object) -> Iterator[str]:
    """The secrets in a value that a designer set."""
    for item in _walk(value):
        yield from (text for text in _secret(item) if text)


def _walk(value: object) -> Iterator[object]:
    """What a value is made of, level by level: a client's inner workings do not hide what stands beside them."""
    level, seen, left = [value], set[int](), _MOST
    for _ in range(_DEPTH):
        below: list[object] = []
        for item in level:
            if item is None or isinstance(item, _NOT_LOOKED_INTO) or id(item) in seen:
                continue
            left -= 1
            if left < 0:
                return
            seen.add(id(item))
            yield item
            if not _secret(item) and not _plain(item):
                below.extend(_parts(item))
        level = below


def _secret(value: object) -> tuple[str, ...]:
    if isinstance(value, Secret):
        return (value.reveal(),)
    revealed = getattr(type(value), "get_secret_value", None)
    return () if revealed is None else (str(_decoded(revealed(value))),)


def _decoded(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _plain(value: object) -> tuple[str, ...]:
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return (str(value),)
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, bytes | bytearray):
        return (bytes(value).decode("utf-8", "replace"), repr(bytes(value))[2:-1], bytes(value).hex())
    if isinstance(value, UUID):
        return (str(value), value.hex)
    if isinstance(value, int | float):
        return (str(value), f"{value:,}", f"{value:_}")
    return ()


def _said(value: object) -> tuple[str, ...]:
    """How a value of another type says itself, where its type has words of its own: a path, a day, an address."""
    pattern = getattr(value, "pattern", None)
    if isinstance(pattern, str):
        return (pattern,)
    kind = type(value)
    if isinstance(value, _CONTAINERS) or (
        kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    ):
        return ()
    try:
        return (str(value),)
    except Exception:  # noqa: BLE001 - who cannot say what it is has not said it in an error either
        return ()


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, _CONTAINERS):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (*value.args, *value.keywords.values())
    elif isinstance(value, BaseException):
        yield from value.args
    else:
        yield from getattr(value, "__dict__", {}).values()
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name.startswith("__") and not name.endswith("__"):
                    name = f"_{kind.__name__.lstrip('_')}{name}"
                yield getattr(value, name, None)
