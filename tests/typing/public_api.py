"""What users write, as a type checker sees it. Nothing here runs: a test asks mypy, which must find no fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal, assert_never, assert_type

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import ptc


class Stock(BaseModel):
    """A result."""

    units: int


class Row(TypedDict):
    """Another one."""

    id: str


@ptc.tool
async def bare(sku: str, site: Literal["north", "south"] = "north") -> Stock:
    return Stock(units=len(sku + site))


@ptc.tool(
    allowed_callers=["direct", "programmatic"],
    effects="write",
    commitment="reserves units",
    idempotency=ptc.Idempotency("protocol"),
    reconciliation=ptc.Reconciliation("find", {"key": "$idempotency_key"}),
    bounds=ptc.Bounds(items=10, search=ptc.SearchRange("since", "until", 31)),
    timeout=3,
    tags={"stock"},
)
def reserve(
    sku: Annotated[str, Field(max_length=9), ptc.Sensitive],
    since: int,
    until: int,
    index: Annotated[str, ptc.Designer],
    context: ptc.ToolContext,
) -> list[Row] | ptc.EmptyResult | ptc.PartialResult[list[Row]]:
    assert_type(context.principal, str | None)
    assert_type(context.idempotency_key, str)
    if since > until:
        return ptc.EmptyResult(reason="nothing")
    return ptc.PartialResult(value=[{"id": sku}], missing=["the rest"], continuation={"since": until})


class Shop:
    """Methods are tools as well."""

    def price(self, sku: str) -> float:
        return float(len(sku))


async def a_tool_is_called_like_its_function(shop: Shop) -> None:
    assert_type(await bare("a", site="south"), Stock)
    priced = ptc.tool(shop.price)
    assert_type(priced("a"), float)
    assert_type(priced.contract, ptc.Contract)
    configured = reserve.configure(index="orders")
    assert_type(configured.contract.fingerprint(), str)
    assert_type(configured.unset, tuple[str, ...])


records = ptc.Extension(ptc.Manifest("records", "1.0", "Customer records."))


@records.tool
async def get(sku: str) -> Stock:
    return Stock(units=len(sku))


@records.tool(effects="read")
def find(sku: str) -> list[str]:
    return [sku]


async def a_tool_of_an_extension_is_called_like_its_function() -> None:
    assert_type(await get("a"), Stock)
    assert_type(find(sku="a"), list[str])


async def an_outcome_is_one_of_a_few(invoker: ptc.Invoker, run: ptc.RunContext) -> str:
    outcome = await invoker.invoke(ptc.Call("c1", "bare", {"sku": "a"}), run)
    if isinstance(outcome, ptc.Partial):
        assert_type(outcome.continuation, dict[str, ptc.JsonValue] | None)
        return "partial"
    if isinstance(outcome, ptc.Success):
        assert_type(outcome.value, ptc.JsonValue)
        return outcome.status
    if isinstance(outcome, ptc.Denied | ptc.Cancelled):
        return outcome.message
    if isinstance(outcome, ptc.Uncertain):
        assert_type(outcome.reconciliation, dict[str, ptc.JsonValue] | None)
    if isinstance(outcome, ptc.Failure):
        return outcome.code
    assert_never(outcome)


async def office_hours(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
    assert_type(invocation.arguments, dict[str, ptc.JsonValue])
    if invocation.tool.contract.effects != "read":
        return ptc.Denied("not_authorized", "only reading before nine")
    return await next(invocation)


class Grants:
    """A policy of the application's."""

    async def authorize(
        self,
        principal: str | None,
        tool: ptc.Contract,
        arguments: dict[str, ptc.JsonValue],
        caller: ptc.Direct | ptc.Program,
    ) -> ptc.Denied | None:
        return None if principal == "ada" else ptc.Denied("not_authorized", f"{tool.name} is not for you")


def whoever_decides_fits_the_seams() -> ptc.Invoker:
    return ptc.Invoker([bare, reserve], policy=Grants(), middleware=[office_hours, ptc.Retry(3)])


def pins_are_compared(old: ptc.Contract, new: ptc.Contract) -> bool:
    result = ptc.compare(old, new)
    assert_type(result.verdict, Literal["identical", "documentation", "narrower", "wider", "incompatible"])
    assert_type(ptc.toolset_fingerprint([old, new]), str)
    return result.covered


def a_declaration_becomes_a_tool(source: dict[str, ptc.JsonValue]) -> None:
    spec = ptc.compile_declaration(source)
    assert_type(spec.arguments.decode("{}"), ptc.JsonValue)
    assert_type(spec.bind(lambda **values: values), ptc.AnyTool)


@ptc.tool
def traced(n: int) -> ptc.Traced[Stock]:
    value = ptc.Traced.of(Stock(units=n), ptc.Source("db", "1"))
    assert_type(value, ptc.Traced[Stock])
    return value


async def a_run_has_a_result(runner: ptc.Runner) -> None:
    result = await runner.run("Compare.")
    assert_type(result.output_text, str)
    for report in result.calls:
        assert_type(report.call.caller, ptc.Direct | ptc.Program)
    typed = await runner.run("As data.", output_type=Stock)
    assert_type(typed.output, Stock | None)
    assert_type(runner.run_sync("As data.", output_type=Stock).output, Stock | None)
    async with runner.stream("Tell me.") as events:
        takes_events(events)


def takes_events(events: AsyncIterator[object]) -> None:
    """A stream is one."""


async def a_program_runs_without_a_model() -> None:
    async with ptc.Sandbox() as sandbox:
        result = await sandbox.run("1 + 1", tools=[bare])
    assert_type(result, ptc.ProgramResult)
    assert_type(result.value, ptc.JsonValue)
    assert_type(result.ok, bool)


def what_a_runner_takes(client: object) -> ptc.Runner:
    return ptc.Runner(
        client=client,
        model="deployment",
        tools=[bare, reserve.configure(index="orders")],
        programs="local",
        tenant="acme",
        credentials={"api": ptc.Secret("…")},
    )


class ByTeam:
    """Sources by the labels of a run."""

    def resolve(self, catalog: ptc.SourceCatalog, /) -> None:
        catalog.include(ptc.Registry("corp"))

    def allows(self, source: ptc.RegistryToolset, /) -> bool:
        return source.registry.name == "corp"


def sources_and_searches(client: object) -> list[ptc.Runner]:
    records = ptc.Toolset("records", [bare, reserve.configure(index="orders")])
    assert_type(ptc.use(records), ptc.Use)
    assert_type(ptc.use(records).defer("bare"), ptc.Use)
    named = ptc.Toolset.from_registry(ptc.Registry("corp"), "billing", version="1")
    tools: list[ptc.ToolLike] = [ptc.use(records).defer(), named, ptc.Registry("corp"), ByTeam(), bare]
    mine = ptc.ToolIndex()
    return [
        ptc.Runner(client=client, model="m", tools=tools, search="lexical", max_output_tokens=4_000),
        ptc.Runner(
            client=client, model="m", tools=tools, search=mine, max_output_tokens=4_000, search_limit=3
        ),
        ptc.Runner(
            client=client, model="m", tools=[ptc.use(named).defer()], search="server", max_output_tokens=99
        ),
    ]
