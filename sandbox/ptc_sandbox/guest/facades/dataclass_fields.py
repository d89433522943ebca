"""The fields of a dataclass: immutable descriptions, read from the annotations of a class.

An annotation that is text (`from __future__ import annotations`) is looked at, never evaluated.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from ptc_sandbox.guest.policy_errors import RefusedAttribute

MISSING: Final[Any] = dataclasses.MISSING
KW_ONLY: Final[Any] = dataclasses.KW_ONLY
InitVar = dataclasses.InitVar
FrozenInstanceError = dataclasses.FrozenInstanceError
FIELDS: Final = "__dataclass_fields__"
PARAMS: Final = "__dataclass_params__"


class _Factory:
    """Stands in a signature for a default that is made anew for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY: Final = _Factory()

_LAZY = sys.version_info >= (3, 14)  # annotations are evaluated when they are asked for
_MARKED_TEXT = re.compile(r"^(?:\s*\w+\s*\.)?\s*(ClassVar|InitVar|KW_ONLY)\b")


class Field:
    """What `fields()` shows of a field. Cannot be changed: methods are generated from it."""

    __slots__ = (
        *(
            "name",
            "type",
            "default",
            "default_factory",
            "init",
            "repr",
            "hash",
            "compare",
            "metadata",
            "kw_only",
        ),
        "kind",
    )

    name: str
    type: Any
    default: Any
    default_factory: Any
    init: bool
    repr: bool
    hash: bool | None
    compare: bool
    metadata: Mapping[Any, Any]
    kw_only: Any
    kind: str

    def __new__(cls, *args: object, **kwargs: object) -> Field:
        raise TypeError("use dataclasses.field() to describe a field")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RefusedAttribute("A field cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise RefusedAttribute("A field cannot be changed.")

    @property
    def has_default(self) -> bool:
        """Whether `__init__` can do without it."""
        return self.default is not MISSING or self.default_factory is not MISSING

    def __repr__(self) -> str:
        shown = ",".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "kind")
        return f"Field({shown})"


def make_field(**values: Any) -> Field:
    """A field; what is not given has the defaults of `dataclasses.field`."""
    made = object.__new__(Field)
    complete = {
        "name": None,
        "type": None,
        "default": MISSING,
        "default_factory": MISSING,
        "init": True,
        "repr": True,
        "hash": None,
        "compare": True,
        "metadata": types.MappingProxyType({}),
        "kw_only": MISSING,
        "kind": "field",
        **values,
    }
    for name, value in complete.items():
        object.__setattr__(made, name, value)
    return made


def changed(field: Field, **values: Any) -> Field:
    """A copy of `field` with other values."""
    return make_field(**{name: getattr(field, name) for name in Field.__slots__} | values)


def field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    hash: bool | None = None,
    compare: bool = True,
    metadata: Mapping[Any, Any] | None = None,
    kw_only: Any = MISSING,
) -> Any:
    """Describe a field of a dataclass, as the standard library's `field`."""
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return make_field(
        default=default,
        default_factory=default_factory,
        init=bool(init),
        repr=bool(repr),
        hash=hash,
        compare=bool(compare),
        metadata=types.MappingProxyType({} if metadata is None else dict(metadata)),
        kw_only=kw_only,
    )


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations of the class body itself; as text where a name in them is not known yet."""
    if not _LAZY:
        return dict(inspect.get_annotations(cls))
    annotationlib: Any = importlib.import_module("annotationlib")
    try:
        return dict(annotationlib.get_annotations(cls))
    except NameError:
        return dict(annotationlib.get_annotations(cls, format=annotationlib.Format.STRING))


def own_fields(cls: type, kw_only: bool) -> list[Field]:
    """The fields that the body of `cls` declares, ClassVars left out."""
    from ptc_sandbox.guest.facades.dataclass_code import checked_name

    found: list[Field] = []
    for name, annotation in own_annotations(cls).items():
        kind = _kind(annotation)
        if kind == "kw_only":
            kw_only = True
            continue
        if kind == "classvar":
            continue
        found.append(_own_field(cls, checked_name(name), annotation, kind, kw_only))
    declared = {one.name for one in found}
    for name, value in list(cls.__dict__.items()):
        if type(value) is Field and name not in declared:
            raise TypeError(f"{name!r} is a field but has no type annotation")
    return found


def _own_field(cls: type, name: str, annotation: Any, kind: str, kw_only: bool) -> Field:
    default = cls.__dict__.get(name, MISSING)
    if isinstance(default, types.MemberDescriptorType):
        default = MISSING  # a slot of the class, not a default
    given = default if type(default) is Field else make_field(default=default)
    if given.default is not MISSING and type(given.default).__hash__ is None:
        raise ValueError(
            f"mutable default {type(given.default)} for field {name} is not allowed: use default_factory"
        )
    if kind == "initvar" and given.default_factory is not MISSING:
        raise TypeError(f"field {name} cannot have a default factory")
    only = kw_only if given.kw_only is MISSING else given.kw_only
    return changed(given, name=name, type=annotation, kind=kind, kw_only=only)


def _kind(annotation: Any) -> str:
    if type(annotation) is str:
        match = _MARKED_TEXT.match(annotation)
        return match[1].lower() if match else "field"
    if annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar:
        return "classvar"
    if annotation is KW_ONLY:
        return "kw_only"
    if annotation is InitVar or type(annotation) is InitVar:
        return "initvar"
    return "field"


def fields_of(cls: type) -> dict[str, Field]:
    """The fields of a dataclass by name, inherited ones first; those of a class that is none are {}."""
    found = cls.__dict__.get(FIELDS, {})
    return {name: one for name, one in found.items() if type(one) is Field}
