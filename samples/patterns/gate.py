"""The gate: reading a record unlocks writing it.

    python samples/patterns/gate.py

A model that has not read a ticket cannot close it, because until then the tool that could does not exist in
the run. Reading adds it; writing takes it away again. Calls of a batch that is running are not affected.
"""

import ptc
from shared import show

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


if __name__ == "__main__":
    show("gate", "Close ticket T-7.", tools=[read_ticket])
