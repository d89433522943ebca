"""The tools of one step: what is sent to the model, and what a call may reach, as one immutable snapshot.

A request and the calls that answer it use the same snapshot, whatever changes meanwhile. It is built from
the entries that a run holds (tools, client tools, hosted definitions) and says how programs run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from ptc.deferral import Deferral
from ptc.definitions import Definitions, key_of
from ptc.errors import ConfigurationError
from ptc.events import PendingCall
from ptc.handlers import ClientTool
from ptc.searching import SEARCH, StepSearch
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.catalog import Catalog
from ptc_tools.contract import Contract
from ptc_tools.errors import DuplicateTool, RegistrationError
from ptc_tools.tool import AnyTool, Tool, tool

if TYPE_CHECKING:
    from ptc_sandbox import Sandbox
    from ptc_tools.sources import RegistryTools
    from ptc_tools.toolset import Source as ToolSource
    from ptc_tools.toolset import Use

ProgramsMode: TypeAlias = Literal["hosted", "local"]
Entry: TypeAlias = "AnyTool | ClientTool | JsonObject"
ToolLike: TypeAlias = (
    "AnyTool | ClientTool | Mapping[str, JsonValue] | Callable[..., object]"
    " | Use | ToolSource | RegistryTools"
)
"""What a runner takes in `tools=`: single tools, and sources of tools."""

HOSTED_PROGRAMS: Final = "programmatic_tool_calling"
_MCP: Final = "mcp_approval_request"
_ANSWERED_HERE: Final = frozenset({"function", "custom", "namespace"})


def as_entry(value: object) -> Entry:
    """A tool, a client tool, or a hosted tool's definition; a plain typed function becomes a tool.

    Raises TypeError for what is not a tool, RegistrationError for what cannot become one.
    """
    if isinstance(value, (Tool, ClientTool)):
        return value
    if isinstance(value, Mapping):
        definition = cast("JsonObject", dict(value))
        kind = definition.get("type")
        if not isinstance(kind, str):
            raise TypeError("a tool definition has a `type`")
        if kind in _ANSWERED_HERE:
            raise RegistrationError(
                f"a {kind} tool needs the function that answers it: "
                + (
                    "client_tool(definition, handler)"
                    if kind == "custom"
                    else "define_tool(definition, function)"
                )
            )
        return definition
    if callable(value) and not isinstance(value, type):
        return tool(value)
    raise TypeError(f"{type(value).__name__} is not a tool: give a tool, a typed function or a definition")


def entry_name(entry: Entry) -> tuple[str | None, str]:
    """(namespace, name): what an entry is known by. A hosted tool is known by its type (and MCP server)."""
    if isinstance(entry, Tool):
        return entry.contract.namespace, entry.contract.name
    if isinstance(entry, ClientTool):
        server = entry.definition.get("server_label")
        return (str(server), "mcp") if entry.kind == _MCP else (None, entry.name)
    if entry.get("type") == "mcp":
        return str(entry.get("server_label")), "mcp"
    return None, str(entry["type"])


def is_programs_tool(entry: Entry) -> bool:
    return isinstance(entry, dict) and entry.get("type") == HOSTED_PROGRAMS


def program_only(entry: Entry) -> bool:
    """Whether nobody but a program may call it."""
    callers = callers_of(entry)
    return callers is not None and "direct" not in callers


def sendable_to_local(entries: Iterable[Entry]) -> list[Entry]:
    """What a service is told of where programs run here: all but the tools that are for programs alone."""
    entries = list(entries)
    Catalog(entry for entry in entries if isinstance(entry, Tool))  # collisions between all of them count
    return [entry for entry in entries if not program_only(entry)]


def callers_of(entry: Entry) -> Sequence[str] | None:
    if isinstance(entry, Tool):
        return entry.contract.allowed_callers
    definition = entry.definition if isinstance(entry, ClientTool) else entry
    callers = definition.get("allowed_callers")
    return [str(caller) for caller in callers] if isinstance(callers, list) else None


@dataclass(frozen=True, slots=True)
class Step:
    """One snapshot. `wire` is what the request carries; `functions` and `handlers` are what calls reach."""

    functions: Catalog
    handlers: Catalog
    kinds: Mapping[str, str]
    wire: tuple[JsonObject, ...]
    programs: ProgramsMode | None
    code_tool: str | None = None
    deferral: Deferral | None = None
    approvals: Mapping[str, AnyTool] = field(default_factory=dict)
    """What answers the approval requests of each MCP server, by its label: nobody answers for another."""

    def meant(self, pending: Sequence[PendingCall]) -> Sequence[PendingCall]:
        """The calls by our names: what was searched for, and has no namespace, is called with its name as one."""
        if all(one.call.namespace is None for one in pending):
            return pending
        return [
            replace(one, call=replace(one.call, namespace=None)) if self._named_twice(one) else one
            for one in pending
        ]

    def _named_twice(self, pending: PendingCall) -> bool:
        namespace, name = pending.call.namespace, pending.call.name
        return (
            pending.kind == "function_call"
            and namespace == name
            and self.functions.resolve(namespace, name) is None
            and self.functions.resolve(None, name) is not None
        )

    def waits(self, tool: AnyTool) -> bool:
        """Whether a tool can be called only after a search has loaded it."""
        if self.deferral is None:
            return tool.contract.defer_loading
        return key_of(tool) in self.deferral.waiting

    def resolve(
        self, kind: str, namespace: str | None, name: str, *, server: object = None
    ) -> AnyTool | None:
        """The tool that answers a call of this item type, or None: a name means nothing without its kind.

        `server`: the label of the MCP server that asks for an approval.
        """
        if kind == "function_call":
            return self.functions.resolve(namespace, name)
        if kind == _MCP:
            return self.approvals.get(server) if isinstance(server, str) else None
        return self.handlers.resolve(namespace, name) if self.kinds.get(name) == kind else None

    def contract(
        self, kind: str, namespace: str | None, name: str, *, server: object = None
    ) -> Contract | None:
        found = self.resolve(kind, namespace, name, server=server)
        return None if found is None else found.contract

    def promised(self, kind: str, namespace: str | None, name: str) -> Contract | None:
        """The contract of the tool of a call, if the request says what its output is like."""
        found = self.contract(kind, namespace, name)
        if found is None or found.output_schema is None or "programmatic" not in found.allowed_callers:
            return None
        told = self.programs == "hosted" or (self.programs is None and not found.wraps_result)
        return found if told else None

    @property
    def names(self) -> list[str]:
        """What the request offers, for the audit record."""
        return [_wire_name(definition) for definition in self.wire]


def build_step(
    entries: Iterable[Entry],
    *,
    programs: ProgramsMode | None,
    sandbox: Sandbox | None = None,
    still_callable: Iterable[Entry] = (),
    namespaces: Mapping[str, str] | None = None,
    errors_in_schema: bool = True,
    hosted_tool_removed: bool = False,
    search: StepSearch | None = None,
) -> Step:
    """The snapshot of these entries.

    `still_callable`: entries that were removed while a hosted program is open: they stay on the wire, and
    calls to them are denied (wire.md, rule 11). `hosted_tool_removed`: a running tool took the programs tool
    away, so that tools for programs alone are out of reach for now, and are not sent. `search`: which tools
    wait for a search, and who searches. Raises ConfigurationError, DuplicateTool, InvalidSchema.
    """
    entries = list(entries)
    tools = [entry for entry in entries if isinstance(entry, Tool)]
    clients = [entry for entry in entries if isinstance(entry, ClientTool)]
    hosted = [entry for entry in entries if isinstance(entry, dict) and not is_programs_tool(entry)]
    if not hosted_tool_removed:
        _check_programs(entries, programs)
    definitions = Definitions(programs, namespaces, errors_in_schema)
    deferral = None if search is None else search.deferral(tools, definitions)
    own: list[AnyTool] = []
    code_tool: AnyTool | None = None
    if programs == "local":
        code_tool = _code_tool(sandbox, tools, deferral)
        own.append(code_tool)
    if deferral is not None and deferral.by == "pair":
        own += deferral.own
    elif deferral is not None and deferral.query_tool is not None:
        clients.append(deferral.query_tool)
    functions = Catalog([*tools, *own], namespaces=namespaces)
    if programs == "hosted":
        for function in functions:
            function.contract.check_for_service()
    sent = [entry for entry in functions if deferral is None or deferral.sent_from_start(key_of(entry))]
    sent += [entry for entry in still_callable if isinstance(entry, Tool)]
    if programs == "local" or hosted_tool_removed:  # a service refuses them without its programs tool
        sent = [entry for entry in sent if not program_only(entry)]
        hosted = [entry for entry in hosted if not program_only(entry)]
    wire = definitions.wire(sent, deferred=None if deferral is None else deferral.told)
    wire += [client.definition for client in clients if not (hosted_tool_removed and program_only(client))]
    wire += [entry for entry in [*hosted, *still_callable] if isinstance(entry, dict)]
    wire += [entry.definition for entry in still_callable if isinstance(entry, ClientTool)]
    if programs == "hosted":
        wire.append({"type": HOSTED_PROGRAMS})
    if deferral is not None and deferral.by == "server" and (deferral.waiting or _any_deferred(wire)):
        wire.append({"type": SEARCH})
    return Step(
        functions=functions,
        handlers=_handlers(clients),
        kinds={client.name: client.kind for client in clients},
        wire=tuple(wire),
        programs=programs,
        code_tool=None if code_tool is None else code_tool.contract.name,
        deferral=deferral,
        approvals=_approvals(clients),
    )


def _any_deferred(wire: Iterable[JsonObject]) -> bool:
    return any(definition.get("defer_loading") is True for definition in wire)


def _code_tool(sandbox: Sandbox | None, tools: Sequence[AnyTool], deferral: Deferral | None) -> AnyTool:
    """What runs programs here. It tells of no tool that waits for a search; one that was loaded it has."""
    if sandbox is None:
        raise ConfigurationError('programs="local" needs a sandbox')
    from ptc_sandbox.codeact import code_tool

    told = [tool for tool in tools if deferral is None or key_of(tool) not in deferral.waiting]
    for_programs = [tool for tool in told if _for_programs(tool)]
    loaded = [] if deferral is None else [deferral.waiting[key] for key in deferral.loaded_in_order]
    return code_tool(
        sandbox,
        for_programs,
        only_direct=[tool.contract.qualified_name for tool in told if not _for_programs(tool)],
        loaded=[tool for tool in loaded if _for_programs(tool)],
        searchable=deferral is not None,
        grants=False,  # what a run offers may change while a program runs: its own catalog decides
    )


def _for_programs(tool: AnyTool) -> bool:
    return "programmatic" in tool.contract.allowed_callers


def _handlers(clients: Sequence[ClientTool]) -> Catalog:
    shared: dict[str, AnyTool] = {}
    for client in clients:
        # Those of MCP servers are told apart by the server's label, see `_approvals`.
        if client.name in shared and client.kind != _MCP:
            raise DuplicateTool(f"two tools are called {client.name!r}; rename one")
        shared.setdefault(client.name, client.tool)
    return Catalog(shared.values())


def _approvals(clients: Sequence[ClientTool]) -> dict[str, AnyTool]:
    found: dict[str, AnyTool] = {}
    for client in clients:
        label = client.definition.get("server_label")
        if client.kind != _MCP or not isinstance(label, str):
            continue
        if label in found:
            raise DuplicateTool(f"two handlers approve the calls of the MCP server {label!r}; give one")
        found[label] = client.tool
    return found


def _check_programs(entries: Sequence[Entry], programs: ProgramsMode | None) -> None:
    if programs is not None:
        return
    only = [".".join(filter(None, entry_name(entry))) for entry in entries if program_only(entry)]
    if only:
        raise ConfigurationError(
            f'only programs may call {", ".join(only)}, and this runner runs none: set programs="hosted" or '
            '"local", or add "direct" to allowed_callers'
        )


def _wire_name(definition: JsonObject) -> str:
    name = definition.get("name") or definition.get("server_label")
    return str(name) if name else str(definition.get("type"))


__all__ = ["Entry", "ProgramsMode", "Step", "ToolLike", "as_entry", "build_step", "entry_name"]
