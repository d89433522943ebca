"""Reads the sources of a consumer into the catalog of a step.

What never changes (toolsets, single tools) is prepared once. It is told of a run only what the host says:
labels, principal, policy. It never gives out part of a catalog, and keeps no run's catalog for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias, cast

from ptc_tools.contract import Contract
from ptc_tools.errors import DuplicateIdentity, DuplicateTool, InvalidSource, VisibilityFailed
from ptc_tools.registry import REGISTRIES, Registries, Registry, RegistryToolset
from ptc_tools.sources.step import Offered, StepCatalog
from ptc_tools.tool import AnyTool, Tool, tool
from ptc_tools.toolset import Toolset, Use, use

SourceLike: TypeAlias = "Use | Toolset | RegistryToolset | Registry | AnyTool | Callable[..., object]"


class Visibility(Protocol):
    """A policy that also says which tools a run may see. A policy without `permits` hides none."""

    def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
        """True shows the tool to the run. Asked for each tool at each step, so it does no I/O."""


class Sources:
    """What one consumer draws its tools from. Making it does no I/O.

    `registries` says which client reaches which registry; the default is the table of `register_registry`.
    Raises InvalidSource for a source that is used twice or overlaps another, RegistrationError kinds for
    tools.
    """

    def __init__(self, uses: Iterable[SourceLike], *, registries: Registries = REGISTRIES) -> None:
        self._registries = registries
        self._uses: list[Use | AnyTool] = [_normal(item) for item in uses]
        _check_overlap([item for item in self._uses if isinstance(item, Use)])
        self._fixed: dict[int, tuple[Offered, ...]] = {
            index: _offered(item) for index, item in enumerate(self._uses)
        }
        self._namespaces: dict[str, str] = {}
        for item in self._uses:
            if isinstance(item, Use) and isinstance(item.source, Toolset) and item.source.description:
                self._namespaces[item.source.name] = item.source.description
        self._whole: StepCatalog | None = None
        if self.static:
            try:
                self._whole = StepCatalog(self._all_fixed(), self._namespaces)
            except DuplicateIdentity as error:
                raise DuplicateTool(str(error.__cause__)) from None

    @property
    def static(self) -> bool:
        """Whether no registry is among the sources: then every read offers the same, but for the policy."""
        return not any(isinstance(item, Use) and not isinstance(item.source, Toolset) for item in self._uses)

    async def read(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        policy: object = None,
        principal: str | None = None,
    ) -> StepCatalog:
        """The catalog of a step. Raises CatalogError: then there is none, and no request is to be made.

        `policy`: a `Visibility`, or any other policy, which hides nothing. `labels` and `principal`: the run's.
        """
        return self.fixed(labels, policy=policy, principal=principal)

    def fixed(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        policy: object = None,
        principal: str | None = None,
    ) -> StepCatalog:
        """`read` for static sources, without an event loop. Raises TypeError where a registry is among them."""
        if self._whole is None:
            raise TypeError("a registry is among the sources: read them, in a run")
        permitted = _permitted(self._all_fixed(), policy, principal, MappingProxyType(dict(labels or {})))
        if len(permitted) == len(self._whole):
            return self._whole
        return StepCatalog(permitted, self._namespaces)

    def _all_fixed(self) -> list[Offered]:
        return [entry for entries in self._fixed.values() for entry in entries]


def _normal(item: object) -> Use | AnyTool:
    if isinstance(item, (Use, Tool)):
        return item
    if isinstance(item, (Toolset, Registry, RegistryToolset)):
        return use(item)
    if callable(item) and not isinstance(item, type):
        return tool(cast("Callable[..., object]", item))
    raise TypeError(f"{type(item).__name__} is no source of tools: give a toolset, a registry or a tool")


def _offered(item: Use | AnyTool) -> tuple[Offered, ...]:
    if isinstance(item, Use):
        return tuple(Offered(entry, deferred=item.defers(entry.contract)) for entry in item.tools)
    return (Offered(item, deferred=item.contract.defer_loading),)


def _check_overlap(uses: Iterable[Use]) -> None:
    toolsets: set[str] = set()
    whole: set[str] = set()
    parts: set[tuple[str, str]] = set()
    for item in uses:
        source = item.source
        if isinstance(source, Toolset):
            if source.name in toolsets:
                raise InvalidSource(f"toolset {source.name!r} is used twice; use it once")
            toolsets.add(source.name)
        elif isinstance(source, Registry):
            if source.name in whole:
                raise InvalidSource(f"registry {source.name!r} is used twice; use it once")
            whole.add(source.name)
        else:
            part = (source.registry.name, source.name)
            if part in parts:
                raise InvalidSource(f"{part[0]}/{part[1]} is used twice; use it once")
            parts.add(part)
    for registry, name in sorted(parts):
        if registry in whole:
            raise InvalidSource(
                f"registry {registry!r} is used whole, and {name!r} of it as well; use one of them"
            )


def _permitted(
    offered: Iterable[Offered], policy: object, principal: str | None, labels: Mapping[str, str]
) -> list[Offered]:
    permits = getattr(policy, "permits", None)
    if permits is None:
        return list(offered)
    shown = []
    for entry in offered:
        contract = entry.tool.contract
        try:
            answer = permits(principal, contract, labels)
        except Exception as error:
            raise VisibilityFailed(
                f"the policy could not say whether this run may see {contract.qualified_name!r}"
            ) from error
        if not isinstance(answer, bool):
            raise VisibilityFailed(f"the policy must answer true or false, not {type(answer).__name__}")
        if answer:
            shown.append(entry)
    return shown
