"""`copy` in a form of our own: what an object is made of is asked of its class, never of the object itself.

The standard library asks each object how it is to be copied, by names that a program may put into the object's
namespace, and sets attributes by names that it gets back. Here programs' objects are copied slot by slot, a
closed list of library types by the methods of their types, and nothing else is copied.
"""

from __future__ import annotations

import collections
import copy
import datetime
import decimal
import enum
import fractions
import functools
import io
import random
import re
import statistics
import string
import textwrap
import time
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from ptc_sandbox.guest.facades.module import Facade
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_identity import identity, is_sealed
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import is_dunder

_id = id
_MEMBER: Final = types.MemberDescriptorType
_ITSELF_EXACTLY: Final = frozenset(
    id(kind)
    for kind in (
        *(
            type(None),
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            range,
            slice,
            property,
            staticmethod,
            classmethod,
        ),
        *(
            type(...),
            type(NotImplemented),
            types.FunctionType,
            types.BuiltinFunctionType,
            types.MappingProxyType,
        ),
        *(types.GenericAlias, types.UnionType, re.Pattern, re.Match, uuid.UUID, typing.TypeVar),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, fractions.Fraction, functools.partialmethod),
        *(type(functools.lru_cache(lambda: None)), types.MethodWrapperType, types.WrapperDescriptorType),
        *(types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType, _MEMBER),
    )
)
_ITSELF: Final = (type, enum.Enum, Facade, datetime.tzinfo, typing._GenericAlias, typing.ForwardRef)  # type: ignore[attr-defined]
_BY_THEIR_TYPE: Final = (
    *(collections.deque, collections.defaultdict, collections.OrderedDict, collections.Counter),
    *(collections.ChainMap, collections.UserDict, collections.UserList, collections.UserString),
    *(types.SimpleNamespace, random.Random, io.StringIO, io.BytesIO, functools.partial),
    *(set, frozenset, bytearray, tuple, dict, list, BaseException, decimal.Context),
    *(statistics.NormalDist, string.Template, textwrap.TextWrapper, time.struct_time),
)
"""Types, and types derived from them by the library, that know how to be copied: nothing of theirs leads out."""


class Memo(dict[Any, Any]):
    """What a `__deepcopy__` of the program's gets and passes on. What was copied is not in it."""

    __slots__ = ("_copies",)

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Any, Any]] = {}


def copy_members(guards: Guards) -> dict[str, Any]:
    """`copy.copy` and `copy.deepcopy`."""
    return {"copy": shallow, "deepcopy": deep}


def guard_copy() -> None:
    """Let the standard library copy in this way too. Changes this process."""
    copy.copy = shallow
    copy.deepcopy = deep


def shallow(x: Any) -> Any:
    """A shallow copy of x."""
    kind = type(x)
    if _is_itself(x, kind):
        return x
    if kind is list or kind is dict or kind is set:
        return x.copy()
    if kind is tuple or kind is frozenset or kind is types.MethodType:
        return x
    copier = getattr(kind, "__copy__", None)
    if copier is not None and _may_be_copied(kind):
        return copier(x)
    return _made_anew(x, kind, lambda part: part, lambda made: None)


def deep(x: Any, memo: Any = None, _nil: Any = None) -> Any:
    """A deep copy of x."""
    return _deep(x, memo if type(memo) is Memo else _memo_like(memo))


for _function, _name in ((shallow, "copy"), (deep, "deepcopy")):
    _function.__name__ = _function.__qualname__ = _name
    _function.__module__ = "copy"


def _memo_like(given: Any) -> Memo:
    memo = Memo()
    if given is not None:
        memo.update(given)
    return memo


def _deep(x: Any, memo: Memo) -> Any:
    kind = type(x)
    if _is_itself(x, kind):
        return x
    known = memo._copies.get(_id(x))
    if known is not None:
        return known[0]
    if memo and (told := memo.get(identity(x), memo)) is not memo:
        return told

    def keep(made: Any) -> None:
        memo._copies[_id(x)] = (made, x)  # x too, so that its address is not used again

    def inner(part: Any) -> Any:
        return _deep(part, memo)

    made = _deep_of(x, kind, memo, inner, keep)
    if made is not x:
        keep(made)
    return made


def _deep_of(x: Any, kind: type, memo: Memo, inner: Callable[[Any], Any], keep: Callable[[Any], None]) -> Any:
    if kind is list:
        made: Any = []
        keep(made)
        made.extend(inner(item) for item in x)
        return made
    if kind is dict:
        made = {}
        keep(made)
        for key, value in x.items():
            made[inner(key)] = inner(value)
        return made
    if kind is tuple:
        parts = tuple(inner(item) for item in x)
        known = memo._copies.get(_id(x))  # a tuple that contains itself by way of a list
        if known is not None:
            return known[0]
        return x if all(old is new for old, new in zip(x, parts, strict=True)) else parts
    if kind is types.MethodType:
        owner = x.__self__
        return types.MethodType(x.__func__, inner(owner)) if _is_programs(type(owner)) else x
    copier = getattr(kind, "__deepcopy__", None)
    if copier is not None and _may_be_copied(kind):
        return copier(x, memo)
    return _made_anew(x, kind, inner, keep)


def _is_itself(x: Any, kind: type) -> bool:
    return _id(kind) in _ITSELF_EXACTLY or issubclass(kind, _ITSELF)


def _is_programs(kind: type) -> bool:
    """Whether a program defined this class: library classes are sealed, or come from other modules."""
    return type.__getattribute__(kind, "__dict__").get("__module__") == "__main__" and not is_sealed(kind)


def _may_be_copied(kind: type) -> bool:
    return _is_programs(kind) or issubclass(kind, _BY_THEIR_TYPE)


def _made_anew(x: Any, kind: type, inner: Callable[[Any], Any], keep: Callable[[Any], None]) -> Any:
    if not _may_be_copied(kind):
        raise TypeError(f"cannot copy '{kind.__name__}' object")
    _check_namespace(x)
    reduce_ex: Any = kind.__reduce_ex__
    reduce: Any = kind.__reduce__
    if reduce_ex is object.__reduce_ex__ and reduce is object.__reduce__:
        return _by_parts(x, kind, inner, keep)
    make, args, *rest = reduce_ex(x, 4)
    made = make(*(inner(part) for part in args))
    keep(made)
    state, items, pairs = [*rest, None, None, None][:3]
    restore = getattr(kind, "__setstate__", None)
    if state is None:
        pass
    elif type(state) is dict and (restore is None or issubclass(kind, BaseException)):
        _fill_namespace(made, state, inner)
    elif restore is not None:
        restore(made, inner(state))
    elif type(state) is tuple:
        _fill_namespace(made, state[0] or {}, inner)
    _fill_slots(made, x, kind, inner)
    _fill_contents(made, items, pairs, inner)
    return made


def _by_parts(x: Any, kind: type, inner: Callable[[Any], Any], keep: Callable[[Any], None]) -> Any:
    """What the standard library's `object.__reduce_ex__` would lead to."""
    arguments = getattr(kind, "__getnewargs__", None)
    made = kind.__new__(kind, *(inner(part) for part in (arguments(x) if arguments is not None else ())))
    if type(made) is not kind:
        return made
    keep(made)
    state = _namespace(x)
    if state:
        restore = getattr(kind, "__setstate__", None)
        restore(made, inner(dict(state))) if restore is not None else _fill_namespace(made, state, inner)
    _fill_slots(made, x, kind, inner)
    items = list.__iter__(x) if issubclass(kind, list) else None
    pairs = iter(list(dict.items(x))) if issubclass(kind, dict) else None
    _fill_contents(made, items, pairs, inner)
    return made


def _namespace(x: Any) -> dict[Any, Any] | None:
    try:
        found = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _check_namespace(x: Any) -> None:
    """No special name in the object's own namespace: the interpreter would ask it instead of the class."""
    for name in _namespace(x) or ():
        if type(name) is not str or is_dunder(name):
            raise RefusedAttribute(f"An object that has an attribute {name!r} of its own cannot be copied.")


def _fill_namespace(made: Any, state: dict[Any, Any], inner: Callable[[Any], Any]) -> None:
    namespace = _namespace(made)
    if namespace is not None:
        for name, value in list(state.items()):
            namespace[name] = inner(value)


def _fill_slots(made: Any, x: Any, kind: type, inner: Callable[[Any], Any]) -> None:
    for base in type.mro(kind):
        contents = type.__getattribute__(base, "__dict__")
        if "__slots__" in contents:  # a class written in Python
            for slot in list(contents.values()):
                if type(slot) is _MEMBER:
                    try:
                        value = slot.__get__(x)
                    except AttributeError:
                        continue  # nothing was ever assigned
                    slot.__set__(made, inner(value))


def _fill_contents(
    made: Any, items: Iterator[Any] | None, pairs: Iterator[Any] | None, inner: Callable[[Any], Any]
) -> None:
    for item in items or ():
        made.append(inner(item))
    for key, value in pairs or ():
        made[inner(key)] = inner(value)
