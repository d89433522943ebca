"""Asks registries for the toolsets that a step needs, each once, several at a time.

A registration that is known by its token is not compiled again; what a read gives is whole or an error. A
registry's answer is checked as what it is: words from elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from ptc_tools.errors import (
    CatalogError,
    DuplicateIdentity,
    SourceMissing,
    SourceRemoved,
    SourceUnreadable,
    VersionMismatch,
)
from ptc_tools.names import PATTERN
from ptc_tools.registry import Registries, Registry, RegistryToolset
from ptc_tools.registry_protocol import RegistryClient, ResolvedToolset
from ptc_tools.sources.remote import offered_tools
from ptc_tools.sources.step import Offered
from ptc_tools.strict_json import is_sendable
from ptc_tools.toolset import Use

AT_ONCE: Final = 8
MANY: Final = 50
"""Tools from which on a toolset is compiled beside the event loop."""
KEPT: Final = 4_096
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one use of a registry's source comes to: its tools, and what their namespaces are described by."""

    offered: tuple[Offered, ...]
    descriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Known:
    """A registration that was read before, and the client that it came from."""

    client: RegistryClient
    resolved: ResolvedToolset
    offered: tuple[Offered, ...]


class Fetcher:
    """Reads for one consumer. What it keeps from read to read are registrations, which never change."""

    def __init__(self, registries: Registries, timeout: float) -> None:
        self._registries = registries
        self._timeout = timeout
        self._lock = threading.Lock()
        self._compiling: dict[tuple[str, str, bool], threading.Lock] = {}
        self._known: OrderedDict[tuple[str, str, bool], _Known] = OrderedDict()

    async def fetch(self, uses: Sequence[Use]) -> list[Fetched]:
        """One for each use, in order. Raises CatalogError kinds: the first trouble, and the rest is given up."""
        room = asyncio.Semaphore(AT_ONCE)
        return await _all(self._use(item, room) for item in uses)

    async def _use(self, item: Use, room: asyncio.Semaphore) -> Fetched:
        source = item.source
        if isinstance(source, RegistryToolset):
            return _together([await self._named(source, item.defers_all, room)])
        assert isinstance(source, Registry)
        return await self._whole(source, item.defers_all, room)

    async def _named(self, source: RegistryToolset, deferred: bool, room: asyncio.Semaphore) -> _Known:
        where = f"{source.registry.name}/{source.name}"
        known = await self._resolve(source.registry.name, source.name, deferred, room)
        if known is None:
            raise SourceMissing(f"{where} is not in its registry, and this run needs it")
        if source.version is not None and known.resolved.version != source.version:
            raise VersionMismatch(
                f"{where} is published as {known.resolved.version or 'no version'}, and this run needs {source.version}"
            )
        return known

    async def _whole(self, source: Registry, deferred: bool, room: asyncio.Semaphore) -> Fetched:
        client = self._registries.client(source.name)
        async with room:
            listed = await self._answered(client.list_toolsets(), source.name)
        given: object = listed  # a client is another's code
        if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
            raise SourceUnreadable(
                f"registry {source.name!r}: its client lists {type(given).__name__}, not ToolsetInfos"
            )
        names = [_checked_name(getattr(info, "name", None), source.name) for info in listed]
        if len(set(names)) < len(names):
            raise DuplicateIdentity(f"registry {source.name!r} lists a toolset twice")
        found = await _all(
            self._listed(source.name, name, getattr(info, "token", None), deferred, room)
            for name, info in zip(names, listed, strict=True)
        )
        whole = []
        for name, known in zip(names, found, strict=True):
            if known is None:
                raise SourceRemoved(
                    f"{source.name}/{name} was removed while the catalog was read; read it again"
                )
            whole.append(known)
        return _together(whole)

    async def _listed(
        self, registry: str, name: str, token: object, deferred: bool, room: asyncio.Semaphore
    ) -> _Known | None:
        """A toolset of the list: what is listed with a token that is known here is not asked for."""
        before = self._known.get((registry, name, deferred))
        client = self._registries.client(registry)
        if before is not None and before.client is client and before.resolved.token == token:
            return before
        return await self._resolve(registry, name, deferred, room)

    async def _resolve(
        self, registry: str, name: str, deferred: bool, room: asyncio.Semaphore
    ) -> _Known | None:
        client = self._registries.client(registry)
        key = (registry, name, deferred)
        before = self._known.get(key)
        if before is not None and before.client is not client:
            before = None
        async with room:
            asked = client.resolve_toolset(name, known=None if before is None else before.resolved.token)
            resolved = await self._answered(asked, f"{registry}/{name}")
        if resolved is None:
            self._known.pop(key, None)
            return None
        _check_resolved(resolved, registry, name)
        if before is not None and before.resolved.token == resolved.token:
            return before
        if resolved.tools is not None and len(resolved.tools) >= MANY:
            return await asyncio.to_thread(self._compiled, key, resolved, client)
        return self._compiled(key, resolved, client)

    def _compiled(
        self, key: tuple[str, str, bool], resolved: ResolvedToolset, client: RegistryClient
    ) -> _Known:
        """The tools of a registration, made once however many runs came to it at the same time."""
        registry, _, deferred = key
        with self._lock:
            one_at_a_time = self._compiling.setdefault(key, threading.Lock())
        with one_at_a_time:
            known = self._known.get(key)
            if known is not None and known.client is client and known.resolved.token == resolved.token:
                return known
            offered = offered_tools(registry, resolved, client, self._registries, deferred=deferred)
            known = _Known(client, replace(resolved, tools=None), offered)
            self._keep(key, known)
        return known

    def _keep(self, key: tuple[str, str, bool], known: _Known) -> None:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                gone, _ = self._known.popitem(last=False)
                self._compiling.pop(gone, None)

    async def _answered(self, asked: Coroutine[Any, Any, T], where: str) -> T:
        """What a client answers; whatever it raises, or does not answer in time, means that there is no catalog."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await asked
        except CatalogError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                raise SourceUnreadable(f"{where} did not answer within {self._timeout:g} seconds") from error
            raise SourceUnreadable(f"{where} could not be read: {type(error).__name__}: {error}") from error


def _together(known: Iterable[_Known]) -> Fetched:
    offered: list[Offered] = []
    descriptions: dict[str, str] = {}
    for each in known:
        offered += each.offered
        if each.resolved.description:
            descriptions[each.resolved.name] = each.resolved.description
    return Fetched(tuple(offered), descriptions)


async def _all(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All of them, or the first trouble as it is: not in a group, which would hide its kind."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _checked_name(name: object, registry: str) -> str:
    if not isinstance(name, str) or not PATTERN.fullmatch(name):
        raise SourceUnreadable(f"registry {registry!r} lists a toolset whose name is none")
    return name


def _check_resolved(resolved: object, registry: str, name: str) -> None:
    where = f"{registry}/{name}"
    if not isinstance(resolved, ResolvedToolset):
        raise SourceUnreadable(f"{where}: the client gave {type(resolved).__name__}, not a ResolvedToolset")
    if resolved.name != name or not isinstance(resolved.token, str) or not resolved.token:
        raise SourceUnreadable(f"{where}: the registry answered with another toolset, or without a token")
    for what, value in (("version", resolved.version), ("description", resolved.description)):
        if value is not None and not is_sendable(value):
            raise SourceUnreadable(f"{where}: the registry's {what} of it is no text")
