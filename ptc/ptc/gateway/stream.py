"""A response as the server-sent events of the Responses API, and their text. Sans-I/O.

There is no event for programs: they arrive as items, and only the item of `output_item.done` is whole
(wire.md, rule 17).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue

_DELTA_CHARACTERS = 16
_ENDINGS = {"incomplete": "response.incomplete", "failed": "response.failed"}
_BARE: Mapping[str, Mapping[str, JsonValue]] = {
    "message": {"content": [], "status": "in_progress"},
    "reasoning": {"summary": []},
    "program": {"code": "", "fingerprint": ""},
    "program_output": {"result": "", "status": "incomplete"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "custom_tool_call": {"input": ""},
}
"""What of an item is not there yet when it is added."""


def response_events(opened: JsonObject, done: JsonObject) -> Iterator[JsonObject]:
    """All events of a response: `opened` is it without output, `done` with it."""
    for number, event in enumerate(_events(opened, done)):
        yield {"type": event["type"], "sequence_number": number, **event}


def encode(event: JsonObject) -> bytes:
    """One event as it goes over the wire."""
    return f"event: {event['type']}\ndata: {strict_json.dumps(event)}\n\n".encode()


def _events(opened: JsonObject, done: JsonObject) -> Iterator[JsonObject]:
    started: JsonObject = {**opened, "status": "in_progress"}
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    output = done["output"]
    assert isinstance(output, list)
    for index, item in enumerate(output):
        assert isinstance(item, dict)
        place: JsonObject = {"output_index": index}
        added = {**item, **_BARE.get(str(item["type"]), {})}
        yield {"type": "response.output_item.added", **place, "item": added}
        yield from _inside(item, {"item_id": item.get("id", ""), **place})
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": _ENDINGS.get(str(done["status"]), "response.completed"), "response": done}


def _inside(item: JsonObject, place: JsonObject) -> Iterator[JsonObject]:
    match item["type"]:
        case "message":
            yield from _content(item["content"], place)
        case "reasoning":
            yield from _summary(item["summary"], place)
        case "function_call":
            yield from _text("response.function_call_arguments", "arguments", item["arguments"], place)
        case "custom_tool_call":
            yield from _text("response.custom_tool_call_input", "input", item["input"], place)


def _content(content: JsonValue, place: JsonObject) -> Iterator[JsonObject]:
    assert isinstance(content, list)
    for index, part in enumerate(content):
        assert isinstance(part, dict)
        where: JsonObject = {**place, "content_index": index}
        refusal = part["type"] == "refusal"
        name = "refusal" if refusal else "text"
        yield {"type": "response.content_part.added", **where, "part": {**part, name: ""}}
        extra: JsonObject = {} if refusal else {"logprobs": []}
        kind = "response.refusal" if refusal else "response.output_text"
        yield from _text(kind, name, part[name], {**where, **extra})
        yield {"type": "response.content_part.done", **where, "part": part}


def _summary(summary: JsonValue, place: JsonObject) -> Iterator[JsonObject]:
    assert isinstance(summary, list)
    for index, part in enumerate(summary):
        assert isinstance(part, dict)
        where: JsonObject = {**place, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        yield from _text("response.reasoning_summary_text", "text", part["text"], where)
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _text(kind: str, name: str, text: JsonValue, place: JsonObject) -> Iterator[JsonObject]:
    assert isinstance(text, str)
    for start in range(0, len(text), _DELTA_CHARACTERS):
        yield {"type": f"{kind}.delta", **place, "delta": text[start : start + _DELTA_CHARACTERS]}
    yield {"type": f"{kind}.done", **place, name: text}
