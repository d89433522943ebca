"""A registry's tools as tools of a step: bound to the client, the registration and the definition that were read.

Such a tool runs by asking its registry for exactly that registration. It sends the call's arguments and the
labels that the tool requires, and gives the model the result alone. It never reads the catalog.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Sequence
from typing import Final, cast

from ptc_tools.admission import Origin
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.context import ToolContext
from ptc_tools.contract import Contract
from ptc_tools.errors import CallRefused, RegistryOverloaded, SourceUnreadable
from ptc_tools.export import check_server_data, read_declarations
from ptc_tools.outcome import DenialCode, Denied, EndedElsewhere, Failure, FailureCode, Uncertain
from ptc_tools.publication import Publication
from ptc_tools.registry import Registries
from ptc_tools.registry_protocol import CallResult, RegistryClient, ResolvedCall, ResolvedToolset, ServerItem
from ptc_tools.returns import EmptyResult, PartialResult
from ptc_tools.sources.step import Offered
from ptc_tools.tool import AnyTool, Tool

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
PATIENCE: Final = 30.0
"""Seconds for which an overloaded registry is asked again, where the call has no deadline."""
_CONTEXT = "ptc_context__"
_DENIALS: Final = frozenset({"caller_not_allowed", "invalid_arguments", "malformed_arguments", "limit_exceeded",
                             "not_authorized", "not_approved", "audit_unavailable", "unknown_tool"})  # fmt: skip
_FAILURES: Final = frozenset({"tool_error", "invalid_result", "timeout", "audit_unavailable", "uncertain"})


def offered_tools(
    registry: str,
    resolved: ResolvedToolset,
    client: RegistryClient,
    registries: Registries,
    *,
    deferred: bool,
) -> tuple[Offered, ...]:
    """The tools of a registration, all deferred or none. Raises SourceUnreadable if they are incomplete."""
    where = f"{registry}/{resolved.name}"
    if resolved.tools is None:
        raise SourceUnreadable(f"{where}: the registry left its tools out, and nobody here knows them")
    declarations: Sequence[JsonObject] = resolved.tools
    offered = []
    try:
        from_mcp = getattr(client, "lists_mcp", False) is True
        contracts = read_declarations(resolved.name, declarations, from_mcp=from_mcp)
        for contract, declaration in zip(contracts, declarations, strict=True):
            origin = Origin(registry, resolved.name, resolved.version, declaration)
            tool = bound_tool(contract, origin, resolved.token, client, registries)
            offered.append(
                Offered(
                    tool, deferred=deferred, token=resolved.token, pages=pages_by(contract), origin=origin
                )
            )
    except ValueError as error:
        raise SourceUnreadable(f"{where} cannot be used: {error}") from error
    return tuple(offered)


def publication_of(contract: Contract) -> Publication:
    """What consumers know of a tool beyond its schemas."""
    return contract.publication or Publication()


def pages_by(contract: Contract) -> str | None:
    """The local name of the tool that reads the next page of a result; None where nothing is declared."""
    paging = publication_of(contract).paging
    return None if paging is None else paging.continue_tool or contract.name


def bound_tool(
    contract: Contract, origin: Origin, token: str, client: RegistryClient, registries: Registries
) -> AnyTool:
    """A tool that runs by asking the registry for this registration, and for no other."""
    bound = _Bound(contract, origin, token, client, registries)

    async def call_registry(ptc_context__: ToolContext, **arguments: JsonValue) -> object:
        return await bound.run(arguments, ptc_context__)

    call_registry.__name__ = call_registry.__qualname__ = contract.name
    # Written by hand: the annotations of this module are texts, and its names are not a tool's.
    call_registry.__annotations__ = {_CONTEXT: ToolContext}
    assert _CONTEXT in inspect.signature(call_registry).parameters
    return Tool(contract, call_registry)


class _Bound:
    """What a tool of a registration knows."""

    __slots__ = ("_client", "_contract", "_origin", "_registries", "_token")

    def __init__(
        self, contract: Contract, origin: Origin, token: str, client: RegistryClient, registries: Registries
    ) -> None:
        self._contract = contract
        self._origin = origin
        self._token = token
        self._client = client
        self._registries = registries

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """The result, for the path to bound and validate. Raises CallRefused and EndedElsewhere."""
        call = ResolvedCall(
            run_id=context.run.run_id,
            call_id=context.call.call_id,
            toolset=self._origin.toolset,
            tool=self._contract.name,
            arguments=arguments,
            token=self._token,
            caller=context.call.caller.kind,
            labels=self._labels(context),
            attempt=context.attempt,
            timeout=None if context.deadline is None else max(0.0, context.deadline - time.monotonic()),
        )
        await self._record(call, context)
        try:
            result = await self._patiently(call, context)
        except CallRefused as refusal:
            if not self._may_have_run(call):
                raise
            raise EndedElsewhere(_uncertain(call, refusal.message)) from refusal
        if not isinstance(result, CallResult):  # a client is another's code
            raise EndedElsewhere(Failure("invalid_result", "the registry's answer to the call is no result"))
        if result.status == "admitted":
            return await self._as_agent(arguments, context)
        await self._deliver(result, call)
        if result.status == "denied" and self._may_have_run(call):
            raise EndedElsewhere(_uncertain(call, result.message or "the tool gave no reason"))
        return self._returned(result)

    def _may_have_run(self, call: ResolvedCall) -> bool:
        """Whether an earlier attempt may have changed something: a refusal of this one says nothing of that."""
        return call.attempt > 1 and self._contract.effects != "read"

    async def _record(self, call: ResolvedCall, context: ToolContext) -> None:
        """The record says which registration the call goes to: its contract alone does not."""
        if context.recorder is None:
            return
        said: JsonObject = {
            "call_id": call.call_id,
            "tool": self._contract.qualified_name,
            "registry": self._origin.registry,
            "version": self._origin.version,
            "registration": call.token,
            "attempt": call.attempt,
        }
        await context.recorder.event("registry.called", said, context.run)

    def _labels(self, context: ToolContext) -> dict[str, str]:
        required = publication_of(self._contract).required_labels
        lacking = [name for name in required if name not in context.run.labels]
        if lacking:
            raise CallRefused(
                f"{self._contract.qualified_name} needs a run with the label {', '.join(lacking)}"
            )
        return {name: context.run.labels[name] for name in required}

    async def _patiently(self, call: ResolvedCall, context: ToolContext) -> CallResult:
        """Asks again while no provider has room: the same call, for the same registration."""
        until = time.monotonic() + PATIENCE if context.deadline is None else context.deadline
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._client.call_resolved(call)
            except RegistryOverloaded:
                if time.monotonic() + pause >= until:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _as_agent(self, arguments: JsonObject, context: ToolContext) -> JsonValue:
        """The call of an agent runs here: by the executor and configuration that it was accepted with."""
        publication = publication_of(self._contract)
        if publication.executor is None or publication.configuration is None:
            raise EndedElsewhere(
                Failure("invalid_result", "the registry did not run the call, and it is no agent's")
            )
        executor = self._registries.executor(publication.executor)
        if executor is None:
            raise CallRefused(
                f"{self._contract.qualified_name} runs by the executor {publication.executor!r}, which is not here:"
                " register_executor(…) before the run"
            )
        return await executor(publication.configuration, arguments, self._contract, context)

    async def _deliver(self, result: CallResult, call: ResolvedCall) -> None:
        """Hands server data to whom the application named; all of it is checked first."""
        if not result.server_data:
            return
        publication = publication_of(self._contract)
        items = []
        for kind, data in result.server_data:
            declared = publication.declared(kind)
            try:
                if declared is None:
                    raise ValueError(f"it gave server data of a kind that it does not declare, {kind[:64]!r}")
                check_server_data(declared, data)
            except ValueError as error:
                raise EndedElsewhere(
                    Failure("invalid_result", f"the tool's result is not usable: {error}")
                ) from None
            items.append(
                ServerItem(
                    kind,
                    declared.audience,
                    data,
                    registry=self._origin.registry,
                    toolset=call.toolset,
                    tool=call.tool,
                    run_id=call.run_id,
                    call_id=call.call_id,
                )
            )
        handler = self._registries.handler(self._origin.registry)
        if handler is None:
            return
        for item in items:
            step = handler(item)
            if inspect.isawaitable(step):
                await step

    def _returned(self, result: CallResult) -> object:
        value = result.value
        if result.status in ("success", "empty", "partial"):
            return _shaped(result.status, value)
        message = result.message or "the tool gave no reason"
        if result.status == "denied":
            code = result.code if result.code in _DENIALS else "call_refused"
            raise EndedElsewhere(Denied(cast("DenialCode", code), message))
        if result.status == "uncertain":
            raise EndedElsewhere(Uncertain("uncertain", message))
        failure = result.code if result.code in _FAILURES else "tool_error"
        raise EndedElsewhere(Failure(cast("FailureCode", failure), message))


def _uncertain(call: ResolvedCall, refusal: str) -> Uncertain:
    return Uncertain(
        "uncertain",
        f"attempt {call.attempt} of the call was refused ({refusal}), but an earlier attempt may have taken effect:"
        " find out before anything is done again",
    )


def _shaped(status: str, value: JsonValue) -> object:
    """An empty or a partial result in its own type, so that the outcome here is of the same kind."""
    kind: type[EmptyResult] | type[PartialResult[JsonValue]] | None
    kind = EmptyResult if status == "empty" else PartialResult[JsonValue] if status == "partial" else None
    if kind is None or not isinstance(value, dict):
        return value
    try:
        return kind.model_validate(value)
    except ValueError:
        return value
