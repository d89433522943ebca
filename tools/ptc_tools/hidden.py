"""What a call knows and a model must not read, and how it is taken out of a text.

It looks at values that an application gave; it never calls a method of theirs but those that text needs. A
text is scrubbed whole, before anything is cut off it: half a credential would not be recognised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from uuid import UUID

from ptc_tools.markers import REDACTED
from ptc_tools.secret import Secret

SHORTEST = 4  # shorter values would blot out ordinary words, and are no secrets
_SHORTEST_LINE = 8
_DEPTH, _MOST = 5, 2_000


def scrub(text: str, hidden: Iterable[str]) -> str:
    """The text with `[redacted]` for each hidden one, as it is, as Python or JSON quotes it, or a line of it."""
    forms: set[str] = set()
    for value in hidden:
        lines = value.splitlines()
        if len(lines) > 1:
            forms.update(line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE)
        if len(value.strip()) >= SHORTEST:
            forms.update((value, value.strip(), repr(value)[1:-1], json.dumps(value)[1:-1]))
            forms.add(json.dumps(value, ensure_ascii=False)[1:-1])
            forms.add(repr('"' + value)[2:-1])  # with an apostrophe escaped, as beside a quotation mark
    for form in sorted(forms, key=len, reverse=True):
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def texts_of(value: object) -> Iterator[str]:
    """Every text in a value that a designer set: in fields, containers and secrets, also what is no string."""
    left = [_MOST]
    yield from _walk(value, _DEPTH, set(), left)


def secrets_of(value: object) -> Iterator[str]:
    """The secrets in a value that a designer set."""
    left = [_MOST]
    yield from (item for item in _walk(value, _DEPTH, set(), left, only_secrets=True) if item)


def _walk(
    value: object, depth: int, seen: set[int], left: list[int], *, only_secrets: bool = False
) -> Iterator[str]:
    left[0] -= 1
    if left[0] < 0 or depth < 0 or value is None or isinstance(value, bool | type):
        return
    if isinstance(value, Secret):
        yield value.reveal()
        return
    revealed = getattr(type(value), "get_secret_value", None)
    if revealed is not None:
        secret = revealed(value)
        yield secret if isinstance(secret, str) else str(secret)
        return
    plain = _plain(value)
    if plain:
        if not only_secrets:
            yield from plain
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    for item in _parts(value):
        yield from _walk(item, depth - 1, seen, left, only_secrets=only_secrets)


def _plain(value: object) -> tuple[str, ...]:
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return (str(value),)
    if isinstance(value, bytes | bytearray):
        return (bytes(value).decode("utf-8", "replace"), repr(bytes(value))[2:-1], bytes(value).hex())
    if isinstance(value, UUID):
        return (str(value), value.hex)
    if isinstance(value, int | float | PurePath):
        return (str(value),)
    return ()


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    else:
        yield from getattr(value, "__dict__", {}).values()
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name.startswith("__") and not name.endswith("__"):
                    name = f"_{kind.__name__.lstrip('_')}{name}"
                yield getattr(value, name, None)
