"""What a class of the program's may be derived from and may contain. Nothing here knows which program it is."""

from __future__ import annotations

import builtins
import enum
import types
import typing
from typing import Final

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule, load_rule

BASES: Final = frozenset(
    {
        typing.Generic,  # `class A[T]` derives from it
        *(object, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, property),
        *(
            value
            for value in vars(builtins).values()
            if isinstance(value, type)
            and issubclass(value, BaseException)
            and not issubclass(value, BaseExceptionGroup)  # except* trusts what their methods return
        ),
    }
)


def check_contents(cls: type) -> None:
    """However it came there: a class of the program's has no special attribute that it could not have defined."""
    contents = type.__getattribute__(cls, "__dict__")
    of_enum = isinstance(cls, enum.EnumMeta)
    if names.READ_BY_ASYNCIO in contents:  # as a member that an enumeration was given by a table, say
        raise RefusedAttribute(f"A class may not have the attribute {names.READ_BY_ASYNCIO}.")
    for name in contents:
        if name[:2] == "__" and names.is_dunder(name) and name not in names.OF_CLASSES:
            if of_enum and name == "__reduce_ex__":
                continue  # enum's own, where a type that cannot be pickled is mixed in
            raise RefusedAttribute(f"A class may not have the attribute {name}.")
    if "__match_args__" in contents:
        listed = contents["__match_args__"]
        if type(listed) is not tuple or names.match_args(map(str, listed)) != listed:
            raise RefusedAttribute("__match_args__ may list ordinary names only.")


def may_be_listed(name: str, value: object) -> bool:
    """Whether `vars(cls)` shows an entry. The redirections of enumerations read what their own fields name."""
    return (
        not names.is_dunder(name)
        and not (names.is_sunder(name) and load_rule(name) is Rule.GUARDED)
        and load_rule(name) in (Rule.PLAIN, Rule.PRIVATE, Rule.GUARDED)
        and not isinstance(value, types.DynamicClassAttribute)
    )


def is_namedtuple(cls: type) -> bool:
    """A class of `collections.namedtuple`: a tuple with names, and nothing private that is not the program's."""
    return type(cls) is type and type.mro(cls)[1:] == [tuple, object] and "_fields" in cls.__dict__


def class_name(cls: type) -> str:
    """The name of a class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(cls))
