"""Tools to search for, and the strict peer with a view of the requests that it was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai

import ptc
from ptc.gateway.app import create_app
from ptc.gateway.peer import Peer, Settings
from ptc.testing import ScriptedModel
from ptc.testing.transport import AppTransport

Item = dict[str, Any]
RAN: list[str] = []


@ptc.tool
def weather(city: str) -> str:
    """Tell the weather."""
    RAN.append("weather")
    return f"sunny in {city}"


@ptc.tool(allowed_callers=["direct", "programmatic"])
def lookup(customer: str) -> str:
    """Look up a customer record by its identifier."""
    RAN.append("lookup")
    return f"record of {customer}"


@ptc.tool(allowed_callers=["direct", "programmatic"])
def orders(customer: str) -> list[str]:
    """List the open orders of a customer."""
    RAN.append("orders")
    return [f"order of {customer}"]


@ptc.tool
def purge() -> str:
    """Remove every archived document for good."""
    RAN.append("purge")
    return "gone"


RECORDS = ptc.Toolset("records", [lookup, orders, purge], description="What is known of customers.")


@ptc.tool(defer_loading=True)
def gadget(size: int) -> str:
    """Measure a seldom used gadget."""
    RAN.append("gadget")
    return f"gadget of {size}"


TOOLS: list[Any] = [weather, gadget, ptc.use(RECORDS).defer()]
SECRET_WORDS = (
    "lookup",
    "Look up a customer",
    "orders",
    "purge",
    "archived",
    "gadget",
    "What is known",
    "records",
)
"""Names and descriptions of what is deferred."""


class Watched:
    """A client of a peer in this process, and the bodies that the peer was sent."""

    def __init__(self, client: openai.AsyncOpenAI, peer: Peer) -> None:
        self.client = client
        self.peer = peer

    @property
    def bodies(self) -> list[Any]:
        return list(self.peer.requests)

    def runner(self, *tools: Any, **options: Any) -> ptc.Runner:
        given: dict[str, Any] = {"search": "lexical", "max_output_tokens": 4_000, **options}
        return ptc.Runner(client=self.client, model="m", tools=list(tools) or TOOLS, **given)


@asynccontextmanager
async def peer_of(*turns: Any, then: Any = None, **settings: Any) -> AsyncIterator[Watched]:
    """The strict peer that plays these turns, behind a client of the real SDK."""
    RAN.clear()
    told = Settings(control=True, **settings)
    async with (
        Peer(
            ScriptedModel(*turns, then=then), b"the key of a peer that lives in a test", settings=told
        ) as peer,
        httpx2.AsyncClient(transport=AppTransport(create_app(peer))) as http,
        openai.AsyncOpenAI(
            base_url="http://peer/v1", api_key="none", http_client=http, max_retries=0
        ) as client,
    ):
        yield Watched(client, peer)


def of_type(body: Any, kind: str) -> list[Item]:
    """The items of this type in a request's input."""
    return [item for item in body["input"] if item.get("type") == kind]


def found_in(item: Item) -> list[str]:
    """Qualified names of the tools in a search output, in its order."""
    names: list[str] = []
    for tool in item["tools"]:
        inner = tool["tools"] if tool["type"] == "namespace" else [tool]
        space = f"{tool['name']}." if tool["type"] == "namespace" else ""
        names += [space + one["name"] for one in inner]
    return names


def outputs(body: Any) -> list[Any]:
    """What the outputs of function calls in a request's input say, JSON read."""
    values = []
    for item in of_type(body, "function_call_output"):
        try:
            values.append(json.loads(item["output"]))
        except ValueError:
            values.append(item["output"])
    return values
