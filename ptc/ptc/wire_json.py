"""The JSON of requests and responses: strict, but for lone surrogates, which go back as they came.

Models do emit half of a surrogate pair, and history is replayed unchanged, so such text must pass. Nothing
else does that another reader could take for another value: duplicate keys, NaN, infinities, numbers out of
range, and nesting that some recursive reader would choke on.
"""

from __future__ import annotations

import json
from typing import Final, cast

from ptc_tools.call import JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.strict_json import DECODER

MAX_DEPTH: Final = 100
"""Deeper than any schema or item in use, and shallow enough for a run state (see `ptc.state`) to hold it."""


def loads(data: bytes) -> JsonValue:
    """The value of a document in UTF-8. Raises InvalidJson."""
    try:
        text = data.decode("utf-8-sig")
        value = cast("JsonValue", DECODER.decode(text))
    except UnicodeDecodeError as error:
        raise InvalidJson(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except InvalidJson:
        raise
    except ValueError as error:
        raise InvalidJson(f"a number is not acceptable: {error}") from None
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(value)
    return value


def dumps(value: object) -> bytes:
    """The document for a value, compact. Raises InvalidJson for what JSON cannot carry."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if text.count("{") + text.count("[") > MAX_DEPTH:
            _check_depth(value)
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels") from None
    except (TypeError, ValueError) as error:
        raise InvalidJson(f"not a JSON value: {error}") from None


def check(value: object) -> None:
    """Raises InvalidJson for what `dumps` would refuse, or change: a key that is no text becomes one."""
    dumps(value)
    _check_depth(value)


def _check_depth(value: object) -> None:
    """Walks level by level, so that no depth can exhaust the stack."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    raise InvalidJson("a key is not a text")
                below.extend(item.values())
            elif isinstance(item, (list, tuple)):
                below.extend(item)
        if not any(isinstance(item, (dict, list, tuple)) for item in below):
            return
        level = below
    raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels")
