"""What the embedded peer's model says in `app.py`. With an account it is not used."""

from ptc.testing import ModelRequest, Part, ScriptedModel, failed, run_code, say

COUNT = """\
a, b = await asyncio.gather(get_stock(sku="a"), get_stock(sku="b"))
a["units"] + b["units"]
"""
WAIT = 'await wait_for_delivery(sku="a")'


def write(request: ModelRequest) -> Part:
    if "outage" in request.user_text:
        return failed("the model is not available")
    return run_code(WAIT if "delivery" in request.user_text else COUNT)(request)


model = ScriptedModel(write, lambda request: say(f"{request.program_result} units are in stock."))
