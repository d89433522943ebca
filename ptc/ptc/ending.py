"""How a run ends when the model has said its last: the events that end one, as an ending or as an error.

It is told the last event of a response. It never ends a run that still has calls to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ptc.conversation import Conversation
from ptc.errors import ResponseFailed, ResponseIncomplete, RunError
from ptc.events import Failed, Finished, Incomplete, Refused
from ptc.providers.failures import words_of
from ptc.result import RunStatus
from ptc_tools.call import JsonObject

Last: TypeAlias = "Finished | Refused | Incomplete | Failed"


@dataclass(frozen=True, slots=True)
class Ending:
    """What the result will say."""

    status: RunStatus
    text: str
    refusal: str | None = None
    incomplete_reason: str | None = None


def ending_of(event: Last) -> Ending:
    """Raises ResponseIncomplete and ResponseFailed for a response that gave no answer."""
    match event:
        case Finished(text, reason):
            return Ending("completed", text, incomplete_reason=reason)
        case Refused(refusal, text):
            return Ending("refused", text, refusal=refusal)
        case Incomplete(reason, text):
            raise ResponseIncomplete(
                f"the response was cut short ({reason or 'no reason given'}) before an answer, and none "
                "of its calls ran; raise max_output_tokens, or ask for less at once",
                reason=reason,
                partial_text=text,
            )
        case Failed(status, code, message):
            ended = "was cancelled" if status == "cancelled" else status
            raise ResponseFailed(
                f"the service says that the response {ended} ({code or 'no code'}): {words_of(message)}",
                error_code=code,
                status=status,
            )


def tell_transcript(error: RunError, conversation: Conversation, refused: Sequence[JsonObject]) -> None:
    """Tells the error what was said, and where a service that keeps the history has to be gone on from.

    `refused`: the items of a last response that was not taken, with their outputs.
    """
    error.items = (*conversation.history, *conversation.answers.values(), *refused)
    error.unsent = conversation.unsent
    error.response_id = conversation.previous_response_id
