"""JSON as the specification has it, for everything that crosses a boundary of this project.

Most readers let duplicate keys win last, turn `1e999` into infinity and pass lone surrogates on; a model or
a program could then say one thing to a check and another to a tool. Here such text is `InvalidJson`, never
a value. Integers keep every digit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final, NoReturn, TypeAlias, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson

MAX_DEPTH = 64
MAX_VALUES = 2_000_000  # a value that holds itself twice grows without end at each level
_SCALARS = (str, int, float, bool, type(None))
_MAX_BITS = 14_280  # 4,299 digits, whatever their value: Python's limit for text is 4,300
_Pairs: TypeAlias = "list[tuple[str, JsonValue]]"


def is_sendable(value: object) -> bool:
    """Whether a value is text that JSON can carry: it holds no lone surrogate."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value))


def loads(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """Parse one JSON document.

    Raises `InvalidJson` for malformed text, bytes that are not UTF-8, a duplicate key, `NaN` and the
    infinities (`1e999` is one), a lone surrogate, an integer of more digits than Python converts, and
    nesting deeper than `max_depth`.
    """
    if isinstance(text, str):
        document = text
    else:
        try:
            document = bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidJson(f"not UTF-8 at byte {error.start}") from None
    try:
        value = _parsed(document)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise InvalidJson(f"nested deeper than {max_depth} levels") from None
    except InvalidJson:
        raise
    except ValueError as error:
        raise InvalidJson(f"a number is not acceptable: {error}") from None
    # Only text that has as many brackets can be as deep, and only an escape or a raw surrogate can leave
    # a lone one: most documents need no walk.
    deep = len(document) > max_depth and document.count("{") + document.count("[") > max_depth
    if deep or "\\u" in document or not (document.isascii() or _encodable(document)):
        _check(value, max_depth)
    return value


def dumps(value: object, *, max_depth: int = MAX_DEPTH) -> str:
    """Write a value as compact JSON text, non-ASCII kept.

    Takes None, bool, int, float, str, list, tuple (as an array) and dict with string keys. Raises
    `InvalidJson` for everything else: other objects, other keys, `NaN`, infinities, lone surrogates, cycles,
    nesting deeper than `max_depth`. Nothing becomes a string in silence.
    """
    _check(value, max_depth)
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError) as error:
        raise InvalidJson(f"not a JSON value: {error}") from None


def canonical(value: object, *, max_depth: int = MAX_DEPTH, checked: bool = False) -> bytes:
    """The one byte string for a JSON value: keys sorted by code point, compact, UTF-8. For hashing.

    Raises `InvalidJson` as `dumps` does. `checked`: the value is what `loads` gave, and need not be walked again.
    """
    if not checked:
        _check(value, max_depth)
    try:
        return _CANONICAL.encode(value).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InvalidJson(f"not a JSON value: {error}") from None


def clone(value: object, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """A fresh, plain copy of a JSON value that shares nothing with it. Raises `InvalidJson`."""
    _check(value, max_depth)
    return _clone(value)


def _clone(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _clone(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clone(item) for item in value]
    return cast("JsonValue", value)


def _parsed(document: str) -> JsonValue:
    """The scanner itself where nothing stands around the value, which is the usual case."""
    try:
        value, end = _SCAN(document, 0)
    except StopIteration:
        end = -1
    return cast("JsonValue", value if end == len(document) else DECODER.decode(document))


def _reject_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise InvalidJson("a number is out of range: it would become an infinity")
    return number


def _object(pairs: _Pairs) -> JsonObject:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidJson(f"duplicate key {key[:100]!r}")
            seen.add(key)
    return value


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check(value: object, max_depth: int) -> None:
    """Walk a value without recursion, so that neither depth nor a cycle can exhaust the stack."""
    level: list[object] = [value]
    depth = values = 0
    while level:
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                if not _encodable(item):
                    raise InvalidJson("a string holds a lone surrogate")
            elif isinstance(item, dict):
                for key in item:
                    if not isinstance(key, str):
                        raise InvalidJson(f"a key is {type(key).__name__}, not a string")
                    if not _encodable(key):
                        raise InvalidJson("a key holds a lone surrogate")
                below.extend(item.values())
                if not item and depth >= max_depth:
                    raise InvalidJson(f"nested deeper than {max_depth} levels")
            elif isinstance(item, list | tuple):
                below.extend(item)
                if not item and depth >= max_depth:
                    raise InvalidJson(f"nested deeper than {max_depth} levels")
            elif isinstance(item, float):
                if not math.isfinite(item):
                    raise InvalidJson("NaN and infinities are not JSON")
            elif isinstance(item, int):
                if item.bit_length() > _MAX_BITS:
                    raise InvalidJson("an integer has more digits than Python writes as text")
            elif not isinstance(item, _SCALARS):
                raise InvalidJson(f"{type(item).__name__} is not a JSON value")
        if below:
            depth += 1
            values += len(below)
            if values > MAX_VALUES:
                raise InvalidJson(f"more than {MAX_VALUES} values, or refers to itself")
            if depth > max_depth:
                raise InvalidJson(f"nested deeper than {max_depth} levels, or refers to itself")
        level = below


DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_reject_constant
)
"""Refuses duplicate keys, NaN and what would be an infinity; lone surrogates and any depth pass."""
_SCAN: Callable[[str, int], tuple[object, int]] = vars(DECODER)["scan_once"]
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)
_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True, check_circular=False
)
