"""What a run is offered at each step: its own list of tools, and what its sources offer when they are read.

A read is whole or an error, and holds until the next one. It filters by policy, for this run's principal and
labels, and keeps nothing of another run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from ptc.acting import Acting
from ptc.definitions import Key, key_of
from ptc.exposure import LiveExposure
from ptc.settings import Settings
from ptc.toolbox import Entry, callers_of, entry_name
from ptc_tools.call import Call, JsonObject
from ptc_tools.sources import Sources, StepCatalog
from ptc_tools.tool import AnyTool, Tool


@dataclass(frozen=True, slots=True)
class Offer:
    """One read. `own`: of the run's list; `entries`: all; `deferred`: keys of the tools that wait for a search.

    `version` is equal for equal offers.
    """

    own: tuple[Entry, ...]
    entries: tuple[Entry, ...]
    deferred: frozenset[Key]
    namespaces: Mapping[str, str]
    version: Hashable
    catalog: StepCatalog | None = None


def _needs_labels(entry: Entry) -> bool:
    publication = entry.contract.publication if isinstance(entry, Tool) else None
    return publication is not None and bool(publication.required_labels)


class Offering:
    """The offers of one run, in order. `current` is the last one."""

    def __init__(self, settings: Settings, exposure: LiveExposure, acting: Acting) -> None:
        self._settings = settings
        self._exposure = exposure
        self._acting = acting
        self._own: tuple[int, Sources] | None = None
        self._gone: tuple[AnyTool, ...] = ()
        self.current: Offer | None = None

    async def read(self) -> Offer:
        """Reads the sources. Raises CatalogError: then no request is to be made."""
        catalog: StepCatalog | None = None
        if self._settled:
            return self.without_reading()
        if self._settings.sources is not None:
            acting = self._acting
            catalog = await self._settings.sources.read(
                acting.labels, policy=self._settings.policy, principal=acting.principal
            )
        return self._made(catalog)

    def with_admitted(self, offer: Offer, admitted: Mapping[str, JsonObject]) -> Offer:
        """An offer in which accepted calls keep what they were made for. Raises what `restored` raises."""
        restored = self.restored(admitted.values())
        keys = set(map(key_of, restored))
        others = tuple(entry for entry in offer.entries if entry_name(entry) not in keys)
        return replace(offer, entries=(*others, *restored), version=(offer.version, *map(id, restored)))

    @property
    def _settled(self) -> bool:
        """Whether another read can give nothing else: no registry to ask, and no policy that might hide."""
        sources, before = self._settings.sources, self.current
        if before is None or before.catalog is None or sources is None:
            return False
        return sources.static and getattr(self._settings.policy, "permits", None) is None

    def without_reading(self, admitted: Mapping[str, JsonObject] | None = None) -> Offer:
        """The run's own list as it is now, with what the last read gave: for a request that reads none.

        Before the first read it is what this process has, and the tools of calls that were `admitted` when the
        run was elsewhere, from what was saved of them. Raises CallNotAdmitted, RegistryUnknown.
        """
        if self.current is not None and self.current.catalog is not None and not admitted:
            return self._made(self.current.catalog)
        here = self._shown(Sources(self._settings.local_tools))
        return self._made(None, (*here, *self.restored((admitted or {}).values())))

    def restored(self, saved: Iterable[JsonObject]) -> list[AnyTool]:
        """The tools of admitted calls, made again without a read. Raises CallNotAdmitted, RegistryUnknown."""
        sources = self._settings.sources
        return [] if sources is None else [sources.restore(one).tool for one in saved]

    def admissions(self, keys: Iterable[Key]) -> dict[str, JsonObject]:
        """What has to be saved of these tools, so that their calls need no read: of tools of registries alone."""
        catalog = None if self.current is None else self.current.catalog
        saved: dict[str, JsonObject] = {}
        for namespace, name in keys if catalog is not None else ():
            admission = None if catalog is None else catalog.admit(Call("", name, None, namespace=namespace))
            told = None if admission is None else admission.to_json()
            if told is not None:
                saved[".".join(filter(None, (namespace, name)))] = told
        return saved

    @property
    def still_callable(self) -> tuple[Entry, ...]:
        """What an open program could call and neither the run nor a source offers any more (rule 11)."""
        return (*self._exposure.still_callable, *self._gone)

    def _made(self, catalog: StepCatalog | None, others: tuple[AnyTool, ...] = ()) -> Offer:
        own = self._permitted()
        before = self.current
        if before is not None and not others and before.catalog is catalog and before.own == own:
            self._keep_what_programs_call(before)
            return before
        deferred = {
            key_of(entry) for entry in own if isinstance(entry, Tool) and entry.contract.defer_loading
        }
        offered = others
        if catalog is not None:
            offered = tuple(catalog.catalog)
            deferred |= {key_of(tool) for tool in offered if tool.contract.qualified_name in catalog.deferred}
        offer = Offer(
            own,
            (*own, *offered),
            frozenset(deferred),
            {} if catalog is None else catalog.catalog.namespaces,
            (self._exposure.version, tuple(map(id, own)), catalog, tuple(map(id, others))),
            catalog,
        )
        self._keep_what_programs_call(offer)
        self._exposure.elsewhere = frozenset(map(key_of, offered))
        self.current = offer
        return offer

    def _permitted(self) -> tuple[Entry, ...]:
        """The run's own list, without the tools that its policy does not show it, or that need other labels."""
        entries = self._exposure.entries
        policy = self._settings.policy
        if getattr(policy, "permits", None) is None and not any(map(_needs_labels, entries)):
            return entries
        if self._own is None or self._own[0] != self._exposure.version:
            tools = [entry for entry in entries if isinstance(entry, Tool)]
            self._own = self._exposure.version, Sources(tools)
        shown = {id(tool) for tool in self._shown(self._own[1])}
        return tuple(entry for entry in entries if not isinstance(entry, Tool) or id(entry) in shown)

    def _shown(self, sources: Sources) -> tuple[AnyTool, ...]:
        acting = self._acting
        shown = sources.fixed(acting.labels, policy=self._settings.policy, principal=acting.principal)
        return tuple(shown.catalog)

    def _keep_what_programs_call(self, offer: Offer) -> None:
        before = self.current
        if before is None or before.catalog is offer.catalog or not self._exposure.has_open_programs:
            self._gone = self._gone if self._exposure.has_open_programs else ()
            return
        there = {entry_name(entry) for entry in offer.entries}
        self._gone = tuple(
            tool
            for tool in (*self._gone, *(entry for entry in before.entries if isinstance(entry, Tool)))
            if key_of(tool) not in there
            and key_of(tool) not in before.deferred
            and "programmatic" in (callers_of(tool) or ())
        )
