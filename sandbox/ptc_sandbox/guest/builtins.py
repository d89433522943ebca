"""The namespace that a program runs in: its builtins, its guards, its tools, and nothing else.

What computes a name or reaches outside is replaced by a form that asks `guards` or `environment`; what
programs may not use exists and says so when it is called.
"""

from __future__ import annotations

import asyncio
import builtins
import codecs
import contextlib
import encodings
import importlib
import os
import pkgutil
import sys
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ptc_sandbox.guest import policy_tree
from ptc_sandbox.guest.environment import Environment
from ptc_sandbox.guest.facades import build, classes, copying, functional, table, zones
from ptc_sandbox.guest.facades.module import Facade, offered
from ptc_sandbox.guest.guards import Guards
from ptc_sandbox.guest.guards_buffers import guard_buffers
from ptc_sandbox.guest.guards_identity import (
    IdentityUnavailable,
    all_types,
    identity,
    is_installed,
    numbers,
    seal,
    seal_if_installed,
    steady_nan,
)
from ptc_sandbox.guest.guards_methods import keep_library
from ptc_sandbox.guest.guards_types import type_stand_in
from ptc_sandbox.guest.output import Output
from ptc_sandbox.guest.policy_errors import RefusedCall, RefusedImport, RefusedModule
from ptc_sandbox.guest.policy_names import REFUSED_BUILTINS, words

_AS_THEY_ARE: Final = words("""
abs aiter all anext any ascii bin bool bytearray bytes callable chr
classmethod complex dict divmod
enumerate filter float format frozenset hash hex int isinstance issubclass iter len list map max min next object
oct ord pow property range repr reversed round set slice sorted staticmethod str sum super tuple zip
True False None Ellipsis NotImplemented __debug__
""")

_LOADED_LATE: Final = words("""
_strptime stringprep encodings.idna encodings.punycode _pydecimal _pylong traceback linecache warnings tokenize
html.entities ipaddress annotationlib string.templatelib locale reprlib
""")
"""Modules that the interpreter or the standard library loads on first use, too late behind the kernel wall."""

_USERS_OF_ID: Final = ("pprint", "reprlib")
"""Modules that sort or print by `id(…)`."""

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
        "print": _print(guards.stdout),
        "exit": _exit,
        "quit": _exit,
        "type": type_stand_in,
        "__build_class__": _plainly(guards.build_class, "__build_class__"),
        "__import__": importer.import_,
        policy_tree.ATTRIBUTE: guards.attribute,
        policy_tree.OWN: guards.own,
        policy_tree.CLASSES: guards.classes,
        policy_tree.TYPE: type,
        policy_tree.ID: id,
    }
    namespace.update(tools)
    seal_if_installed(tools.values())
    seal_if_installed(offered(asyncio_facade) if isinstance(asyncio_facade, Facade) else ())
    numbers.restart()
    return namespace


def prepare() -> None:
    """Make a process fit to run programs; to be called once, in the fork server, before any is forked.

    Loads what programs may import and what the interpreter would load late, sets the zone to UTC, and closes
    the classes that programs can reach against change. Addresses are out of reprs and hashes since
    `guards_identity.install`, which has to come before everything else and is required here.
    """
    if not is_installed():
        raise IdentityUnavailable("guards_identity.install() comes first, before anything else is imported")
    os.environ["TZ"] = "UTC"
    time.tzset()
    for module in (*table.modules(), *_LOADED_LATE):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for module in _USERS_OF_ID:
        importlib.import_module(module).id = identity  # type: ignore[attr-defined]
    for codec in sorted(pkgutil.iter_modules(encodings.__path__)):  # some are none, or of another system
        with contextlib.suppress(LookupError, ImportError):
            codecs.lookup(codec.name)
    classes.guard_enum()
    classes.guard_namedtuple()
    copying.guard_copy()
    functional.guard_wrapping()
    zones.load()
    asyncio.Queue.__repr__ = lambda self: f"<{type(self).__name__} {self._format()}>"  # type: ignore
    _hide_places()
    keep_library()
    guard_buffers()
    steady_nan()
    seal(all_types())
    for forget in typing._cleanups:  # type: ignore[attr-defined]
        forget()  # a program's object would be compared with the types that the library's own annotations left
    sys.unraisablehook = lambda _: None  # it would look for the source of the program in a file


def _hide_places() -> None:
    """Reprs of futures name functions, not the files of this machine that they are in."""
    from asyncio import coroutines, format_helpers

    def format_coroutine(coro: Any) -> str:
        return f"<coroutine object {getattr(coro, '__qualname__', type(coro).__name__)}>"

    coroutines._format_coroutine = format_coroutine  # type: ignore[attr-defined]
    format_helpers._get_function_source = lambda func: None  # type: ignore[assignment]


def _guarded(guards: Guards) -> dict[str, Callable[..., Any]]:
    made = {
        name: _plainly(getattr(guards, name), name) for name in ("getattr", "hasattr", "setattr", "delattr")
    }
    return {
        **made,
        "vars": _plainly(guards.vars, "vars"),
        "dir": _plainly(guards.dir, "dir"),
        "id": identity,
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


def _print(output: Output) -> Callable[..., None]:
    write = output.write

    def print(
        *args: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False
    ) -> None:
        text = _plain_str("sep", sep, " ").join(map(str, args)) + _plain_str("end", end, "\n")
        if file is None:
            write(text)
        else:
            file.write(text)

    print.__qualname__ = "print"
    print.__module__ = "builtins"
    return print


def _plain_str(name: str, value: Any, default: str) -> str:
    """An exact str: the methods of a subclass are the program's own."""
    if value is None:
        return default
    if not isinstance(value, str):
        raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")
    return str.__str__(value)


def _exit(code: object = None) -> NoReturn:
    raise SystemExit(code)


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
        return made

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
            raise RefusedModule(table.no_module(str(name)), str(name))
        module = self.load(name)
        if not fromlist:
            return self.load(name.partition(".")[0])
        for wanted in fromlist:
            # a missing name must not reach the interpreter's own search, which ends in sys.modules
            if type(wanted) is not str or wanted.startswith("_"):
                raise RefusedImport(f"{wanted} cannot be imported from {name}.")
            try:
                getattr(module, wanted)
            except AttributeError as error:
                raise RefusedImport(str(error)) from None
        return module
