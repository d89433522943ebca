"""Which deferred tools the model has loaded: read from the history alone (rule 18).

The history keeps each loading with the definition that was loaded. An old definition explains the calls that
were made by it; only one that is today's lets new calls through, and a program has what was loaded before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ptc.deferral import Deferral
from ptc.definitions import Key, members, same_definition
from ptc.history import load_records
from ptc.searching import LOAD, still_loaded
from ptc_tools.call import Call, JsonObject, Program

_RECORDS = ("tool_search_output", "additional_tools")


@dataclass(frozen=True, slots=True)
class Loading:
    """One loading of one tool: `at` is the position of the item in the history.

    `by_service`: the service had searched, and wrote the definition in its own way.
    """

    at: int
    definition: JsonObject
    by_service: bool = False

    def is_todays(self, today: JsonObject | None) -> bool:
        """Whether the definition is still the one that a search would give."""
        return today is not None and same_definition(self.definition, today, by_service=self.by_service)


class LoadedTools:
    """Asks a growing history; what was read once is not read again."""

    def __init__(self, history: Sequence[JsonObject]) -> None:
        self._history = history
        self.read_again()

    def read_again(self) -> None:
        """The history was cut: what is left is read from its beginning."""
        self._read = 0
        self._loadings: dict[Key, list[Loading]] = {}
        self._programs: dict[str, int] = {}
        self._load_calls: set[str] = set()
        self._by_pair: dict[str, JsonObject] = {}
        self._loads = 0

    def __call__(self, namespace: str | None, name: str) -> bool:
        """Whether the history has a loading of this tool at all, whatever it said."""
        self._catch_up()
        return (namespace, name) in self._loadings

    def refusal(self, call: Call, deferral: Deferral | None) -> str | None:
        """Why a call of a tool that waits for a search cannot be made yet, or None."""
        key = call.namespace, call.name
        if deferral is None:  # the application brought its own search, and knows what it gave
            return None if self(*key) else _not_loaded(call, "tool search")
        if deferral.by == "pair":
            return _not_loaded(call, "search_tools, then load it") if deferral.waits(key) else None
        self._catch_up()
        loadings = self._loadings.get(key)
        if not loadings:
            return _not_loaded(call, "tool search")
        today = deferral.definition(key)
        current = [one.at for one in loadings if one.is_todays(today)]
        if not current:
            return f"{call.qualified_name} has changed since it was loaded: find it with tool search again"
        if isinstance(call.caller, Program):
            start = self._programs.get(call.caller.caller_id)
            if start is not None and min(current) > start:
                return (
                    f"{call.qualified_name} was loaded after this program had started: it is for later ones"
                )
        return None

    def by_pair(self, deferral: Deferral) -> frozenset[Key]:
        """The tools that `load`, or a search over the wire before, has loaded and that are still as they were."""
        self._catch_up()
        named = {".".join(filter(None, key)): key for key in deferral.waiting} if self._by_pair else {}
        loaded = {
            key
            for name, record in self._by_pair.items()
            if (key := named.get(name)) is not None and still_loaded(record, deferral.waiting[key])
        }
        for key, loadings in self._loadings.items():
            if key in deferral.waiting and any(one.is_todays(deferral.definition(key)) for one in loadings):
                loaded.add(key)
        return frozenset(loaded)

    @property
    def pair_has_loaded(self) -> int:
        """Rises whenever `load` has loaded something."""
        self._catch_up()
        return self._loads

    def loadings(self) -> Iterable[tuple[Key, Loading]]:
        """All of them, also those whose definition is not today's."""
        self._catch_up()
        return [(key, one) for key, several in self._loadings.items() for one in several]

    def program_start(self, call_id: str) -> int | None:
        """The position of a program in the history."""
        self._catch_up()
        return self._programs.get(call_id)

    def _catch_up(self) -> None:
        for at in range(self._read, len(self._history)):
            item = self._history[at]
            kind, call_id = item.get("type"), item.get("call_id")
            if kind in _RECORDS:
                by_service = kind == "tool_search_output" and item.get("execution") != "client"
                for key, definition in members(item.get("tools")):
                    self._loadings.setdefault(key, []).append(Loading(at, definition, by_service))
            elif kind == "program" and isinstance(call_id, str):
                self._programs[call_id] = at
            elif kind == "function_call" and isinstance(call_id, str):
                if item.get("name") == LOAD and item.get("namespace") is None:
                    self._load_calls.add(call_id)
            elif kind == "function_call_output" and call_id in self._load_calls:
                self._by_pair.update((str(record["name"]), record) for record in load_records(item))
                self._loads += 1
        self._read = len(self._history)


def _not_loaded(call: Call, how: str) -> str:
    return f"{call.qualified_name} is not loaded yet: find it with {how} first"
