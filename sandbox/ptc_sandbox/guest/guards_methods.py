"""Keeps the methods of the library's classes to objects of these classes.

A method in Python takes any object for its `self` when it is called on the class, and works on it: it makes
another of `self.__class__`, which of a class is the real `type`, or leaves the event loop in an attribute of
`self`. Methods in C refuse a `self` of another type; from here on those in Python do too.
"""

from __future__ import annotations

import asyncio
import importlib
import pprint
import statistics
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ptc_sandbox.guest import aio
from ptc_sandbox.guest.facades import table
from ptc_sandbox.guest.facades.dataclass_fields import Field
from ptc_sandbox.guest.guards_classes import class_name
from ptc_sandbox.guest.guards_identity import is_sealed
from ptc_sandbox.guest.guards_types import visible

_OF_THE_CLASS: Final = frozenset(
    (
        *("__new__", "__init_subclass__", "__class_getitem__", "__subclasshook__"),
        *("_generate_next_value_", "_new_member_", "__new_member__"),  # of enumerations
    )
)
"""Functions that are called on a class, with the class or without anything."""

_LEFT_ALONE: Final = frozenset(("typing", "builtins"))
"""Modules whose classes keep their methods: `typing` compares its own by identity, and makes nothing of `self`."""

_is_subclass: Final[Callable[[type, type], bool]] = type.__dict__["__subclasscheck__"]
"""By inheritance alone: an ABC can be told that a class is one of its own."""

_checked: Final[dict[int, Any]] = {}
"""The functions that check, by address."""


def keep_to_instances(kinds: Iterable[object]) -> None:
    """Let the methods and properties of these classes, and of what they derive from, check their `self`.

    What is no class, or is sealed, is passed over, and so are metaclasses, which no program holds as they are.
    Changes the classes.
    """
    replaced: dict[Any, Any] = {}
    for kind in dict.fromkeys(base for given in kinds if isinstance(given, type) for base in type.mro(given)):
        contents = type.__getattribute__(kind, "__dict__")
        if is_sealed(kind) or issubclass(kind, type) or contents.get("__module__") in _LEFT_ALONE:
            continue
        for name, value in list(contents.items()):
            if name in _OF_THE_CLASS:
                continue
            if type(value) is types.FunctionType:
                replaced[value] = _kept(value, kind)
                type.__setattr__(kind, name, replaced[value])
            elif type(value) is property:
                read, write, delete = (_kept(part, kind) for part in (value.fget, value.fset, value.fdel))
                type.__setattr__(kind, name, property(read, write, delete, value.__doc__))
    _print_as_before(replaced)


def keep_library() -> None:
    """`keep_to_instances` for every class that the modules of the table and asyncio offer as it is, and the one
    function there that calls the type of what it is given."""
    keep_to_instances(_offered())
    real: Any = statistics._coerce  # type: ignore[attr-defined]

    def _coerce(T: type, S: type) -> type:  # noqa: N803
        for kind in (T, S):
            if visible(kind) is not kind:  # a class among the data, whose type is called with the mean
                raise TypeError(f"statistics are of numbers, not of a {class_name(kind)}")
        result: type = real(T, S)
        return result

    statistics._coerce = _coerce  # type: ignore[attr-defined]


def _offered() -> Iterator[object]:
    yield Field
    yield from (getattr(asyncio, name, None) for name in aio.AS_THEY_ARE)
    for module in table.modules():
        real = importlib.import_module(module)
        yield from (getattr(real, name, None) for name in table.members(module) or ())


def _kept(method: Any, kind: type) -> Any:
    if type(method) is not types.FunctionType or id(method) in _checked:
        return method

    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not _is_subclass(kind, type(self)):
            wanted = class_name(kind)
            raise TypeError(f"{wanted}.{method.__name__}() needs a {wanted}, not a {class_name(type(self))}")
        return method(self, *args, **kwargs)

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(checked, name, getattr(method, name))
    checked.__dict__.update(method.__dict__)
    _checked[id(checked)] = checked
    return checked


def _print_as_before(replaced: dict[Any, Any]) -> None:
    """`pprint` knows by the `__repr__` of a class how to print what is of it."""
    printers: dict[Any, Any] = pprint.PrettyPrinter._dispatch  # type: ignore[attr-defined]
    for before, after in replaced.items():
        if before in printers:
            printers[after] = printers[before]
