"""Point 3: who controls a parameter. A designer's and the host's values never come from a call."""

import functools
from typing import Annotated, Any

import pytest
from pydantic import Field

from ptc_tools import (
    Call,
    Catalog,
    Denied,
    Designer,
    Failure,
    InvalidSignature,
    Invoker,
    Program,
    ProviderConfig,
    RegistrationError,
    RunContext,
    Secret,
    Success,
    ToolContext,
    define_tool,
    tool,
)
from tests.tools.tool_support import call, invoke, run_with


class Client:
    def __init__(self, url: str) -> None:
        self.url = url


@tool
async def search(
    query: str, index: Annotated[str, Designer], client: Annotated[Client, Designer], page: int = 1
) -> str:
    """Search an index."""
    return f"{client.url}/{index}?{query}&{page}"


def configured(index: str = "orders"):  # type: ignore[no-untyped-def]
    return search.configure(index=index, client=Client("db"))


class TestDesigner:
    def test_a_designers_parameter_is_absent_from_what_the_model_sees(self) -> None:
        """Neither its name nor its value is in the schema or on the wire."""
        assert list(search.contract.parameters["properties"]) == ["query", "page"]  # type: ignore[arg-type]
        wire = str(configured().contract.wire())
        assert "index" not in wire.replace("Search an index.", "")
        assert "orders" not in wire

    async def test_its_value_is_set_by_configure_and_the_original_stays(self) -> None:
        """One function, many tools; each has its own values."""
        one, two = configured("orders"), configured("items")
        assert await invoke(one, {"query": "a"}) == Success("db/orders?a&1")
        assert await invoke(two, {"query": "a", "page": 2}) == Success("db/items?a&2")
        assert search.unset == ("index", "client")
        assert await one("q", page=3) == "db/orders?q&3"  # type: ignore[call-arg]

    @pytest.mark.parametrize("arguments", [{"query": "a", "index": "orders"}, {"query": "a", "client": None}])
    async def test_a_value_from_a_model_or_a_program_is_rejected_and_never_merged(
        self, arguments: dict[str, object]
    ) -> None:
        """Also the right value: who may set it is the point."""
        for caller in ("direct", "programmatic"):

            @tool(allowed_callers=[caller])  # type: ignore[list-item]
            async def other(
                query: str, index: Annotated[str, Designer] = "x", client: Annotated[object, Designer] = None
            ) -> str:
                return index

            the_call = call(other, arguments)
            if caller == "programmatic":
                the_call = call(other, arguments, caller=Program("p"))
            outcome = await Invoker([other]).invoke(the_call, run_with("p"))
            assert isinstance(outcome, Denied)
            assert outcome.code == "invalid_arguments"

    async def test_an_open_raw_schema_is_no_way_in_either(self) -> None:
        """`additionalProperties` is allowed there by default."""

        def raw(query: str, index: Annotated[str, Designer] = "safe", **rest: object) -> str:
            return index

        entry = define_tool({"name": "raw", "parameters": {"type": "object"}}, raw)
        assert await invoke(entry, {"query": "a", "other": 1}) == Success("safe")
        outcome = await invoke(entry, {"query": "a", "index": "evil"})
        assert isinstance(outcome, Denied)
        assert await invoke(entry.configure(index="set"), {"query": "a"}) == Success("set")

    def test_a_raw_schema_may_not_declare_what_the_host_sets(self) -> None:
        """A definition from elsewhere could otherwise take the parameter over."""

        def raw(index: Annotated[str, Designer]) -> str:
            return index

        schema = {"type": "object", "properties": {"index": {"type": "string"}}}
        with pytest.raises(InvalidSignature, match="index"):
            define_tool({"name": "raw", "parameters": schema}, raw)  # type: ignore[dict-item]

    def test_a_tool_with_an_unset_value_cannot_be_registered(self) -> None:
        """Found before any run, with the parameter named."""
        with pytest.raises(RegistrationError, match="index, client"):
            Catalog([search])
        assert len(Catalog([configured()])) == 1

    def test_configure_refuses_what_it_does_not_know_without_quoting_the_value(self) -> None:
        """A value may be a credential."""
        with pytest.raises(RegistrationError, match="query") as caught:
            search.configure(query="hunter2")
        assert "hunter2" not in str(caught.value)
        with pytest.raises(RegistrationError, match="index") as caught:
            search.configure(index=Secret("hunter2"))
        assert "hunter2" not in str(caught.value)
        with pytest.raises(RegistrationError):
            search.configure(index=5)

    def test_provider_configuration_is_for_the_designer_only(self) -> None:
        """An endpoint or an account that a model may choose is another authority."""

        class Endpoint(ProviderConfig):
            pass

        async def bad(query: str, endpoint: Endpoint) -> str:
            return query

        async def good(query: str, endpoint: Annotated[Endpoint, Designer]) -> str:
            return query

        with pytest.raises(InvalidSignature, match="Designer"):
            tool(bad)
        assert "endpoint" not in str(tool(good).contract.wire())

    async def test_what_a_partial_binds_is_no_parameter_any_more(self) -> None:
        """`functools.partial` is Python's own way of setting a value, a key say; it stays the author's."""

        async def base(sku: str, site: str) -> str:
            """Look."""
            return f"{site}:{sku}"

        fixed = tool(functools.partial(functools.partial(base, site="south"), site="north"), name="look")
        assert list(fixed.contract.parameters["properties"]) == ["sku"]  # type: ignore[arg-type]
        assert "north" not in str(fixed.contract.wire())
        assert await invoke(fixed, {"sku": "a"}) == Success("north:a")
        raw = define_tool(
            {"name": "look", "parameters": {"type": "object"}}, functools.partial(base, site="n")
        )
        assert await invoke(raw, {"sku": "a"}) == Success("n:a")
        for entry in (fixed, raw):
            assert isinstance(await invoke(entry, {"sku": "a", "site": "evil"}), Denied)
        schema = {"type": "object", "properties": {"site": {"type": "string"}}}
        with pytest.raises(InvalidSignature, match="site"):
            define_tool({"name": "look", "parameters": schema}, functools.partial(base, site="n"))  # type: ignore[dict-item]


class TestTrustedContext:
    async def test_the_tool_is_told_what_the_host_knows(self) -> None:
        """Identity, tenant, credentials, labels, deadline, idempotency key and attempt."""

        @tool(timeout=5)
        async def look(n: int, ctx: ToolContext) -> dict[str, object]:
            assert ctx.deadline is not None
            return {
                "principal": ctx.principal,
                "tenant": ctx.tenant,
                "labels": dict(ctx.labels),
                "length": len(ctx.credentials["api"].reveal()),
                "attempt": ctx.attempt,
                "key": ctx.idempotency_key,
            }

        run = run_with(
            principal="ada", tenant="acme", labels={"a": "b"}, credentials={"api": Secret("s3cret")}
        )
        outcome = await invoke(look, {"n": 1}, run=run)
        assert isinstance(outcome, Success)
        value = outcome.value
        assert isinstance(value, dict)
        key = value.pop("key")
        assert value == {
            "principal": "ada",
            "tenant": "acme",
            "labels": {"a": "b"},
            "length": 6,
            "attempt": 1,
        }
        assert str(key).startswith("ptc-")

    async def test_the_idempotency_key_is_of_one_call(self) -> None:
        """The same for each attempt; another for another call, run, tool, argument or caller."""

        def key(run: str = "r", **changes: object) -> str:
            values: dict[str, object] = {"call_id": "c", "name": "t", "arguments": '{"a":1,"b":2}'} | changes
            return ToolContext(RunContext(run), Call(**values), None).idempotency_key  # type: ignore[arg-type]

        assert key() == key(arguments={"b": 2, "a": 1}) == key(arguments='{ "b":2, "a":1 }')
        others = {
            key(run="s"),
            key(call_id="d"),
            key(name="u"),
            key(namespace="n"),
            key(arguments='{"a":1,"b":3}'),
            key(caller=Program("c")),
        }
        assert len(others | {key()}) == 7

    @pytest.mark.parametrize(
        "annotation", [RunContext, Secret, list[ToolContext], ToolContext | None, dict[str, RunContext]]
    )
    def test_it_cannot_be_declared_as_a_parameter(self, annotation: object) -> None:
        """A schema for it would let a model write its own identity."""

        async def bad(n: int, run) -> int:  # type: ignore[no-untyped-def]
            return n

        bad.__annotations__["run"] = annotation
        with pytest.raises(InvalidSignature, match="trusted"):
            tool(bad)

    async def test_a_call_cannot_fill_the_injected_parameter(self) -> None:
        """Its name is no property of the schema."""

        @tool(strict=False)
        async def look(n: int, ctx: ToolContext) -> int:
            return n

        outcome = await invoke(look, {"n": 1, "ctx": {"run": {"principal": "root"}}})
        assert isinstance(outcome, Denied)

    def test_a_secret_does_not_show_itself(self) -> None:
        """Not in a repr, a format, a run's repr, or a pickle."""
        import copy
        import pickle

        secret = Secret("hunter2")
        run = RunContext("r", credentials={"api": secret})
        assert "hunter2" not in f"{secret} {secret!r} {secret:>20} {run!r} {[secret]}"
        assert secret == Secret("hunter2")
        for leak in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                leak(secret)


def test_parameters_keep_their_words() -> None:
    """What the model does see is described: by Field, or by the docstring."""

    @tool
    async def look(a: Annotated[int, Field(description="From Field.")], b: int, c: int = 3) -> int:
        """Look.

        Args:
            a: Not this one.
            b: From the docstring,
                on two lines.
        """
        return a

    properties = look.contract.parameters["properties"]
    assert [properties[name].get("description") for name in "abc"] == [  # type: ignore[index, union-attr]
        "From Field.",
        "From the docstring, on two lines.",
        "Default: 3.",
    ]
    assert look.contract.description == "Look."


@pytest.mark.parametrize("name", ["labels", "credentials"])
async def test_no_tool_changes_what_others_are_told_about_the_run(name: str) -> None:
    """The record and the next tool would be told what a tool made up."""
    given: dict[str, Any] = {"a": Secret("b") if name == "credentials" else "b"}
    run = RunContext("run_1", **{name: given})

    @tool
    async def write(n: int, ctx: ToolContext) -> int:
        """Write."""
        getattr(ctx, name)["x"] = "y"
        return n

    assert isinstance(await invoke(write, {"n": 1}, run=run), Failure)
    given["x"] = "y"
    assert "x" not in getattr(run, name)
