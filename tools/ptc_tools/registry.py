"""Registries of tools: how a consumer names one, and what it asks of a client that reaches one.

`Registry` and its toolsets are names, so making them does no I/O; a client is registered for the name before a
run. A registry owns what its tools are. Here is what both sides agree on, and no client.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from ptc_tools.call import JsonObject
from ptc_tools.errors import InvalidDeferral, InvalidSource, RegistrationError, RegistryUnknown
from ptc_tools.names import check_namespace


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry as a source: all the toolsets that it has, as they are at each step. It may be empty."""

    name: str

    def __post_init__(self) -> None:
        check_namespace(self.name)

    def toolset(self, name: str, *, version: str | None = None) -> RegistryToolset:
        """One toolset of this registry: `Toolset.from_registry(registry, name)` says the same."""
        return RegistryToolset(self, name, version)

    def defer(self, *names: str) -> NoReturn:
        """Not here. Raises InvalidDeferral."""
        raise InvalidDeferral(f"deferral is the consumer's, not {self.name!r}'s: ptc.use(registry).defer()")


@dataclass(frozen=True, slots=True)
class RegistryToolset:
    """One toolset of a registry as a source: each step needs it. `version` is the one that must be published.

    It selects no older version: a registry has the current one. Made by `Toolset.from_registry`.
    """

    registry: Registry
    name: str
    version: str | None = None

    def __post_init__(self) -> None:
        check_namespace(self.name)
        if self.version is not None and (not isinstance(self.version, str) or not self.version):
            raise RegistrationError(f"toolset {self.name!r}: version must be text, got {self.version!r}")

    def defer(self, *names: str) -> NoReturn:
        """Not here. Raises InvalidDeferral."""
        raise InvalidDeferral(f"deferral is the consumer's, not {self.name!r}'s: ptc.use(toolset).defer()")

    def export(self, *_: object, **__: object) -> NoReturn:
        """What a registry owns is not exported again. Raises InvalidSource."""
        raise InvalidSource(
            f"{self.registry.name}/{self.name} is its provider's and cannot be exported again; let others use the"
            " registry"
        )


@dataclass(frozen=True, slots=True)
class ToolsetInfo:
    """What a registry lists of a toolset."""

    name: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedToolset:
    """A toolset as it is registered now, and the token of that registration.

    `tools` are publications in JSON, see `ptc_tools.publication`. The token is new with every registration:
    a call that was made for one is never given to another, whatever their schemas.
    """

    name: str
    token: str
    tools: Sequence[JsonObject]
    version: str | None = None
    description: str | None = None


class RegistryClient(Protocol):
    """How a consumer reaches a registry. Its methods are called from one event loop, and many runs at once."""

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        """All that are registered now."""

    async def resolve_toolset(self, name: str) -> ResolvedToolset | None:
        """The toolset as it is registered now, in one read; None if there is none of this name."""


class Registries:
    """Which client reaches which registry. One table serves a process; tests may have their own."""

    def __init__(self, clients: Mapping[str, RegistryClient] | None = None) -> None:
        self._clients: dict[str, RegistryClient] = dict(clients or {})
        self._lock = threading.Lock()

    def register(self, name: str, client: RegistryClient) -> None:
        """See `register_registry`."""
        check_namespace(name)
        with self._lock:
            if self._clients.setdefault(name, client) is not client:
                raise InvalidSource(
                    f"another client is registered for registry {name!r}: unregister_registry({name!r}) first"
                )

    def unregister(self, name: str) -> None:
        """Forgets the client of this name; nothing if there is none."""
        with self._lock:
            self._clients.pop(name, None)

    def client(self, name: str) -> RegistryClient:
        """The client of this name. Raises RegistryUnknown."""
        client = self._clients.get(name)
        if client is None:
            raise RegistryUnknown(
                f"no client is registered for registry {name!r}: register_registry({name!r}, client) before the run"
            )
        return client


REGISTRIES = Registries()
"""The table of this process."""


def register_registry(name: str, client: RegistryClient) -> None:
    """Says how this process reaches the registry that sources call `name`. Once, before the runs that use it.

    Connecting is the client's matter; this does no I/O. Raises InvalidSource if the name has another client.
    """
    REGISTRIES.register(name, client)


def unregister_registry(name: str) -> None:
    """Takes back `register_registry`. Runs that go on fail at their next step."""
    REGISTRIES.unregister(name)
