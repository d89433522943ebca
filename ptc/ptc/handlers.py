"""Calls other than functions that the client answers: custom tools, shell, patches, MCP approvals, search.

The application registers a handler together with the definition that the model sees. Each becomes a tool on
the one path, so that it is authorised, bounded and audited like every other call. There is no default
handler: what has none is answered with an error, never with a made-up result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.contract import Effects
from ptc_tools.errors import RegistrationError
from ptc_tools.tool import AnyTool, define_tool

ANSWERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "custom": "custom_tool_call",
        "shell": "shell_call",
        "local_shell": "local_shell_call",
        "apply_patch": "apply_patch_call",
        "computer": "computer_call",
        "computer_use_preview": "computer_call",
        "mcp": "mcp_approval_request",
        "tool_search": "tool_search_call",
    }
)
"""Type of a tool definition, and the type of the items that a handler for it answers."""

_TEXT: Final[JsonObject] = {"type": "string"}
_SHELL_PART: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "stdout": _TEXT,
        "stderr": _TEXT,
        "outcome": {"type": "object", "properties": {"type": _TEXT}, "required": ["type"]},
    },
    "required": ["stdout", "stderr", "outcome"],
}
_SCREENSHOT: Final[JsonObject] = {
    "type": "object",
    "properties": {"type": {"const": "computer_screenshot"}},
    "required": ["type"],
}
_RESULTS: Final[Mapping[str, JsonObject]] = MappingProxyType(
    {
        "shell_call": {"if": {"type": "array"}, "then": {"items": _SHELL_PART}},
        "tool_search_call": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": _TEXT}, "required": ["type"]},
        },
        "computer_call": {
            "if": {"type": "object", "required": ["output"]},
            "then": {
                "properties": {
                    "output": _SCREENSHOT,
                    "acknowledged_safety_checks": {"type": "array", "items": {"type": "object"}},
                },
                "additionalProperties": False,
            },
            "else": _SCREENSHOT,
        },
    }
)
"""What a handler's result has to be like, where the item that carries it takes nothing else."""


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that is not a function: its definition as the model sees it, and the handler on the one path."""

    definition: JsonObject
    kind: str
    tool: AnyTool

    @property
    def name(self) -> str:
        return self.tool.contract.name


def client_tool(
    definition: Mapping[str, JsonValue],
    handler: Callable[..., object],
    *,
    timeout: float | None = None,
    effects: Effects | None = None,
) -> ClientTool:
    """Registers a handler for a custom, shell, apply_patch, computer, MCP or client-side search tool.

    A custom tool's handler is called with `input` (the text), every other with `request` (the item's own
    fields, such as `action`, `operation` or `arguments`), plus the context where a parameter is annotated
    `ToolContext`. It returns: custom and local shell, JSON or text; shell, a text or the list of outputs;
    apply_patch, a text; computer, the screenshot object, or `{"output": screenshot,
    "acknowledged_safety_checks": […]}` with those of the `pending_safety_checks` that somebody agreed to;
    MCP, True to approve (a text is a no with its reason), of the requests of its own `server_label` alone;
    search, the list of tool definitions found. Any other result is a failure of the call.
    `timeout` and `effects` are those of its contract.
    Raises RegistrationError.
    """
    if not isinstance(definition, Mapping):
        raise RegistrationError('client_tool takes the tool\'s definition first, as {"type": "shell"}')
    wire_type = definition.get("type")
    kind = ANSWERS.get(wire_type) if isinstance(wire_type, str) else None
    if kind is None:
        raise RegistrationError(
            f"a handler is for a tool of type {', '.join(ANSWERS)}, not {wire_type!r}; see ptc.tool()"
        )
    if kind == "mcp_approval_request" and not _is_text(definition.get("server_label")):
        raise RegistrationError("a handler of an MCP server's approvals needs its server_label, a text")
    custom = kind == "custom_tool_call"
    given = "input" if custom else "request"
    inner: JsonObject = {
        "name": definition.get("name") if custom else kind,
        "description": definition.get("description") or "" if custom else "",
        "parameters": {
            "type": "object",
            "properties": {given: {"type": "string" if custom else "object"}},
            "required": [given],
            "additionalProperties": False,
        },
        "strict": False,
    }
    if kind in _RESULTS:
        inner["output_schema"] = _RESULTS[kind]
    if kind != "mcp_approval_request" and definition.get("allowed_callers") is not None:
        inner["allowed_callers"] = definition["allowed_callers"]
    tool = define_tool(inner, handler, timeout=timeout, effects=effects)
    _check_takes(tool, given)
    return ClientTool(cast("JsonObject", dict(definition)), kind, tool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _check_takes(tool: AnyTool, given: str) -> None:
    """Raises RegistrationError for a handler that could never be called."""
    try:
        signature = inspect.signature(tool.function)
    except ValueError:
        return  # a builtin that does not say what it takes
    others = {given: None} if tool.takes_context is None else {given: None, tool.takes_context: None}
    try:
        signature.bind(**others)
    except TypeError as error:
        raise RegistrationError(
            f"the handler of {tool.contract.name} is called with {given}= and, where a parameter is annotated so, "
            f"a ToolContext; its own parameters do not fit: {error}"
        ) from None
