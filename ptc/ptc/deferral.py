"""Which tools of a step wait for a search, who searches, and what a search of this step gives.

A value of one step, made from its snapshot. It searches permitted tools only, since no other is in the
snapshot. What was loaded is read from the history, elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ptc.definitions import Definitions, Key, members
from ptc.finding import Finder, View
from ptc.handlers import ClientTool
from ptc_tools.call import Caller, JsonObject
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied
from ptc_tools.policy import GRANT_REGISTERED, Policy
from ptc_tools.search.errors import SearchError
from ptc_tools.tool import AnyTool

Searcher: TypeAlias = Literal["client", "server", "pair"]
"""Who searches: this library when the service's search tool is called, the service itself, or the pair of
tools that the model calls before a program that runs here."""


@dataclass(slots=True)
class Deferral:
    """`waiting`: the tools that are not sent from the start, by key; `tools`: all of the step, these among them.

    `loaded`: those that the pair has loaded. `own`: the tools by which it is searched. They are not the
    application's, so its policy is not asked about them; `query_tool` is how the one for the wire is sent.
    """

    by: Searcher
    tools: Mapping[Key, AnyTool]
    waiting: Mapping[Key, AnyTool]
    definitions: Definitions
    finder: Finder | None = None
    limit: int = 5
    loaded: frozenset[Key] = frozenset()
    own: tuple[AnyTool, ...] = ()
    query_tool: ClientTool | None = None
    _view: View | None = None
    _told: dict[Key, JsonObject] = field(default_factory=dict)

    def waits(self, key: Key) -> bool:
        """Whether a tool has to be loaded before it can be called; where the history says what was, it does."""
        return key in self.waiting and key not in self.loaded

    def sent_from_start(self, key: Key) -> bool:
        """Whether the request has the definition: the service's own search is told of all that it may find."""
        return self.by == "server" or not self.waits(key)

    @property
    def told(self) -> Collection[Key]:
        """The tools that the request says are deferred: the service's own search alone has to know."""
        return self.waiting if self.by == "server" else ()

    @property
    def loaded_in_order(self) -> list[Key]:
        return [key for key in self.waiting if key in self.loaded]

    def find(self, query: str) -> list[AnyTool]:
        """The tools of this step that a question finds, the best first. Looks at all that wait, loaded or not.

        An index may be another's code: what it gives twice is given once, and no more than the limit. Raises
        SearchError for a tool that was not to be searched.
        """
        if self.finder is None or not self.waiting:
            return []
        if self._view is None:
            waiting = {_name(key): tool for key, tool in self.waiting.items()}
            self._view = self.finder.view(waiting, self.definitions.namespaces)
        names = dict.fromkeys(hit.key for hit in self._view.search(query, self.limit))
        found: list[AnyTool] = []
        for name in names:
            namespace, _, local = name.rpartition(".")
            tool = self.waiting.get((namespace or None, local))
            if tool is None:
                raise SearchError(
                    f"the index found {name!r}, which is none of the tools that it was to search"
                )
            found.append(tool)
        return found[: self.limit]

    def policy(self, policy: Policy) -> Policy:
        """The application's policy, which is asked about its own tools alone: a search gives nothing it hides."""
        return policy if policy is GRANT_REGISTERED else _ExceptOwn(policy, self.own)

    def definition(self, key: Key) -> JsonObject | None:
        """The definition of a tool as a search gives it now; None for one that is not there."""
        tool = self.tools.get(key)
        if tool is None:
            return None
        if key not in self._told:
            ((_, self._told[key]),) = members([*self.definitions.loaded([tool])])
        return self._told[key]


class _ExceptOwn:
    def __init__(self, policy: Policy, own: tuple[AnyTool, ...]) -> None:
        self._policy = policy
        self._own = tuple(tool.contract for tool in own)

    async def authorize(
        self, principal: str | None, tool: Contract, arguments: JsonObject, caller: Caller
    ) -> Denied | None:
        if any(tool is own for own in self._own):
            return None
        return await self._policy.authorize(principal, tool, arguments, caller)


def _name(key: Key) -> str:
    return ".".join(filter(None, key))
