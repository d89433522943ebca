"""`typing.TypedDict` on Python 3.11, which pydantic does not take there: made into one that it does.

Only annotations are rewritten, and only on Python before 3.12; values are dicts either way.
"""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import typing_extensions

NEEDED = sys.version_info < (3, 12)


def modern(annotation: object) -> object:
    """The annotation with every `typing.TypedDict` in it replaced; the same object if there is none."""
    return _modern(annotation, {}) if NEEDED else annotation


def _modern(annotation: object, made: dict[object, object]) -> object:
    if typing.is_typeddict(annotation):
        return _rebuilt(typing.cast("type", annotation), made)
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is typing.Literal:
        return annotation
    if get_origin(annotation) is Annotated:
        inner = _modern(arguments[0], made)
        return annotation if inner is arguments[0] else Annotated[(inner, *arguments[1:])]
    replaced = tuple(_modern(item, made) for item in arguments)
    if all(new is old for new, old in zip(replaced, arguments, strict=True)):
        return annotation
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return Union[replaced]  # noqa: UP007 - the members are known at run time only
    return origin[replaced[0] if len(replaced) == 1 else replaced]  # type: ignore[index]


def _rebuilt(old: type, made: dict[object, object]) -> object:
    if old in made:
        # It holds itself: what is being made has no name that could be referred to. Pydantic says so.
        return old if made[old] is None else made[old]
    made[old] = None
    hints = get_type_hints(old, include_extras=True)
    required: frozenset[str] = old.__required_keys__  # type: ignore[attr-defined]
    fields: dict[str, object] = {}
    for name, hint in hints.items():
        if get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        whether = typing.Required if name in required else typing.NotRequired
        fields[name] = whether[_modern(hint, made)]
    new: type = typing_extensions.TypedDict(old.__name__, fields)  # type: ignore[misc]
    new.__doc__ = old.__doc__
    new.__module__ = old.__module__
    made[old] = new
    return new
