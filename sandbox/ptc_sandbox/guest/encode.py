"""What a program may send out: JSON, and only JSON.

`plain` turns a program's value into builtin types alone and refuses the rest with the path of the
offender. It reads containers by the builtin's own methods, so that a subclass that a program defines
cannot answer one thing here and another there. The host checks again; this is for the error message.
"""

from __future__ import annotations

from typing import Any


class NotJson(TypeError):
    """A value cannot cross to the host because JSON cannot carry it."""


_HINTS = {
    "set": "use sorted(…) or list(…)",
    "frozenset": "use sorted(…) or list(…)",
    "bytes": "use .decode() or base64",
    "bytearray": "use .decode() or base64",
    "datetime": "use .isoformat()",
    "date": "use .isoformat()",
    "time": "use .isoformat()",
    "timedelta": "use .total_seconds()",
    "Decimal": "use str(…) or float(…)",
    "Fraction": "use str(…) or float(…)",
    "UUID": "use str(…)",
    "complex": "use [z.real, z.imag]",
    "generator": "use list(…)",
    "coroutine": "await it",
    "Task": "await it",
    "Future": "await it",
    "range": "use list(…)",
    "dict_keys": "use list(…)",
    "dict_values": "use list(…)",
    "dict_items": "use list(…)",
    "map": "use list(…)",
    "filter": "use list(…)",
    "zip": "use list(…)",
}


def plain(value: object, what: str, most: int) -> Any:
    """`value` as builtin None, bool, int, float, str, list and dict, of at most `most` levels of lists and dicts.

    `what` names it in errors.
    """
    return _plain(value, what, 0, most)


def _plain(value: object, path: str, depth: int, most: int) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:
        return value
    if kind is float:
        return _finite(value, path)  # type: ignore[arg-type]
    if depth >= most and isinstance(value, (dict, list, tuple)):
        raise NotJson(f"{path} is nested deeper than {most} levels, or contains itself")
    if isinstance(value, dict):
        made = {
            _key(key, path): _plain(item, f"{path}[{key!r}]" if depth < 3 else path, depth + 1, most)
            for key, item in dict.items(value)
        }
        if len(made) != dict.__len__(value):
            raise NotJson(f"{path} has two keys that are the same text")
        return made
    if isinstance(value, (list, tuple)):
        items = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
        return [_plain(item, f"{path}[…]" if depth < 3 else path, depth + 1, most) for item in items]
    return _scalar(value, path)


def _scalar(value: object, path: str) -> Any:
    """A subclass of a JSON scalar becomes the scalar itself; anything else is refused."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return _finite(float.__float__(value), path)
    name = type(value).__name__
    hint = _HINTS.get(name) or (
        "use dataclasses.asdict(…)" if hasattr(type(value), "__dataclass_fields__") else None
    )
    raise NotJson(f"{path} is a {name}, which JSON cannot carry" + (f": {hint}" if hint else ""))


def _finite(value: float, path: str) -> float:
    if value - value != 0.0:
        raise NotJson(f"{path} is {value!r}, which JSON cannot carry")
    return value


def _key(key: object, path: str) -> str:
    if type(key) is str:
        return key
    if isinstance(key, str):
        return str.__str__(key)
    raise NotJson(f"{path} has the key {key!r}, a {type(key).__name__}: JSON keys are strings, use str(…)")
