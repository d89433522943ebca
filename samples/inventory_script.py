"""What the embedded peer's model says in `inventory_demand.py`: a program, then an answer from its result.

With an account this file is not used: a model writes the program.
"""

import json

from ptc.testing import ModelRequest, Part, ScriptedModel, run_code, say

PROGRAM = """\
inventory, demand = await asyncio.gather(
    get_inventory(sku="sku_123"),
    get_demand(sku="sku_123"),
)
left = inventory["available_units"] - demand["expected_units"]
{"sku": inventory["sku"], "left": left}
"""


def answer(request: ModelRequest) -> Part:
    result = json.loads(request.program_result)
    return say(f"{result['left']} units of {result['sku']} are left over: inventory covers demand.")


model = ScriptedModel(run_code(PROGRAM), answer)
