"""Which deferred tools the model has loaded by tool search: read from the history alone (rule 18)."""

from __future__ import annotations

from collections.abc import Sequence

from ptc_tools.call import JsonObject, JsonValue


class LoadedTools:
    """Asks a growing history; what was read once is not read again."""

    def __init__(self, history: Sequence[JsonObject]) -> None:
        self._history = history
        self._read = 0
        self._names: set[tuple[str | None, str]] = set()

    def __call__(self, namespace: str | None, name: str) -> bool:
        for item in self._history[self._read :]:
            if item.get("type") in ("tool_search_output", "additional_tools"):
                self._add(item.get("tools"), None)
        self._read = len(self._history)
        return (namespace, name) in self._names

    def read_again(self) -> None:
        """The history was cut: what is left is read from its beginning; what was loaded stays loaded."""
        self._read = 0

    def _add(self, tools: JsonValue, namespace: str | None) -> None:
        for tool in tools if isinstance(tools, list) else []:
            if not isinstance(tool, dict):
                continue
            name = tool.get("name")
            if tool.get("type") == "namespace" and isinstance(name, str):
                self._add(tool.get("tools"), name)
            elif isinstance(name, str):
                self._names.add((namespace, name))
