"""Responses and conversations that the peer keeps, for `previous_response_id`, `conversation` and polling.

All of it is in memory and bounded; a peer that is restarted has forgotten it, and says so as the service
does for what it does not know.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptc.gateway.rejection import Rejected, invalid
from ptc_tools.call import JsonObject

_CAPACITY = 1000


@dataclass(slots=True)
class StoredResponse:
    """One response; `context` is all that the model had read and said when it ended."""

    response: JsonObject
    input_items: tuple[JsonObject, ...] = ()
    context: tuple[JsonObject, ...] = ()
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class StoredConversation:
    """A conversation: its items, and whether a response is being made in it now."""

    conversation: JsonObject
    items: tuple[JsonObject, ...] = ()
    busy: bool = False


@dataclass(slots=True)
class Store:
    """Everything that one peer keeps. The oldest goes first."""

    responses: OrderedDict[str, StoredResponse] = field(default_factory=OrderedDict)
    conversations: OrderedDict[str, StoredConversation] = field(default_factory=OrderedDict)

    def keep(self, entry: StoredResponse) -> None:
        self.responses[str(entry.response["id"])] = entry
        while len(self.responses) > _CAPACITY:
            _, oldest = self.responses.popitem(last=False)
            if oldest.task is not None:
                oldest.task.cancel()

    def keep_conversation(self, entry: StoredConversation) -> None:
        self.conversations[str(entry.conversation["id"])] = entry
        while len(self.conversations) > _CAPACITY:
            self.conversations.popitem(last=False)

    def response(self, response_id: str) -> StoredResponse:
        entry = self.responses.get(response_id)
        if entry is None:
            raise Rejected(f"Response with id '{response_id}' not found.", status=404, param="response_id")
        return entry

    def previous(self, response_id: str) -> StoredResponse:
        """What a new response goes on from; it must have ended."""
        entry = self.responses.get(response_id)
        if entry is None:
            raise invalid(
                "previous_response_id",
                f"Previous response with id '{response_id}' not found.",
                "previous_response_not_found",
            )
        if entry.response["status"] in ("queued", "in_progress"):
            raise invalid("previous_response_id", f"Previous response '{response_id}' is still in progress.")
        return entry

    def conversation(self, conversation_id: str) -> StoredConversation:
        entry = self.conversations.get(conversation_id)
        if entry is None:
            raise Rejected(
                f"Conversation with id '{conversation_id}' not found.", status=404, param="conversation"
            )
        return entry

    def items(self) -> Iterator[JsonObject]:
        """Every item that is kept, for references by id."""
        for response in self.responses.values():
            yield from response.context
        for conversation in self.conversations.values():
            yield from conversation.items

    def find_item(self, item_id: str) -> JsonObject | None:
        return next((item for item in self.items() if item.get("id") == item_id), None)
