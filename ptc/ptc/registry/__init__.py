"""A registry of tools over HTTP: the server with its store, the client, and the provider that serves calls.

The rules are those of every registry (`ptc_tools.admission`); here they meet a file and a network. Publishing
and calling need keys. Nothing here runs a tool but `Provider`, which runs its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptc.registry.app import create_app
    from ptc.registry.client import HttpRegistry
    from ptc.registry.errors import (
        RegistryError,
        RegistryForbidden,
        RegistryStoreUnreadable,
        RegistryUnreachable,
    )
    from ptc.registry.keys import Key, Keys, new_key
    from ptc.registry.provider import Provider
    from ptc.registry.store import RegistryStore

_HOME = {
    "Key": "keys",
    "Keys": "keys",
    "HttpRegistry": "client",
    "Provider": "provider",
    "RegistryError": "errors",
    "RegistryForbidden": "errors",
    "RegistryStore": "store",
    "RegistryStoreUnreadable": "errors",
    "RegistryUnreachable": "errors",
    "create_app": "app",
    "new_key": "keys",
}

__all__ = [
    "HttpRegistry",
    "Key",
    "Keys",
    "Provider",
    "RegistryError",
    "RegistryForbidden",
    "RegistryStore",
    "RegistryStoreUnreadable",
    "RegistryUnreachable",
    "create_app",
    "new_key",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
