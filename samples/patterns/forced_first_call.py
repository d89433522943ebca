"""The forced first call: before the model says anything, it looks the policy up.

    python samples/patterns/forced_first_call.py

The choice goes to the service and is enforced here as well: any other call is answered with an error, and
does not run. After the first request the choice is automatic again, so that the model can answer.
"""

import ptc
from shared import show


@ptc.tool
async def look_up_policy(topic: str) -> str:
    """What our policy says on a topic."""
    return {"returns": "goods can be returned within 30 days."}[topic]


@ptc.tool
async def open_ticket(subject: str) -> str:
    """Open a ticket for a person to look at."""
    return "T-8"


if __name__ == "__main__":
    show(
        "forced_first_call",
        "Can I bring it back after three weeks?",
        tools=[look_up_policy, open_ticket],
        tool_choice={"mode": "required", "required_function_name": "look_up_policy"},
    )
