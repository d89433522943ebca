"""A small MCP server over standard input and output, for tests: three tools on two pages, one of which changes."""

from __future__ import annotations

import json
import sys
from typing import Any

ADD: dict[str, Any] = {
    "name": "add",
    "title": "Sum",
    "description": "Add two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
    "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
    "annotations": {"readOnlyHint": True},
}
READ: dict[str, Any] = {
    "name": "files/read",
    "description": "Read a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {},
}
FAIL: dict[str, Any] = {
    "name": "fail",
    "inputSchema": {"type": "object"},
    "annotations": {"destructiveHint": False},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "maths", "version": "1"}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": info,
        }
    if method == "tools/list":
        return {"tools": [FAIL]} if params.get("cursor") == "2" else {"tools": [ADD, READ], "nextCursor": "2"}
    if method == "test/change":
        ADD["description"] = "Add two numbers, otherwise."
        return {}
    name, given = params["name"], params["arguments"]
    if name == "add":
        total = given["a"] + given["b"]
        text = {"type": "text", "text": json.dumps({"sum": total})}
        return {"content": [text], "structuredContent": {"sum": total}}
    if name == "files/read":
        text = {"type": "text", "text": f"contents of {given.get('path')}"}
        return {"content": [text, {"type": "image", "mimeType": "image/png", "data": ""}]}
    return {"content": [{"type": "text", "text": "it broke"}], "isError": True}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
