"""How a run ends when the model has said its last: the events that end one, as an ending or as an error.

It is told the last event of a response. It never ends a run that still has calls to answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ptc.errors import ResponseFailed, ResponseIncomplete
from ptc.events import Failed, Finished, Incomplete, Refused
from ptc.result import RunStatus

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
                f"the service says that the response {ended} ({code or 'no code'}): {message}",
                error_code=code,
                status=status,
            )
