"""Another vendor's loop against the peer: openai-agents completes the sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import agents
import openai

from ptc.testing import Peer

SCRIPT = Path(__file__).parents[2] / "samples" / "inventory_script.py"


@dataclass
class Inventory:
    sku: str
    available_units: int


@dataclass
class Demand:
    sku: str
    expected_units: int


async def test_openai_agents_completes_the_sample() -> None:
    """A client that was written by others, from other documents: the peer speaks more than our dialect."""

    async def get_inventory(sku: str) -> Inventory:
        """Available units."""
        return Inventory(sku, 73)

    async def get_demand(sku: str) -> Demand:
        """Expected units."""
        return Demand(sku, 62)

    agents.set_tracing_disabled(True)
    with Peer(f"{SCRIPT}:model") as peer:
        async with openai.AsyncOpenAI(base_url=peer.base_url, api_key="any", max_retries=0) as client:
            agent = agents.Agent(
                name="shop",
                model=agents.OpenAIResponsesModel("scripted", client),
                model_settings=agents.ModelSettings(store=False),
                tools=[
                    agents.function_tool(get_inventory, allowed_callers=["programmatic"]),
                    agents.function_tool(get_demand, allowed_callers=["programmatic"]),
                    agents.tool.ProgrammaticToolCallingTool(),
                ],
            )
            result = await agents.Runner.run(agent, "Compare inventory with demand.")
    assert result.final_output == "11 units of sku_123 are left over: inventory covers demand."
