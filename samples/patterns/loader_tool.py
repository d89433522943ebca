"""The loader tool: the model starts with one tool, and loads the others when it needs them.

    python samples/patterns/loader_tool.py

A hundred tool definitions in every request cost tokens and attention. Here the model sees `load_tools` alone;
what that adds is offered from the next request of the same run on, and the next run starts anew.
"""

import asyncio
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ptc

SCRIPT = Path(__file__).with_name("scripts.py")


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


async def main() -> None:
    warnings.simplefilter("ignore", ptc.ExperimentalWarning)
    async with ptc.connect(script=f"{SCRIPT}:loader_tool") as service:
        runner = ptc.Runner(client=service.client, model=service.model, tools=[load_tools])
        result = await runner.run("What will the weather be in Oslo?")
    for report in result.calls:
        print(f"request {report.request}: {report.call.name}({report.call.arguments})")
    print(result.output_text)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
