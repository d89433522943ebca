"""What the embedded peer's model says in the four samples of this folder. With an account it is not used."""

from ptc.testing import ModelRequest, Part, ScriptedModel, call, reason, say


def try_to_update(request: ModelRequest) -> Part:
    """The model calls what it was told of; while the gate is shut it can only read."""
    if request.has_tool("update_ticket"):
        return call("update_ticket", ticket_id="T-7", status="closed")
    return call("read_ticket", ticket_id="T-7")


loader_tool = ScriptedModel(
    [reason("I need weather tools."), call("load_tools", topic="weather")],
    lambda request: call("forecast", city="Oslo") if request.has_tool("forecast") else say("No tool for it."),
    lambda request: say(f"Oslo: {request.output_of('forecast')['summary']}."),
)

gate = ScriptedModel(
    try_to_update,
    try_to_update,
    lambda request: say(f"Done: {request.output_of('update_ticket')}."),
)

argument_check = ScriptedModel(
    call("refund", order_id="A-1", amount_cents=250_000),
    lambda request: call("refund", order_id="A-1", amount_cents=5_000),
    lambda request: say(f"Refunded {request.output_of('refund')['refunded_cents'] / 100:.2f}."),
)

forced_first_call = ScriptedModel(
    lambda request: call(request.tool_choice["name"], topic="returns"),
    lambda request: say(f"Our policy: {request.output_of('look_up_policy')}"),
)
