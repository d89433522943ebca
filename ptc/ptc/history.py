"""What belongs together in a history, so that a cut never leaves an orphan (wire.md, rule 10).

A program, everything it owns (hosted items too, whose caller arrives as an extra field), their outputs and
its own output are one unit; so are a call and its output, the calls of one parallel batch, and a reasoning
item with what follows it. Cutting takes whole units or nothing, and never one that is still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ptc.items import OUTPUT_OF, call_key, is_client_call, is_output, item_type, owner_of
from ptc_tools import strict_json
from ptc_tools.call import JsonObject
from ptc_tools.errors import InvalidJson


def units(items: Sequence[JsonObject]) -> list[tuple[int, ...]]:
    """The positions of each unit, units in the order of their first item."""
    groups = _Groups(len(items))
    _join_owners(items, groups)
    _join_searches(items, groups)
    _join_turns(items, groups)
    return groups.all()


def orphans(items: Sequence[JsonObject]) -> list[str]:
    """What a service that stores nothing would refuse in this history, in words; empty if nothing."""
    programs: set[str] = set()
    calls: dict[str, bool] = {}
    found: list[str] = []
    for item in items:
        kind, key = item_type(item), call_key(item)
        owner = owner_of(item)
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


def misfits(items: Sequence[JsonObject]) -> list[str]:
    """What a service would refuse though nothing is missing, in words: an output too many, or not of its call.

    Ids may be used again, as some services do, once what had them before is answered.
    """
    waiting: dict[str, JsonObject] = {}
    programs: set[str] = set()
    found: list[str] = []
    for item in items:
        kind, key = item_type(item), call_key(item)
        if key is None:
            continue
        if kind == "program":
            found += [f"two programs have the call id {key}"] if key in programs else []
            programs.add(key)
        elif kind == "program_output":
            found += [] if key in programs else [f"program {key} has two outputs"]
            programs.discard(key)
        elif is_client_call(item):
            found += [f"two calls with the id {key} wait for an output"] if key in waiting else []
            waiting[key] = item
        elif is_output(item) and not _owner_is_server(item):
            call = waiting.pop(key, None)
            if call is not None:
                found += filter(None, [misfit(call, item)])
            elif kind != "tool_search_output":
                found.append(f"call {key} has two outputs")
    return found


_WITH_OUTPUT: Final = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "shell_call_output",
        "local_shell_call_output",
        "computer_call_output",
    }
)
"""Outputs that say nothing without one; a patch's says all by its status."""


def misfit(call: JsonObject, output: JsonObject) -> str | None:
    """What is wrong with an output for this call, in words; None if nothing is."""
    key, kind, wanted = call_key(call), item_type(output), OUTPUT_OF[item_type(call)]
    if kind != wanted:
        return f"call {key!r} is answered by a {wanted}, not {kind}"
    if wanted in _WITH_OUTPUT and output.get("output") is None:
        return f"the output item of {key!r} has no `output`"
    if wanted.endswith("_call_output") and owner_of(output) != owner_of(call):
        return f"the output of {key!r} must carry the call's `caller` unchanged"
    return None


def trim(items: Sequence[JsonObject], *, keep: int) -> list[JsonObject]:
    """The history without its oldest whole units, until at most `keep` items stay where that is possible.

    Instructions (system and developer messages), the last user message, what is open, and the searches that
    loaded tools always stay: without their record the model could call nothing of what it has loaded.
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


def with_search_records(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[JsonObject]:
    """A shortened history with the units of `before` that loaded tools and that it lacks.

    They come before all but the instructions at its beginning, in their order.
    """
    kept = {id(item) for item in after}
    lost: list[JsonObject] = []
    for unit in units(before):
        members = [before[index] for index in unit]
        if any(map(_loads, members)) and not any(_is_kept(item, kept, after) for item in members):
            lost += members
    start = next(
        (i for i, item in enumerate(after) if item.get("role") not in ("system", "developer")), len(after)
    )
    return [*after[:start], *lost, *after[start:]] if lost else list(after)


def _is_kept(item: JsonObject, kept: set[int], after: Sequence[JsonObject]) -> bool:
    return id(item) in kept or item in after


def _loads(item: JsonObject) -> bool:
    return bool(item_type(item) == "tool_search_output" and item.get("tools")) or bool(load_records(item))


def load_records(item: JsonObject) -> list[JsonObject]:
    """What an output of `load` says of each tool (`ptc.searching`); empty for any other item."""
    output = item.get("output")
    if item_type(item) != "function_call_output" or not isinstance(output, str):
        return []
    if not output.startswith('{"loaded":'):
        return []
    try:
        told = strict_json.loads(output)
    except InvalidJson:
        return []
    records = told.get("loaded") if isinstance(told, dict) else None
    return [
        record
        for record in (records if isinstance(records, list) else [])
        if isinstance(record, dict) and isinstance(record.get("name"), str)
    ]


def _stays(item: JsonObject) -> bool:
    if item.get("role") in ("system", "developer") or item_type(item) == "additional_tools":
        return True
    return _loads(item)


def _is_open(unit: Sequence[JsonObject]) -> bool:
    kinds = [item_type(item) for item in unit]
    return kinds.count("program") > kinds.count("program_output") or bool(orphans(unit))


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
        kind, key, owner = item_type(item), call_key(item), owner_of(item)
        for name in filter(
            None, (f"program {key}" if kind.startswith("program") else None, owner and f"program {owner}")
        ):
            groups.join(place.setdefault(name, index), index)
        if key is not None and not kind.startswith("program"):
            # Any two items that share a call id: client calls and hosted ones whose output is an item.
            groups.join(place.setdefault(f"call {key}", index), index)


def _join_searches(items: Sequence[JsonObject], groups: _Groups) -> None:
    """A search of the service's own has no call id: its output is the next one."""
    asked: int | None = None
    for index, item in enumerate(items):
        if call_key(item) is not None or not _owner_is_server(item):
            continue
        if item_type(item) == "tool_search_call":
            asked = index
        elif item_type(item) == "tool_search_output" and asked is not None:
            groups.join(asked, index)
            asked = None


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
