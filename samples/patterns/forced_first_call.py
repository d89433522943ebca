"""The forced first call: before the model says anything, it looks the policy up.

    python samples/patterns/forced_first_call.py

The choice goes to the service and is enforced here as well: any other call is answered with an error, and
does not run. After the first request the choice is automatic again, so that the model can answer.
"""

import asyncio
import sys
from pathlib import Path

import ptc

SCRIPT = Path(__file__).with_name("scripts.py")


@ptc.tool
async def look_up_policy(topic: str) -> str:
    """What our policy says on a topic."""
    return {"returns": "goods can be returned within 30 days."}[topic]


@ptc.tool
async def open_ticket(subject: str) -> str:
    """Open a ticket for a person to look at."""
    return "T-8"


async def main() -> None:
    async with ptc.connect(script=f"{SCRIPT}:forced_first_call") as service:
        runner = ptc.Runner(
            client=service.client,
            model=service.model,
            tools=[look_up_policy, open_ticket],
            tool_choice={"mode": "required", "required_function_name": "look_up_policy"},
        )
        result = await runner.run("Can I bring it back after three weeks?")
    for report in result.calls:
        print(f"request {report.request}: {report.call.name} -> {report.outcome.status}")
    print(result.output_text)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ptc.PtcError as error:
        sys.exit(f"{error.code}: {error.message}")
