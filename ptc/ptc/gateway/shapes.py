"""The fields of a request and of each item and tool definition, as one table, and the check against it.

The table follows the input types of `openai` 3.57 (a test compares the two). A field that is not in it is
refused, as the service does; what an item's fields *mean together* is `history`'s and `definitions`' concern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ptc.gateway.rejection import (
    invalid,
    invalid_type,
    invalid_value,
    missing_parameter,
    unknown_parameter,
)
from ptc_tools.call import JsonObject, JsonValue

_EXPECTED = MappingProxyType(
    {
        "str": "a string",
        "obj": "an object",
        "arr": "an array",
        "bool": "a boolean",
        "int": "an integer",
        "num": "a number",
        "strs": "an array of strings",
        "text": "a string or an array",
        "ref": "a string or an object",
    }
)
_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "status": ("in_progress", "completed", "incomplete"),
        "phase": ("commentary", "final_answer"),
        "execution": ("server", "client"),
        "ended": ("completed", "incomplete"),
        "role": ("user", "assistant", "system", "developer"),
        "developer": ("developer",),
        "truncation": ("auto", "disabled"),
    }
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its kind (a JSON type, or a word list), and whether it is required and may be null."""

    kind: str
    required: bool
    nullable: bool


Shape = Mapping[str, Field]


def _shape(text: str) -> Shape:
    """Read `name:kind` (required), `name:kind|null` (required, may be null), `name?:kind` (optional)."""
    fields: dict[str, Field] = {}
    for word in text.split():
        name, kind = word.split(":")
        required = not name.endswith("?")
        nullable = not required or kind.endswith("|null")
        fields[name.rstrip("?")] = Field(kind.removesuffix("|null"), required, nullable)
    return MappingProxyType(fields)


def _shapes(table: Mapping[str, str]) -> Mapping[str, Shape]:
    return MappingProxyType({name: _shape("type:str " + text) for name, text in table.items()})


REQUEST: Shape = _shape(
    """model:str input?:text instructions?:str tools?:arr tool_choice?:ref parallel_tool_calls?:bool
    store?:bool stream?:bool stream_options?:obj background?:bool background_options?:obj include?:strs
    previous_response_id?:str conversation?:ref max_output_tokens?:int max_tool_calls?:int metadata?:obj
    temperature?:num top_p?:num top_logprobs?:int text?:obj reasoning?:obj truncation?:truncation
    service_tier?:str safety_identifier?:str prompt_cache_key?:str prompt_cache_retention?:str
    prompt_cache_options?:obj prompt?:obj user?:str access_programs?:obj context_management?:arr
    image?:obj moderation?:obj"""
)

# `caller` on hosted items arrives as a field that the SDK's types do not have yet (a public report has it).
ITEMS: Mapping[str, Shape] = _shapes(
    {
        "message": "role:role content:text id?:str status?:status phase?:phase",
        "reasoning": "id:str summary:arr content?:arr encrypted_content?:str status?:status",
        "program": "id:str call_id:str code:str fingerprint:str",
        "program_output": "id:str call_id:str result:str status:ended",
        "function_call": """call_id:str name:str arguments:str id?:str status?:status namespace?:str
            async?:bool caller?:obj""",
        "function_call_output": """call_id:str output:text id?:str status?:status name?:str namespace?:str
            caller?:obj""",
        "custom_tool_call": """call_id:str name:str input:str id?:str namespace?:str async?:bool caller?:obj
            status?:status""",
        "custom_tool_call_output": "call_id:str output:text id?:str caller?:obj status?:status",
        "shell_call": "call_id:str action:obj id?:str status?:status environment?:obj caller?:obj",
        "shell_call_output": """call_id:str output:arr id?:str status?:status max_output_length?:int
            caller?:obj""",
        "apply_patch_call": "call_id:str operation:obj status:status id?:str caller?:obj",
        "apply_patch_call_output": "call_id:str status:str output?:str id?:str caller?:obj",
        "local_shell_call": "id:str call_id:str action:obj status:status",
        "local_shell_call_output": "id:str output:str status?:status",
        "computer_call": """id:str call_id:str pending_safety_checks:arr status:status action?:obj
            actions?:arr""",
        "computer_call_output": """call_id:str output:obj id?:str status?:status
            acknowledged_safety_checks?:arr""",
        "mcp_list_tools": "id:str server_label:str tools:arr error?:str caller?:obj",
        "mcp_approval_request": "id:str server_label:str name:str arguments:str caller?:obj",
        "mcp_approval_response": "approval_request_id:str approve:bool id?:str reason?:str",
        "mcp_call": """id:str server_label:str name:str arguments:str status?:str output?:str error?:any
            approval_request_id?:str caller?:obj""",
        "tool_search_call": "arguments:any id?:str call_id?:str execution?:execution status?:status",
        "tool_search_output": "tools:arr id?:str call_id?:str execution?:execution status?:status",
        "additional_tools": "role:developer tools:arr id?:str",
        "configuration_update": "id?:str reasoning?:obj text?:obj",
        "compaction": "encrypted_content:str id?:str",
        "compaction_trigger": "id?:str",
        "item_reference": "id:str",
        "file_search_call": "id:str queries:strs status:str results?:arr",
        "web_search_call": "id:str action:obj status:str",
        "code_interpreter_call": """id:str code:str|null container_id:str outputs:arr|null status:str
            caller?:obj""",
        "image_generation_call": """id:str result:str|null status:str action?:str background?:str error?:obj
            output_format?:str quality?:str revised_prompt?:str size?:str svg_usage?:obj""",
    }
)

_WEB_SEARCH = "external_web_access?:bool filters?:obj search_context_size?:str user_location?:obj"
_WEB_PREVIEW = "search_content_types?:strs search_context_size?:str user_location?:obj"
TOOLS: Mapping[str, Shape] = _shapes(
    {
        "function": """name:str parameters:obj|null strict?:bool description?:str output_schema?:obj
            allowed_callers?:strs defer_loading?:bool async?:bool""",
        "custom": """name:str description?:str format?:obj allowed_callers?:strs defer_loading?:bool
            async?:bool""",
        "namespace": "name:str description:str tools:arr",
        "programmatic_tool_calling": "",
        "tool_search": "execution?:execution description?:str parameters?:any",
        "mcp": """server_label:str server_url?:str connector_id?:str tunnel_id?:str authorization?:str
            headers?:obj allowed_tools?:any require_approval?:any server_description?:str
            allowed_callers?:strs defer_loading?:bool""",
        "code_interpreter": "container:ref allowed_callers?:strs",
        "shell": "environment?:obj allowed_callers?:strs",
        "apply_patch": "allowed_callers?:strs",
        "local_shell": "",
        "computer": "",
        "computer_use_preview": "display_height:int display_width:int environment:str",
        "file_search": "vector_store_ids:strs filters?:obj max_num_results?:int ranking_options?:obj",
        "web_search": _WEB_SEARCH,
        "web_search_2025_08_26": _WEB_SEARCH,
        "web_search_preview": _WEB_PREVIEW,
        "web_search_preview_2025_03_11": _WEB_PREVIEW,
        "image_generation": """action?:str background?:str complexity?:str frame_count?:int
            frame_duration_ms?:int input_fidelity?:str input_image_mask?:obj model?:str moderation?:str
            output_compression?:int output_format?:str partial_images?:int quality?:str size?:str svg?:obj""",
    }
)

TOOL_CHOICES: Mapping[str, Shape] = _shapes(
    {
        "allowed_tools": "mode:str tools:arr",
        "function": "name:str",
        "custom": "name:str",
        "mcp": "server_label:str name?:str",
        "programmatic_tool_calling": "",
        "apply_patch": "",
        "shell": "",
        "file_search": "",
        "web_search_preview": "",
        "web_search_preview_2025_03_11": "",
        "computer": "",
        "computer_use_preview": "",
        "computer_use": "",
        "image_generation": "",
        "code_interpreter": "",
    }
)

CONTENT: Mapping[str, Shape] = _shapes(
    {
        "output_text": "text:str annotations?:arr logprobs?:arr",
        "refusal": "refusal:str",
        "input_text": "text:str prompt_cache_breakpoint?:obj",
        "input_image": "detail?:str image_url?:str file_id?:str prompt_cache_breakpoint?:obj",
        "input_file": """file_data?:str file_id?:str file_url?:str filename?:str detail?:str
            prompt_cache_breakpoint?:obj""",
    }
)
INPUT_CONTENT = ("input_text", "input_image", "input_file")
OUTPUT_CONTENT = ("output_text", "refusal")

_PROGRAM_CALLER = _shape("type:str caller_id:str")


def check_fields(value: Mapping[str, JsonValue], shape: Shape, path: str) -> None:
    """Raise `Rejected` unless `value` has exactly the fields of `shape`, each of its kind."""
    prefix = f"{path}." if path else ""
    for name in value:
        if name not in shape:
            raise unknown_parameter(prefix + name)
    for name, field in shape.items():
        if name in value:
            _check_kind(value[name], field, prefix + name)
        elif field.required:
            raise missing_parameter(prefix + name)


def check_caller(caller: JsonValue, path: str, *, extra_fields_are_ours: bool = False) -> None:
    """Raise `Rejected` unless this is null, `{"type": "direct"}` or a program's `caller`.

    Fields that we do not know are let through only where the whole item is known to be the peer's own.
    """
    if caller is None:
        return
    if not isinstance(caller, dict):
        raise invalid_type(path, "an object", caller)
    kind = caller.get("type")
    if kind is None:
        raise missing_parameter(f"{path}.type")
    if kind not in ("direct", "program"):
        raise invalid_value(f"{path}.type", kind, ("direct", "program"))
    known = {"type"} if kind == "direct" else {"type", "caller_id"}
    unknown = [name for name in caller if name not in known]
    if unknown and not extra_fields_are_ours:
        raise unknown_parameter(f"{path}.{unknown[0]}")
    if kind == "program":
        check_fields({name: caller[name] for name in caller if name in known}, _PROGRAM_CALLER, path)


def check_content(content: JsonValue, allowed: tuple[str, ...], path: str) -> None:
    """Raise `Rejected` unless this is text or an array of content parts of the allowed types."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise invalid_type(path, "a string or an array", content)
    for index, part in enumerate(content):
        where = f"{path}[{index}]"
        body = as_object(part, where)
        kind = typed(body, where)
        if kind not in allowed:
            raise invalid_value(f"{where}.type", kind, allowed)
        check_fields(body, CONTENT[kind], where)


def as_object(value: JsonValue, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise invalid_type(path, "an object", value)
    return value


def typed(value: Mapping[str, JsonValue], path: str) -> str:
    """The `type` of an object that must have one."""
    if "type" not in value:
        raise missing_parameter(f"{path}.type")
    kind = value["type"]
    if not isinstance(kind, str):
        raise invalid_type(f"{path}.type", "a string", kind)
    return kind


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


def check_name(name: JsonValue, path: str) -> None:
    if not isinstance(name, str) or not NAME.match(name):
        raise invalid(
            path,
            f"Invalid '{path}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]{1,64}$'.",
        )


def _check_kind(value: JsonValue, field: Field, path: str) -> None:
    if value is None and field.nullable:
        return
    kind = field.kind
    words = _WORDS.get(kind)
    if words is not None:
        if not isinstance(value, str):
            raise invalid_type(path, "a string", value)
        if value not in words:
            raise invalid_value(path, value, words)
    elif not _is_kind(value, kind):
        raise invalid_type(path, _EXPECTED[kind], value)


def _is_kind(value: JsonValue, kind: str) -> bool:
    match kind:
        case "any":
            return True
        case "str":
            return isinstance(value, str)
        case "obj":
            return isinstance(value, dict)
        case "arr":
            return isinstance(value, list)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "num":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "strs":
            return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        case "text":
            return isinstance(value, str | list)
        case "ref":
            return isinstance(value, str | dict)
    raise AssertionError(kind)
