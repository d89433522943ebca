"""The methods of a dataclass, generated as source, by names that were checked, without any builtins.

The standard library does the same from names that a program can change under its hands; here the fields are
immutable, and the source is made of identifiers only: every value goes in as a global of the function.
"""

from __future__ import annotations

import inspect
import keyword
import reprlib
import types
from collections.abc import Callable, Sequence
from typing import Any

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.facades.dataclass_fields import FACTORY, MISSING, Field, FrozenInstanceError
from ptc_sandbox.guest.policy_errors import RefusedAttribute
from ptc_sandbox.guest.policy_names import Rule

_RESERVED = "_ptc_"
_CLASS = "_ptc_class"
GENERATED = "_ptc_generated"
"""Stands in the namespace of a generated `__repr__`."""
_FILE = "<dataclass>"

Read = Callable[[Any, str], Any]
"""How an attribute is read whose name is not harmless on everything: by the guard."""


def checked_name(name: Any) -> str:
    """The name of a field, if it is a plain identifier; the generated source depends on it."""
    if type(name) is not str or not name.isidentifier():
        raise TypeError(f"Field names must be valid identifiers: {name!r}")
    if keyword.iskeyword(name):
        raise TypeError(f"Field names must not be keywords: {name!r}")
    if name.startswith(_RESERVED):
        raise RefusedAttribute(f"A field may not be called {name}.")
    return names.checked_name(name)


def _make(
    cls: type, name: str, parameters: Sequence[str], body: Sequence[str], values: dict[str, Any]
) -> Any:
    me = parameters[0]
    lines = [f"if _ptc_type({me}) is not {_CLASS}: _ptc_check({me}, {_CLASS})", *body]
    source = f"def {name}({', '.join(parameters)}):\n" + "".join(f" {line}\n" for line in lines)
    namespace: dict[str, Any] = {
        "__builtins__": {},
        "__name__": "__main__",
        _CLASS: cls,
        "_ptc_type": type,
        "_ptc_check": _check_instance,
        "_ptc_factory": FACTORY,
        **values,
    }
    exec(compile(source, _FILE, "exec", dont_inherit=True), namespace)  # noqa: S102 -- see checked_name
    made = namespace.pop(name)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    return made


def _check_instance(obj: Any, cls: type) -> None:
    """The methods read and write attributes by name: of instances of their class only, whatever an ABC says."""
    if cls not in type.mro(type(obj)):
        raise TypeError(f"an instance of {cls.__name__} is needed")


def belongs_to(method: types.FunctionType, old: type, new: type) -> None:
    """A method that was generated for `old` is one of `new` from now on; other functions are left alone."""
    if method.__code__.co_filename == _FILE and method.__globals__.get(_CLASS) is old:
        method.__globals__[_CLASS] = new


def init_method(cls: type, fields: Sequence[Field], frozen: bool, slots: bool, has_post_init: bool) -> Any:
    """`__init__` for fields in the order of its parameters."""
    me = "self" if all(field.name != "self" for field in fields) else "_ptc_self"
    values: dict[str, Any] = {"_ptc_set": object.__setattr__}
    positional = [field for field in fields if field.init and not field.kw_only]
    by_name = [field for field in fields if field.init and field.kw_only]
    seen_default = None
    for field in positional:
        if field.has_default:
            seen_default = field
        elif seen_default is not None:
            raise TypeError(
                f"non-default argument {field.name!r} follows default argument {seen_default.name!r}"
            )
    parameters = [me, *(_parameter(field, values) for field in positional)]
    if by_name:
        parameters += ["*", *(_parameter(field, values) for field in by_name)]
    body = []
    for field in fields:
        name, value = checked_name(field.name), None
        if field.default_factory is not MISSING:
            values[f"_ptc_make_{name}"] = field.default_factory
            value = f"_ptc_make_{name}()"
            if field.init:
                value = f"{value} if {name} is _ptc_factory else {name}"
        elif field.init:
            value = name
        elif slots and field.default is not MISSING:
            values[f"_ptc_default_{name}"] = field.default
            value = f"_ptc_default_{name}"
        if value is not None and field.kind == "field":
            body.append(f"_ptc_set({me}, {name!r}, {value})" if frozen else f"{me}.{name} = {value}")
    if has_post_init:
        body.append(
            f"{me}.__post_init__({', '.join(field.name for field in fields if field.kind == 'initvar')})"
        )
    made = _make(cls, "__init__", parameters, body, values)
    made.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return made


def _parameter(field: Field, values: dict[str, Any]) -> str:
    name = checked_name(field.name)
    if field.default is not MISSING:
        values[f"_ptc_default_{name}"] = field.default
        return f"{name}=_ptc_default_{name}"
    return f"{name}=_ptc_factory" if field.default_factory is not MISSING else name


def _reads(me: str, field: Field) -> str:
    name = checked_name(field.name)
    return f"_ptc_read({me}, {name!r})" if names.load_rule(name) is Rule.GUARDED else f"{me}.{name}"


def repr_method(cls: type, fields: Sequence[Field], read: Read) -> Any:
    """`__repr__`: `Point(x=1, y=2)`, safe against objects that contain themselves."""
    shown = ", ".join(f"{checked_name(field.name)}={{{_reads('self', field)}!r}}" for field in fields)
    body = [f'return f"{{_ptc_type(self).__qualname__}}({shown})"']
    made = _make(cls, "__repr__", ["self"], body, {"_ptc_read": read})
    guarded = reprlib.recursive_repr()(made)
    guarded.__qualname__ = made.__qualname__
    guarded.__dict__[GENERATED] = True
    return guarded


def signature(fields: Sequence[Field]) -> str:
    """What `inspect.signature` says of `__init__`, for fields in the order of its parameters."""
    shown = []
    for field in (one for one in fields if one.init):
        if field.kw_only and "*" not in shown:
            shown.append("*")
        default = f" = {field.default!r}" if field.default is not MISSING else ""
        default = " = <factory>" if field.default_factory is not MISSING else default
        shown.append(f"{field.name}: {inspect.formatannotation(field.type)}{default}")
    return f"({', '.join(shown)})"


def _values(name: str, fields: Sequence[Field]) -> str:
    return "(" + "".join(f"{_reads(name, field)}, " for field in fields) + ")"


def comparison_method(cls: type, name: str, operator: str, fields: Sequence[Field], read: Read) -> Any:
    """`__eq__`, `__lt__`, …: by the tuple of the fields, among instances of the same class."""
    body = [
        "if _ptc_type(other) is not _ptc_type(self): return _ptc_not_implemented",
        f"return {_values('self', fields)} {operator} {_values('other', fields)}",
    ]
    values = {"_ptc_not_implemented": NotImplemented, "_ptc_read": read}
    return _make(cls, name, ["self", "other"], body, values)


def hash_method(cls: type, fields: Sequence[Field], read: Read) -> Any:
    """`__hash__`: of the tuple of the fields."""
    body = [f"return _ptc_hash({_values('self', fields)})"]
    return _make(cls, "__hash__", ["self"], body, {"_ptc_hash": hash, "_ptc_read": read})


def frozen_methods(cls: type, fields: Sequence[Field]) -> dict[str, Callable[..., Any]]:
    """`__setattr__` and `__delattr__` that refuse the fields."""
    held = frozenset(field.name for field in fields)

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in held:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in held:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    for made in (__setattr__, __delattr__):
        made.__qualname__ = f"{cls.__qualname__}.{made.__name__}"
    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
