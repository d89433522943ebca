"""Registries of tools: how a consumer names one, and what it asks of a client that reaches one.

`Registry` and its toolsets are names, so making them does no I/O; a client is registered for the name before a
run. A registry owns what its tools are. Here is what both sides agree on, and no client.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from ptc_tools.errors import InvalidDeferral, InvalidSource, RegistrationError, RegistryUnknown
from ptc_tools.names import check_namespace
from ptc_tools.registry_protocol import Executor, RegistryClient, ServerDataHandler

_METHODS: Final = ("list_toolsets", "resolve_toolset", "call_resolved")


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


class Registries:
    """Which client reaches which registry, and who runs agents' calls here.

    One table serves a process (`register_registry`); a test may have its own.
    """

    def __init__(self, clients: Mapping[str, RegistryClient] | None = None) -> None:
        self._clients: dict[str, RegistryClient] = dict(clients or {})
        self._handlers: dict[str, ServerDataHandler] = {}
        self._executors: dict[str, Executor] = {}
        self._lock = threading.Lock()

    def register(
        self, name: str, client: RegistryClient, *, on_server_data: ServerDataHandler | None = None
    ) -> None:
        """See `register_registry`."""
        check_namespace(name)
        given: object = client
        missing = [method for method in _METHODS if not callable(getattr(given, method, None))]
        if isinstance(given, type) or missing:
            kind = given.__name__ if isinstance(given, type) else type(given).__name__
            raise InvalidSource(
                f"registry {name!r}: {kind!r} is no client; one has {', '.join(_METHODS)}, as HttpRegistry(…),"
                " LocalRegistry() and McpRegistry(…) have"
            )
        with self._lock:
            if self._clients.setdefault(name, client) is not client:
                raise InvalidSource(
                    f"another client is registered for registry {name!r}: unregister_registry({name!r}) first"
                )
            if on_server_data is not None:
                self._handlers[name] = on_server_data

    def unregister(self, name: str) -> None:
        """Forgets the client of this name; nothing if there is none."""
        with self._lock:
            self._clients.pop(name, None)
            self._handlers.pop(name, None)

    def register_executor(self, name: str, executor: Executor) -> None:
        """See `register_executor`."""
        with self._lock:
            if self._executors.setdefault(name, executor) is not executor:
                raise InvalidSource(f"another executor is registered as {name!r}")

    def client(self, name: str) -> RegistryClient:
        """The client of this name. Raises RegistryUnknown."""
        client = self._clients.get(name)
        if client is None:
            raise RegistryUnknown(
                f"no client is registered for registry {name!r}: register_registry({name!r}, client) before the run"
            )
        return client

    def handler(self, name: str) -> ServerDataHandler | None:
        """Who takes the server data of this registry's tools; None if nobody does."""
        return self._handlers.get(name)

    def executor(self, name: str) -> Executor | None:
        """Who runs the calls of agents that name this executor; None if nobody does."""
        return self._executors.get(name)


REGISTRIES = Registries()
"""The table of this process."""


def register_registry(
    name: str, client: RegistryClient, *, on_server_data: ServerDataHandler | None = None
) -> None:
    """Says how this process reaches the registry that sources call `name`. Once, before the runs that use it.

    Connecting is the client's matter; this does no I/O. `on_server_data` takes what tools give beside their
    results, each a `ServerItem`, before the call ends; without it such data is dropped. Raises InvalidSource
    if the name has another client, or this is none.
    """
    REGISTRIES.register(name, client, on_server_data=on_server_data)


def unregister_registry(name: str) -> None:
    """Takes back `register_registry`. Runs that go on fail at their next step."""
    REGISTRIES.unregister(name)


def register_executor(name: str, executor: Executor) -> None:
    """Says who runs, in this process, the calls of agents that a registry declares for this executor.

    `executor(configuration, arguments, contract, context)` gives the result; see `ptc.agent_executor` for a runner.
    A call that was accepted keeps its executor and configuration, whatever the registry says later.
    """
    REGISTRIES.register_executor(name, executor)
