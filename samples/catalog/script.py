"""What the embedded peer's model says in `app.py`. With an account it is not used.

It does what a model does: it calls the tool as its request shows it, and again when it is told that the tool was
replaced.
"""

import json

from ptc.testing import ModelRequest, Part, ScriptedModel, call, say


def count(request: ModelRequest) -> Part:
    """A call with the parameters that the request's definition has."""
    by_site = '"site"' in json.dumps(request.tools)
    return call("count", {"sku": "sku_123", **({"site": "north"} if by_site else {})}, namespace="stock")


def answer(request: ModelRequest) -> Part:
    return say(f"{request.outputs[-1]} units of sku_123 are in the north, of {request.outputs[0]} in all.")


model = ScriptedModel(count, count, count, answer)
