"""What fits together on the wire: an input with its history, an output with its call, reasoning with its replay.

Checks that the conversation makes before it takes or gives an item. They never change one; each error says
what to leave out or to send instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptc.errors import InvalidInput, LocalProtocolError, ReasoningNotReplayable
from ptc.events import PendingCall
from ptc.history import misfit, misfits, orphans
from ptc.items import OUTPUT_OF, call_key, item_type
from ptc.reading import unreplayable_reasoning
from ptc_tools.call import JsonObject


def check_input(items: Sequence[JsonObject], history: Sequence[JsonObject]) -> None:
    """For a service that stores nothing: all that the items speak of is there. Raises InvalidInput."""
    whole = [*history, *items]
    problems = orphans(whole) or misfits(whole)
    if problems:
        raise InvalidInput(f"the input does not hold together: {'; '.join(problems[:5])}")
    lost = unreplayable_reasoning(items)
    if lost is not None:
        raise InvalidInput(
            f"reasoning item {lost.get('id')!r} has no encrypted_content, so it cannot be replayed with "
            'store=False; leave out whole turns only, or use history="previous_response"'
        )
    if any(item_type(item) == "item_reference" for item in items):
        raise InvalidInput("item references mean nothing with store=False; give the items themselves")


def check_reasoning(output: Sequence[JsonObject]) -> None:
    """For a run that stores nothing and goes on after this. Raises ReasoningNotReplayable."""
    lost = unreplayable_reasoning(output)
    if lost is not None:
        raise ReasoningNotReplayable(
            f"reasoning item {lost.get('id')!r} came without encrypted_content, so this run cannot go on "
            'with store=False; use a deployment that returns it, or history="previous_response"',
        )


def check_answer(pending: PendingCall, item: JsonObject) -> None:
    """An output of the right type, for this call, with its caller. Raises LocalProtocolError."""
    call_id, wanted = pending.call.call_id, OUTPUT_OF[pending.kind]
    if call_key(item) != call_key(pending.item) and item_type(item) == wanted:
        raise LocalProtocolError(f"the output names another call than {call_id!r}", call_id=call_id)
    if wrong := misfit(pending.item, item):
        raise LocalProtocolError(wrong, call_id=call_id)
    absent = object()
    if wanted.endswith("_call_output") and item.get("caller", absent) != pending.item.get("caller", absent):
        raise LocalProtocolError(
            f"the output of {call_id!r} must carry the call's `caller` unchanged", call_id=call_id
        )
