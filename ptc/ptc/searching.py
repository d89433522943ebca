"""Tool search in a run: how it is set up, and the tools by which a model searches and loads.

Over the wire the model has one query tool, which the service marks as `tool_search`; before programs that run
here it has the pair `search_tools` and `load`. Both go the one path and find permitted tools alone. A program
cannot search: it has the tools that were loaded before it started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from ptc.control import FailRun
from ptc.deferral import Deferral
from ptc.definitions import Definitions, Key, key_of
from ptc.errors import ConfigurationError, ToolSearchUnsupported
from ptc.finding import Finder, SearchIndex
from ptc.handlers import ClientTool, client_tool
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import ToolError
from ptc_tools.names import program_name
from ptc_tools.threads import ThreadPool, run_in_thread
from ptc_tools.tool import AnyTool, Tool, define_tool

if TYPE_CHECKING:
    from ptc.toolbox import Entry

Search: TypeAlias = "Literal['lexical', 'hybrid', 'server'] | SearchIndex"
"""`lexical` and `hybrid` search here, `server` lets the service do it; an index of one's own searches here too."""

SEARCH: Final = "tool_search"
FIND: Final = "search_tools"
LOAD: Final = "load"
_MOST: Final = 64
LEAST_TOKENS: Final = 16
"""The service takes no smaller `max_output_tokens`."""
_SEARCHES: Final = ThreadPool()
_PATIENCE: Final = 3600.0
"""Seconds for one search: the first one of a large catalog makes its index."""

_DESCRIPTION = (
    "Find tools that are not loaded yet. Ask in a few words for what the tool should do; what is found can be "
    "called from then on. Where nothing fits, the list is empty: try other words."
)
_FIND_DESCRIPTION = (
    "Find tools that are not loaded yet, before you write a program: a program cannot search. Ask in a few "
    "words for what the tool should do, then load the ones that you need by name."
)
_LOAD_DESCRIPTION = (
    "Load tools that search_tools found, by name. The next program can call those that are given with a "
    "signature; the others you call yourself."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """`finder` is None where the service searches; `limit` is how many tools one search gives."""

    finder: Finder | None
    limit: int

    @classmethod
    def of(
        cls, search: Search | None, *, limit: int, max_output_tokens: int | None, programs: str | None
    ) -> SearchSettings | None:
        """Reads a runner's arguments. Raises ConfigurationError."""
        positive = isinstance(max_output_tokens, int) and not isinstance(max_output_tokens, bool)
        if max_output_tokens is not None and not (positive and max_output_tokens >= LEAST_TOKENS):
            raise ConfigurationError(
                f"max_output_tokens is {max_output_tokens!r}; give a number of at least {LEAST_TOKENS}, which is the"
                " least that the service takes"
            )
        if search is None:
            return None
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            raise ConfigurationError(f"search_limit is {limit!r}; give a number from 1 to {_MOST}")
        if max_output_tokens is None:
            raise ConfigurationError(
                "search= needs max_output_tokens=, a positive number: rounds of search share one budget"
            )
        if search == "server":
            if programs in ("local", "auto"):
                raise ConfigurationError(
                    f'search="server" does not go with programs="{programs}": what the service loads is not there '
                    'for a program that runs here; use search="lexical"'
                )
            return cls(finder=None, limit=limit)
        return cls(finder=Finder(_index(search)), limit=limit)


@dataclass(frozen=True, slots=True)
class StepSearch:
    """What a step is told of search: the keys of the tools that wait, and what the pair has loaded of them."""

    settings: SearchSettings
    deferred: frozenset[Key]
    by_pair: Callable[[Deferral], frozenset[Key]] = lambda _: frozenset()

    def deferral(self, tools: Sequence[AnyTool], definitions: Definitions) -> Deferral:
        """The deferral of a step with these tools."""
        all_of_them = {key_of(tool): tool for tool in tools}
        finder = self.settings.finder
        deferral = Deferral(
            by="pair" if definitions.programs == "local" else "server" if finder is None else "client",
            tools=all_of_them,
            waiting={key: tool for key, tool in all_of_them.items() if key in self.deferred},
            definitions=definitions,
            finder=finder,
            limit=self.settings.limit,
        )
        if deferral.by == "pair":
            deferral.own = pair(deferral)
            deferral.loaded = self.by_pair(deferral)
        elif deferral.by == "client":
            deferral.query_tool = query_tool(deferral)
            deferral.own = (deferral.query_tool.tool,)
        return deferral


def check_client(client: object, search: Search | None) -> None:
    """Tool search is the Responses API's. Raises ToolSearchUnsupported; nothing else is tried instead."""
    from ptc.providers.endpoint import Endpoint

    if search is None or isinstance(client, Endpoint) or hasattr(client, "responses"):
        return
    raise ToolSearchUnsupported(
        f"client= is a {type(client).__name__}, which has no tool search of the Responses API; leave search= out"
        " and offer fewer tools, or use a client that has `responses`"
    )


def _index(search: Search) -> SearchIndex:
    if search == "lexical":
        from ptc_tools.search import ToolIndex

        return ToolIndex()
    if search == "hybrid":
        from ptc_tools.search import HybridIndex

        return HybridIndex()
    if callable(getattr(search, "view", None)) and callable(getattr(search, "with_changes", None)):
        return cast("SearchIndex", search)
    raise ConfigurationError(
        f'search={search!r}: give "lexical", "hybrid", "server", an index (ptc.ToolIndex()), or None'
    )


def query_tool(deferral: Deferral) -> ClientTool:
    """The one query tool of a request, answered by what the step's search finds."""
    definition: JsonObject = {
        "type": SEARCH,
        "execution": "client",
        "description": _DESCRIPTION,
        "parameters": _query_schema(),
    }

    async def search(request: JsonObject) -> list[JsonObject]:
        arguments = request.get("arguments")
        query = arguments.get("query") if isinstance(arguments, dict) else None
        if not isinstance(query, str):
            raise ToolError("a search has a `query`, which is a text")
        return deferral.definitions.loaded(await _found(deferral, query))

    return client_tool(definition, search, timeout=_PATIENCE, effects="read")


def pair(deferral: Deferral) -> tuple[AnyTool, AnyTool]:
    """`search_tools` and `load`, for programs that run here."""

    async def search_tools(query: str) -> JsonValue:
        found: list[JsonValue] = [
            {"name": tool.contract.qualified_name, "description": _first_sentence(tool.contract.description)}
            for tool in await _found(deferral, query)
        ]
        return {"tools": found}

    def load(names: list[str]) -> JsonValue:
        loaded: dict[Key, JsonValue] = {}
        unknown: list[JsonValue] = []
        by_name = {name: tool for tool in deferral.waiting.values() for name in _names(tool)}
        for name in dict.fromkeys(names):
            tool = by_name.get(name)
            if tool is None:
                unknown.append(name)
            else:
                loaded.setdefault(key_of(tool), load_record(tool))
        told: JsonObject = {"loaded": [*loaded.values()]}
        return {**told, "unknown": unknown} if unknown else told

    names: JsonObject = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names as they were found.",
    }
    find_definition = _function(FIND, _FIND_DESCRIPTION, _query_schema())
    load_definition = _function(LOAD, _LOAD_DESCRIPTION, _object({"names": names}))
    return (
        define_tool(find_definition, search_tools, timeout=_PATIENCE, effects="read"),
        define_tool(load_definition, load, effects="read"),
    )


async def _found(deferral: Deferral, query: str) -> list[AnyTool]:
    """What a search finds. One that cannot search is the host's matter: a model would take it for no match.

    In a thread: an encoder takes long. Many runs may wait for one index to be made, and the tools' threads are
    not theirs to wait in.
    """
    try:
        return await run_in_thread(lambda: deferral.find(query), _SEARCHES)
    except Exception as error:
        words = f"the search for tools failed: {type(error).__name__}: {error}"
        raise FailRun(words) from error


def load_record(tool: AnyTool) -> JsonObject:
    """What `load` says of a tool, and what the history keeps of its loading."""
    contract = tool.contract
    record: JsonObject = {"name": contract.qualified_name}
    if "programmatic" in contract.allowed_callers:
        from ptc_sandbox.rendering import render_stubs

        record["signature"] = render_stubs([(program_name(*key_of(tool)), contract)])
    return record


def still_loaded(record: JsonObject, tool: AnyTool) -> bool:
    """Whether the tool is what the record says: one that changed since has to be loaded again."""
    return record == load_record(tool)


def named_by_choice(waiting: Mapping[Key, AnyTool], names: frozenset[str]) -> set[Key]:
    """The deferred tools that a choice names: those are sent from the start."""
    return {
        key
        for key, tool in waiting.items()
        if tool.contract.qualified_name in names or tool.contract.name in names
    }


def check_own_name(tool: AnyTool, settings: SearchSettings | None, programs: str | None) -> None:
    """Raises ConfigurationError for a tool that is called as the loop's own functions are where programs run here."""
    if programs != "local" or tool.contract.namespace is not None:
        return
    from ptc_sandbox.codeact import PROGRAM_TOOL

    name, own = tool.contract.name, {PROGRAM_TOOL: "programs are run with"}
    if settings is not None:
        own |= dict.fromkeys((FIND, LOAD), "tools are searched for with before programs")
    if name in own:
        raise ConfigurationError(
            f"{name!r} is what {own[name]}, where they run here; rename the tool, or put it into a namespace"
        )


def check_entries(entries: Sequence[Entry], settings: SearchSettings | None, programs: str | None) -> None:
    """Raises ConfigurationError for what search= cannot go together with, and for the loop's own names."""
    for entry in entries:
        if isinstance(entry, Tool):
            check_own_name(entry, settings, "local" if programs == "auto" else programs)
            continue
        definition = entry.definition if isinstance(entry, ClientTool) else entry
        if settings is None or not isinstance(definition, dict):
            continue
        kind = definition.get("type")
        if kind == SEARCH:
            raise ConfigurationError(
                "tools= has a tool_search of its own, and search= is one too; use one of them"
            )
        if definition.get("defer_loading") is True and settings.finder is not None:
            raise ConfigurationError(
                f"a search here finds functions, and no {kind} tool; leave its defer_loading out, or use "
                'search="server"'
            )


def _names(tool: AnyTool) -> tuple[str, str]:
    return tool.contract.qualified_name, program_name(*key_of(tool))


def _first_sentence(text: str) -> str:
    line = " ".join(text.split("\n\n", 1)[0].split())
    head, dot, _ = line.partition(". ")
    return (head + "." if dot else line)[:300]


def _query_schema() -> JsonObject:
    return _object({"query": {"type": "string", "description": "What the tool should do, in a few words."}})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _function(name: str, description: str, parameters: JsonObject) -> JsonObject:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "strict": True,
        "parameters": parameters,
    }
