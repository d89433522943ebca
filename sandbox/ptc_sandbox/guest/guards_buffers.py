"""A `bytearray` that no `__index__` can pull from under the interpreter's hands.

On several Pythons (3.11 to 3.13 among them) `buffer[i] = x` asks x for a number after it looked where the
buffer is; an x that moves the buffer meanwhile has the interpreter write where it should not. There the
number is asked for first. Changes this process.
"""

from __future__ import annotations

import ctypes
import gc
import operator
from typing import Any, Final

_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_AS_MAPPING: Final = object.__basicsize__ + _WORD + _WORD * 11  # where a type keeps its table of item methods
_ASSIGN: Final = _WORD * 2  # and in that table the setter


class BufferUnguarded(RuntimeError):
    """This interpreter is laid out otherwise, and its `bytearray` is not safe as it is."""


def is_vulnerable() -> bool:
    """Whether this Python has the fault. The trial stays within what the buffer has allocated."""
    buffer = bytearray(8)

    class Moves:
        def __index__(self) -> int:
            del buffer[0]  # moves where the buffer starts, in place
            return 1

    buffer[2] = Moves()
    return buffer[2] != 1


def guard_buffers() -> None:
    """Give `bytearray` an item assignment that is safe. Raises BufferUnguarded where that cannot be done."""
    if not is_vulnerable():
        return
    real = bytearray.__setitem__

    def __setitem__(self: bytearray, key: Any, value: Any) -> None:  # noqa: N807
        if type(key) is not slice:
            key = operator.index(key)
            if type(value) is not int:
                value = operator.index(value)
        real(self, key, value)

    class Assigns:
        __setitem__: Any = lambda self, key, value: None
        __delitem__: Any = lambda self, key: None

    (contents,) = gc.get_referents(bytearray.__dict__)
    contents["__setitem__"] = __setitem__
    calls_method = _word(_word(id(Assigns) + _AS_MAPPING) + _ASSIGN)
    table = _word(id(bytearray) + _AS_MAPPING)
    ctypes.c_size_t.from_address(table + _ASSIGN).value = calls_method
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(bytearray))
    if is_vulnerable():
        raise BufferUnguarded("bytearray of this Python is not safe, and could not be made so")


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value
