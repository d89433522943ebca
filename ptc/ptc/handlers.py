"""Calls other than functions that the client answers: custom tools, shell, patches, MCP approvals, search.

The application registers a handler together with the definition that the model sees. Each becomes a tool on
the one path, so that it is authorised, bounded and audited like every other call. There is no default
handler: what has none is answered with an error, never with a made-up result.
"""

from __future__ import annotations

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
    apply_patch, a text; computer, the screenshot object; MCP, True to approve (a text is a no with its
    reason), of the requests of its own `server_label` alone; search, the list of tool definitions found.
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
    if kind != "mcp_approval_request" and definition.get("allowed_callers") is not None:
        inner["allowed_callers"] = definition["allowed_callers"]
    tool = define_tool(inner, handler, timeout=timeout, effects=effects)
    return ClientTool(cast("JsonObject", dict(definition)), kind, tool)
