"""Tools that come from elsewhere: nothing becomes a tool until the author selects it by name.

An extension names itself in a manifest, and its tools are `<extension>.<snake_case>`. A module, a server or
an API only *offers* functions; an offer has no authority, and importing it registers nothing.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import overload

from typing_extensions import Unpack

from ptc_tools.errors import InvalidName, RegistrationError
from ptc_tools.injected import Locals
from ptc_tools.names import check_name, check_namespace
from ptc_tools.options import ToolOptions
from ptc_tools.parameters import name_of
from ptc_tools.tool import AnyTool, P, R, Tool, tool, typed_tool

_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Who an extension is. `name` is the prefix of its tools: lower case, no reserved name, not `ptc`."""

    name: str
    version: str
    description: str

    def __post_init__(self) -> None:
        check_namespace(self.name)
        if not _SNAKE.fullmatch(self.name):
            raise InvalidName(f"extension {self.name!r} must be snake_case")


class Extension:
    """Collects the tools of one extension. `tools` is what a catalog is given."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._tools: dict[str, AnyTool] = {}

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        return tuple(self._tools.values())

    @property
    def namespaces(self) -> Mapping[str, str]:
        """For `Catalog(namespaces=…)`: the manifest's name and description."""
        return MappingProxyType({self.manifest.name: self.manifest.description})

    def add(self, entry: AnyTool) -> AnyTool:
        """Take in a tool. Raises `InvalidName` if it is not called `<extension>.<snake_case>`."""
        contract = entry.contract
        if contract.namespace != self.manifest.name:
            raise InvalidName(
                f"tool {contract.qualified_name!r}: the prefix must be the extension's: {self.manifest.name!r}"
            )
        check_extension_name(contract.name, self.manifest.name)
        if contract.name in self._tools:
            raise RegistrationError(f"tool {contract.qualified_name!r} is in the extension already")
        self._tools[contract.name] = entry
        return entry

    @overload
    def tool(self, function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
    def tool(
        self, function: Callable[P, R] | None = None, /, **options: Unpack[ToolOptions]
    ) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
        """`ptc.tool` with the extension's prefix: `@extension.tool`, or `@extension.tool(effects="read")`."""
        names = Locals(sys._getframe(1))
        if options.get("namespace", self.manifest.name) != self.manifest.name:
            raise InvalidName(f"the prefix of this extension's tools is {self.manifest.name!r}")

        def register(target: Callable[P, R]) -> Tool[P, R]:
            check_extension_name(options.get("name") or name_of(target), self.manifest.name)
            complete: ToolOptions = {**options, "namespace": self.manifest.name}
            made = typed_tool(target, names, complete)
            self.add(made)
            return made

        return register if function is None else register(function)


def check_extension_name(name: str, extension: str) -> str:
    """A name inside an extension. Raises `InvalidName`."""
    check_name(name, namespace=extension)
    if not _SNAKE.fullmatch(name):
        raise InvalidName(f"tool {extension}.{name}: the name after the prefix must be snake_case")
    return name


class Offer:
    """Functions that could become tools. Iterating gives their names; nothing is a tool before `select`."""

    def __init__(self, origin: str, functions: Mapping[str, Callable[..., object]]) -> None:
        self.origin = origin
        self._functions = dict(functions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def select(self, names: Iterable[str], **options: Unpack[ToolOptions]) -> list[AnyTool]:
        """Tools of the functions that are named, one by one: there is no way to name them all at once.

        Raises `RegistrationError` for a name that is not offered.
        """
        if isinstance(names, str | Offer):
            raise TypeError("select takes a list of names, written out by who selects")
        chosen: list[AnyTool] = []
        for name in names:
            if name not in self._functions:
                raise RegistrationError(f"{self.origin} does not offer {name!r}")
            function = self._functions[name]
            chosen.append(function if isinstance(function, Tool) else tool(function, **options))
        return chosen


def offers(module: ModuleType) -> Offer:
    """What a module offers: its own public functions, and tools that it made already."""
    found = {
        name: item
        for name, item in vars(module).items()
        if not name.startswith("_")
        and (isinstance(item, Tool) or (inspect.isfunction(item) and item.__module__ == module.__name__))
    }
    return Offer(f"module {module.__name__}", found)
