"""The tools that the sandbox's tests grant to programs."""

from __future__ import annotations

from typing import Any

from ptc_tools.contract import Effects
from ptc_tools.tool import AnyTool, define_tool

INTEGER = {"type": "integer"}


def programmatic(
    name: str,
    properties: dict[str, Any],
    function: Any,
    output: dict[str, Any],
    effects: Effects | None = None,
) -> AnyTool:
    """A raw tool for programs: every property required, nothing else taken."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    definition: Any = {
        "type": "function",
        "name": name,
        "description": f"Test tool {name}.",
        "parameters": parameters,
        "allowed_callers": ["programmatic"],
        "output_schema": output,
    }
    return define_tool(definition, function, effects=effects)


async def get(i: int) -> int:
    return i


async def echo(x: object) -> object:
    return x


async def add(a: int, b: int) -> int:
    return a + b


async def read_doc(name: str) -> str:
    if name != "public":
        raise PermissionError(f"/srv/documents/{name} is not public")
    return "text"


TOOLS = (
    programmatic("get", {"i": INTEGER}, get, INTEGER),
    programmatic("echo", {"x": {}}, echo, {}),
    programmatic("add", {"a": INTEGER, "b": INTEGER}, add, INTEGER),
    programmatic("read_doc", {"name": {"type": "string"}}, read_doc, {"type": "string"}),
)
