"""A script for a peer in a process of its own: search, call what was found, answer with its output."""

from ptc.testing import ScriptedModel, call, say, search

model = ScriptedModel(
    search("look up a customer record"),
    call("lookup", customer="a", namespace="records"),
    lambda request: say(request.outputs[-1]),
)
