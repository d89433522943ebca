"""The namespace that a program runs in: its builtins, its guards, its tools, and nothing else.

What computes a name or reaches outside is replaced by a form that asks `guards` or `environment`; what
programs may not use exists and says so when it is called.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ptc_sandbox.guest import policy
from ptc_sandbox.guest.environment import Environment
from ptc_sandbox.guest.facades import build, table
from ptc_sandbox.guest.facades.module import Facade
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_types import type_stand_in
from ptc_sandbox.guest.policy_errors import RefusedCall, RefusedImport
from ptc_sandbox.guest.policy_names import REFUSED_BUILTINS, words

_AS_THEY_ARE: Final = words("""abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict
divmod enumerate filter float format frozenset hash hex int isinstance issubclass iter len list map max min next object
oct ord pow property range repr reversed round set slice sorted staticmethod str sum super tuple zip
True False None Ellipsis NotImplemented __debug__""")

_EXCEPTIONS: Final = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


def make_globals(
    environment: Environment, tools: Mapping[str, object], asyncio_facade: object
) -> dict[str, object]:
    """A new namespace for one program.

    `tools` are the names that it finds ready: tools, reserved names, exceptions. `asyncio_facade` is what
    `import asyncio` gives; it is there without the import too.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    guards = Guards(environment, namespace)
    importer = Importer(guards, asyncio_facade)
    namespace["__builtins__"] = {
        **{name: getattr(builtins, name) for name in _AS_THEY_ARE},
        **_EXCEPTIONS,
        **{name: _refusing(name, hint) for name, hint in REFUSED_BUILTINS.items() if name != "__import__"},
        **_guarded(guards),
        "asyncio": asyncio_facade,
        "print": _print(environment),
        "exit": _exit,
        "quit": _exit,
        "type": type_stand_in,
        "__build_class__": _plainly(guards.build_class, "__build_class__"),
        "__import__": importer.import_,
        policy.ATTRIBUTE: guards.attribute,
        policy.OWN: guards.own,
        policy.CLASSES: guards.classes,
        policy.TYPE: type,
    }
    namespace.update(tools)
    return namespace


def _guarded(guards: Guards) -> dict[str, Callable[..., Any]]:
    made = {
        name: _plainly(getattr(guards, name), name) for name in ("getattr", "hasattr", "setattr", "delattr")
    }
    return {
        **made,
        "vars": _plainly(guards.vars, "vars"),
        "dir": _plainly(guards.dir, "dir"),
        "id": _Numbers().number,
    }


def _plainly(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function in the place of a bound method, which would drag its object along when it is copied."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "builtins"
    return function


def _refusing(name: str, hint: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise RefusedCall(f"Programs may not use {name}(). {hint}", "forbidden_name")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = "builtins"
    return refuse


def _print(environment: Environment) -> Callable[..., None]:
    write = environment.write_output

    def print(
        *args: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False
    ) -> None:
        for name, value in (("sep", sep), ("end", end)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")
        text = (" " if sep is None else sep).join(map(str, args)) + ("\n" if end is None else end)
        if file is None:
            write(text)
        else:
            file.write(text)

    print.__qualname__ = "print"
    print.__module__ = "builtins"
    return print


def _exit(code: object = None) -> NoReturn:
    raise SystemExit(code)


class _Numbers:
    """`id` for programs: numbers in the order of asking, where the real one gives addresses."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, Any]] = {}

    def number(self, obj: object, /) -> int:
        """A number for `obj`, which is kept alive so that no other object gets it."""
        found = self._numbers.get(id(obj))
        if found is None:
            found = self._numbers[id(obj)] = (len(self._numbers) + 1, obj)
        return found[0]


def _import_for_the_interpreter(name: str) -> object:
    """C code that needs a module (`strptime`, `re.sub`) imports by way of the running program's builtins.

    It passes a list, which no import statement does, and takes the module from `sys.modules`, not what is
    returned here. Programs cannot call this function themselves.
    """
    if name not in sys.modules:
        importlib.import_module(name)
    return None


class Importer:
    """`import` for programs: stand-ins, made when they are first asked for."""

    def __init__(self, guards: Guards, asyncio_facade: object) -> None:
        self._guards = guards
        self._made: dict[str, Any] = {"asyncio": asyncio_facade}

    def load(self, module: str) -> Facade:
        """The stand-in of a module of the table."""
        made = self._made.get(module)
        if made is None:
            made = self._made[module] = build.build(module, self._guards, self.load)
        return made  # type: ignore[no-any-return]

    def import_(
        self,
        name: str,
        globals: object = None,
        locals: object = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        """What an import statement calls."""
        if type(fromlist) is list:
            return _import_for_the_interpreter(name)
        if type(name) is not str or level or not table.has_module(name):
            raise RefusedImport(table.no_module(str(name)))
        module = self.load(name)
        if not fromlist:
            return self.load(name.partition(".")[0])
        for wanted in fromlist:
            # a missing name must not reach the interpreter's own search, which ends in sys.modules
            try:
                getattr(module, wanted)
            except AttributeError as error:
                raise RefusedImport(str(error)) from None
        return module
