"""The peers of the tools' benchmark: how other frameworks invoke the same function; missing ones are None.

Each is a coroutine function that parses and validates the arguments' text, runs the function and gives back
what the framework would send.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

Invocation = Callable[[], Awaitable[object]]


Sku = Annotated[str, Field(max_length=20)]


class PeerStock(BaseModel):
    sku: Sku
    units: Annotated[int, Field(ge=0)]


async def get_stock(sku: Sku, site: Annotated[int, Field(ge=0, le=99)]) -> PeerStock:
    """Units of one article in stock at one site."""
    return PeerStock(sku=sku, units=site)


def openai_agents(arguments: str) -> Invocation | None:
    """`FunctionTool.on_invoke_tool` of openai-agents, which is what its runner calls."""
    if importlib.util.find_spec("agents") is None:
        return None
    import agents
    from agents.tool_context import ToolContext

    agents.set_tracing_disabled(True)
    entry = agents.function_tool(get_stock)
    context: Any = ToolContext(
        context=None, tool_name="get_stock", tool_call_id="call_1", tool_arguments=arguments
    )

    async def run() -> object:
        return await entry.on_invoke_tool(context, arguments)

    return run


def agent_framework(arguments: str) -> Invocation | None:
    """`FunctionTool.invoke` of agent-framework-core, with the arguments as its client decodes them."""
    if importlib.util.find_spec("agent_framework") is None:
        return None
    import agent_framework as framework

    make: Any = getattr(framework, "tool", None) or getattr(framework, "ai_function", None)
    entry = make(get_stock)

    async def run() -> object:
        return await entry.invoke(arguments=json.loads(arguments))

    return run
