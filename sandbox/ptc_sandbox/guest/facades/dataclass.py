"""`dataclasses` for programs: the standard library's behaviour on fields that cannot be changed.

The real module runs source made of names that a program can reach and change while it works, with all
builtins at hand; see `dataclass_code` for how it is done here.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass as host_dataclass
from typing import Any

from ptc_sandbox.guest.facades import dataclass_code as code
from ptc_sandbox.guest.facades.dataclass_fields import (
    FIELDS,
    KW_ONLY,
    MISSING,
    PARAMS,
    Field,
    FrozenInstanceError,
    InitVar,
    field,
    fields_of,
    make_field,
    own_fields,
)
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import METHODS, match_args, may_bind

_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


@host_dataclass(frozen=True, slots=True)
class Parameters:
    """The arguments of `@dataclass`."""

    init: bool = True
    repr: bool = True
    eq: bool = True
    order: bool = False
    unsafe_hash: bool = False
    frozen: bool = False
    match_args: bool = True
    kw_only: bool = False
    slots: bool = False
    weakref_slot: bool = False


def process(cls: type, parameters: Parameters, guards: Guards) -> type:
    """Make `cls`, one of the program's own classes, a dataclass. With slots it is a new class."""
    inherited, frozen_bases = _inherited(cls)
    for is_frozen in frozen_bases:
        if is_frozen and not parameters.frozen:
            raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
        if not is_frozen and parameters.frozen:
            raise TypeError("cannot inherit frozen dataclass from a non-frozen one")
    if parameters.order and not parameters.eq:
        raise ValueError("eq must be true if order is true")
    own = own_fields(cls, parameters.kw_only)
    fields = {**inherited, **{one.name: one for one in own}}
    for one in own:
        if type(cls.__dict__.get(one.name)) is Field:
            if one.default is MISSING:
                delattr(cls, one.name)
            else:
                setattr(cls, one.name, one.default)
    setattr(cls, FIELDS, fields)
    setattr(cls, PARAMS, parameters)
    _add_methods(cls, parameters, list(fields.values()), guards.getattr)
    if parameters.slots:
        cls = guards.adopt(
            _with_slots(cls, [one.name for one in own if one.kind == "field"], parameters.weakref_slot)
        )
    elif parameters.weakref_slot:
        raise TypeError("weakref_slot is True but slots is False")
    return cls


def _inherited(cls: type) -> tuple[dict[str, Field], list[bool]]:
    fields: dict[str, Field] = {}
    frozen = []
    for base in type.mro(cls)[:0:-1]:
        if type(base.__dict__.get(PARAMS)) is Parameters:
            fields.update(fields_of(base))
            frozen.append(base.__dict__[PARAMS].frozen)
    return fields, frozen


def _add_methods(cls: type, parameters: Parameters, every: list[Field], read: code.Read) -> None:
    real = [one for one in every if one.kind == "field"]
    had_eq = "__eq__" in cls.__dict__
    had_hash = "__hash__" in cls.__dict__ and not (cls.__dict__["__hash__"] is None and had_eq)
    ordered = [one for one in every if not one.kw_only] + [one for one in every if one.kw_only]
    if parameters.init:
        made = code.init_method(
            cls, ordered, parameters.frozen, parameters.slots, hasattr(cls, "__post_init__")
        )
        setattr(cls, "__init__", made)  # noqa: B010
    if parameters.repr:
        _set_new(cls, "__repr__", code.repr_method(cls, [one for one in real if one.repr], read))
    compared = [one for one in real if one.compare]
    if parameters.eq:
        _set_new(cls, "__eq__", code.comparison_method(cls, "__eq__", "==", compared, read))
    if parameters.order:
        for name, operator in _ORDER.items():
            if not _set_new(cls, name, code.comparison_method(cls, name, operator, compared, read)):
                raise TypeError(
                    f"Cannot overwrite attribute {name} in class {cls.__name__}."
                    " Consider using functools.total_ordering"
                )
    if parameters.frozen:
        for name, method in code.frozen_methods(cls, real).items():
            if not _set_new(cls, name, method):
                raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
    _set_hash(cls, parameters, had_hash, compared, read)
    if parameters.match_args:
        _set_new(cls, "__match_args__", match_args(one.name for one in every if one.init and not one.kw_only))
    _set_new(cls, "__replace__", lambda self, /, **changes: _replaced(self, changes, read))
    if not getattr(cls, "__doc__"):  # noqa: B009
        cls.__doc__ = cls.__name__ + code.signature(ordered if parameters.init else [])


def _set_new(cls: type, name: str, value: Any) -> bool:
    if name in cls.__dict__:
        return False
    setattr(cls, name, value)
    return True


def _set_hash(
    cls: type, parameters: Parameters, had_hash: bool, compared: list[Field], read: code.Read
) -> None:
    """The table of the standard library: unsafe_hash, eq and frozen decide."""
    hashed = [one for one in compared if one.hash is None or one.hash]
    if parameters.unsafe_hash:
        if had_hash:
            raise TypeError(f"Cannot overwrite attribute __hash__ in class {cls.__name__}")
        setattr(cls, "__hash__", code.hash_method(cls, hashed, read))  # noqa: B010
    elif parameters.eq and not had_hash:
        setattr(cls, "__hash__", code.hash_method(cls, hashed, read) if parameters.frozen else None)  # noqa: B010


def _with_slots(cls: type, names: list[str], weakref: bool) -> type:
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited = {slot for base in type.mro(cls)[1:-1] for slot in _slots_of(base)}
    contents = {key: value for key, value in cls.__dict__.items() if key not in ("__dict__", "__weakref__")}
    for name in names:
        contents.pop(name, None)
    contents["__slots__"] = (
        tuple(name for name in names if name not in inherited) + ("__weakref__",) * weakref
    )
    made = type(cls)(cls.__name__, cls.__bases__, contents)
    made.__qualname__ = cls.__qualname__
    for value in contents.values():
        _point_to(value, cls, made)
    return made


def _slots_of(base: type) -> tuple[str, ...]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _point_to(value: Any, old: type, new: type) -> None:
    """`super()` and `__class__` in the methods of a class that was made anew mean the new one."""
    value = getattr(value, "__func__", value)
    parts = (value.fget, value.fset, value.fdel) if type(value) is property else (value,)
    for function in parts:
        if type(function) is not types.FunctionType:
            continue
        code.belongs_to(function, old, new)
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
                if held is old:
                    cell.cell_contents = new
                elif type(held) is types.FunctionType:
                    code.belongs_to(held, old, new)  # inside the guard against recursion of __repr__
            except ValueError:
                continue  # an empty cell


def fields(class_or_instance: Any) -> tuple[Field, ...]:
    """The fields of a dataclass or of one of its instances."""
    cls = class_or_instance if isinstance(class_or_instance, type) else type(class_or_instance)
    for base in type.mro(cls):
        if FIELDS in base.__dict__:
            return tuple(one for one in fields_of(base).values() if one.kind == "field")
    raise TypeError("must be called with a dataclass type or instance")


def is_dataclass(obj: Any) -> bool:
    """Whether `obj` is a dataclass or an instance of one."""
    cls = obj if isinstance(obj, type) else type(obj)
    return any(FIELDS in base.__dict__ for base in type.mro(cls))


def _is_instance(obj: Any) -> bool:
    return not isinstance(obj, type) and is_dataclass(obj)


def _converted(obj: Any, outer: Callable[[list[tuple[str, Any]]], Any], read: code.Read) -> Any:
    if _is_instance(obj):
        return outer([(one.name, _converted(read(obj, one.name), outer, read)) for one in fields(obj)])
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(_converted(item, outer, read) for item in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(_converted(item, outer, read) for item in obj)
    if isinstance(obj, dict):
        kind: Any = type(obj)
        pairs = ((_converted(key, outer, read), _converted(value, outer, read)) for key, value in obj.items())
        if hasattr(kind, "default_factory"):
            made = kind(getattr(obj, "default_factory"))  # noqa: B009
            made.update(pairs)
            return made
        return kind(pairs)
    return copy.deepcopy(obj)


def _replaced(obj: Any, changes: dict[str, Any], read: code.Read) -> Any:
    """A copy of a dataclass instance with some fields changed."""
    if not _is_instance(obj):
        raise TypeError("replace() should be called on dataclass instances")
    cls = type(obj)
    every = next(fields_of(base) for base in type.mro(cls) if FIELDS in base.__dict__)
    for one in every.values():
        if not one.init:
            if one.name in changes:
                raise TypeError(
                    f"field {one.name} is declared with init=False, it cannot be specified with replace()"
                )
        elif one.name not in changes:
            if one.kind == "initvar" and one.default is MISSING:
                raise TypeError(f"InitVar {one.name!r} must be specified with replace()")
            changes[one.name] = read(obj, one.name)
    return cls(**changes)


def members(guards: Guards) -> dict[str, Any]:
    """The whole of `dataclasses`."""
    read = guards.getattr

    def asdict(obj: Any, *, dict_factory: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
        """The fields of a dataclass instance as a dict, recursively."""
        if not _is_instance(obj):
            raise TypeError("asdict() should be called on dataclass instances")
        return _converted(obj, dict_factory, read)

    def astuple(obj: Any, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
        """The values of a dataclass instance as a tuple, recursively."""
        if not _is_instance(obj):
            raise TypeError("astuple() should be called on dataclass instances")
        return _converted(obj, lambda pairs: tuple_factory([value for _, value in pairs]), read)

    def replace(obj: Any, /, **changes: Any) -> Any:
        """A copy of a dataclass instance with some fields changed."""
        return _replaced(obj, changes, read)

    def dataclass(cls: type | None = None, /, **parameters: Any) -> Any:
        chosen = Parameters(**parameters)

        def decorate(cls: type) -> type:
            if not isinstance(cls, type) or not guards.owns_class(cls):
                raise TypeError("dataclass() should decorate a class of the program")
            return process(cls, chosen, guards)

        return decorate if cls is None else decorate(cls)

    def make_dataclass(
        cls_name: str,
        fields: Any,
        *,
        bases: tuple[type, ...] = (),
        namespace: Mapping[str, Any] | None = None,
        module: Any = None,
        **parameters: Any,
    ) -> type:
        annotations: dict[str, Any] = {}
        contents: dict[str, Any] = {}
        for item in fields:
            name, kind, *default = (item, "typing.Any") if isinstance(item, str) else item
            if code.checked_name(name) in annotations:
                raise TypeError(f"Field name duplicated: {name!r}")
            annotations[name] = kind
            contents.update({name: default[0]} if default else {})
        for name, value in (namespace or {}).items():
            if type(name) is not str or not (may_bind(name) or name in METHODS):
                raise RefusedAttribute(f"A class may not have the attribute {name}.")
            contents[name] = value

        def body(scope: dict[str, Any]) -> None:
            scope.update(contents)
            scope["__module__"] = "__main__"

        made = guards.new_class(cls_name, bases, body)
        made.__annotations__ = annotations
        return process(made, Parameters(**parameters), guards)

    public = (field, fields, asdict, astuple, replace, is_dataclass, dataclass, make_dataclass)
    for function in (asdict, astuple, replace, dataclass, make_dataclass):
        function.__qualname__ = function.__name__
        function.__module__ = "dataclasses"
    return {
        **{function.__name__: function for function in public},
        "Field": Field,
        "FrozenInstanceError": FrozenInstanceError,
        "InitVar": InitVar,
        "KW_ONLY": KW_ONLY,
        "MISSING": MISSING,
    }


__all__ = ["make_field", "members"]
