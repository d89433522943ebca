"""Parts of `functools` and `operator` that take names or copy attributes, on the guards."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.policy_errors import RefusedAttribute, RefusedCall
from ptc_sandbox.guest.policy_names import Rule, checked_name, load_rule

_lru_cache_wrapper: Any = functools._lru_cache_wrapper
_CacheInfo: Any = functools._CacheInfo
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")


def operator_members(guards: Guards) -> dict[str, Any]:
    """`attrgetter` and `methodcaller`: the real ones where every name is ordinary, else on `getattr`'s guard."""

    def attrgetter(attr: str, /, *attrs: str) -> Callable[[Any], Any]:
        for name in (attr, *attrs):
            if type(name) is not str:
                raise _not_a_name(name)
        if all(_is_plain(part) for name in (attr, *attrs) for part in name.split(".")):
            return operator.attrgetter(attr, *attrs)
        read = [functools.partial(_follow, guards.getattr, name.split(".")) for name in (attr, *attrs)]
        if len(read) == 1:
            return lambda obj: read[0](obj)
        return lambda obj: tuple(one(obj) for one in read)

    def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        if type(name) is not str:
            raise _not_a_name(name)
        if _is_plain(name):
            return operator.methodcaller(name, *args, **kwargs)
        return lambda obj: guards.getattr(obj, name)(*args, **kwargs)

    return {"attrgetter": attrgetter, "methodcaller": methodcaller}


def _is_plain(name: str) -> bool:
    return load_rule(name) is Rule.PLAIN


def _not_a_name(name: object) -> Exception:
    if isinstance(name, str):
        return RefusedAttribute(
            "The name of an attribute must be a plain str, not an instance of a subclass."
        )
    return TypeError("attribute name must be a string")


def _follow(read: Callable[[Any, str], Any], parts: list[str], obj: Any) -> Any:
    for part in parts:
        obj = read(obj, part)
    return obj


def functools_members(guards: Guards) -> dict[str, Any]:
    """`wraps` that changes only the program's own functions, `singledispatch` that evaluates no annotation."""

    def update_wrapper(wrapper: Any, wrapped: Any, assigned: Any = None, updated: Any = None) -> Any:
        """Copy name, docstring and attributes of `wrapped` to `wrapper`, one of the program's own functions."""
        if assigned is not None or updated is not None:
            raise RefusedCall("functools.wraps copies the usual attributes: leave out assigned and updated.")
        guards.own(wrapper, "__wrapped__")
        _copy_names(wrapper, wrapped)
        if type(wrapped) is types.FunctionType and type(wrapper) is types.FunctionType:
            wrapper.__dict__.update(wrapped.__dict__)
            if wrapped.__globals__ is wrapper.__globals__:
                wrapper.__annotations__ = wrapped.__annotations__
        if type(wrapper) is types.FunctionType:
            wrapper.__wrapped__ = wrapped  # type: ignore[attr-defined]
        return wrapper

    def wraps(wrapped: Any, assigned: Any = None, updated: Any = None) -> Callable[[Any], Any]:
        """A decorator that calls update_wrapper."""
        return lambda wrapper: update_wrapper(wrapper, wrapped, assigned, updated)

    def singledispatch(func: Any) -> Any:
        """A function that picks its implementation by the type of its first argument."""
        return _Dispatcher(functools.singledispatch(func), func)

    class singledispatchmethod:  # noqa: N801
        """As functools.singledispatchmethod: register(type)(function), or by the annotation's type."""

        def __init__(self, func: Any) -> None:
            self._dispatcher = singledispatch(func)
            self._func = func

        def register(self, cls: Any, method: Any = None) -> Any:
            return self._dispatcher.register(cls, method)

        def __get__(self, obj: Any, cls: Any = None) -> Any:
            if cls is None:
                raise RefusedAttribute("Programs may not bind a singledispatchmethod by hand.")

            def method(*args: Any, **kwargs: Any) -> Any:
                implementation = _implementation(self._dispatcher._real, type(args[0]))
                return implementation.__get__(obj, cls)(*args, **kwargs)

            return method

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        """Least-recently-used cache decorator."""
        if not isinstance(maxsize, int) and maxsize is not None:
            if not callable(maxsize):
                raise TypeError("Expected first argument to be an integer, a callable, or None")
            return _cached(maxsize, 128, typed)
        size = None if maxsize is None else max(int(maxsize), 0)
        return lambda function: _cached(function, size, typed)

    def cache(user_function: Any, /) -> Any:
        """A cache without a limit."""
        return _cached(user_function, None, False)

    class cached_property:  # noqa: N801 -- a docstring would be in the way of the instances' own
        __slots__ = ("__doc__", "_name", "func")

        def __init__(self, func: Any) -> None:
            self.func = func
            self._name: str | None = None
            self.__doc__ = getattr(func, "__doc__", None)

        def __set_name__(self, owner: Any, name: str) -> None:
            if self._name is None:
                self._name = checked_name(name, "cached property")
            elif name != self._name:
                raise TypeError(
                    f"Cannot assign the same cached_property to two different names ({self._name!r} and {name!r})."
                )

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            name = self._name
            if name is None:
                raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
            if isinstance(instance, type) or not guards.owns_class(type(instance)):
                raise RefusedAttribute("A cached property belongs in a class of the program.")
            try:
                kept = object.__getattribute__(instance, "__dict__")
            except AttributeError:
                raise TypeError(
                    f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {name!r} property."
                ) from None
            found = kept.get(name, kept)
            if found is kept:
                found = kept[name] = self.func(instance)
            return found

        def __class_getitem__(cls, item: Any) -> types.GenericAlias:
            return types.GenericAlias(cls, item)

    for made in (
        update_wrapper,
        wraps,
        singledispatch,
        singledispatchmethod,
        lru_cache,
        cache,
        cached_property,
    ):
        made.__module__ = "functools"
        made.__qualname__ = made.__name__
    return {
        "update_wrapper": update_wrapper,
        "wraps": wraps,
        "singledispatch": singledispatch,
        "singledispatchmethod": singledispatchmethod,
        "lru_cache": lru_cache,
        "cache": cache,
        "cached_property": cached_property,
    }


def guard_wrapping() -> None:
    """Let the standard library's own decorators (`contextmanager`, …) copy no namespace of a class, whose
    descriptors would come out as they are. Changes this process."""

    def update_wrapper(wrapper: Any, wrapped: Any, assigned: Any = (), updated: Any = ()) -> Any:
        _copy_names(wrapper, wrapped)
        if type(wrapped) is types.FunctionType:
            wrapper.__dict__.update(wrapped.__dict__)
        wrapper.__wrapped__ = wrapped
        return wrapper

    functools.update_wrapper = update_wrapper


def _copy_names(wrapper: Any, wrapped: Any) -> None:
    for name in _COPIED:
        try:
            value = getattr(wrapped, name)
        except AttributeError:
            continue
        if name == "__doc__" or type(value) is str:
            setattr(wrapper, name, value)


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    """The real cache, without the namespace of what it wraps, which may be a class of the library's."""
    if not callable(function):
        raise TypeError("the first argument must be callable")
    made = _lru_cache_wrapper(function, maxsize, bool(typed), _CacheInfo)
    made.cache_parameters = lambda: {"maxsize": maxsize, "typed": bool(typed)}
    _copy_names(made, function)
    if type(function) is types.FunctionType:
        made.__dict__.update(function.__dict__)
    made.__wrapped__ = function
    return made


class _Dispatcher:
    """A generic function. Annotations are taken as they are; a text is never evaluated."""

    __slots__ = ("__dict__", "__name__", "_real")

    def __init__(self, real: Any, func: Any) -> None:
        self._real = real
        self.__name__ = getattr(func, "__name__", "function")
        self.__doc__ = getattr(func, "__doc__", None)

    @property
    def registry(self) -> types.MappingProxyType[Any, Any]:
        """The implementations by type."""
        return types.MappingProxyType(dict(self._real.registry.items()))

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"

    def dispatch(self, cls: Any) -> Any:
        """The implementation for a type. Only types are looked up: what else hashes like one would be compared
        with those that the table holds."""
        if not isinstance(cls, type):
            raise TypeError("dispatch() takes a type")
        return _implementation(self._real, cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not args:
            raise TypeError(f"{self.__name__} requires at least 1 positional argument")
        return _implementation(self._real, type(args[0]))(*args, **kwargs)

    def register(self, cls: Any, func: Any = None) -> Any:
        """Register an implementation for a type, also as a decorator."""
        if func is None and not _is_type(cls):
            return self.register(_annotated_type(cls), cls)
        if func is None:
            return lambda func: self.register(cls, func)
        self._real.register(cls, func)
        return func

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)


def _implementation(real: Any, kind: type) -> Any:
    """What `real` has for the type. An error says so in words only: those behind it hold the type itself."""
    try:
        return real.dispatch(kind)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the errors behind it hold the type
        known = type(error) in (RuntimeError, TypeError) and error.args and type(error.args[0]) is str
        what = error.args[0] if known else "the implementation for this type cannot be found"
    raise RuntimeError(what)


def _is_type(value: Any) -> bool:
    return isinstance(value, (type, types.UnionType))


def _annotated_type(func: Any) -> Any:
    annotations = getattr(func, "__annotations__", {}) if type(func) is types.FunctionType else {}
    found = next((value for name, value in annotations.items() if name != "return"), None)
    if not _is_type(found):
        raise RefusedCall(
            "register() needs the type: write @f.register(int), or annotate with the type itself."
        )
    return found
