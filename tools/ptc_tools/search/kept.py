"""Keeps the values that were asked for last, for threads that ask at once. It never makes one twice for long.

An index keeps its views in it. What is kept can always be made again, so forgetting is harmless.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """At most `most` values by key; the one that nobody asked for the longest goes first."""

    __slots__ = ("_lock", "_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of the key, made by `make` if it is not kept. Two threads that make it get the same one."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        with self._lock:
            value = self._values.setdefault(key, made)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
