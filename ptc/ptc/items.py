"""Wire items: what each type means to the loop, and how an output item for a call is built.

Everything here works on raw dicts and knows items by their `type` alone (wire.md, rule 2). Types that no
table names are passed through; nothing here changes an item that it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ptc.errors import InvalidInput, RemoteProtocolError
from ptc_tools.call import Call, Caller, Direct, JsonObject, JsonValue, Program

OUTPUT_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "function_call": "function_call_output",
        "custom_tool_call": "custom_tool_call_output",
        "shell_call": "shell_call_output",
        "local_shell_call": "local_shell_call_output",
        "apply_patch_call": "apply_patch_call_output",
        "computer_call": "computer_call_output",
        "mcp_approval_request": "mcp_approval_response",
        "tool_search_call": "tool_search_output",
    }
)
"""The calls that the client answers, and the item that answers each (tool search in client mode only)."""

NAMED: Final = ("function_call", "custom_tool_call")
"""The calls that say which of the application's tools they mean; all others go by their type."""

_OUTPUT_TYPES: Final = frozenset(OUTPUT_OF.values())
_NEVER_SENT: Final = frozenset({"created_by", "parsed_arguments"})
_WHOLE: Final = (None, "completed")


def item_type(item: JsonObject) -> str:
    """The item's type; an item without one is an easy message, as the API has it."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message"


def call_key(item: JsonObject) -> str | None:
    """What pairs a call and its output: `call_id`, for MCP approvals the request's id, or None."""
    kind = item_type(item)
    field = "call_id"
    if kind == "mcp_approval_request":
        field = "id"
    elif kind == "mcp_approval_response":
        field = "approval_request_id"
    elif kind == "local_shell_call_output" and "call_id" not in item:
        field = "id"  # the SDK's output type names it `id`
    key = item.get(field)
    return key if isinstance(key, str) and key else None


def is_client_call(item: JsonObject) -> bool:
    """Whether the client owes an output for this item."""
    kind = item_type(item)
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    return kind in OUTPUT_OF


def is_output(item: JsonObject) -> bool:
    """Whether this item answers a call."""
    return item_type(item) in _OUTPUT_TYPES


def is_cut_off(item: JsonObject) -> bool:
    """Whether the item's own status says that its arguments are not whole.

    Shell and patch calls are legitimately `in_progress` until the client answers them.
    """
    status = item.get("status")
    if item_type(item) in NAMED:
        return status not in _WHOLE
    return status == "incomplete"


def caller_of(item: JsonObject) -> Caller:
    """Who made the call. A caller that is not understood is treated as a program that is not open."""
    caller = item.get("caller")
    if caller is None:
        return Direct()
    if isinstance(caller, dict):
        if caller.get("type") == "direct":
            return Direct()
        caller_id = caller.get("caller_id")
        if caller.get("type") == "program" and isinstance(caller_id, str):
            return Program(caller_id)
    return Program("")


def owner_of(item: JsonObject) -> str | None:
    """The call id of the program that an item belongs to, hosted items included; None for all other."""
    caller = item.get("caller")
    owner = caller.get("caller_id") if isinstance(caller, dict) else None
    return owner if isinstance(owner, str) else None


def call_of(item: JsonObject) -> Call:
    """The call that an item asks for, in the words of the one path.

    Calls other than functions and custom tools go by their item type, and their arguments are
    `{"request": the item's own fields}` (see `ptc.handlers`). Raises RemoteProtocolError without a
    call id.
    """
    kind = item_type(item)
    call_id = call_key(item)
    if call_id is None and kind == "tool_search_call":
        own = item.get("id")
        call_id = own if isinstance(own, str) else None
    if call_id is None:
        raise RemoteProtocolError(f"a {kind} item came without a call id, so that it cannot be answered")
    return _call(kind, call_id, item)


def refused_call_of(item: JsonObject) -> Call:
    """The call of an item that is refused with its response, for the record: whatever it lacks is empty."""
    return _call(item_type(item), call_key(item) or "", item)


def _call(kind: str, call_id: str, item: JsonObject) -> Call:
    namespace, name = item.get("namespace"), item.get("name")
    named = kind in NAMED
    return Call(
        call_id=call_id,
        name=kind if not named else name if isinstance(name, str) else "",
        arguments=_arguments_of(kind, item),
        caller=caller_of(item),
        namespace=namespace if named and isinstance(namespace, str) else None,
    )


def malformed(item: JsonObject) -> str | None:
    """What is wrong with a call's own fields, so that it must not run whatever it may mean; None if nothing."""
    kind = item_type(item)
    name, namespace, arguments = item.get("name"), item.get("namespace"), item.get("arguments")
    if kind in NAMED and not (isinstance(name, str) and name):
        return f"`name` is {_described(name)}: the call names no tool"
    if kind in NAMED and not isinstance(namespace, str | None):
        return f"`namespace` is {_described(namespace)}, and has to be a text"
    if kind == "function_call" and not isinstance(arguments, str | None):
        return f"`arguments` is {_described(arguments)}, and has to be a text that holds a JSON object"
    return None


def _described(value: JsonValue) -> str:
    match value:
        case None:
            return "missing"
        case "":
            return "empty"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case list():
            return "an array"
    return "a text" if isinstance(value, str) else "an object"


def _arguments_of(kind: str, item: JsonObject) -> str | JsonObject | None:
    if kind == "function_call":
        arguments = item.get("arguments")
        if arguments is None or isinstance(arguments, str):
            return arguments
        return f"({type(arguments).__name__} instead of JSON text)"  # malformed on purpose: it must not run
    if kind == "custom_tool_call":
        return {"input": item.get("input")}
    hidden = ("type", "id", "call_id", "caller", "status", "created_by")
    return {"request": {key: value for key, value in item.items() if key not in hidden}}


def for_request(item: JsonObject) -> JsonObject:
    """The item as it is sent back: the same object, without what only the service or the SDK uses."""
    if any(field in item for field in _NEVER_SENT):
        item = {key: value for key, value in item.items() if key not in _NEVER_SENT}
    content = item.get("content")
    if item_type(item) == "message" and isinstance(content, list) and any(map(_is_parsed, content)):
        item = {**item, "content": [_without_parsed(part) for part in content]}
    return item


def _is_parsed(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "output_text" and "parsed" in part


def _without_parsed(part: JsonValue) -> JsonValue:
    """A text without what the SDK's `responses.parse` made of it."""
    if not isinstance(part, dict) or not _is_parsed(part):
        return part
    return {key: value for key, value in part.items() if key != "parsed"}


def output_item(call_item: JsonObject, output: JsonValue) -> JsonObject:
    """An output for a function or custom call, with the caller exactly as it came (wire.md, rule 3)."""
    kind = item_type(call_item)
    item: JsonObject = {"type": OUTPUT_OF[kind], "call_id": call_item.get("call_id"), "output": output}
    return with_caller(item, call_item)


def with_caller(item: JsonObject, call_item: JsonObject) -> JsonObject:
    """Adds the call's `caller`: null stays null, unknown fields stay, absent stays absent."""
    if "caller" in call_item:
        item["caller"] = call_item["caller"]
    return item


def user_message(text: str) -> JsonObject:
    return {"type": "message", "role": "user", "content": text}


def as_items(value: object) -> list[JsonObject]:
    """The wire items of an input: a text, one item, or a sequence of items (dicts, or objects of the SDK).

    SDK objects are taken by `to_dict()`, which equals the wire; `model_dump` does not. Raises InvalidInput.
    """
    if isinstance(value, str):
        return [user_message(value)]
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return [_as_item(value)]
    if isinstance(value, (list, tuple)):
        return [_as_item(part) for part in value]
    raise InvalidInput(
        f"the input is a {type(value).__name__}; give a text, or a list of wire items "
        '(dicts such as {"role": "user", "content": "…"})'
    )


def _as_item(value: object) -> JsonObject:
    if isinstance(value, str):
        return user_message(value)
    to_dict = getattr(value, "to_dict", None)
    item = to_dict() if callable(to_dict) else value
    if not isinstance(item, Mapping) or not all(isinstance(key, str) for key in item):
        raise InvalidInput(f"an input item is a {type(value).__name__}, not a dict with text keys")
    if "type" not in item and "role" not in item:
        raise InvalidInput("an input item has neither `type` nor `role`; give wire items")
    return dict(item)
