"""What a provider publishes of a toolset, and how it runs the calls that come for it.

`Toolset.export` makes declarations that stand alone: contracts with all that a consumer has to know. Whoever
reads one compiles it, refuses what is incomplete, and infers nothing. Served calls go the one path, as all do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, NoReturn, cast

from ptc_tools.call import Call, Caller, Direct, JsonObject, JsonValue, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.contract import BY_GENERATOR, Contract
from ptc_tools.declaration import compile_declaration
from ptc_tools.errors import InvalidDeferral, InvalidPublication
from ptc_tools.frozen import freeze_object
from ptc_tools.invoke import Invoker
from ptc_tools.middleware import Invocation
from ptc_tools.outcome import Cancelled, Denied, Empty, Failure, Outcome, Partial, Uncertain
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.publication import Publication, ServerData, fields_of
from ptc_tools.record import Recorder
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResultStatus
from ptc_tools.schema import SchemaValidator
from ptc_tools.tool import AnyTool
from ptc_tools.toolset import Toolset, with_contract

MAX_TOOLS: Final = 50_000
MAX_TIMEOUT: Final = 24 * 3600.0
"""Seconds that a published tool may ask its consumers to wait: what another party says holds no run for ever."""


@dataclass(frozen=True, slots=True)
class Export:
    """A toolset as a provider publishes it, made by `Toolset.export`; `declarations` is what goes over the wire."""

    toolset: Toolset
    version: str
    declarations: tuple[JsonObject, ...]

    @property
    def name(self) -> str:
        return self.toolset.name

    @property
    def description(self) -> str | None:
        return self.toolset.description

    def defer(self, *names: str) -> NoReturn:
        """Not here: each consumer decides what it defers. Raises InvalidDeferral."""
        raise InvalidDeferral(f"deferral is the consumer's, not that of an export of {self.name!r}")

    def __hash__(self) -> int:
        return hash((self.name, self.version))


def export(toolset: Toolset, version: str) -> Export:
    """See `Toolset.export`."""
    if not isinstance(version, str) or not version:
        raise InvalidPublication(f"toolset {toolset.name!r}: an export has a version, such as '1.4.0'")
    tools = tuple(_complete(entry, version) for entry in toolset)
    declarations = tuple(freeze_object(entry.contract.to_json()) for entry in tools)
    read_declarations(toolset.name, declarations)
    Catalog(tools)  # a designer's value that is not set is found before anybody calls
    return Export(Toolset(toolset.name, tools, description=toolset.description), version, declarations)


def _complete(entry: AnyTool, version: str) -> AnyTool:
    """The tool with what a publication needs and its contract says already; nothing is made up."""
    contract = entry.contract
    said = contract.publication or Publication()
    publication = replace(said, fields=said.fields or fields_of(contract.checked_parameters))
    complete = replace(
        contract, publication=publication, version=contract.version or version, checked=BY_GENERATOR
    )
    return with_contract(entry, complete)


def read_declarations(
    toolset: str, declarations: Sequence[object], *, from_mcp: bool = False
) -> tuple[Contract, ...]:
    """The contracts of a published toolset. Raises InvalidPublication, or another kind of RegistrationError.

    Refused: schemas without a publication, kinds that cannot run, tools of another namespace or twice, ones
    that defer themselves, and paging by a tool that is not there.
    """
    if len(declarations) > MAX_TOOLS:
        raise InvalidPublication(f"toolset {toolset!r} has more than {MAX_TOOLS} tools")
    contracts: dict[str, Contract] = {}
    for declaration in declarations:
        contract = read_declaration(toolset, declaration, from_mcp=from_mcp)
        if contracts.setdefault(contract.name, contract) is not contract:
            raise InvalidPublication(f"toolset {toolset!r} declares {contract.name!r} twice")
    for contract in contracts.values():
        check_partner(contract, contracts)
    return tuple(contracts.values())


def read_declaration(toolset: str, declaration: object, *, from_mcp: bool = False) -> Contract:
    """The contract of one published tool; see `read_declarations`.

    `from_mcp`: what a server of that protocol lists, which has no words for versions, commitments and the like.
    """
    if not isinstance(declaration, Mapping):
        raise InvalidPublication(f"toolset {toolset!r}: a tool's declaration must be an object")
    name = str(declaration.get("name"))[:100]
    if "publication" not in declaration:
        raise InvalidPublication(
            f"toolset {toolset!r}: {name!r} has schemas and no publication, so it cannot be run from a registry;"
            " publish Toolset.export(…)"
        )
    given = cast("Mapping[str, JsonValue]", declaration)
    contract = Contract.from_json(given) if from_mcp else compile_declaration(given).contract
    if contract.namespace != toolset:
        raise InvalidPublication(f"toolset {toolset!r}: {contract.qualified_name!r} is of another namespace")
    if contract.timeout is not None and contract.timeout > MAX_TIMEOUT:
        raise InvalidPublication(f"toolset {toolset!r}: {name!r} asks to wait for more than a day")
    if contract.defer_loading:
        raise InvalidPublication(f"toolset {toolset!r}: {name!r} defers itself; deferral is the consumer's")
    return contract


def check_partner(contract: Contract, siblings: Mapping[str, Contract]) -> None:
    """Raises InvalidPublication for paging by a tool that cannot read the next page."""
    paging = contract.publication.paging if contract.publication is not None else None
    if paging is None or paging.continue_tool is None:
        return
    partner = siblings.get(paging.continue_tool)
    declared = partner.checked_parameters.get("properties") if partner is not None else None
    if not isinstance(declared, dict) or paging.cursor not in declared:
        raise InvalidPublication(
            f"tool {contract.qualified_name!r} is read on by {paging.continue_tool!r}, which its toolset does not have"
            f" or which takes no {paging.cursor!r}"
        )


class Approved:
    """The approver of a provider that leaves the asking to its consumers: their runs have asked before."""

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Denied | None:
        return None


_earlier: ContextVar[int] = ContextVar("earlier attempts of the call that is served", default=0)


class _ProvidersInvoker(Invoker):
    """The one path at a provider. Tools see the consumer's attempt: here each call is the first."""

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> Outcome:
        earlier = _earlier.get()
        entered = _earlier.set(0)  # not for calls that the tool makes itself
        try:
            return await super().execute(invocation, keywords, attempt + earlier)
        finally:
            _earlier.reset(entered)


class Provided:
    """An export with what runs its calls: `policy`, `recorder` and `approver` are the provider's own.

    `approver`: asked before a call of a tool with an approval; by default the consumer has asked. Each call
    goes the one path. `principal` of a call is who the registry says the consumer is.
    """

    def __init__(
        self,
        export: Export,
        *,
        policy: Policy = GRANT_REGISTERED,
        recorder: Recorder | None = None,
        approver: Approver | None = None,
    ) -> None:
        self.export = export
        self._publications = {
            entry.contract.name: entry.contract.publication or Publication() for entry in export.toolset
        }
        self._invoker = _ProvidersInvoker(
            Catalog(export.toolset),
            policy=policy,
            recorder=recorder,
            approver=approver or Approved(),
        )

    async def run(self, call: ResolvedCall, principal: str | None = None) -> CallResult:
        """How the call ended here; an agent's call runs at the consumer. Never raises for what the tool did."""
        publication = self._publications.get(call.tool)
        if publication is not None and publication.kind == "agent":
            return CallResult("admitted")
        given: list[tuple[str, JsonValue]] = []
        attached = _Attached(publication or Publication(), given)
        run = RunContext(call.run_id, principal, dict(call.labels), attach=attached.take)
        caller: Caller = Direct()
        if call.caller == "programmatic":
            caller = Program(f"{call.run_id}/{call.call_id}")
            run.programs.open(caller.caller_id)
        entered = _earlier.set(call.attempt - 1)
        try:
            outcome = await self._invoker.invoke(
                Call(call.call_id, call.tool, call.arguments, caller, call.toolset), run
            )
        finally:
            _earlier.reset(entered)
        return result_of(outcome, given)


class _Attached:
    """Takes what tools attach, held to what they declare."""

    def __init__(self, publication: Publication, given: list[tuple[str, JsonValue]]) -> None:
        self._publication = publication
        self._given = given

    def take(self, call: Call, kind: str, data: JsonValue) -> None:
        declared = self._publication.declared(kind)
        if declared is None:
            raise ValueError(f"{call.qualified_name} declares no server data of kind {kind!r}")
        check_server_data(declared, data)
        self._given.append((kind, data))


def check_server_data(declared: ServerData, data: JsonValue) -> None:
    """Raises ValueError for data that its declaration does not describe."""
    validator = SchemaValidator(declared.schema, f"server data {declared.kind!r}")
    if not validator.is_valid(data):
        raise ValueError(f"server data {declared.kind!r}: {validator.explain(data)}")


def result_of(outcome: Outcome, server_data: Iterable[tuple[str, JsonValue]] = ()) -> CallResult:
    """An outcome as a provider sends it back."""
    if isinstance(outcome, (Denied, Failure, Cancelled)):
        status: ResultStatus = "denied" if isinstance(outcome, Denied) else "failure"
        if isinstance(outcome, Uncertain):
            status = "uncertain"
        return CallResult(status, code=outcome.code, message=outcome.message)
    kind: ResultStatus = "empty" if isinstance(outcome, Empty) else "success"
    if isinstance(outcome, Partial):
        kind = "partial"
    return CallResult(kind, outcome.value, server_data=tuple(server_data))
