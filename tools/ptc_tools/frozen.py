"""JSON that cannot be changed any more: what contracts are made of.

`FrozenObject` and `FrozenArray` are a dict and a list to every reader and serialiser, so nothing has to be
unwrapped to be hashed, compared or sent; only writing to them raises. `thaw` gives a plain copy back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ptc_tools.call import JsonObject, JsonValue


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("a contract cannot be changed; make a new one")


class FrozenObject(dict[str, JsonValue]):
    """A JSON object that refuses to be written to. A pickle of it is frozen again."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Callable[[JsonValue], JsonValue], tuple[JsonValue]]:
        return freeze, (thaw(self),)

    def __copy__(self) -> FrozenObject:
        return self

    def __deepcopy__(self, memo: object) -> FrozenObject:
        return self


class FrozenArray(list[JsonValue]):
    """A JSON array that refuses to be written to. A pickle of it is frozen again."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Callable[[JsonValue], JsonValue], tuple[JsonValue]]:
        return freeze, (thaw(self),)

    def __copy__(self) -> FrozenArray:
        return self

    def __deepcopy__(self, memo: object) -> FrozenArray:
        return self


def freeze(value: JsonValue) -> JsonValue:
    """A deep copy of JSON that cannot be written to; parts that are frozen already are shared."""
    if isinstance(value, FrozenObject | FrozenArray):
        return value
    if isinstance(value, dict):
        return FrozenObject({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenArray([freeze(item) for item in value])
    return value


def freeze_object(value: JsonObject) -> JsonObject:
    """`freeze` for what is known to be an object."""
    if isinstance(value, FrozenObject):
        return value
    return FrozenObject({key: freeze(item) for key, item in value.items()})


def thaw(value: JsonValue) -> JsonValue:
    """A deep, plain, writable copy of JSON."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def thaw_object(value: JsonObject) -> JsonObject:
    """`thaw` for what is known to be an object."""
    return {key: thaw(item) for key, item in value.items()}
