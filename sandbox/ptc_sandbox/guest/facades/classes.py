"""Modules whose members make classes or types: `abc`, `dataclasses`, `enum`, `types`, `typing`.

What makes a class from names given as text checks the names; metaclasses and the types of functions are
stand-ins; no annotation is evaluated.
"""

from __future__ import annotations

import collections
import enum
import keyword
import sys
import types
import typing
from typing import Any

from ptc_sandbox.guest.facades import dataclass
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_types import (
    StandInMeta,
    abc_meta_stand_in,
    enum_meta_stand_in,
    know,
    make_stand_in,
    stand_in,
    visible,
)
from ptc_sandbox.guest.policy_errors import RefusedAttribute, RefusedCall
from ptc_sandbox.guest.policy_names import checked_name, is_dunder, is_sunder, match_args, may_bind

dataclass_members = dataclass.members
_LOOKS_UP_PAIRS = sys.version_info >= (3, 12)  # Colour(1, 2) of an enumeration with members; a new one before


def abc_members(guards: Guards) -> dict[str, Any]:
    """`ABCMeta` can be named as a metaclass and do nothing else."""
    return {"ABCMeta": abc_meta_stand_in}


def enum_members(guards: Guards) -> dict[str, Any]:
    """The metaclass can be named as one and do nothing else; see `guard_enum` for the rest."""
    return {"EnumMeta": enum_meta_stand_in, "EnumType": enum_meta_stand_in}


def guard_enum() -> None:
    """Make `Enum("Name", members)` check the names that it makes attributes of. Changes this process."""
    real = enum.EnumMeta.__call__

    def __call__(cls: Any, value: Any, *args: Any, **keywords: Any) -> Any:  # noqa: N807
        if (not args and not keywords) or (_LOOKS_UP_PAIRS and type.__getattribute__(cls, "_member_map_")):
            return real(cls, value, *args, **keywords)
        names = args[0] if args else keywords.pop("names", ())
        if type(value) is not str:
            raise TypeError("the name of an enumeration must be a str")
        if len(args) > 1 or set(keywords) - {"start", "boundary", "module", "qualname", "type"}:
            raise TypeError(f"{cls.__name__}() takes a name and the members of an enumeration")
        if not any(keywords.get("type") is kind for kind in (None, int, str, float)):
            raise RefusedCall("Mix a type into an enumeration by a class statement.", "forbidden_class")
        keywords.pop("qualname", None)
        made = real(cls, value, _checked_members(names), **{**keywords, "module": "__main__"})
        know(made)
        return made

    __call__.__qualname__ = "EnumMeta.__call__"
    enum.EnumMeta.__call__ = __call__  # type: ignore[method-assign]
    _guard_members()


def _guard_members() -> None:
    """What `__new__` of an enumeration returns is its member: the library gives it a name and a value, and calls
    its `__init__`. An object of another class would be made anew by that."""
    real: Any = enum.EnumMeta._find_new_  # type: ignore[attr-defined]

    def _find_new_(metacls: type, classdict: Any, member_type: Any, first_enum: Any) -> tuple[Any, Any, Any]:
        make, save, use_args = real.__func__(metacls, classdict, member_type, first_enum)
        return (make if _is_of_c(make) else _checked_new(make)), save, use_args

    enum.EnumMeta._find_new_ = classmethod(_find_new_)  # type: ignore[attr-defined]


def _is_of_c(make: Any) -> bool:
    """The `__new__` of a type in C, which makes objects of the class that it is given and no others."""
    return (
        type(make) is types.BuiltinMethodType
        and make.__name__ == "__new__"
        and isinstance(make.__self__, type)
    )


def _checked_new(make: Any) -> Any:
    def __new__(cls: type, *args: Any, **keywords: Any) -> Any:  # noqa: N807
        made = make(cls, *args, **keywords)
        if cls not in type.mro(type(made)):
            raise TypeError(f"__new__() of {cls.__name__} must make a {cls.__name__}")
        return made

    return __new__


def _checked_members(names: Any) -> list[Any]:
    """The members of `Enum("Name", names)`, read once: exact names, or pairs of a name and a value."""
    if type(names) is str:
        members: list[Any] = names.replace(",", " ").split()
    else:
        listed = list(names.items() if isinstance(names, dict) else names or ())
        members = [item if isinstance(item, str) else tuple(item) for item in listed]
    for member in members:
        name = member[0] if type(member) is tuple and len(member) == 2 else member
        if type(name) is not str or is_dunder(name) or is_sunder(name) or not may_bind(name):
            raise RefusedAttribute(f"A member of an enumeration may not be called {name!r}.")
    return members


def guard_namedtuple() -> None:
    """Make `namedtuple`, typing's too, check the names that it makes attributes of. Changes this process."""
    real = collections.namedtuple

    def namedtuple(
        typename: str,
        field_names: Any,
        *,
        rename: bool = False,
        defaults: Any = None,
        module: Any = None,
    ) -> Any:
        """A class of tuples with named fields."""
        text = field_names.replace(",", " ").split() if type(field_names) is str else field_names
        fields = list(text)
        if not all(type(name) is str for name in (typename, *fields)):
            raise TypeError("Type names and field names must be strings")
        for index, name in enumerate(fields):
            if rename and (not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_")):
                fields[index] = f"_{index}"
            elif not name.startswith("_"):  # those the real one refuses
                checked_name(name)
        made: Any = real(typename, fields, rename=rename, defaults=defaults, module="__main__")
        setattr(made, "__match_args__", match_args(fields))  # noqa: B010
        return made

    namedtuple.__qualname__ = "namedtuple"
    namedtuple.__module__ = "collections"
    collections.namedtuple = namedtuple


class _MethodMeta(StandInMeta):
    """`types.MethodType(function, instance)`: what `partial` gives as well."""

    def __call__(cls, function: Any, instance: Any, /) -> Any:  # type: ignore[override]  # noqa: N805
        return types.MethodType(function, instance)


_method = make_stand_in(types.MethodType, _MethodMeta)


def types_members(guards: Guards) -> dict[str, Any]:
    """Types for `isinstance`; `SimpleNamespace`, `MappingProxyType` and `MethodType` can be made."""

    def function() -> None: ...

    async def coroutine() -> None: ...

    async def asynchronous() -> Any:
        yield

    waiting = coroutine()
    waiting.close()
    of = {
        "FunctionType": type(function),
        "LambdaType": type(function),
        "BuiltinFunctionType": type(len),
        "BuiltinMethodType": type(len),
        "GeneratorType": type(_ for _ in ()),
        "CoroutineType": type(waiting),
        "AsyncGeneratorType": type(asynchronous()),
        "UnionType": types.UnionType,
        "GenericAlias": types.GenericAlias,
    }
    plain = ("SimpleNamespace", "MappingProxyType", "NoneType", "EllipsisType", "NotImplementedType")
    return {
        **{name: stand_in(kind) for name, kind in of.items()},
        "MethodType": _method,
        **{name: getattr(types, name) for name in plain},
    }


def typing_members(guards: Guards) -> dict[str, Any]:
    """`get_args` gives text as text, as a ForwardRef could be asked to evaluate itself; `get_origin` of
    `Type[int]` would be the real `type`."""

    def get_args(tp: Any) -> tuple[Any, ...]:
        return tuple(_as_seen(arg) for arg in typing.get_args(tp))

    def get_origin(tp: Any) -> Any:
        return _as_seen(typing.get_origin(tp))

    return {"get_args": get_args, "get_origin": get_origin}


def _as_seen(value: Any) -> Any:
    if isinstance(value, typing.ForwardRef):
        return value.__forward_arg__
    if isinstance(value, list):
        return [_as_seen(item) for item in value]
    return visible(value) if isinstance(value, type) else value
