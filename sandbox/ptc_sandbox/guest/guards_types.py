"""Types as programs may see them: `type(x)` gives the types they know, and a name without powers for the rest.

The metaclass of a class, the type of a function or of a tool can make objects that no program should make;
a program gets a stand-in that compares, prints and checks instances as the type does, and cannot be called.
"""

from __future__ import annotations

import abc
import builtins
import enum
import types
from typing import Any, NoReturn

from ptc_sandbox.guest.policy_errors import RefusedCall


class StandInMeta(type):
    """The metaclass of stand-ins: `isinstance` asks about the type behind, everything else is refused."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        raise RefusedCall(f"Programs may not make objects of the type {cls.__name__} in this way.")

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _behind(cls))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if isinstance(subclass, StandInMeta):
            subclass = _behind(subclass)
        return issubclass(subclass, _behind(cls))

    def __setattr__(cls, name: str, value: object) -> NoReturn:
        raise RefusedCall(f"The type {cls.__name__} cannot be changed.", "forbidden_attribute")

    def __delattr__(cls, name: str) -> NoReturn:
        raise RefusedCall(f"The type {cls.__name__} cannot be changed.", "forbidden_attribute")

    def __repr__(cls) -> str:
        return repr(_behind(cls))


class TypeStandInMeta(StandInMeta):
    """The stand-in of `type`: with one argument it says what something is."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        if len(args) == 1 and not kwargs:
            return class_of(args[0])
        raise RefusedCall("Programs may not make classes by calling type(): write a class statement.")


_behind_by_stand_in: dict[type, type] = {}
_stand_ins: dict[type, type] = {}


def _behind(stand_in: type) -> type:
    return _behind_by_stand_in[stand_in]


def make_stand_in(behind: type, meta: type = StandInMeta) -> Any:
    """A new stand-in for the type `behind`; `type(x)` gives it from now on."""
    made = meta(
        behind.__name__,
        (),
        {"__slots__": (), "__module__": behind.__module__, "__qualname__": behind.__qualname__},
    )
    _behind_by_stand_in[made] = behind
    _stand_ins[behind] = made
    return made


type_stand_in = make_stand_in(type, TypeStandInMeta)
type.__setattr__(type_stand_in, "__class_getitem__", classmethod(types.GenericAlias))
abc_meta_stand_in = make_stand_in(abc.ABCMeta)
enum_meta_stand_in = make_stand_in(enum.EnumMeta)

METACLASSES = {type_stand_in: type, abc_meta_stand_in: abc.ABCMeta, enum_meta_stand_in: enum.EnumMeta}
"""What `metaclass=` may name, and what it stands for."""

_UNKNOWN_BUILTINS = frozenset(("type", "super", "memoryview"))

_known: dict[int, type] = {}
"""By address, since hashing a type is dear where hashes are numbers (`guards_identity`)."""


def know(*kinds: object) -> None:
    """Programs may hold these types as they are: they are harmless to call. Other values are passed over."""
    _known.update((id(kind), kind) for kind in kinds if isinstance(kind, type))


know(*(value for name, value in vars(builtins).items() if name not in _UNKNOWN_BUILTINS))
know(type(None), type(...), type(NotImplemented), type({}.keys()), type({}.values()), type({}.items()))


def class_of(value: object) -> type:
    """`type(value)` for programs."""
    kind = type(value)
    return kind if id(kind) in _known else visible(kind)


def visible(kind: type) -> type:
    """A type as programs may hold it: itself, or what stands for it. Every metaclass is `type` to them."""
    if id(kind) in _known or isinstance(kind, StandInMeta):
        return kind
    return type_stand_in if issubclass(kind, type) else stand_in(kind)


def stand_in(kind: type) -> type:
    """The stand-in of a type that programs may not hold."""
    return _stand_ins.get(kind) or make_stand_in(kind)
