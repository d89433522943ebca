"""A stand-in for a module: what programs get from `import`. It holds its members and nothing else.

It cannot be changed, it leads to no module, and a member that is not on its list is refused with a message
that says what there is.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from ptc_sandbox.guest.policy_errors import RefusedAttribute


class Facade:
    """What a program sees as a module. Made by `facade`; it has no `__name__`, from which `from … import`
    would fall back on `sys.modules`."""

    __slots__ = ("__dict__",)

    def __getattr__(self, name: str) -> NoReturn:
        raise RefusedAttribute(_missing(self, name))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise RefusedAttribute(f"The module {_name(self)} cannot be changed.")

    def __delattr__(self, name: str) -> NoReturn:
        raise RefusedAttribute(f"The module {_name(self)} cannot be changed.")

    def __repr__(self) -> str:
        return f"<module '{_name(self)}'>"

    def __dir__(self) -> Iterable[str]:
        return sorted(name for name in _namespace(self) if not name.startswith("."))

    def __copy__(self) -> Facade:
        return self

    def __deepcopy__(self, memo: object) -> Facade:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("modules cannot be copied into data")


_namespace_of: Final[Any] = Facade.__dict__["__dict__"]
(_contents,) = gc.get_referents(Facade.__dict__)
del _contents["__dict__"]  # from now on no attribute leads to what a stand-in holds
ctypes.pythonapi.PyType_Modified(ctypes.py_object(Facade))


def _namespace(module: Facade) -> dict[str, Any]:
    return _namespace_of.__get__(module)  # type: ignore[no-any-return]


def offered(module: Facade) -> list[object]:
    """The members of a stand-in."""
    return [value for name, value in _namespace(module).items() if not name.startswith(".")]


def facade(name: str, members: Mapping[str, object], refused: Mapping[str, str] | None = None) -> Facade:
    """A module called `name` with these members; `refused` says of names what to use instead."""
    made = Facade()
    contents = _namespace(made)
    contents.update(members)
    contents[".name"] = name
    contents[".refused"] = dict(refused or {})
    return made


def _name(module: Facade) -> str:
    return str(_namespace(module).get(".name", "?"))


def _missing(module: Facade, name: str) -> str:
    hint = _namespace(module).get(".refused", {}).get(name)
    if hint:
        return f"{_name(module)}.{name} is not available. {hint}"
    offered = ", ".join(dir(module))
    return f"{_name(module)}.{name} is not available to programs. The module offers: {offered}."
