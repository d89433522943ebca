"""Makes the interpreter's identity-based behaviour the same in every process: default reprs, hashes, `id`.

CPython prints and hashes an object without methods of its own by its address. Here such objects print
without one and hash by a number given in the order of asking, so that output, the order of sets and a
replay do not depend on where memory happened to be. It also closes classes against change.

The builtin types are changed in place, by their documented C layout, once, in the fork server, before it
imports anything else: a table keyed by old hashes would be lost. `install` checks what it did and raises if
this interpreter is laid out otherwise. A process that runs anything but programs must not call it.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
import weakref
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing and collections are not loaded here, see above
    from collections.abc import Callable, Iterable
    from typing import Any, Final

_WORD: Final = ctypes.sizeof(ctypes.c_void_p)
_HEAD: Final = object.__basicsize__ + _WORD  # a type is a variable-sized object
_BASICSIZE, _REPR, _HASH, _FLAGS = (_HEAD + _WORD * index for index in (1, 8, 12, 18))
_IMMUTABLE: Final = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_FIRST_NUMBER: Final = 1 << 20
_HASH_OF_NAN: Final = 314159

_real_id = id
_repr_of_type = type.__repr__


class IdentityUnavailable(RuntimeError):
    """This process cannot be changed: its types are laid out in an unknown way, or it has loaded too much."""


class Numbers:
    """Gives each object a number, the same one for as long as it lives."""

    def __init__(self) -> None:
        self._next = 1
        self._entries: dict[int, tuple[int, Any]] = {}
        self._types: dict[int, tuple[int, Any]] = {}

    def restart(self) -> None:
        """The numbers of a program start here, always at the same one, whatever ran before in this process.

        What the standard library numbered when it was loaded keeps its number, as tables are keyed by it.
        """
        self._next = _FIRST_NUMBER
        for key in [key for key, entry in self._entries.items() if entry[0] >= _FIRST_NUMBER]:
            del self._entries[key]

    def of(self, obj: object) -> int:
        """The number of `obj`. What cannot be watched for its end is kept alive instead."""
        entry = self._entries.get(_real_id(obj))
        if entry is not None:
            return entry[0]
        number = self._next
        self._next = number + 1
        return self._enter(self._entries, obj, number)

    def of_type(self, cls: type) -> int:
        """The number of a type: from its name, so that no order of asking matters."""
        entry = self._types.get(_real_id(cls))
        if entry is not None:
            return entry[0]
        return self._enter(self._types, cls, zlib.crc32(_repr_of_type(cls).encode("utf-8", "replace")))

    @staticmethod
    def _enter(entries: dict[int, tuple[int, Any]], obj: object, number: int) -> int:
        key = _real_id(obj)
        try:
            keeper: Any = weakref.ref(obj, lambda _: entries.pop(key, None))
        except TypeError:
            keeper = obj
        entries[key] = (number, keeper)
        return number


numbers: Final = Numbers()


def identity(obj: object, /) -> int:
    """`id(obj)` for programs."""
    return numbers.of(obj)


identity.__name__ = identity.__qualname__ = "id"


def _name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _object_repr(self: object) -> str:
    return f"<{_name(type(self))} object>"


def _function_repr(self: Any) -> str:
    return f"<function {self.__qualname__}>"


def _builtin_repr(self: Any) -> str:
    owner = self.__self__
    if owner is None or isinstance(owner, types.ModuleType):
        return f"<built-in function {self.__name__}>"
    return f"<built-in method {self.__name__} of {type(owner).__name__} object>"


def _wrapper_repr(self: Any) -> str:
    return f"<method-wrapper '{self.__name__}' of {type(self.__self__).__name__} object>"


def _named_repr(kind: str) -> Callable[[Any], str]:
    return lambda self: f"<{kind} object {self.__qualname__}>"


def _digest_repr(self: Any) -> str:
    return f"<{self.name} {_name(type(self))} object>"


def _object_hash(self: object) -> int:
    return numbers.of(self)


def _type_hash(self: type) -> int:
    return numbers.of_type(self)


def _method_hash(self: Any) -> int:
    return numbers.of(self.__self__) * 31 + hash(self.__func__)


def _builtin_hash(self: Any) -> int:
    owner = self.__self__
    part = zlib.crc32(self.__name__.encode())
    return part if owner is None or isinstance(owner, types.ModuleType) else numbers.of(owner) * 31 + part


def install() -> None:
    """Change this process for good. Raises IdentityUnavailable, before it changes anything, if it cannot."""
    if is_installed():
        return
    _check_layout()
    if late := sorted({"collections", "functools", "re", "typing"} & set(sys.modules)):
        raise IdentityUnavailable(f"too late: {', '.join(late)} is loaded and holds tables by the old hashes")
    class_with_both = type("_", (), {"__repr__": lambda self: "", "__hash__": lambda self: 1})
    generic = {
        "__repr__": (_REPR, _read(object, _REPR), _read(class_with_both, _REPR)),
        "__hash__": (_HASH, _read(object, _HASH), _read(class_with_both, _HASH)),
    }
    everything = all_types()
    for kind, methods in _replacements().items():
        _replace(kind, methods, generic)
    for kind in everything:
        for offset, inherited, calls_method in generic.values():
            if _read(kind, offset) == inherited:
                _write(kind, offset, calls_method)
    for kind in (type(None),):
        # in C, as None is a common key; PyObject_Not(None) is 1
        if "__hash__" not in kind.__dict__:
            _write(kind, _HASH, ctypes.cast(ctypes.pythonapi.PyObject_Not, ctypes.c_void_p).value or 0)
    for kind in everything:
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    _rehash()
    _check_result()


def _rehash() -> None:
    """Enter the few keys anew that exist so early. References to types keep the hash that they had."""
    plain = (str, int, float, bytes, bool, weakref.ref)
    for table in gc.get_objects():
        if type(table) is dict and any(type(key) not in plain for key in table):
            pairs = list(table.items())
            table.clear()
            table.update(pairs)
        elif type(table) is set and any(type(key) not in plain for key in table):
            keys = list(table)
            table.clear()
            table.update(keys)


def is_installed() -> bool:
    """Whether this process is changed."""
    return types.FunctionType.__repr__ is _function_repr


def _replacements() -> dict[type, dict[str, Callable[[Any], Any]]]:
    async def asynchronous() -> Any:
        yield

    async def coroutine() -> None: ...

    waiting = coroutine()
    waiting.close()
    found: dict[type, dict[str, Callable[[Any], Any]]] = {
        object: {"__repr__": _object_repr, "__hash__": _object_hash},
        type: {"__hash__": _type_hash},
        types.FunctionType: {"__repr__": _function_repr},
        types.BuiltinFunctionType: {"__repr__": _builtin_repr, "__hash__": _builtin_hash},
        types.MethodType: {"__hash__": _method_hash},
        types.FrameType: {"__repr__": _object_repr},
        types.CodeType: {"__repr__": _object_repr},
        types.CellType: {"__repr__": _object_repr},
        memoryview: {"__repr__": _object_repr},
        weakref.ref: {"__repr__": _object_repr},
        types.MethodWrapperType: {"__repr__": _wrapper_repr, "__hash__": _builtin_hash},
        type(_ for _ in ()): {"__repr__": _named_repr("generator")},
        type(waiting): {"__repr__": _named_repr("coroutine")},
        type(asynchronous()): {"__repr__": _named_repr("async_generator")},
    }
    import _thread

    found[_thread.LockType] = found[type(_thread.RLock())] = {"__repr__": _object_repr}
    try:
        import _hashlib
    except ImportError:
        return found
    for name in ("HASH", "HASHXOF", "HMAC"):
        found[getattr(_hashlib, name)] = {"__repr__": _digest_repr}
    return found


def _replace(
    kind: type, methods: dict[str, Callable[[Any], Any]], generic: dict[str, tuple[int, int, int]]
) -> None:
    (contents,) = gc.get_referents(kind.__dict__)
    for name, method in methods.items():
        offset, _, calls_method = generic[name]
        replaced = _read(kind, offset)
        contents[name] = method
        for heir in all_types(kind):
            if _read(heir, offset) == replaced and name not in heir.__dict__:
                _write(heir, offset, calls_method)
        _write(kind, offset, calls_method)


def all_types(root: type = object) -> list[type]:
    """Every type of this process that derives from `root`."""
    found: dict[int, type] = {}
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        if _real_id(kind) not in found:
            found[_real_id(kind)] = kind
            waiting.extend(type.__subclasses__(kind))
    return list(found.values())


def _read(kind: type, offset: int) -> int:
    return ctypes.c_size_t.from_address(_real_id(kind) + offset).value


def _write(kind: type, offset: int, value: int) -> None:
    ctypes.c_size_t.from_address(_real_id(kind) + offset).value = value


def _check_layout() -> None:
    for kind in (object, int, dict, types.FunctionType, Numbers):
        if _read(kind, _FLAGS) != kind.__flags__ or _read(kind, _BASICSIZE) != kind.__basicsize__:
            raise IdentityUnavailable("types are laid out in a way that is not known here")


def _check_result() -> None:
    class Probe:
        pass

    for value in (object(), Probe(), _check_result, len, [].append, iter([]), object().__str__):
        if " at 0x" in repr(value) or ("object" not in repr(value) and "function" not in repr(value)):
            raise IdentityUnavailable(f"a default repr is not ours: {value!r}")
    probe = Probe()
    if hash(probe) != numbers.of(probe) or hash(None) != hash(None) or len({probe, probe}) != 1:
        raise IdentityUnavailable("a default hash is not ours")


def steady_nan() -> None:
    """Let a NaN hash by a number: since Python 3.10 it hashes by its address, and sets with one differ."""
    import cmath
    import decimal
    import math

    class_with_hash = type("_", (), {"__hash__": lambda self: 1})
    generic = {"__hash__": (_HASH, 0, _read(class_with_hash, _HASH))}
    tests: dict[type, Callable[[Any], bool]] = {
        float: math.isnan,
        complex: cmath.isnan,
        decimal.Decimal: decimal.Decimal.is_qnan,
    }
    for kind, is_nan in tests.items():
        real: Any = kind.__hash__
        _replace(kind, {"__hash__": _steady(real, is_nan)}, generic)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _steady(real: Callable[[Any], int], is_nan: Callable[[Any], bool]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807
        return _HASH_OF_NAN if is_nan(self) else real(self)

    return __hash__


def seal(classes: Iterable[object]) -> None:
    """Close Python classes against change: setting an attribute on them raises TypeError."""
    for kind in classes:
        if isinstance(kind, type) and not kind.__flags__ & _IMMUTABLE:
            _write(kind, _FLAGS, _read(kind, _FLAGS) | _IMMUTABLE)
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def is_sealed(kind: type) -> bool:
    """Whether a class is closed against change."""
    return bool(kind.__flags__ & _IMMUTABLE)


def seal_if_installed(classes: Iterable[object]) -> None:
    """`seal` in a process that runs programs; nothing in one that is not changed."""
    if is_installed():
        seal(classes)
