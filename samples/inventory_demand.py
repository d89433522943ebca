"""A model compares inventory with demand: it writes one program, the program calls two tools.

    python samples/inventory_demand.py                     the provider runs the program
    python samples/inventory_demand.py --programs local    our own sandbox runs it (CodeAct)

It needs no account: without one it talks to an embedded peer. With AZURE_OPENAI_ENDPOINT and PTC_MODEL it
talks to Azure OpenAI (Entra ID), with OPENAI_API_KEY to OpenAI.
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import ptc
from ptc.cli.report import print_report

SCRIPT = Path(__file__).with_name("inventory_script.py")
AUDIT = Path("audit-inventory.db")
QUESTION = "Compare inventory with expected demand for sku_123. How many units are left over?"


# 1. Your functions. Types become schemas; `allowed_callers` says that programs may call them.


@dataclass
class Inventory:
    sku: str
    available_units: int


@dataclass
class Demand:
    sku: str
    expected_units: int


@ptc.tool(allowed_callers=["programmatic"])
async def get_inventory(sku: str) -> Inventory:
    """Return the SKU and its available units."""
    return Inventory(sku, {"sku_123": 73}[sku])


@ptc.tool(allowed_callers=["programmatic"])
async def get_demand(sku: str) -> Demand:
    """Return the SKU and the units that will be asked for."""
    return Demand(sku, {"sku_123": 62}[sku])


async def main(programs: Literal["hosted", "local"]) -> None:
    # 2. A client, 3. a runner with the tools, 4. the run, 5. its result.
    async with ptc.connect(script=f"{SCRIPT}:model") as service, ptc.AuditLog(AUDIT, journals=True) as audit:
        runner = ptc.Runner(
            client=service.client,
            model=service.model,
            tools=[get_inventory, get_demand],
            programs=programs,
            audit=audit,
            on_tool_error="raise",
        )
        print(f"Asking {service.about}.\n\n> {QUESTION}\n")
        result = await runner.run(QUESTION)
        print(result.output_text, end="\n\n")
    print_report(result, AUDIT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", choices=["hosted", "local"], default="hosted")
    try:
        asyncio.run(main(parser.parse_args().programs))
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
