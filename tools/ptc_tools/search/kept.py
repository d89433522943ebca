"""Keeps the values that were asked for last, for threads that ask at once: by number, or by what they take up.

An index keeps its views and their scores so. What is kept can always be made again, so forgetting is harmless.
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


class Sized(Generic[Key, Value]):
    """Values by key, as many as fit into `room` bytes; the ones that nobody asked for the longest go first."""

    __slots__ = ("_free", "_lock", "_values")

    def __init__(self, room: int) -> None:
        self._free = room
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The value of the key, if it is kept."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keeps a value that takes up about `size` bytes; at least the last one is kept, however large."""
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value, size
            self._free -= size
            while self._free < 0 and len(self._values) > 1:
                self._free += self._values.popitem(last=False)[1][1]
