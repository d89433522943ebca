"""Middleware for some tools only: the tool-level side of the onion.

A runner's middleware stands around every call. Wrapped by `only_for`, a layer stands around the calls of
the tools that it names and passes every other through untouched, at its own place in the order.
"""

from __future__ import annotations

from collections.abc import Collection

from ptc.errors import ConfigurationError
from ptc_tools.errors import RegistrationError
from ptc_tools.middleware import Invocation, Middleware, Next
from ptc_tools.outcome import Outcome
from ptc_tools.tool import AnyTool, Tool


class OnlyFor:
    """See `only_for`."""

    def __init__(self, middleware: Middleware, names: frozenset[str], said: frozenset[str]) -> None:
        self._middleware = middleware
        self._names = names
        self._said = said

    def check(self, known: Collection[str], *, all_known: bool) -> None:
        """Raises ConfigurationError for a name that fits no tool: a guard that never runs guards nothing.

        `known`: qualified names of the runner's tools; `all_known`: whether no source may bring further ones.
        """
        for name in sorted(self._said - set(known)):
            meant = sorted(one for one in known if one.rpartition(".")[2] == name)
            if meant:
                raise ConfigurationError(
                    f"only_for names {name!r}, and the tool is called {' or '.join(meant)}: say it in full"
                )
            if all_known:
                raise ConfigurationError(
                    f"only_for names {name!r}, which is not among the tools; give the tool itself if a running "
                    "tool adds it"
                )

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        if invocation.tool.contract.qualified_name in self._names:
            return await self._middleware(invocation, next)
        return await next(invocation)


def only_for(middleware: Middleware, *tools: AnyTool | str) -> OnlyFor:
    """`middleware` around calls of these tools alone, by tool or by qualified name (`records.search`).

    Raises RegistrationError for what is neither, and for no tool at all. A runner refuses a name that none of
    its tools has; give the tool itself where one is added later.
    """
    names: set[str] = set()
    said: set[str] = set()
    for tool in tools:
        if isinstance(tool, Tool):
            names.add(tool.contract.qualified_name)
        elif isinstance(tool, str):
            said.add(tool)
        else:
            raise RegistrationError(f"only_for takes tools and their names, not {type(tool).__name__}")
    if not names | said:
        raise RegistrationError("only_for needs at least one tool: without one the layer would never run")
    return OnlyFor(middleware, frozenset(names | said), frozenset(said))
