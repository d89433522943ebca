"""What the peer's model says in the tests that run the peer in a process of its own."""

from __future__ import annotations

import json

from ptc.testing import ModelRequest, ScriptedModel, call, commentary, program, reason, run_code, say
from ptc.testing.scripted import Part

BOTH = """\
inventory, demand = await asyncio.gather(get_inventory(sku="sku_123"), get_demand(sku="sku_123"))
inventory["available_units"] - demand["expected_units"]
"""
ONE_BY_ONE = """\
total = 0
for sku in ["a", "b", "c"]:
    total += (await get_inventory(sku=sku))["available_units"]
total
"""


def left(request: ModelRequest) -> Part:
    return say(f"{request.program_result} units are left.")


hello = ScriptedModel(say("Hello."), then=lambda request: say(f"Turn {request.turn}."))
thinking = ScriptedModel(
    [reason("I look it up."), call("lookup", key="k")], commentary("Nearly."), say("Done.")
)
inventory = ScriptedModel(run_code(BOTH), left)
one_by_one = ScriptedModel(program(ONE_BY_ONE), left)
echo = ScriptedModel(
    then=lambda request: say(json.dumps([item.get("type", "message") for item in request.items]))
)
