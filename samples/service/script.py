"""What the embedded peer's model says in `app.py`. With an account it is not used."""

from ptc.testing import ModelRequest, Part, ScriptedModel, failed, run_code, say

COUNT = """\
a, b = await asyncio.gather(get_stock(sku="a"), get_stock(sku="b"))
a["units"] + b["units"]
"""
ORDER = """\
try:
    told = await order_delivery(sku="a", units=5, note=NOTE)
except ToolError as error:
    told = f"not ordered: {error}"
told
"""
WAIT = 'await wait_for_delivery(sku="a")'


def write(request: ModelRequest) -> Part:
    if "outage" in request.user_text:
        return failed("the model is not available")
    if "order" in request.user_text:
        return run_code(f"NOTE = {request.user_text!r}\n{ORDER}")(request)
    return run_code(WAIT if "delivery" in request.user_text else COUNT)(request)


def answer(request: ModelRequest) -> Part:
    if "order" in request.user_text:
        return say(f"The order: {request.program_result}")
    return say(f"{request.program_result} units are in stock.")


model = ScriptedModel(write, answer)
