"""The language wall while a program runs: what stands behind computed names, private names and classes.

One `Guards` belongs to one program. It knows which classes the program defined, trusts nothing that a
program's object says about itself, and never hands out a namespace, a frame or a type that makes them.
"""

from __future__ import annotations

import builtins
import enum
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, Final, NoReturn

from ptc_sandbox.guest import policy_names as names
from ptc_sandbox.guest.environment import Environment
from ptc_sandbox.guest.guards_classes import BASES, check_contents, class_name, is_namedtuple, may_be_listed
from ptc_sandbox.guest.guards_clock import clock_attribute
from ptc_sandbox.guest.guards_format import safe_format, safe_format_map
from ptc_sandbox.guest.guards_types import METACLASSES, StandInMeta, class_of, know, visible
from ptc_sandbox.guest.output import Output
from ptc_sandbox.guest.policy_errors import RefusedAttribute, RefusedCall
from ptc_sandbox.guest.policy_names import Rule, load_rule, store_rule

_METHOD: Final = types.BuiltinMethodType
_CACHE: Final = functools._lru_cache_wrapper
_ALIASES: Final[tuple[type, ...]] = (types.GenericAlias, typing._GenericAlias)  # type: ignore[attr-defined]
_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_real_getattr = getattr
_real_build_class = builtins.__build_class__


class Guards:
    """The guards of one program. `adopt` is called for each class that it defines."""

    def __init__(self, environment: Environment, namespace: dict[str, Any]) -> None:
        self.environment = environment
        self.stdout, self.stderr = Output(environment.write_output), Output(environment.write_output)
        self.classes: dict[int, type] = {}
        self._building = 0
        self.bases: set[Any] = set(BASES)
        self._namespace = namespace
        self.own = self._make_own()
        self._special: dict[str, Callable[[Any, str], Any]] = {
            "format": self._format,
            "format_map": self._format,
            **dict.fromkeys(("now", "today", "utcnow"), self._clock),
            "__init__": self._init,
            "__wrapped__": self._wrapped,
            "__class__": lambda obj, _: class_of(obj),
            "__dict__": self._dict,
            "__annotations__": self._annotations,
            **dict.fromkeys(
                ("__members__", "_member_map_", "_member_names_", "_value2member_map_"), self._members
            ),
            "__get__": self._get,
            "obj": self._obj,
            "__setattr__": self._setattr_of,
            "__delattr__": self._setattr_of,
        }

    def adopt(self, cls: type) -> type:
        """The class belongs to the program: its private attributes are the program's."""
        check_contents(cls)
        self.classes[id(cls)] = cls
        know(cls)
        return cls

    def owns_class(self, cls: type) -> bool:
        """Whether the program defined this class."""
        return id(cls) in self.classes

    # -- whose is it ---------------------------------------------------------------------------------

    def _make_own(self) -> Callable[[Any, str], Any]:
        classes, owns = self.classes, self._owns

        def own(obj: Any, name: str) -> Any:
            """`obj`, if the program defined it; else RefusedAttribute."""
            if id(type(obj)) in classes or owns(obj, name):
                return obj
            raise RefusedAttribute(
                f"The attribute {name} of {class_of(obj).__name__} is private: only attributes of the program's own"
                " classes may start with an underscore."
            )

        return own

    def _owns(self, obj: Any, name: str) -> bool:
        kind = type(obj)
        if id(kind) in self.classes or kind is types.SimpleNamespace:
            return True
        if self._building and self._is_being_built(obj if isinstance(obj, type) else kind):
            return True
        if isinstance(obj, type):
            return id(obj) in self.classes or (name in names.NAMEDTUPLE and issubclass(obj, tuple))
        if kind is types.FunctionType:
            return obj.__globals__ is self._namespace
        if kind is super:
            return id(_self_class_of(obj)) in self.classes
        return name in names.NAMEDTUPLE and isinstance(obj, tuple)

    def _is_being_built(self, cls: type) -> bool:
        """A class uses itself before its statement ends: `__init_subclass__`, `__set_name__`, enum members."""
        contents = type.__getattribute__(cls, "__dict__")
        if contents.get("__module__") != "__main__" or not cls.__flags__ & _HEAP_TYPE:
            return False
        self.adopt(cls)
        return True

    # -- attributes ----------------------------------------------------------------------------------

    def attribute(self, obj: Any, name: str) -> Any:
        """An attribute whose name is harmless on some objects only."""
        special = self._special.get(name)
        if special is not None:
            return special(obj, name)
        self.own(obj, name)  # get_loop, get_coro, …: of a program's own object only
        return _real_getattr(obj, name)

    def _format(self, obj: Any, name: str) -> Any:
        found = _real_getattr(obj, name)
        safe = safe_format if name == "format" else safe_format_map
        if type(found) is _METHOD and isinstance(found.__self__, str):
            return _bind(safe, found.__self__, name)
        if type(found) is types.MethodDescriptorType and found.__objclass__ is str:
            return safe
        return found

    def _clock(self, obj: Any, name: str) -> Any:
        return clock_attribute(_real_getattr(obj, name), name, self.environment)

    def _wrapped(self, obj: Any, name: str) -> Any:
        """What `functools.wraps` or a cache wrapped, as a function of the program's says."""
        if type(obj) is not _CACHE:
            self.own(obj, name)
        return _real_getattr(obj, name)

    def _init(self, obj: Any, name: str) -> Any:
        if isinstance(obj, type):
            allowed = self.owns_class(obj) or (obj in self.bases and obj is not property)
        else:
            of = self._self_of(obj)  # the object behind a `super`: one of the library's is not made anew
            allowed = self.owns_class(of if isinstance(of, type) else type(of))
        found = _real_getattr(obj, name) if allowed else None
        if type(found) is types.WrapperDescriptorType and found.__objclass__ is property:
            allowed = False  # through a class derived from property, it would change any property there is
        if type(found) is types.MethodWrapperType and type(found.__self__) is super:
            allowed = False  # it would make another object of what a check has passed
        if not allowed:
            raise RefusedAttribute("Programs may call __init__ through super() or a class only.")
        return found

    def _dict(self, obj: Any, name: str) -> Any:
        if isinstance(obj, type):
            if self._owns(obj, name):
                own = type.__getattribute__(obj, "__dict__")
                return types.MappingProxyType({key: own[key] for key in own if may_be_listed(key, own[key])})
        elif self._owns(obj, name) and type(obj) is not super:
            return _real_getattr(obj, "__dict__")
        raise RefusedAttribute(f"Programs may not read the namespace of {class_of(obj).__name__}.")

    def _get(self, obj: Any, name: str) -> Any:
        """A class method that is bound by hand, without an owner, is bound to the real type of what it is given."""
        found = _real_getattr(obj, name)
        binder: Any = obj if isinstance(obj, type) else type(obj)
        if type(found) is types.MethodWrapperType:
            binder = type(found.__self__)
        elif type(found) is types.WrapperDescriptorType:
            binder = found.__objclass__
        if issubclass(binder, classmethod):
            raise RefusedAttribute("Programs may not bind a class method by hand: call it on the class.")
        by_hand: Any = functools.partialmethod.__get__
        if found is by_hand or _real_getattr(found, "__func__", None) is by_hand:
            raise RefusedAttribute("Programs may not bind a partialmethod by hand: call it on an instance.")
        return found

    def _obj(self, obj: Any, name: str) -> Any:
        """`error.obj` is whatever lacked the attribute: a value as programs may hold it, or None."""
        found = _real_getattr(obj, name)
        if type(found) is types.MemberDescriptorType and issubclass(found.__objclass__, AttributeError):
            raise RefusedAttribute("Read obj of the error itself.")
        if isinstance(found, type):
            return visible(found)
        if not issubclass(type(obj), (AttributeError, super, *_ALIASES)):
            return found
        return found if self.owns_class(type(found)) or class_of(found) is type(found) else None

    def _annotations(self, obj: Any, name: str) -> Any:
        if (
            obj is not None
            and type(obj) is not super
            and (isinstance(obj, type) or type(obj) is types.FunctionType)
        ):
            self.own(obj, name)
            told = dict(_real_getattr(obj, name))
            return {  # a reference to a name could be asked to evaluate itself
                key: value.__forward_arg__ if isinstance(value, typing.ForwardRef) else value
                for key, value in told.items()
            }
        raise RefusedAttribute("Programs may read __annotations__ of their own classes and functions only.")

    def _members(self, obj: Any, name: str) -> Any:
        """The tables of an enumeration as copies: what is made of the real ones would be made of a program's."""
        if not (isinstance(obj, type) and issubclass(type(obj), enum.EnumMeta)):
            self.own(obj, name)
        found = _real_getattr(obj, name)
        if isinstance(found, (dict, types.MappingProxyType)):
            copied = dict(found.items())
            return types.MappingProxyType(copied) if name == "__members__" else copied
        return list(found) if isinstance(found, list) else found

    def _setattr_of(self, obj: Any, name: str) -> Any:
        """`super().__setattr__(name, value)` and `object.__setattr__(self, name, value)`."""
        self.own(obj, name) if not isinstance(obj, type) else None
        found = _real_getattr(obj, name)
        target = self._self_of(obj)

        def change(*args: Any) -> None:
            checked, attribute = (
                (target, args[:1]) if target is not None else (args[:1] and args[0], args[1:2])
            )
            self.check_store(checked, attribute[0] if attribute else None)
            self.own(checked, name)
            found(*args)

        change.__name__ = change.__qualname__ = name
        return change

    @staticmethod
    def _self_of(obj: Any) -> Any:
        if isinstance(obj, type):
            return None
        return super.__self__.__get__(obj) if type(obj) is super else obj  # type: ignore[attr-defined]

    def check_store(self, obj: Any, name: Any) -> None:
        """Raise RefusedAttribute if a program may not set or delete the attribute `name` of `obj`."""
        _exact(name)
        if isinstance(obj, _ALIASES):
            raise RefusedAttribute("Programs may not set attributes through a generic alias.")
        rule = store_rule(name)
        if rule is Rule.REFUSED or (name == "split" and isinstance(obj, BaseExceptionGroup)):
            raise RefusedAttribute(f"Programs may not set the attribute {name}.")
        if rule is Rule.PRIVATE:
            self.own(obj, name)

    # -- builtins that take a name -------------------------------------------------------------------

    def getattr(self, obj: Any, name: str, *default: Any) -> Any:
        """`getattr` for programs."""
        _exact(name)
        rule = load_rule(name)
        if rule is Rule.PLAIN:
            return _real_getattr(obj, name, *default)
        if rule is Rule.REFUSED or name == "__class__":
            raise RefusedAttribute(f"Programs may not read the attribute {name}.")
        if len(default) > 1:
            raise TypeError(f"getattr expected at most 3 arguments, got {2 + len(default)}")
        try:
            return (
                self.attribute(obj, name)
                if rule is Rule.GUARDED
                else _real_getattr(self.own(obj, name), name)
            )
        except AttributeError as error:
            if default and not isinstance(error, RefusedAttribute):
                return default[0]
            raise

    def hasattr(self, obj: Any, name: str) -> bool:
        """`hasattr` for programs: what may not be read is not there."""
        try:
            self.getattr(obj, name)
        except AttributeError:
            return False
        return True

    def setattr(self, obj: Any, name: str, value: Any) -> None:
        """`setattr` for programs."""
        self.check_store(obj, name)
        setattr(obj, name, value)

    def delattr(self, obj: Any, name: str) -> None:
        """`delattr` for programs."""
        self.check_store(obj, name)
        delattr(obj, name)

    def vars(self, *args: Any) -> Any:
        """`vars(x)` for programs."""
        if len(args) != 1:
            raise RefusedCall("vars() needs an object: programs cannot look into their own namespace.")
        return self._dict(args[0], "__dict__")

    def dir(self, *args: Any) -> list[str]:
        """`dir(x)` for programs: the names that they may read."""
        if len(args) != 1:
            raise RefusedCall("dir() needs an object: programs cannot look into their own namespace.")
        obj = args[0]
        found = [name for name in dir(obj) if type(name) is str]
        mine = self._owns(obj, "_")
        return [
            name
            for name in found
            if (rule := load_rule(name)) is Rule.PLAIN
            or (rule is Rule.PRIVATE and mine)
            or (rule is Rule.GUARDED and not names.is_dunder(name))
        ]

    # -- classes -------------------------------------------------------------------------------------

    def build_class(self, body: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
        """What a class statement calls."""
        for base in bases:
            self._check_base(base, bases)
        if "metaclass" in keywords:
            keywords["metaclass"] = self._metaclass(keywords["metaclass"])
        self._building += 1
        try:
            return self.adopt(_real_build_class(body, name, *bases, **keywords))
        finally:
            self._building -= 1

    def new_class(self, name: str, bases: tuple[Any, ...], body: Callable[[dict[str, Any]], None]) -> type:
        """A class made by a function, for modules that make classes from data they checked."""
        bases = (*bases,)  # read once: an iterator or a derived tuple could say something else the next time
        if type(name) is not str:
            raise TypeError("the name of a class must be a str")
        for base in bases:
            self._check_base(base, bases)
        self._building += 1
        try:
            return self.adopt(types.new_class(name, bases, {}, body))
        finally:
            self._building -= 1

    def _check_base(self, base: Any, bases: tuple[Any, ...]) -> None:
        if isinstance(base, type):
            if not (self.owns_class(base) or base in self.bases or is_namedtuple(base)):
                self._refuse_base(class_name(base))
        elif isinstance(base, _ALIASES):
            for behind in types.resolve_bases((base,)):
                self._check_base(behind, bases)
        elif base is not typing.NamedTuple and base is not typing.TypedDict:
            self._refuse_base(class_of(base).__name__)

    def _refuse_base(self, name: str) -> NoReturn:
        raise RefusedCall(
            f"Programs may not derive a class from {name}. Keep one in an attribute instead.",
            "forbidden_class",
        )

    def _metaclass(self, metaclass: Any) -> type:
        found = METACLASSES.get(metaclass) if isinstance(metaclass, StandInMeta) else None
        if found is None:
            raise RefusedCall("Programs may use ABCMeta as a metaclass, and no other.", "forbidden_class")
        return found


def _self_class_of(obj: Any) -> Any:
    return super.__self_class__.__get__(obj)  # type: ignore[attr-defined]


def _exact(name: Any) -> None:
    if type(name) is not str:
        if isinstance(name, str):
            raise RefusedAttribute(
                "The name of an attribute must be a plain str, not an instance of a subclass."
            )
        raise TypeError(f"attribute name must be string, not '{class_of(name).__name__}'")


def _bind(safe: Callable[..., str], template: str, name: str) -> Callable[..., str]:
    def bound(*args: object, **kwargs: object) -> str:
        return safe(template, *args, **kwargs)

    bound.__name__ = bound.__qualname__ = name
    return bound
