"""A request body, checked field by field, and the response object that goes back for it.

What the items of the input mean together is `history`'s concern; this module knows the request alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from ptc.gateway.definitions import PROGRAMS, ToolSet, read_tool_choice, read_tools
from ptc.gateway.engine import Reply
from ptc.gateway.rejection import Rejected, invalid, invalid_value, missing_parameter
from ptc.gateway.shapes import REQUEST, check_fields
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue

_INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_MAX_METADATA = 16
_MIN_OUTPUT_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Request:
    """A body in order. `items` is the new input alone, `body` the whole as it was sent."""

    body: JsonObject
    model: str
    items: tuple[JsonValue, ...]
    tools: ToolSet
    store: bool
    stream: bool
    background: bool
    previous_response_id: str | None
    conversation_id: str | None

    @property
    def instructions(self) -> str | None:
        text = self.body.get("instructions")
        return text if isinstance(text, str) else None

    @property
    def wire_tools(self) -> tuple[JsonObject, ...]:
        tools = self.body.get("tools")
        return tuple(tool for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else ()

    @property
    def encrypt_reasoning(self) -> bool:
        include = self.body.get("include")
        return isinstance(include, list) and "reasoning.encrypted_content" in include


def read_request(
    body: JsonValue, *, programs_supported: bool = True, tool_search_supported: bool = True
) -> Request:
    """Raises `Rejected` for the first field that is wrong."""
    if not isinstance(body, dict):
        raise Rejected("We could not parse the JSON body of your request: expected an object.")
    check_fields(body, REQUEST, "")
    model = str(body["model"])
    if not model:
        raise invalid("model", "Invalid 'model': empty string.")
    tools = read_tools(body.get("tools"))
    if tools.programs and not programs_supported:
        raise invalid("tools", f"Hosted tool '{PROGRAMS}' is not supported with {model}.", "unsupported_tool")
    if tools.search is not None and not tool_search_supported:
        raise invalid(
            "tools", f"Hosted tool 'tool_search' is not supported with {model}.", "unsupported_tool"
        )
    read_tool_choice(body.get("tool_choice"), tools)
    _check_numbers(body)
    _check_metadata(body.get("metadata"))
    _check_include(body.get("include"))
    store = body.get("store") is not False
    background = body.get("background") is True
    if background and not store:
        raise invalid("background", "Background mode requires 'store' to be true.")
    previous = body.get("previous_response_id")
    conversation = _conversation_id(body.get("conversation"))
    if previous is not None and conversation is not None:
        raise invalid(
            "previous_response_id",
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
        )
    return Request(
        body=body,
        model=model,
        items=_items(body, stateful=previous is not None or conversation is not None),
        tools=tools,
        store=store,
        stream=body.get("stream") is True,
        background=background,
        previous_response_id=str(previous) if previous is not None else None,
        conversation_id=conversation,
    )


def response_object(request: Request, response_id: str, created_at: int, status: str) -> JsonObject:
    """The response as it is before it has output. `created_at`: Unix time in seconds."""
    body = request.body
    conversation: JsonValue = {"id": request.conversation_id} if request.conversation_id else None
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": status,
        "background": request.background,
        "conversation": conversation,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "model": request.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": request.previous_response_id,
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "store": request.store,
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "metadata": body.get("metadata") or {},
    }


def finish(response: JsonObject, reply: Reply, context: Sequence[JsonObject], now: int) -> JsonObject:
    """The response with its output, its usage and how it ended."""
    done: JsonObject = {**response, "status": reply.status, "output": list(reply.items)}
    if reply.status == "completed":
        done["completed_at"] = now
    if reply.incomplete_reason is not None:
        done["incomplete_details"] = {"reason": reply.incomplete_reason}
    if reply.error is not None:
        done["error"] = reply.error
    done["usage"] = _usage(response, context, reply.items)
    return done


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(24)}"


def _usage(response: JsonObject, context: Sequence[JsonObject], output: Sequence[JsonObject]) -> JsonObject:
    """A count in the way of the service's, by size: there is no model, and so there are no tokens."""
    read = _tokens([*context]) + _tokens(response["tools"]) + _tokens(response["instructions"])
    written = _tokens([*output])
    reasoning = _tokens([item for item in output if item.get("type") == "reasoning"])
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": read + written,
    }


def _tokens(value: object) -> int:
    return 0 if not value else -(-len(strict_json.dumps(value)) // 4)


def _items(body: JsonObject, *, stateful: bool) -> tuple[JsonValue, ...]:
    value = body.get("input")
    if isinstance(value, str):
        return ({"type": "message", "role": "user", "content": value},)
    if isinstance(value, list) and (value or stateful):
        return tuple(value)
    if value is None and (stateful or body.get("prompt") is not None):
        return ()
    if value is None:
        raise missing_parameter("input")
    raise invalid("input", "Invalid 'input': empty array. Expected an array with minimum length 1.")


def _conversation_id(value: JsonValue) -> str | None:
    if isinstance(value, dict):
        value = value.get("id")
        if not isinstance(value, str):
            raise missing_parameter("conversation.id")
    return value if isinstance(value, str) else None


def _check_numbers(body: JsonObject) -> None:
    for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("top_logprobs", 0, 20)):
        value = body.get(name)
        if isinstance(value, int | float) and not low <= value <= high:
            raise invalid(name, f"Invalid '{name}': expected a value from {low} to {high}, got {value}.")
    for name, low in (("max_output_tokens", _MIN_OUTPUT_TOKENS), ("max_tool_calls", 1)):
        value = body.get(name)
        if isinstance(value, int) and value < low:
            raise invalid(
                name,
                f"Invalid '{name}': integer below minimum value. Expected a value >= {low}, but got {value} "
                "instead.",
                "integer_below_min_value",
            )


def _check_metadata(value: JsonValue) -> None:
    if not isinstance(value, dict):
        return
    if len(value) > _MAX_METADATA:
        raise invalid("metadata", f"Invalid 'metadata': more than {_MAX_METADATA} pairs.")
    for key, text in value.items():
        if not isinstance(text, str) or len(key) > 64 or len(text) > 512:
            raise invalid(
                f"metadata.{key}", "Invalid 'metadata': keys of up to 64 and texts of up to 512 characters."
            )


def _check_include(value: JsonValue) -> None:
    for index, name in enumerate(value if isinstance(value, list) else ()):
        if name not in _INCLUDABLE:
            raise invalid_value(f"include[{index}]", name, _INCLUDABLE)
