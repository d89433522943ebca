"""Middleware for some tools only: the tool-level side of the onion.

A runner's middleware stands around every call. Wrapped by `only_for`, a layer stands around the calls of
the tools that it names and passes every other through untouched, at its own place in the order.
"""

from __future__ import annotations

from ptc_tools.errors import RegistrationError
from ptc_tools.middleware import Invocation, Middleware, Next
from ptc_tools.outcome import Outcome
from ptc_tools.tool import AnyTool, Tool


class OnlyFor:
    """See `only_for`."""

    def __init__(self, middleware: Middleware, names: frozenset[str]) -> None:
        self._middleware = middleware
        self._names = names

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        if invocation.tool.contract.qualified_name in self._names:
            return await self._middleware(invocation, next)
        return await next(invocation)


def only_for(middleware: Middleware, *tools: AnyTool | str) -> OnlyFor:
    """`middleware` around calls of these tools alone, by tool or by qualified name (`records.search`).

    Raises RegistrationError for what is neither, and for no tool at all.
    """
    names: set[str] = set()
    for tool in tools:
        if isinstance(tool, Tool):
            names.add(tool.contract.qualified_name)
        elif isinstance(tool, str):
            names.add(tool)
        else:
            raise RegistrationError(f"only_for takes tools and their names, not {type(tool).__name__}")
    if not names:
        raise RegistrationError("only_for needs at least one tool: without one the layer would never run")
    return OnlyFor(middleware, frozenset(names))
