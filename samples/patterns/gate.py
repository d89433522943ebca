"""The gate: reading a record unlocks writing it.

    python samples/patterns/gate.py

A model that has not read a ticket cannot close it, because until then the tool that could does not exist in
the run. Reading adds it; writing takes it away again. Calls of a batch that is running are not affected.
"""

import asyncio
import sys
import warnings
from pathlib import Path

import ptc

SCRIPT = Path(__file__).with_name("scripts.py")
TICKETS = {"T-7": "open"}


@ptc.tool
async def update_ticket(ticket_id: str, status: str, context: ptc.ToolContext) -> str:
    """Set the status of a ticket that was read before."""
    TICKETS[ticket_id] = status
    context.remove_tools(update_ticket)
    return f"{ticket_id} is {status}"


@ptc.tool
async def read_ticket(ticket_id: str, context: ptc.ToolContext) -> str:
    """Read a ticket. Afterwards it can be updated."""
    status = TICKETS[ticket_id]
    context.add_tools(update_ticket)
    return f"{ticket_id} is {status}"


async def main() -> None:
    warnings.simplefilter("ignore", ptc.ExperimentalWarning)
    async with ptc.connect(script=f"{SCRIPT}:gate") as service:
        runner = ptc.Runner(client=service.client, model=service.model, tools=[read_ticket])
        result = await runner.run("Close ticket T-7.")
    for report in result.calls:
        print(f"request {report.request}: {report.call.name} -> {report.outcome.status}")
    print(result.output_text)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
