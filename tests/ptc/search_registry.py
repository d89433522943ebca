"""A registry in this process whose tools come and go while runs go on, and a count of who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ptc
from ptc_tools.publication import Publication
from ptc_tools.sources import LocalRegistry
from tests.ptc.search_support import RAN


def published(function: Callable[..., Any], **options: Any) -> Any:
    """A tool as a provider publishes it."""
    return ptc.tool(effects="read", publication=Publication(), **options)(function)


def lookup(customer: str) -> str:
    """Look up a customer record by its identifier."""
    RAN.append("lookup")
    return f"record of {customer}"


def lookup_by_number(customer: str, number: int) -> str:
    """Look up a customer record by identifier and number."""
    RAN.append("lookup_by_number")
    return f"record {number} of {customer}"


def orders(customer: str) -> str:
    """List the open orders of a customer."""
    RAN.append("orders")
    return f"orders of {customer}"


BOTH = ["direct", "programmatic"]
OLD = published(lookup, allowed_callers=BOTH)
NEW = published(lookup_by_number, name="lookup", allowed_callers=BOTH)
ORDERS = published(orders, allowed_callers=BOTH)


class Counted(LocalRegistry):
    """Counts reads, and can be made to fail at one."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.fails = False

    async def list_toolsets(self) -> Any:
        self.reads += 1
        if self.fails:
            raise ConnectionError("no way through")
        return await super().list_toolsets()

    async def resolve_toolset(self, name: str, **more: Any) -> Any:
        return await super().resolve_toolset(name, **more)

    def offer(self, *tools: Any, name: str = "records") -> str:
        """Publishes the toolset anew."""
        return self.publish(ptc.Toolset(name, tools).export(version="1"))


@contextmanager
def registry(*tools: Any, name: str = "corp") -> Iterator[Counted]:
    """A registry with a toolset `records` of these tools, known to this process as `name`."""
    RAN.clear()
    client = Counted()
    if tools:
        client.offer(*tools)
    ptc.register_registry(name, client)
    try:
        yield client
    finally:
        ptc.unregister_registry(name)


CORP = ptc.Registry("corp")
DEFERRED: Any = ptc.use(CORP).defer()
