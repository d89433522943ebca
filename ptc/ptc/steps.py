"""The steps of one run: which snapshot of the tools the next request uses, and which choice it makes.

It is told what changed (exposure, open programs, calls that ran) and builds a new snapshot only then. A step
that was handed out never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ptc.acting import Acting
from ptc.choice import ToolChoice
from ptc.definitions import Key
from ptc.exposure import LiveExposure
from ptc.items import is_client_call, refused_call_of
from ptc.loading import LoadedTools
from ptc.offering import Offer, Offering
from ptc.reading import items_in
from ptc.resuming import ResumingSandbox
from ptc.searching import StepSearch
from ptc.settings import Settings
from ptc.toolbox import Entry, ProgramsMode, Step, build_step, callers_of, entry_name
from ptc_tools.call import JsonObject
from ptc_tools.tool import AnyTool

if TYPE_CHECKING:
    from ptc.durable import Durable
    from ptc_sandbox import Sandbox


class Steps:
    """`current` is the snapshot in force; `resources` owns a sandbox that the run had to start itself."""

    def __init__(
        self,
        settings: Settings,
        exposure: LiveExposure,
        acting: Acting,
        loaded: LoadedTools,
        resources: AsyncExitStack,
        journals: Mapping[str, JsonObject],
        durable: Durable | None = None,
    ) -> None:
        self._durable = durable
        self._settings = settings
        self._exposure = exposure
        self._offering = Offering(settings, exposure, acting)
        self._loaded = loaded
        self._resources = resources
        self._journals = journals
        self._sandbox: Sandbox | None = settings.sandbox
        self._resuming: Sandbox | None = None  # one for all steps: a journal is used once
        self._key: object = None
        self._checked = False
        self._read = False
        self._last = False
        self._admitted: Mapping[str, JsonObject] | None = None
        self.entries: tuple[Entry, ...] = ()
        self.current: Step | None = None
        self.choice = settings.tool_choice
        # What a choice names is sent from the start, in all requests of the run: a call must not lose its tool.
        self.eager = settings.tool_choice.names
        resources.callback(exposure.close)  # a context that somebody kept is outside the run then

    async def next(self, admitted: Mapping[str, JsonObject] | None = None, *, searches: bool = False) -> Step:
        """The snapshot for the next request. The sources are read once for each, and for the last one not.

        `admitted`: the request was answered before, in another process, and what is given was kept of the
        tools of its calls: nothing is read, unless `searches` among them have no output yet. Raises
        CatalogError, ConfigurationError, DuplicateTool.
        """
        offering = self._offering
        self._admitted = admitted
        offer = await self._offer(admitted, searches)
        loads = self._loaded.pair_has_loaded if self._programs == "local" else 0
        key = (offer.version, tuple(map(id, offering.still_callable)), self._programs, loads)
        if self.current is not None and key == self._key:
            return self.current
        self.current = await self._build(offer, offer.entries)
        if not self._checked:
            self.choice.check(self.current)
        self._checked, self._key = True, key
        return self.current

    async def _offer(self, admitted: Mapping[str, JsonObject] | None, searches: bool) -> Offer:
        offering = self._offering
        if admitted is not None and not searches:
            return offering.without_reading(admitted)
        known = self._read or (self._last and offering.current is not None)
        offer = offering.without_reading() if known else await offering.read()
        self._read = True
        return offer if not admitted else offering.with_admitted(offer, admitted)

    def answered(self) -> None:
        """The request has its response: the sources are read again for the next one."""
        self._read = False

    def restored(self, saved: Iterable[JsonObject]) -> list[AnyTool]:
        """Tools of registries, from what `admissions` gave."""
        return self._offering.restored(saved)

    def admissions(self, entries: Iterable[Entry]) -> dict[str, JsonObject]:
        """What has to be saved of tools of the current step; see `Offering.admissions`."""
        return self._offering.admissions(entry_name(entry) for entry in entries)

    def admissions_for(self, response: JsonObject, step: Step) -> dict[str, JsonObject]:
        """The same for all that the calls of a response need, the programs that they start here included."""
        called = {
            (call.namespace, call.name)
            for call in map(refused_call_of, filter(is_client_call, items_in(response)))
        }
        called |= {(None, name) for namespace, name in called if namespace == name}
        runs = step.code_tool is not None and (None, step.code_tool) in called
        return self.admissions(
            entry
            for entry in self.entries
            if entry_name(entry) in called or (runs and self.in_programs(entry))
        )

    def in_programs(self, entry: Entry) -> bool:
        """Whether programs of the current step have an entry: none that still waits for a search."""
        deferral = None if self.current is None else self.current.deferral
        waits = deferral is not None and deferral.waits(entry_name(entry))
        return "programmatic" in (callers_of(entry) or ()) and not waits

    async def again(self, removed: Sequence[Entry], later: Collection[str] = ()) -> Step:
        """The snapshot of a batch that waited: with what was removed since, and without what came `later`, by
        name, which no program of it could call. No request is sent with it, and no source is read."""
        names = {entry_name(entry) for entry in removed}
        offer = self._offering.without_reading()
        kept = [
            entry
            for entry in offer.entries
            if entry_name(entry) not in names and ".".join(filter(None, entry_name(entry))) not in later
        ]
        self.current = await self._build(offer, (*kept, *removed))
        self._checked, self._key = True, None
        return self.current

    @property
    def _programs(self) -> ProgramsMode | None:
        removed = self._exposure.programs == "hosted" and not self._exposure.hosted_tool
        return None if removed else self._exposure.programs

    async def _build(self, offer: Offer, entries: tuple[Entry, ...]) -> Step:
        exposure, programs = self._exposure, self._programs
        if programs == "local" and self._sandbox is None:
            from ptc_sandbox import Sandbox

            self._sandbox = await self._resources.enter_async_context(Sandbox())
        if self._resuming is None:
            self._resuming = ResumingSandbox.around(self._sandbox, self._journals, self._durable)
        self.entries = entries
        names = {entry_name(entry) for entry in entries}
        return build_step(
            entries,
            programs=programs,
            sandbox=self._resuming,
            # A waiting call may need what was removed while a program was open: then it is there already.
            still_callable=[
                entry for entry in self._offering.still_callable if entry_name(entry) not in names
            ],
            namespaces={**offer.namespaces, **(self._settings.namespaces or {})},
            errors_in_schema=self._settings.errors_in_schema,
            hosted_tool_removed=programs is None and exposure.programs == "hosted",
            search=self._search(offer, entries),
        )

    def _search(self, offer: Offer, entries: Sequence[Entry]) -> StepSearch | None:
        if self._settings.search is None:
            return None
        keys: dict[str, Key] = {}
        for entry in entries:
            key = entry_name(entry)
            if key in offer.deferred:
                keys[".".join(filter(None, key))] = key
        waiting = {key for name, key in keys.items() if name not in self.eager and key[1] not in self.eager}
        return StepSearch(self._settings.search, frozenset(waiting), self._loaded.by_pair)

    async def fall_back_to_local(self) -> Step:
        """Programs run here from now on; only before anything has run."""
        self._exposure.programs = "local"
        self._checked = False  # a choice may name what is no tool of the service's any more
        return await self.next(self._admitted)

    def add_to(self, body: JsonObject, step: Step) -> JsonObject:
        """The body with the step's tools, the choice, and the form of the answer."""
        if step.wire:
            body["tools"] = list(step.wire)
            choice = self.choice.to_wire(step)
            if choice is not None:
                body["tool_choice"] = choice
        if self._settings.output is not None:
            given = body.get("text")
            body["text"] = {**(given if isinstance(given, dict) else {}), **self._settings.output.to_wire()}
        return body

    def relax_choice(self, ran: Collection[str]) -> None:
        """A forced choice was obeyed, or with `until_called` waits for its tool to be among those that `ran`."""
        if not self.choice.forced:
            return
        if self.choice.until_called:
            wanted = self.choice.demanded(self.current) if self.current is not None else None
            if not (ran if wanted is None else wanted.among(ran)):
                return
        self.choice = self.choice.relaxed()

    def forbid_calls(self) -> None:
        """For the last request after a limit."""
        self.choice = ToolChoice(mode="none")
        self._last = True
