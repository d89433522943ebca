"""The loader tool: the model starts with one tool, and loads the others when it needs them.

    python samples/patterns/loader_tool.py

A hundred tool definitions in every request cost tokens and attention. Here the model sees `load_tools` alone;
what that adds is offered from the next request of the same run on, and the next run starts anew.
"""

from dataclasses import dataclass
from typing import Any

import ptc
from shared import show


@dataclass
class Forecast:
    city: str
    summary: str


@ptc.tool
async def forecast(city: str) -> Forecast:
    """The weather of tomorrow in a city."""
    return Forecast(city, "rain until noon")


@ptc.tool
async def exchange_rate(currency: str) -> float:
    """What one unit of a currency is worth in euros."""
    return {"NOK": 0.085}[currency]


TOPICS: dict[str, list[ptc.Tool[..., Any]]] = {"weather": [forecast], "money": [exchange_rate]}


@ptc.tool
async def load_tools(topic: str, context: ptc.ToolContext) -> list[str]:
    """Load the tools of a topic (weather or money). They can be called from the next step on."""
    context.add_tools(TOPICS[topic])
    return [tool.contract.name for tool in TOPICS[topic]]


if __name__ == "__main__":
    show("loader_tool", "What will the weather be in Oslo?", tools=[load_tools])
