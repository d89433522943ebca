"""What the tests of catalogs share: a toolset of records, registries of their own, and clients that misbehave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ptc
from ptc_tools.call import Call, JsonObject
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo


@ptc.tool(effects="read")
def lookup(key: str) -> str:
    """Look one record up."""
    return f"record {key}"


@ptc.tool(effects="read")
def search(query: str) -> list[str]:
    """Search the records."""
    return [query]


@ptc.tool(effects="read")
def analyze(query: str, depth: int = 1) -> int:
    """Analyze records."""
    return len(query) * depth


def records(name: str = "records") -> ptc.Toolset:
    return ptc.Toolset(name, [lookup, search, analyze])


def published(*toolsets: ptc.Toolset, version: str = "1.0.0") -> ptc.LocalRegistry:
    registry = ptc.LocalRegistry()
    for toolset in toolsets:
        registry.publish(toolset.export(version=version))
    return registry


def table(**clients: ptc.RegistryClient) -> ptc.Registries:
    return ptc.Registries(clients)


def names(step: ptc.StepCatalog) -> list[str]:
    return [entry.contract.qualified_name for entry in step.catalog]


def call_of(name: str, arguments: JsonObject, call_id: str = "call_1", namespace: str = "records") -> Call:
    return Call(call_id, name, arguments, namespace=namespace)


RUN = ptc.RunContext("run_1")


class Yes:
    """An approver that remembers what it was asked and says yes."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: ptc.RunContext
    ) -> Denied | None:
        confirmation = contract.publication.confirmation if contract.publication else None
        self.asked.append("" if confirmation is None else confirmation.text(arguments))
        return None


class ByTag:
    """A policy that shows what bears the label's tag, and nothing else."""

    async def authorize(self, principal, tool, arguments, caller):  # type: ignore[no-untyped-def]
        return None

    def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
        return labels.get("team") in tool.tags


class Client:
    """A registry client around another that counts, and does what a test tells it before an answer."""

    def __init__(self, inner: ptc.RegistryClient) -> None:
        self.inner = inner
        self.reads: list[str] = []
        self.calls: list[ResolvedCall] = []
        self.before_resolve = lambda name: None
        self.before_call = lambda call: None
        self.without_tokens = False

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        self.reads.append("list")
        listed = await self.inner.list_toolsets()
        return [ToolsetInfo(info.name, info.version) for info in listed] if self.without_tokens else listed

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        self.reads.append(name)
        self.before_resolve(name)
        return await self.inner.resolve_toolset(name, known=known)

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        self.calls.append(call)
        self.before_call(call)
        return await self.inner.call_resolved(call)
