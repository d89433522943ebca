"""Reads the sources of a consumer into the catalog of a step.

What never changes (toolsets, single tools) is prepared once; registries are read at each step. It is told of
a run only what the host says: labels, principal, policy. It never gives out part of a catalog, and keeps no
run's catalog for another that may see other tools.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, cast

from ptc_tools.admission import Admission
from ptc_tools.call import JsonObject
from ptc_tools.contract import Contract
from ptc_tools.errors import (
    CatalogError,
    DuplicateIdentity,
    InvalidSource,
    RegistrationError,
    SourceUnreadable,
    VisibilityFailed,
)
from ptc_tools.registry import REGISTRIES, Registries, Registry, RegistryToolset
from ptc_tools.sources.fetching import Fetched, Fetcher
from ptc_tools.sources.remote import pages_by
from ptc_tools.sources.restoring import restored
from ptc_tools.sources.selecting import RegistryTools, SourceCatalog, is_choice
from ptc_tools.sources.step import Offered, StepCatalog
from ptc_tools.tool import AnyTool, Tool, tool
from ptc_tools.toolset import Toolset, Use, use

SourceLike: TypeAlias = (
    "Use | Toolset | RegistryToolset | Registry | RegistryTools | AnyTool | Callable[..., object]"
)
_SNAPSHOTS: Final = 16


class Visibility(Protocol):
    """A policy that also says which tools a run may see. A policy without `permits` hides none."""

    def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
        """True shows the tool to the run. Asked for each tool at each step, so it does no I/O."""


class Sources:
    """What one consumer draws its tools from. Making it does no I/O.

    `registries` says which client reaches which registry; the default is the table of `register_registry`.
    `timeout` (seconds) is for each answer of a registry. Raises InvalidSource for a source that is used twice
    or overlaps another, RegistrationError kinds for tools.
    """

    def __init__(
        self,
        uses: Iterable[SourceLike],
        *,
        registries: Registries = REGISTRIES,
        timeout: float = 30.0,
    ) -> None:
        self._registries = registries
        self._timeout = timeout
        self._uses: list[Use | AnyTool | RegistryTools] = [_normal(item) for item in uses]
        self._choices = [item for item in self._uses if not isinstance(item, (Use, Tool))]
        check_overlap(item for item in self._uses if isinstance(item, Use))
        self._fixed = [_offered(item) for item in self._uses]
        self._described = {
            item.source.name: item.source.description
            for item in self._uses
            if isinstance(item, Use) and isinstance(item.source, Toolset) and item.source.description
        }
        self._fetcher = Fetcher(registries, timeout)
        self._snapshots: OrderedDict[tuple[object, ...], StepCatalog] = OrderedDict()
        try:
            StepCatalog(self._all_fixed(), self._described)
        except CatalogError as error:
            # What is wrong with what is listed here is the host's mistake, and found before any run.
            cause = error.__cause__
            raise (cause if isinstance(cause, RegistrationError) else error) from None

    @property
    def static(self) -> bool:
        """Whether no registry is among the sources: then every read offers the same, but for the policy."""
        return not self._choices and not any(
            isinstance(item, Use) and not isinstance(item.source, Toolset) for item in self._uses
        )

    async def read(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        policy: object = None,
        principal: str | None = None,
    ) -> StepCatalog:
        """The catalog of a step: each source is read once. Raises CatalogError: then there is none.

        `policy`: a `Visibility`, or any other policy, which hides nothing. `labels` and `principal`: the
        run's. A tool that requires a label which the run does not have is not in its catalog.
        """
        if self.static:
            return self.fixed(labels, policy=policy, principal=principal)
        chosen = await self._chosen(labels or {})
        remote = [
            item for item in self._uses if isinstance(item, Use) and not isinstance(item.source, Toolset)
        ]
        check_overlap((*remote, *chosen), at_read=True)
        fetched = await self._fetcher.fetch((*remote, *chosen))
        offered, described = self._in_order(fetched, remote, chosen)
        return self._snapshot(_permitted(offered, policy, principal, labels), described)

    def fixed(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        policy: object = None,
        principal: str | None = None,
    ) -> StepCatalog:
        """`read` for static sources, without an event loop. Raises TypeError where a registry is among them."""
        if not self.static:
            raise TypeError("a registry is among the sources: read them, in a run")
        return self._snapshot(_permitted(self._all_fixed(), policy, principal, labels), self._described)

    def allows(self, registry: str, toolset: str, version: str | None = None) -> bool:
        """Whether saved calls may go on using a toolset of a registry: it is among the sources, or is allowed.

        A source that asks for a version allows calls that were made for that version. Raises SourceUnreadable
        where one that chooses cannot say.
        """
        for item in self._uses:
            source = item.source if isinstance(item, Use) else None
            if isinstance(source, Registry) and source.name == registry:
                return True
            if isinstance(source, RegistryToolset) and (source.registry.name, source.name) == (
                registry,
                toolset,
            ):
                return source.version in (None, version)
        asked = RegistryToolset(Registry(registry), toolset, version)
        return any(_allows(choice, asked) for choice in self._choices)

    def restore(self, saved: JsonObject) -> Admission:
        """The admission of a saved call, without any read of the catalog: the inverse of `Admission.to_json`.

        Raises CallNotAdmitted if this consumer does not use the source any more, RegistryUnknown,
        SourceUnreadable if it could not say, and RegistrationError for a definition that was damaged.
        """
        return restored(saved, self.allows, self._registries)

    # Inside

    async def _chosen(self, labels: Mapping[str, str]) -> list[Use]:
        uses: list[Use] = []
        for choice in self._choices:
            catalog = SourceCatalog(labels)
            name = type(choice).__name__
            try:
                async with asyncio.timeout(self._timeout) as limit:
                    step = choice.resolve(catalog)
                    if inspect.isawaitable(step):
                        await step
            except (CatalogError, RegistrationError):
                raise
            except Exception as error:
                late = isinstance(error, TimeoutError) and limit.expired()
                how = f" within {self._timeout:g} seconds" if late else ""
                why = "" if late else f": {type(error).__name__}: {error}"
                raise SourceUnreadable(f"{name} could not choose the sources of a step{how}{why}") from error
            uses += catalog.uses
        return uses

    def _in_order(
        self, fetched: Sequence[Fetched], remote: Sequence[Use], chosen: Sequence[Use]
    ) -> tuple[list[Offered], Mapping[str, str]]:
        """What was read in the places of its sources, chosen sources last; each deferred as its use says."""
        of_use = dict(zip([id(item) for item in (*remote, *chosen)], fetched, strict=True))
        offered: list[Offered] = []
        described = dict(self._described)
        for item, fixed in zip(self._uses, self._fixed, strict=True):
            offered += fixed
            if id(item) in of_use:
                offered += of_use[id(item)].offered
        for item in chosen:
            offered += of_use[id(item)].offered
        for each in fetched:
            described.update(each.descriptions)
        _check_owners(offered)
        return offered, described

    def _snapshot(self, offered: Sequence[Offered], described: Mapping[str, str]) -> StepCatalog:
        """Snapshots cannot change, so reads that come to the very same tools share one."""
        key = (*map(id, offered), *sorted(described.items()))
        known = self._snapshots.get(key)
        if known is None:
            known = self._snapshots[key] = StepCatalog(offered, described)  # it keeps what the ids are of
            while len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return known

    def _all_fixed(self) -> list[Offered]:
        return [entry for entries in self._fixed for entry in entries]


def _allows(choice: RegistryTools, asked: RegistryToolset) -> bool:
    try:
        return choice.allows(asked) is True
    except Exception as error:
        raise SourceUnreadable(
            f"{type(choice).__name__} could not say whether calls of {asked.registry.name}/{asked.name} may go on:"
            f" {type(error).__name__}: {error}"
        ) from error


def _normal(item: object) -> Use | AnyTool | RegistryTools:
    if isinstance(item, (Use, Tool)):
        return item
    if isinstance(item, (Toolset, Registry, RegistryToolset)):
        return use(item)
    if is_choice(item):
        return item
    if callable(item) and not isinstance(item, type):
        return tool(cast("Callable[..., object]", item))
    raise TypeError(f"{type(item).__name__} is no source of tools: give a toolset, a registry or a tool")


def _offered(item: Use | AnyTool | RegistryTools) -> tuple[Offered, ...]:
    if isinstance(item, Use):
        return tuple(
            Offered(entry, deferred=item.defers(entry.contract), pages=pages_by(entry.contract))
            for entry in item.tools
        )
    if isinstance(item, Tool):
        deferred = item.contract.defer_loading
        return (Offered(item, deferred=deferred, pages=pages_by(item.contract)),)
    return ()


def check_overlap(uses: Iterable[Use], *, at_read: bool = False) -> None:
    """Raises InvalidSource for a source that is used twice, or as a part of another."""
    toolsets: set[str] = set()
    whole: set[str] = set()
    parts: set[tuple[str, str]] = set()
    when = " in one step" if at_read else ""
    for item in uses:
        source = item.source
        if isinstance(source, Toolset):
            if source.name in toolsets:
                raise InvalidSource(f"toolset {source.name!r} is used twice{when}; use it once")
            toolsets.add(source.name)
        elif isinstance(source, Registry):
            if source.name in whole:
                raise InvalidSource(f"registry {source.name!r} is used twice{when}; use it once")
            whole.add(source.name)
        else:
            part = (source.registry.name, source.name)
            if part in parts:
                raise InvalidSource(f"{part[0]}/{part[1]} is used twice{when}; use it once")
            parts.add(part)
    for registry, name in sorted(parts):
        if registry in whole:
            raise InvalidSource(
                f"registry {registry!r} is used whole{when}, and {name!r} of it as well; use one of them"
            )


def _check_owners(offered: Iterable[Offered]) -> None:
    """Raises DuplicateIdentity for a namespace of two sources: a registry adds no tools to what is another's."""
    owners: dict[str, str] = {}
    for entry in offered:
        namespace = entry.tool.contract.namespace
        owner = "this process" if entry.origin is None else f"registry {entry.origin.registry!r}"
        if namespace is not None and owners.setdefault(namespace, owner) != owner:
            raise DuplicateIdentity(
                f"{owners[namespace]} and {owner} both offer tools of {namespace!r}, such as"
                f" {entry.tool.contract.qualified_name}: use one of them, or rename"
            )


def _permitted(
    offered: Iterable[Offered], policy: object, principal: str | None, given: Mapping[str, str] | None
) -> list[Offered]:
    """What the policy shows to a run with these labels, and what has the labels that it requires."""
    permits = getattr(policy, "permits", None)
    labels = MappingProxyType(dict(given or {}))
    shown = []
    for entry in offered:
        contract = entry.tool.contract
        required = () if contract.publication is None else contract.publication.required_labels
        if any(name not in labels for name in required):
            continue
        if permits is None or _answer(permits, principal, contract, labels):
            shown.append(entry)
    return shown


def _answer(
    permits: Callable[..., object], principal: str | None, contract: Contract, labels: Mapping[str, str]
) -> bool:
    try:
        answer = permits(principal, contract, labels)
    except Exception as error:
        raise VisibilityFailed(
            f"the policy could not say whether this run may see {contract.qualified_name!r}"
        ) from error
    if not isinstance(answer, bool):
        raise VisibilityFailed(f"the policy must answer true or false, not {type(answer).__name__}")
    return answer
