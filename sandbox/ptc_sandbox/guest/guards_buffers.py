"""A `bytearray` that no `__index__` can pull from under the interpreter's hands.

On several Pythons (3.11 to 3.13 among them) methods of `bytearray` ask an argument for a number, or for its
length, after they looked where the buffer is; an argument that moves the buffer meanwhile has the interpreter
read and write where it should not. There the question is asked first. Changes this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import operator
from collections.abc import Callable
from typing import Any, Final

_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_HEAD: Final = object.__basicsize__ + _WORD
_AS_NUMBER, _AS_SEQUENCE, _AS_MAPPING = (_HEAD + _WORD * index for index in (9, 10, 11))
_SLOTS: Final = {  # where a type keeps its table of methods, and where in it one of them is
    "__mod__": (_AS_NUMBER, _WORD * 3),
    "__contains__": (_AS_SEQUENCE, _WORD * 7),
    "__setitem__": (_AS_MAPPING, _WORD * 2),
}
_SEARCHES: Final = ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")


class BufferUnguarded(RuntimeError):
    """This interpreter is laid out otherwise, and its `bytearray` is not safe as it is."""


def _move(buffer: bytearray) -> None:
    del buffer[0]
    buffer[-1] = ord("z")


class _Moves:
    """When it is asked for a number it moves where the buffer starts, within what is allocated, and changes its end."""

    def __init__(self, buffer: bytearray, number: int) -> None:
        self._buffer = buffer
        self._number = number

    def __index__(self) -> int:
        _move(self._buffer)
        return self._number


class _MovingText(str):
    buffer = bytearray()

    def __len__(self) -> int:
        _move(self.buffer)
        return 1


def is_vulnerable() -> bool:
    """Whether this Python has the fault in item assignment."""
    buffer = bytearray(8)
    buffer[2] = _Moves(buffer, 1)
    return buffer[2] != 1


def vulnerable() -> list[str]:
    """The methods in which this Python has the fault. The trials stay within what the buffer has allocated."""
    found = ["__setitem__"] if is_vulnerable() else []
    buffer = bytearray(b"abcdefgh")
    if buffer.find(b"a", _Moves(buffer, 0)) == 0:
        found.extend(_SEARCHES)
    buffer = bytearray(b"abcdefgh")
    asked: Any = _Moves(buffer, ord("a"))
    if asked in buffer:
        found.append("__contains__")
    buffer = bytearray(b"a%dbcdef")
    text = _MovingText("-")
    text.buffer = bytearray(b"abcdefgh")
    for name, use in (
        ("__mod__", lambda: buffer % _Moves(buffer, 1)),
        ("hex", lambda: text.buffer.hex(text)),
    ):
        with contextlib.suppress(BufferError):  # held in its place meanwhile: that is safe
            if use()[-1:] not in (b"f", "8"):
                found.append(name)
    return found


def guard_buffers() -> None:
    """Give `bytearray` methods that are safe. Raises BufferUnguarded where that cannot be done."""
    names = vulnerable()
    if not names:
        return
    (contents,) = gc.get_referents(bytearray.__dict__)
    for name in names:
        method = _safe(name, getattr(bytearray, name))
        method.__name__ = name
        method.__qualname__ = f"bytearray.{name}"
        contents[name] = method
        if name in _SLOTS:
            table, slot = _SLOTS[name]
            calls_method = _word(_word(id(_Calls) + table) + slot)
            ctypes.c_size_t.from_address(_word(id(bytearray) + table) + slot).value = calls_method
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(bytearray))
    if left := vulnerable():
        raise BufferUnguarded(f"bytearray.{left[0]} of this Python is not safe, and could not be made so")


def _safe(name: str, real: Any) -> Callable[..., Any]:
    def assign(self: bytearray, key: Any, value: Any) -> None:
        if type(key) is not slice:
            key = operator.index(key)
            if type(value) is not int:
                value = operator.index(value)
        real(self, key, value)

    def search(self: bytearray, sub: Any, *bounds: Any) -> Any:
        return real(
            self, _number(sub), *(None if bound is None else operator.index(bound) for bound in bounds)
        )

    def contains(self: bytearray, item: Any) -> bool:
        return bool(real(self, _number(item)))

    def modulo(self: bytearray, values: Any) -> bytearray:
        return bytearray(bytes(self) % values)

    def print_hex(self: bytearray, *args: Any, **kwargs: Any) -> str:
        return bytes(self).hex(*args, **kwargs)

    special: dict[str, Callable[..., Any]] = {
        "__setitem__": assign,
        "__contains__": contains,
        "__mod__": modulo,
        "hex": print_hex,
    }
    return special.get(name, search)


def _number(value: Any) -> Any:
    """`value`, which may be bytes to look for, a tuple of them, or something that has a number."""
    return operator.index(value) if hasattr(type(value), "__index__") else value


class _Calls:
    """A class with methods in Python: its tables hold what calls them."""

    __setitem__: Any = lambda self, key, value: None
    __delitem__: Any = lambda self, key: None
    __contains__: Any = lambda self, item: False
    __mod__: Any = lambda self, values: self


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value
