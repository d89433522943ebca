"""What of a history's search records is sent again: definitions that are today's, and no other.

The history itself is never changed: a definition that was removed or that changed is left out of the request
alone. Where the service keeps the history, a definition that changed under its name cannot be left out; then
the whole is sent again, or the run ends. Nothing is added to what the service sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ptc.conversation import Conversation
from ptc.definitions import Key
from ptc.errors import HistoryNotReplayable
from ptc.items import for_request, item_type
from ptc.loading import LoadedTools
from ptc.toolbox import Step
from ptc_tools.call import JsonObject, JsonValue

Encode: TypeAlias = Callable[[JsonObject], JsonObject]
_Record: TypeAlias = tuple[int, Key]


class Replay:
    """The replay of one run's history, request by request."""

    def __init__(self, conversation: Conversation, loaded: LoadedTools) -> None:
        self._conversation = conversation
        self._loaded = loaded
        self._withheld: set[_Record] = set()

    def encode(self, step: Step) -> Encode:
        """How the items of the next request are written. Raises HistoryNotReplayable."""
        if step.deferral is None:
            return for_request
        stale = self._stale(step)
        self._send_whole_where_needed(stale)
        gone = {id(self._conversation.history[at]): set[Key]() for at, _ in stale}
        for at, key in stale:
            gone[id(self._conversation.history[at])].add(key)

        def encode(item: JsonObject) -> JsonObject:
            sent = for_request(item)
            left_out = gone.get(id(item))
            return (
                sent if left_out is None else {**sent, "tools": _without(sent.get("tools"), left_out, None)}
            )

        return encode

    def _stale(self, step: Step) -> dict[_Record, bool]:
        """The loadings that are not today's, by place and key, and whether the tool still has its name.

        One that an open program could call stays: its tools are sent on every continuation (rule 11).
        """
        starts = [self._loaded.program_start(program) for program in self._conversation.open_programs]
        needed_before = max((start for start in starts if start is not None), default=-1)
        stale: dict[_Record, bool] = {}
        for key, loading in self._loaded.loadings():
            item = self._conversation.history[loading.at]
            if item_type(item) != "tool_search_output" or loading.at < needed_before:
                continue
            today = step.deferral.definition(key) if step.deferral is not None else None
            if not loading.is_todays(today):
                stale[loading.at, key] = today is not None
        return stale

    def _send_whole_where_needed(self, stale: dict[_Record, bool]) -> None:
        conversation = self._conversation
        held = conversation.held_items
        changed = {record for record, kept in stale.items() if kept and record[0] < held}
        if not changed - self._withheld:
            return
        if not conversation.forget_server_state():
            names = ", ".join(sorted(".".join(filter(None, key)) for _, key in changed - self._withheld))
            raise HistoryNotReplayable(
                f"the service keeps this history with an older definition of {names}, and cannot be told that it"
                ' changed; start a new conversation, or keep the history here (history="stateless")'
            )
        self._withheld = set(stale)


def _without(definitions: JsonValue, left_out: set[Key], namespace: str | None) -> list[JsonValue]:
    kept: list[JsonValue] = []
    for definition in definitions if isinstance(definitions, list) else []:
        name = definition.get("name") if isinstance(definition, dict) else None
        if isinstance(definition, dict) and definition.get("type") == "namespace" and isinstance(name, str):
            inner = _without(definition.get("tools"), left_out, name)
            if inner:
                kept.append({**definition, "tools": inner})
        elif not isinstance(name, str) or (namespace, name) not in left_out:
            kept.append(definition)
    return kept
