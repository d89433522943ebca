"""Toolsets, and how a consumer uses a source of tools: which of them wait for a search, and by which tags.

A toolset names tools that belong together; its name is their namespace. What is deferred is the choice of
each consumer (`use(toolset).defer(…)`), so it is a value beside the toolset and never changes one. Nothing
here does any I/O.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from ptc_tools.contract import BY_GENERATOR, Contract
from ptc_tools.errors import DuplicateTool, InvalidDeferral, InvalidSource, RegistrationError
from ptc_tools.mutation import Reconciliation
from ptc_tools.names import check_namespace, program_name
from ptc_tools.registry import Registry, RegistryToolset
from ptc_tools.strict_json import is_sendable
from ptc_tools.tool import AnyTool, Tool, tool

if TYPE_CHECKING:
    from ptc_tools.export import Export


@dataclass(frozen=True, slots=True, init=False)
class Toolset:
    """Tools that belong together: `Toolset("records", [search, get])` offers `records.search`, `records.get`.

    `tools` are tools and plain typed functions, `runner.as_tool(…)` among them. One without a namespace gets
    the toolset's; one of another namespace is refused, and so is one that defers itself. `description` goes
    over the wire with the namespace. Raises RegistrationError, or a kind of it.
    """

    name: str
    tools: tuple[AnyTool, ...]
    description: str | None

    def __init__(
        self,
        name: str,
        tools: Iterable[AnyTool | Callable[..., object]] = (),
        *,
        description: str | None = None,
    ) -> None:
        check_namespace(name)
        if description is not None and not is_sendable(description):
            raise RegistrationError(
                f"toolset {name!r}: the description must be text, without lone surrogates"
            )
        if isinstance(tools, (str, Tool)) or not isinstance(tools, Iterable):
            raise RegistrationError(
                f"toolset {name!r}: its tools are a list of tools and functions, not one {type(tools).__name__}"
            )
        entries: dict[str, AnyTool] = {}
        for item in tools:
            entry = _member(item, name)
            if entry.contract.name in entries:
                raise DuplicateTool(
                    f"toolset {name!r} has two tools called {entry.contract.name!r}; rename one"
                )
            entries[entry.contract.name] = entry
        object.__setattr__(self, "name", name)
        object.__setattr__(
            self, "tools", tuple(_placed(entry, name, entries.keys()) for entry in entries.values())
        )
        object.__setattr__(self, "description", description)

    @classmethod
    def from_registry(
        cls,
        registry: Registry,
        name: str,
        *,
        version: str | None = None,
        tools: Iterable[object] = (),
    ) -> RegistryToolset:
        """The toolset of this name in a registry: mandatory, read at each step. See `Registry.toolset`."""
        if not isinstance(registry, Registry):
            raise TypeError(f"from_registry() takes a Registry, not {type(registry).__name__}")
        if tuple(tools):
            raise InvalidSource(
                f"{registry.name}/{name}: a reference to a registry takes no tools of its own: its provider says"
                " what they are; put yours into a Toolset of another name"
            )
        return registry.toolset(name, version=version)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __getitem__(self, name: str) -> AnyTool:
        """The tool of this local name. Raises KeyError."""
        for entry in self.tools:
            if entry.contract.name == name:
                return entry
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The local names, in order."""
        return tuple(entry.contract.name for entry in self.tools)

    def defer(self, *names: str) -> NoReturn:
        """Not here: what a consumer defers is no property of the toolset. Raises InvalidDeferral."""
        raise InvalidDeferral(f"deferral is the consumer's, not {self.name!r}'s: ptc.use(toolset).defer(…)")

    def export(self, *, version: str) -> Export:
        """What a provider publishes of this toolset, see `ptc_tools.export`; `version` is for its consumers.

        Each tool must say what executing it from elsewhere needs: effects and an output schema, of a mutation
        its commitment and idempotency. Raises RegistrationError, or a kind of it.
        """
        from ptc_tools.export import export

        return export(self, version)

    def __repr__(self) -> str:
        return f"<Toolset {self.name} of {len(self.tools)} tools>"


Source: TypeAlias = "Toolset | RegistryToolset | Registry"


@dataclass(frozen=True, slots=True)
class Use:
    """How one consumer uses a source; made by `use`. Each method gives a new value.

    `deferred` are local names; `defers_all` says that every tool of the source waits for a search.
    """

    source: Source
    deferred: tuple[str, ...] = ()
    defers_all: bool = False
    tags: tuple[str, ...] = ()

    def defer(self, *names: str) -> Use:
        """Defers exactly the tools of these local names, or without names all of the source.

        Deferred tools are loaded by tool search, when the model needs them; who may call them, and how they
        run, stays. Names of several calls add up. Raises InvalidDeferral for a name that is empty, qualified,
        repeated (also from an earlier call) or unknown, for names beside a plain `defer()`, and for any
        name of a registry's source, whose tools are not known before a run.
        """
        if not names:
            if self.deferred:
                raise InvalidDeferral(
                    f"{self._what}: defer() means all of its tools, and {self.deferred[0]!r} was named before;"
                    " use one of the two"
                )
            return replace(self, defers_all=True)
        if self.defers_all:
            raise InvalidDeferral(
                f"{self._what}: defer() means all of its tools, so {names[0]!r} cannot be named beside it"
            )
        known = self.deferred
        for name in names:
            self._check_name(name, known)
            known = (*known, name)
        return replace(self, deferred=known)

    def tag(self, *tags: str) -> Use:
        """Adds tags to the tools as this consumer has them, for its policy.

        Raises InvalidSource for a registry's source, whose provider owns the tags.
        """
        if not isinstance(self.source, Toolset):
            raise InvalidSource(
                f"{self._what}: tags of a registry's tools are its provider's; filter by policy"
            )
        for tag in tags:
            if not isinstance(tag, str) or not tag:
                raise RegistrationError(f"{self._what}: a tag is text, not {tag!r}")
        return replace(self, tags=tuple(sorted({*self.tags, *tags})))

    def defers(self, contract: Contract) -> bool:
        """Whether a tool of the source waits for a search."""
        return self.defers_all or contract.name in self.deferred

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools of a local source as this consumer has them; none for a registry's."""
        if not isinstance(self.source, Toolset):
            return ()
        if not self.tags:
            return self.source.tools
        return tuple(_tagged(entry, self.tags) for entry in self.source.tools)

    @property
    def _what(self) -> str:
        return f"use of {self.source.name!r}"

    def _check_name(self, name: object, known: tuple[str, ...]) -> None:
        if not isinstance(self.source, Toolset):
            raise InvalidDeferral(
                f"{self._what}: its tools are not known before a run, so none can be named; use defer() for all"
            )
        if not isinstance(name, str) or not name:
            raise InvalidDeferral(f"{self._what}: {name!r} is no name; give a tool's local name")
        if name in known:
            raise InvalidDeferral(f"{self._what}: {name!r} is deferred twice; name it once")
        if name not in self.source.names:
            raise InvalidDeferral(f"{self._what}: no tool is called {name!r}{self._hint(name)}")

    def _hint(self, name: str) -> str:
        """What was probably meant."""
        assert isinstance(self.source, Toolset)
        for local in self.source.names:
            others = (f"{self.source.name}.{local}", program_name(self.source.name, local))
            if name in (*others, program_name(None, local)):
                return f"; its local name is {local!r}"
        return f"; it has {', '.join(self.source.names) or 'none'}"


def use(source: Source) -> Use:
    """Uses a source of tools: `Runner(tools=[ptc.use(records).defer("analyze")])`.

    Raises TypeError for what is no source: a single tool goes into the runner's list as it is.
    """
    if not isinstance(source, (Toolset, Registry, RegistryToolset)):
        raise TypeError(
            f"use() takes a Toolset, a Registry or Toolset.from_registry(…), not {type(source).__name__}"
        )
    return Use(source)


def _member(item: object, toolset: str) -> AnyTool:
    if isinstance(item, (Toolset, Registry, RegistryToolset, Use)):
        raise InvalidSource(
            f"toolset {toolset!r}: {type(item).__name__} is a source of its own and cannot be offered again in"
            " another; list both"
        )
    entry: AnyTool = item if isinstance(item, Tool) else tool(cast("Callable[..., object]", item))
    contract = entry.contract
    if contract.defer_loading:
        raise InvalidDeferral(
            f"toolset {toolset!r}: {contract.name!r} says defer_loading, and deferral is the consumer's:"
            f" ptc.use(toolset).defer({contract.name!r})"
        )
    if contract.namespace not in (None, toolset):
        raise InvalidSource(
            f"toolset {toolset!r}: {contract.qualified_name!r} is of another namespace; leave its namespace out"
        )
    return entry


def _placed(entry: AnyTool, namespace: str, siblings: Iterable[str]) -> AnyTool:
    """The tool in its toolset's namespace; a reconciliation read that it names by local name goes along."""
    contract = entry.contract
    if contract.namespace is not None:
        return entry
    read = contract.reconciliation
    if read is not None and read.tool in siblings:
        read = Reconciliation(f"{namespace}.{read.tool}", read.arguments)
    return with_contract(
        entry, replace(contract, namespace=namespace, reconciliation=read, checked=BY_GENERATOR)
    )


def _tagged(entry: AnyTool, tags: tuple[str, ...]) -> AnyTool:
    contract = entry.contract
    return with_contract(entry, replace(contract, tags=(*contract.tags, *tags), checked=BY_GENERATOR))


def with_contract(entry: AnyTool, contract: Contract) -> AnyTool:
    """A tool of the same function and the same schemas under another contract."""
    other = copy.copy(entry)
    other.contract = contract
    return other


__all__ = ["Source", "Toolset", "Use", "use", "with_contract"]
