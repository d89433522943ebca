"""Runs a registry as a process: a listening socket, the app and a server that says where it is.

It binds this machine alone unless it is told otherwise; encryption is a proxy's matter.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from ptc.errors import ConfigurationError
from ptc.registry.app import create_app
from ptc.registry.keys import Keys
from ptc.registry.store import RegistryStore


async def serve(
    database: Path,
    keys: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    max_waiting: int = 1_000,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until it is interrupted. `ready` is told the address once connections are taken.

    Raises ConfigurationError for keys or a port that cannot be used, RegistryStoreUnreadable for the file.
    """
    known = Keys.read(keys)
    listener = _listen(host, port)
    try:
        store = RegistryStore(database, max_waiting=max_waiting)
    except BaseException:
        listener.close()
        raise
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        create_app(store, known), log_level="warning", access_log=False, timeout_graceful_shutdown=2
    )
    await _Server(config, store, lambda: ready(url)).serve(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, store: RegistryStore, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._store = store
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._store.hang_up()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ConfigurationError(
            f"the registry cannot listen on port {port}: give one up to 65535, or 0 for any"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, ValueError) as error:  # UnicodeError and a null byte in the host are ValueErrors
        listener.close()
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"the registry cannot listen on {host}:{port}: {why}") from None
    return listener
