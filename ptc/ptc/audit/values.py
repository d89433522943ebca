"""JSON as the log writes it: one canonical form, so that a hash of a value means something.

Told any value a tool or model produced, it gives bytes that are valid UTF-8 and one line. It never fails
for the content of a text: what UTF-8 cannot carry is written visibly instead of being lost.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Final

from ptc_tools.call import JsonValue

MAX_NAME: Final = 512
"""Characters kept of a name or identifier that a model made up; the rest is counted."""


def _encoder() -> Callable[[object], str]:
    """The standard library's encoder, made once: `JSONEncoder.encode` makes its C part anew for every value."""
    plain = json.JSONEncoder(
        sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    encode = make(None, plain.default, encode_basestring, None, ":", ",", True, False, False)
    return lambda value: "".join(encode(value, 0))


_encode: Final = _encoder()


class Unencodable(ValueError):
    """A value that JSON cannot carry: NaN, a cycle, an object of the host's."""


def canonical_text(value: object) -> str:
    """Keys sorted by code point, no spaces, integers of any size exact. Raises Unencodable."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unencodable(str(error)) from None
    return text if _is_utf8(text) else _encode(_without_surrogates(value))


def canonical(value: object) -> bytes:
    """`canonical_text` in UTF-8."""
    return canonical_text(value).encode()


def quoted(text: str) -> str:
    """A text of any length as a JSON string."""
    return encode_basestring(text if _is_utf8(text) else clean(text))


def quoted_name(text: str) -> str:
    """A name somebody untrusted may have chosen, as a JSON string: cut where it is absurdly long."""
    return encode_basestring(bounded(text))


def bounded(text: str) -> str:
    """The text, cut to `MAX_NAME` characters with a note of how many it had."""
    if len(text) > MAX_NAME:
        text = f"{text[:MAX_NAME]}… ({len(text)} characters)"
    return text if _is_utf8(text) else clean(text)


def clean(text: str) -> str:
    """The text with lone surrogates written out (`\\ud800`): they have no UTF-8 form."""
    return text.encode("utf-8", "backslashreplace").decode()


def json_type(value: object) -> str:
    """JSON's own name for a value's type; integers are numbers, so that 1 and 1.0 are the same kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def comparable(value: JsonValue) -> bytes:
    """What a keyed digest is taken over: the type, a zero byte, the canonical value; 1.0 counts as 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return type_prefix(value) + canonical(value)


def type_prefix(value: object) -> bytes:
    """What a digest begins with: the type, so that 1 and "1" have different ones."""
    return json_type(value).encode() + b"\0"


TYPE_PREFIX: Final[dict[type, bytes]] = {
    type(example): type_prefix(example) for example in (dict[str, str](), list[str](), "", 0, True, None)
}
"""`type_prefix` by Python type, for the types that JSON is made of."""


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(item) for item in value]
    return value
