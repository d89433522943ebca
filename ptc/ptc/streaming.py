"""A streamed response, sans-I/O: wire events in, deltas out, and at the end the response that they came to.

Programs have no events of their own; they arrive as items (wire.md, rule 17). The item of
`output_item.done` is the one that is replayed. A stream that ends without its last event, or with a hole
in it, is a ResponseCut, never half a response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from ptc.errors import EndpointError, RateLimited, ResponseCut, ServerFailed
from ptc.providers.failures import words_of
from ptc_tools.call import JsonObject

_ENDS: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a message. `phase` as the message has it: only `final_answer` and None are the answer."""

    text: str
    phase: str | None = None
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of a refusal."""

    text: str
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of a reasoning summary."""

    text: str
    item_id: str | None = None


Delta: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta


class StreamReader:
    """Feed it events in order; `response()` gives the whole once the last one came."""

    def __init__(self) -> None:
        self._done: dict[int, JsonObject] = {}
        self._phases: dict[int, str | None] = {}
        self._last: JsonObject | None = None

    @property
    def ended(self) -> bool:
        return self._last is not None

    def feed(self, event: JsonObject) -> Delta | None:
        """Takes one event. Raises EndpointError for an error event, ResponseCut for a broken one."""
        kind = event.get("type")
        if not isinstance(kind, str):
            return None
        if kind == "response.output_item.done":
            if self._done.setdefault(_index(event), item := _item(event)) != item:
                raise ResponseCut("the stream gave two items for one place in the output")
        elif kind == "response.output_item.added":
            phase = _item(event).get("phase")
            self._phases[_index(event)] = phase if isinstance(phase, str) else None
        elif kind == "error":
            raise _error_of(event, begun=bool(self._phases or self._done))
        elif kind in _ENDS:
            response = event.get("response")
            if not isinstance(response, dict):
                raise ResponseCut(f"the stream's {kind} came without its response")
            ended = kind.removeprefix("response.")
            if ended != "completed" and response.get("status") in (None, "completed"):
                response = {**response, "status": ended}  # the event says how it ended: nothing may run
            self._last = response
        elif kind.endswith(".delta"):
            return self._delta(kind, event)
        return None

    def response(self) -> JsonObject:
        """The response, its output made of the done items. Raises ResponseCut when the stream was cut."""
        if self._last is None:
            raise ResponseCut(
                "the stream ended without its last event; whether the service finished is unknown"
            )
        given = self._last.get("output")
        listed = given if isinstance(given, list) else []
        count = max(len(listed), max(self._done, default=-1) + 1)
        output = [self._done.get(i, listed[i] if i < len(listed) else None) for i in range(count)]
        if any(item is None for item in output):
            raise ResponseCut("the stream lost an item: its place is known and its content is not")
        return {**self._last, "output": output}

    def _delta(self, kind: str, event: JsonObject) -> Delta | None:
        text, item_id = event.get("delta"), event.get("item_id")
        name = item_id if isinstance(item_id, str) else None
        if not isinstance(text, str):
            return None
        if kind == "response.output_text.delta":
            index = event.get("output_index")
            return TextDelta(text, self._phases.get(index) if isinstance(index, int) else None, name)
        if kind == "response.refusal.delta":
            return RefusalDelta(text, name)
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            return ReasoningDelta(text, name)
        return None


def _index(event: JsonObject) -> int:
    index = event.get("output_index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < 100_000:
        raise ResponseCut("a stream event names no place in the output")
    return index


def _item(event: JsonObject) -> JsonObject:
    item = event.get("item")
    if not isinstance(item, dict):
        raise ResponseCut("a stream event came without its item")
    return item


def _error_of(event: JsonObject, *, begun: bool) -> EndpointError:
    """The error of an error event. Once the model has begun, even a rate limit is ambiguous."""
    inner = event.get("error")
    source = inner if isinstance(inner, dict) else event
    code = source.get("code") or source.get("type")
    message = f"the service failed while it streamed: {words_of(source.get('message'))}"
    if code in ("rate_limit_exceeded", "too_many_requests") and not begun:
        return RateLimited(message, error_code=str(code))
    return ServerFailed(message, error_code=str(code) if code else None)
