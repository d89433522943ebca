"""Point 3 further in: what only the designer or the host sets is no part of what a model sends, however deep."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from ptc_tools import (
    Denied,
    Designer,
    InvalidSignature,
    ProviderConfig,
    Secret,
    Success,
    ToolContext,
    define_tool,
    tool,
)
from ptc_tools.call import JsonObject
from tests.tools.tool_support import invoke


@dataclass
class Provider(ProviderConfig):
    endpoint: str


class ProviderField(BaseModel):
    query: str
    provider: Provider


class DesignerModelField(BaseModel):
    index: Annotated[str, Designer] = "orders"


class DesignerInUnionField(BaseModel):
    index: Annotated[str, Designer] | None = None


class DesignerKey(TypedDict):
    index: Annotated[str, Designer]


@dataclass
class DesignerDataField:
    index: Annotated[str, Designer]


class DesignerTuple(NamedTuple):
    folder: Annotated[str, Designer]


class SecretField(BaseModel, arbitrary_types_allowed=True):
    key: Secret | None = None


class Deep(BaseModel):
    parts: dict[str, list[DesignerKey]]
    above: "Deep | None" = None


HELD = [
    ProviderField,
    DesignerModelField,
    DesignerInUnionField,
    DesignerKey,
    DesignerDataField,
    DesignerTuple,
    SecretField,
    Deep,
    list[Annotated[str, Designer]],
    Annotated[str, Designer] | None,
    Annotated[Provider, Field(description="Where to.")],
    Annotated[list[ProviderField], Field(max_length=3)],
]
OPEN: JsonObject = {
    "name": "raw",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "additionalProperties": True},
}


@pytest.mark.parametrize("annotation", HELD, ids=str)
def test_no_part_of_a_models_argument_is_the_designers_or_the_hosts(annotation: object) -> None:
    """A field of a model would be one more way for a model to choose an endpoint or an account."""

    async def typed(query: str, given) -> str:  # type: ignore[no-untyped-def]
        return query

    async def raw(q: str = "", given=None) -> str:  # type: ignore[no-untyped-def]
        return q

    for function in (typed, raw):
        function.__annotations__["given"] = annotation
    with pytest.raises(InvalidSignature, match="given"):
        tool(typed, strict=False)
    with pytest.raises(InvalidSignature, match="given"):
        define_tool(OPEN, raw)


def test_a_context_that_may_be_absent_is_refused_for_a_raw_tool() -> None:
    """The host would not know it for its own, and an open schema would let a model send one."""

    async def raw(q: str = "", ctx: ToolContext | None = None) -> str:
        return repr(ctx)

    with pytest.raises(InvalidSignature, match="trusted"):
        define_tool(OPEN, raw)


async def test_a_call_that_names_the_context_is_denied_whatever_the_schema_allows() -> None:
    """The denial says so, instead of passing over what a model tried to be."""

    async def raw(ctx: Annotated[ToolContext, "the host's"], q: str = "") -> str | None:
        return ctx.principal

    entry = define_tool(OPEN, raw)
    outcome = await invoke(entry, {"q": "a", "ctx": {"principal": "admin"}})
    assert isinstance(outcome, Denied)
    assert outcome.code == "invalid_arguments"
    assert isinstance(await invoke(entry, {"q": "a"}), Success)


def test_ordinary_models_are_still_parameters() -> None:
    """Also those that hold themselves."""

    class Node(BaseModel):
        name: str
        below: "list[Node]" = []

    async def look(node: Node) -> str:
        return node.name

    assert "node" in str(tool(look, strict=False).contract.parameters)
