"""The tools of one step: an immutable snapshot by (namespace, name), as the wire and as programs name them.

Dispatch looks here and nowhere else. What is not in the catalog does not exist, whatever a call says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import cast

from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.errors import DuplicateTool, RegistrationError
from ptc_tools.names import check_namespace, program_name
from ptc_tools.tool import AnyTool, Tool, tool


class Catalog:
    """Tools with unique names. A plain typed function among them is registered with the defaults of `tool`.

    `namespaces` gives each namespace the description that the wire requires. Raises `DuplicateTool` for two
    tools of one name, or of one name in a program; `RegistrationError` for a designer's value that is not
    set and for a reconciliation read that is none; and what registration raises.
    """

    __slots__ = ("_by_name", "_descriptions", "program_names")

    program_names: Mapping[str, AnyTool]
    """Python identifier to tool, for the tools that programs may call."""

    def __init__(
        self,
        tools: Iterable[AnyTool | Callable[..., object]] = (),
        *,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        by_name: dict[tuple[str | None, str], AnyTool] = {}
        in_programs: dict[str, AnyTool] = {}
        for item in tools:
            entry = item if isinstance(item, Tool) else tool(item)
            contract = entry.contract
            key = (contract.namespace, contract.name)
            if key in by_name:
                raise DuplicateTool(f"two tools are called {contract.qualified_name!r}; rename one")
            if entry.unset:
                raise RegistrationError(
                    f"tool {contract.qualified_name!r}: tool.configure(…) must set {', '.join(entry.unset)}"
                )
            by_name[key] = entry
            if "programmatic" in contract.allowed_callers:
                identifier = program_name(*key)
                other = in_programs.setdefault(identifier, entry)
                if other is not entry:
                    raise DuplicateTool(
                        f"tools {other.contract.qualified_name!r} and {contract.qualified_name!r} would both "
                        f"be {identifier!r} in a program; rename one"
                    )
        _check_reconciliation(by_name)
        self._by_name = by_name
        self._descriptions = {check_namespace(key): text for key, text in (namespaces or {}).items()}
        self.program_names = MappingProxyType(in_programs)

    def resolve(self, namespace: str | None, name: str) -> AnyTool | None:
        """The tool of exactly this name, or None."""
        try:
            return self._by_name.get((namespace, name))
        except TypeError:
            return None  # a name that is not even a string comes from a call that nobody parsed

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The description that goes over the wire with each namespace of these tools."""
        used = {entry.contract.namespace for entry in self} - {None}
        return {name: self._described(name) for name in sorted(cast("set[str]", used))}

    def _described(self, namespace: str) -> str:
        return self._descriptions.get(namespace) or undescribed(namespace)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, item: object) -> bool:
        return any(entry is item for entry in self)

    def __repr__(self) -> str:
        return f"<Catalog of {len(self)} tools>"

    def for_caller(self, kind: CallerKind) -> Catalog:
        """The tools that this kind of caller may call."""
        return self._derived(entry for entry in self if kind in entry.contract.allowed_callers)

    def adding(self, *tools: AnyTool | Callable[..., object]) -> Catalog:
        """A catalog that has these tools as well. Raises `DuplicateTool`."""
        return self._derived([*self, *tools])

    def _derived(self, tools: Iterable[AnyTool | Callable[..., object]]) -> Catalog:
        return Catalog(tools, namespaces=self._descriptions)

    def wire(self, errors_in_schema: bool = True) -> list[JsonObject]:
        """Tool definitions for a request, in the order given; a namespace's tools stand in one wrapper."""
        definitions: list[JsonObject] = []
        wrappers: dict[str, list[JsonValue]] = {}
        for entry in self:
            definition = entry.contract.wire(errors_in_schema)
            namespace = entry.contract.namespace
            if namespace is None:
                definitions.append(definition)
                continue
            if namespace not in wrappers:
                wrappers[namespace] = []
                definitions.append(
                    {
                        "type": "namespace",
                        "name": namespace,
                        "description": self._described(namespace),
                        "tools": cast("JsonValue", wrappers[namespace]),
                    }
                )
            wrappers[namespace].append(definition)
        return definitions


def undescribed(namespace: str) -> str:
    """What goes over the wire with a namespace that nobody described."""
    return f"Tools of {namespace}."


def _check_reconciliation(by_name: Mapping[tuple[str | None, str], AnyTool]) -> None:
    named = {entry.contract.qualified_name: entry.contract for entry in by_name.values()}
    for contract in named.values():
        if contract.reconciliation is None:
            continue
        read = named.get(contract.reconciliation.tool)
        where = f"tool {contract.qualified_name!r}: its reconciliation read {contract.reconciliation.tool!r}"
        if read is None:
            continue  # a step may offer fewer tools than the application has; `lint` sees them all
        if read.mutates:
            raise RegistrationError(f"{where} changes something itself")
        if read.effects != "read":
            raise RegistrationError(f'{where} does not say that it only reads: effects="read"')
        declared = read.parameters.get("properties", {})
        for name in contract.reconciliation.arguments:
            if not isinstance(declared, dict) or name not in declared:
                raise RegistrationError(f"{where} has no parameter {name!r}")
