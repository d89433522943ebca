"""MCP servers as sources: with schemas that the application declares, or read from the server at each step.

A session is whatever has `list_tools` and `call_tool` as the official SDK's `ClientSession` has them; opening
and closing it is the application's. What a server says of its tools' effects is a hint, and is believed only
where the application says so.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from ptc_tools.admission import decide, not_admitted
from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.contract import Contract, Effects
from ptc_tools.errors import InvalidPublication, SourceUnreadable
from ptc_tools.frozen import thaw_object
from ptc_tools.outcome import EndedElsewhere, Failure
from ptc_tools.publication import Publication
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo
from ptc_tools.strict_json import canonical, clone, dumps
from ptc_tools.tool import AnyTool, Tool
from ptc_tools.toolset import Toolset

MAX_PAGES: Final = 200
TEXT: Final[JsonObject] = {"type": "string"}
"""What a tool without an output schema gives: its text parts, and a line for each other part."""


class McpSession(Protocol):
    """An open session with a server; `mcp.ClientSession` is one."""

    async def list_tools(self, cursor: str | None = None) -> Any:
        """A page of tools: `tools`, and `nextCursor` where there are more."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """A result: `content`, `structuredContent`, `isError`."""


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server, and what the application says of its tools.

    `allowed_callers`: of all its tools. `trust_annotations`: its hints about effects are believed; without
    it effects are undeclared, and treated as the worst where it matters. `rename` maps names that a model
    cannot call (`files/read`) to ones that it can. `check_each_call`: the list is read before each call, so
    that a tool that changed is not called; without it, tell `McpRegistry.changed` of the server's notifications.
    """

    session: McpSession
    description: str | None = None
    allowed_callers: tuple[CallerKind, ...] = ("direct",)
    trust_annotations: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    check_each_call: bool = True


def mcp_toolset(
    name: str,
    server: McpServer | McpSession,
    tools: Iterable[Mapping[str, JsonValue]],
) -> Toolset:
    """A toolset of a server's tools whose schemas are declared here: `tools` are definitions as `tools/list` has
    them (`name`, `description`, `inputSchema`, `outputSchema`?). No I/O before a call. Raises RegistrationError.
    """
    known = server if isinstance(server, McpServer) else McpServer(server)
    members = [_declared_tool(name, known, definition) for definition in tools]
    return Toolset(name, members, description=known.description)


def _declared_tool(namespace: str, server: McpServer, definition: Mapping[str, JsonValue]) -> AnyTool:
    remote, contract = contract_of(namespace, server, definition)

    async def call_server(**arguments: JsonValue) -> JsonValue:
        result = await _called(server, remote, arguments, contract)
        if result.status == "failure":
            raise EndedElsewhere(Failure("tool_error", result.message))
        return result.value

    call_server.__annotations__ = {}
    return Tool(contract, call_server)


class McpRegistry:
    """A registry whose toolsets are MCP servers: `register_registry("servers", McpRegistry({"files": server}))`.

    Each step lists what a server offers then. A server has no registrations, so the token stands for the list
    as it was read: another list is another token, and so is one that was read after `changed`.
    """

    lists_mcp: Final = True
    """Its declarations say no more than MCP has words for: see `ptc_tools.export.read_declaration`."""

    def __init__(self, servers: Mapping[str, McpServer | McpSession]) -> None:
        self._servers = {
            name: server if isinstance(server, McpServer) else McpServer(server)
            for name, server in servers.items()
        }
        self._generations = dict.fromkeys(self._servers, 0)
        self._current: dict[str, tuple[str, dict[str, tuple[str, Contract]]]] = {}

    def changed(self, name: str) -> None:
        """The server said that its list changed: calls that were made for the old one are refused."""
        self._generations[name] += 1
        self._current.pop(name, None)

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        return [ToolsetInfo(name) for name in self._servers]

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        server = self._servers.get(name)
        if server is None:
            return None
        token, declarations = await self._read(name, server)
        tools = None if token == known else declarations
        return ResolvedToolset(name, token, tools, None, server.description)

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        server = self._servers.get(call.toolset)
        if server is None:
            raise not_admitted(call)
        if server.check_each_call or call.toolset not in self._current:
            await self._read(call.toolset, server)
        token, tools = self._current.get(call.toolset, (None, {}))
        if decide(None, call, token) != "publish" or call.tool not in tools:
            raise not_admitted(call)
        remote, contract = tools[call.tool]
        return await _called(server, remote, call.arguments, contract)

    async def _read(self, name: str, server: McpServer) -> tuple[str, list[JsonObject]]:
        generation = self._generations[name]
        tools: dict[str, tuple[str, Contract]] = {}
        for definition in await _listed(name, server.session):
            remote, contract = contract_of(name, server, definition)
            if contract.name in tools:
                raise SourceUnreadable(f"MCP server {name!r} lists {contract.name!r} twice")
            tools[contract.name] = (remote, contract)
        declarations = [contract.to_json() for _, contract in tools.values()]
        value = cast("JsonValue", [name, generation, declarations])
        token = f"mcp_{hashlib.sha256(canonical(value)).hexdigest()[:48]}"
        if (
            generation == self._generations[name]
        ):  # a list that changed while it was read is not the current one
            self._current[name] = (token, tools)
        return token, declarations


async def _listed(name: str, session: McpSession) -> list[JsonObject]:
    """All pages of a server's tools, as plain JSON."""
    found: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = _plain(await _page(session, cursor))
        tools = page.get("tools")
        if not isinstance(tools, (list, tuple)):
            raise SourceUnreadable(f"MCP server {name!r} answered tools/list without tools")
        found += [_plain(tool) for tool in tools]
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following:
            return found
        cursor = following
    raise SourceUnreadable(f"MCP server {name!r} lists its tools on more than {MAX_PAGES} pages")


async def _page(session: McpSession, cursor: str | None) -> object:
    """A page, as this session is asked for one: the SDK's later versions take parameters, not a cursor."""
    if cursor is None:
        return await session.list_tools()
    if "cursor" in inspect.signature(session.list_tools).parameters:
        return await session.list_tools(cursor)
    params: Any = {"cursor": cursor}
    if type(session).__module__.partition(".")[0] == "mcp":  # the SDK's own class wants its own parameters
        params = importlib.import_module("mcp.types").PaginatedRequestParams(**params)
    ask: Any = session.list_tools
    return await ask(params=params)


def contract_of(
    namespace: str, server: McpServer, definition: Mapping[str, JsonValue]
) -> tuple[str, Contract]:
    """A tool's name at its server, and its contract. Raises RegistrationError kinds."""
    remote = definition.get("name")
    if not isinstance(remote, str):
        raise InvalidPublication(f"MCP server {namespace!r} has a tool without a name")
    parameters, output = definition.get("inputSchema"), definition.get("outputSchema")
    if not isinstance(parameters, dict):
        raise InvalidPublication(f"MCP server {namespace!r}: {remote[:64]!r} has no inputSchema")
    description, title = definition.get("description"), definition.get("title")
    contract = Contract(
        name=server.rename.get(remote, remote),
        namespace=namespace,
        description=description if isinstance(description, str) else "",
        parameters=parameters,
        output_schema=output if isinstance(output, dict) else thaw_object(TEXT),
        allowed_callers=server.allowed_callers,
        strict=False,
        effects=_effects(server, definition.get("annotations")),
        publication=Publication(title=title if isinstance(title, str) else None),
    )
    return remote, contract


def _effects(server: McpServer, annotations: JsonValue) -> Effects | None:
    if not server.trust_annotations or not isinstance(annotations, Mapping):
        return None
    if annotations.get("readOnlyHint") is True:
        return "read"
    # What is not said to be otherwise is destructive: so the protocol has it.
    return "write" if annotations.get("destructiveHint") is False else "destructive"


async def _called(
    server: McpServer, name: str, arguments: Mapping[str, JsonValue], contract: Contract
) -> CallResult:
    result = _plain(await server.session.call_tool(name, dict(arguments)))
    content = result.get("content")
    if not isinstance(content, list):
        return CallResult("failure", code="tool_error", message="the server's answer is no result")
    text = "\n".join(_shown(part) for part in content)
    if result.get("isError") is True:
        return CallResult("failure", code="tool_error", message=text or "the server gave no reason")
    structured = result.get("structuredContent")
    if structured is not None and contract.output_schema != TEXT:
        return CallResult("success", structured)
    return CallResult("success", text)


def _shown(part: JsonValue) -> str:
    """A part of a result for a model: its text, or what kind of thing it is."""
    if not isinstance(part, dict):
        return dumps(part)
    text, kind, media = part.get("text"), part.get("type"), part.get("mimeType")
    if isinstance(text, str):
        return text
    return f"[{kind} {media}]" if media else f"[{kind}]"


def _plain(value: object) -> JsonObject:
    """What a session gives as plain JSON with the protocol's own names, be it a model or a mapping."""
    dump = getattr(value, "model_dump", None)
    data = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else value
    if not isinstance(data, Mapping):
        raise SourceUnreadable(f"an MCP session answered with {type(value).__name__}")
    return cast("JsonObject", clone(dict(data)))
