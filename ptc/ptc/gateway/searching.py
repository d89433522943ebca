"""Tool search in the peer: how its items must stand in an input, and the search that the peer runs itself.

It is told items of the input, or what a script's model looks for, and gives the tools that are loaded from
then on. The peer's own search is a plain one: it goes by words in common, or by the names that the script says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ptc.gateway.definitions import Definition, ToolSet
from ptc.gateway.rejection import invalid, invalid_type, missing_parameter
from ptc.gateway.script import SearchTools
from ptc_tools.call import JsonObject, JsonValue

SEARCH_ITEMS = frozenset({"tool_search_call", "tool_search_output", "additional_tools"})
_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+|[0-9]+")
_FOUND = 5


class Searches:
    """The searches of one input, in order: each of the client's is answered once, by its own call id."""

    def __init__(self) -> None:
        self._answered: dict[str, bool] = {}
        self._by_server = 0

    def read(self, item: JsonObject, kind: str, tools: ToolSet, where: str) -> ToolSet:
        """The tools from this item on. Raises `Rejected`."""
        if kind == "tool_search_call":
            self._call(item, where)
            return tools
        if kind == "tool_search_output":
            self._output(item, where)
        more = item["tools"]
        if not isinstance(more, list):
            raise invalid_type(f"{where}.tools", "an array", more)
        return tools.with_more(more, f"{where}.tools")

    def check_answered(self) -> None:
        """Raise `Rejected` for a search of the client's that has no output."""
        for call_id, answered in self._answered.items():
            if not answered:
                raise invalid(
                    "input", f"No tool output found for tool search call {call_id}.", "missing_tool_output"
                )

    def _call(self, item: JsonObject, where: str) -> None:
        if not _is_clients(item):
            self._by_server += 1
            return
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            raise missing_parameter(f"{where}.call_id")
        if call_id in self._answered:
            raise invalid(f"{where}.call_id", f"Duplicate call_id '{call_id}' in the input.")
        self._answered[call_id] = False

    def _output(self, item: JsonObject, where: str) -> None:
        if not _is_clients(item):
            if not self._by_server:
                raise invalid("input", "No tool search call found for tool search output.", "unknown_call_id")
            self._by_server -= 1
            return
        call_id = item.get("call_id")
        answered = self._answered.get(call_id) if isinstance(call_id, str) else None
        if answered is None:
            raise invalid(
                "input",
                f"No tool call found for tool search output with call_id {call_id}.",
                "unknown_call_id",
            )
        if answered:
            raise invalid("input", f"Duplicate tool output for call_id {call_id}.", "duplicate_tool_output")
        self._answered[str(call_id)] = True


def _is_clients(item: JsonObject) -> bool:
    return item.get("execution") == "client" or (
        item.get("execution") is None and item.get("call_id") is not None
    )


def search_call(part: SearchTools, call_id: str | None) -> JsonObject:
    """The item by which the model asks; without a call id where the service itself answers."""
    return {
        "type": "tool_search_call",
        "call_id": call_id,
        "execution": "server" if call_id is None else "client",
        "arguments": dict(part.arguments),
        "status": "completed",
    }


def search_output(part: SearchTools, tools: ToolSet, sent: Iterable[JsonObject]) -> JsonObject:
    """What the peer finds among the deferred tools of a request, whose definitions are `sent`."""
    namespaces = {tool.get("name"): tool for tool in sent if tool.get("type") == "namespace"}
    found: list[JsonValue] = []
    wrappers: dict[str, list[JsonValue]] = {}
    for tool in _matches(part, tools):
        if tool.namespace is None:
            found.append(tool.wire)
        elif tool.namespace in wrappers:
            wrappers[tool.namespace].append(tool.wire)
        else:
            members: list[JsonValue] = [tool.wire]
            wrappers[tool.namespace] = members
            found.append({**namespaces[tool.namespace], "tools": members})
    return {
        "type": "tool_search_output",
        "call_id": None,
        "execution": "server",
        "status": "completed",
        "tools": found,
    }


def _matches(part: SearchTools, tools: ToolSet) -> list[Definition]:
    deferred = [tool for tool in tools.definitions.values() if tool.deferred]
    if part.finds is not None:
        return [tool for tool in deferred if ".".join(filter(None, tool.key)) in part.finds]
    wanted = _words(part.arguments)
    scored = [(len(wanted & _words([*tool.key, tool.wire.get("description")])), tool) for tool in deferred]
    best = sorted((entry for entry in scored if entry[0]), key=lambda entry: -entry[0])
    return [tool for _, tool in best[:_FOUND]]


def _words(value: object) -> set[str]:
    if isinstance(value, str):
        return {word.lower() for word in _WORD.findall(value)}
    if isinstance(value, Mapping):
        value = list(value.values())
    parts = value if isinstance(value, list | tuple) else []
    return {word for part in parts for word in _words(part)}
