"""Lets the application cut a run's history between requests, and finds the cut again when the run is recovered.

It asks only where no call and no program is open and where the history is ours (wire.md, rule 10). It never
cuts anything itself, and puts back the searches that loaded tools: what the model may call stays.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import cast

from ptc.conversation import Conversation
from ptc.durable import Durable
from ptc.errors import ConfigurationError
from ptc.history import with_search_records
from ptc.loading import LoadedTools
from ptc.recording import RunRecords
from ptc.settings import Compact
from ptc_tools.call import JsonObject


async def compact_history(
    compact: Compact | None,
    conversation: Conversation,
    *,
    request: int,
    loaded: LoadedTools,
    records: RunRecords,
    durable: Durable | None,
) -> None:
    """Before request number `request`. `loaded` is told to read the history again where it was cut."""
    if compact is None or conversation.mode != "stateless" or not conversation.at_boundary:
        return
    recorded = None if durable is None else durable.past.compacted.get(request)
    if recorded is not None:
        conversation.replace_history(recorded)
        loaded.read_again()
        return
    if durable is not None and request in durable.past.sent:
        return  # it was asked then, and changed nothing
    made = compact(tuple(conversation.history))
    cut: object = await made if inspect.isawaitable(made) else made
    if isinstance(cut, (str, bytes)) or not isinstance(cut, Sequence) or not cut:
        what = "nothing" if cut is None or cut == [] or cut == () else f"a {type(cut).__name__}"
        raise ConfigurationError(f"compact= gave {what}; it gives the items that the history goes on with")
    items = with_search_records(conversation.history, cast("Sequence[JsonObject]", cut))
    if list(items) == conversation.history:
        return
    before = len(conversation.history)
    conversation.replace_history(items)
    loaded.read_again()
    if durable is not None:
        durable.note("compacted", {"request": request, "items": list(items)})
    await records.event("history.compacted", {"from": before, "to": len(conversation.history)})
