"""What belongs together in a history, so that a cut never leaves an orphan (wire.md, rule 10).

A program, everything it owns (hosted items too, whose caller arrives as an extra field), their outputs and
its own output are one unit; so are a call and its output, the calls of one parallel batch, and a reasoning
item with what follows it. Cutting takes whole units or nothing, and never one that is still open.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptc.items import call_key, is_client_call, is_output, item_type
from ptc_tools.call import JsonObject


def units(items: Sequence[JsonObject]) -> list[tuple[int, ...]]:
    """The positions of each unit, units in the order of their first item."""
    groups = _Groups(len(items))
    _join_owners(items, groups)
    _join_turns(items, groups)
    return groups.all()


def orphans(items: Sequence[JsonObject]) -> list[str]:
    """What a service that stores nothing would refuse in this history, in words; empty if nothing."""
    programs: set[str] = set()
    calls: dict[str, bool] = {}
    found: list[str] = []
    for item in items:
        kind, key = item_type(item), call_key(item)
        owner = _owner(item)
        if kind == "program":
            programs.add(str(key))
        elif kind == "program_output" and key not in programs:
            found.append(f"the output of program {key} has no program before it")
        elif owner is not None and owner not in programs:
            found.append(f"{kind} {key} belongs to program {owner}, which is not there")
        if key is None:
            continue
        if is_client_call(item):
            calls.setdefault(key, False)
        elif is_output(item):
            if key not in calls and kind != "tool_search_output":
                found.append(f"the output of call {key} has no call before it")
            calls[key] = True
    found += [f"call {key} has no output" for key, answered in calls.items() if not answered]
    return found


def trim(items: Sequence[JsonObject], *, keep: int) -> list[JsonObject]:
    """The history without its oldest whole units, until at most `keep` items stay where that is possible.

    Instructions (system and developer messages), the last user message and what is open always stay.
    """
    items = list(items)
    excess = len(items) - keep
    last_user = max((i for i, item in enumerate(items) if item.get("role") == "user"), default=-1)
    dropped: set[int] = set()
    for unit in units(items):
        if len(dropped) >= excess:
            break
        if last_user in unit or any(_stays(items[i]) for i in unit) or _is_open([items[i] for i in unit]):
            continue
        dropped.update(unit)
    return [item for index, item in enumerate(items) if index not in dropped]


def _stays(item: JsonObject) -> bool:
    return item.get("role") in ("system", "developer") or item_type(item) == "additional_tools"


def _is_open(unit: Sequence[JsonObject]) -> bool:
    kinds = [item_type(item) for item in unit]
    return kinds.count("program") > kinds.count("program_output") or bool(orphans(unit))


def _owner(item: JsonObject) -> str | None:
    caller = item.get("caller")
    owner = caller.get("caller_id") if isinstance(caller, dict) else None
    return owner if isinstance(owner, str) else None


class _Groups:
    """Union-find over positions."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, index: int) -> int:
        while self._parent[index] != index:
            self._parent[index] = self._parent[self._parent[index]]
            index = self._parent[index]
        return index

    def join(self, a: int, b: int) -> None:
        first, second = sorted((self.find(a), self.find(b)))
        self._parent[second] = first

    def all(self) -> list[tuple[int, ...]]:
        members: dict[int, list[int]] = {}
        for index in range(len(self._parent)):
            members.setdefault(self.find(index), []).append(index)
        return [tuple(group) for _, group in sorted(members.items())]


def _join_owners(items: Sequence[JsonObject], groups: _Groups) -> None:
    place: dict[str, int] = {}
    for index, item in enumerate(items):
        kind, key, owner = item_type(item), call_key(item), _owner(item)
        for name in filter(
            None, (f"program {key}" if kind.startswith("program") else None, owner and f"program {owner}")
        ):
            groups.join(place.setdefault(name, index), index)
        if key is not None and not kind.startswith("program"):
            # Any two items that share a call id: client calls and hosted ones whose output is an item.
            groups.join(place.setdefault(f"call {key}", index), index)


def _join_turns(items: Sequence[JsonObject], groups: _Groups) -> None:
    """Within what the model said at once, reasoning holds what follows, and parallel calls each other."""
    held: int | None = None
    for index, item in enumerate(items):
        kind = item_type(item)
        spoken = kind == "message" and item.get("role", "assistant") == "assistant"
        if (is_output(item) and not _owner_is_server(item)) or (kind == "message" and not spoken):
            held = None
            continue
        if held is not None:
            groups.join(held, index)
        if kind == "reasoning" or is_client_call(item) or kind == "program":
            held = index if held is None else held
        elif kind == "message":
            held = None


def _owner_is_server(item: JsonObject) -> bool:
    return item.get("execution") == "server"
