"""Which tools a run offers: a list of its own that running tools may change, and the rules of changing it.

A run starts from the runner's set and never touches it. Changes show at once in the live list and reach the
model with the next request; a call that fails takes its own changes back. It never lets a program that runs
here change anything, nor the programs tool change while a program is open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeAlias, overload

from ptc.errors import ContractChanged
from ptc.handlers import ClientTool
from ptc.searching import SearchSettings, check_own_name
from ptc.toolbox import (
    HOSTED_PROGRAMS,
    Entry,
    ProgramsMode,
    as_entry,
    entry_name,
    is_programs_tool,
    program_only,
)
from ptc_tools.call import Call, Program
from ptc_tools.catalog import Catalog
from ptc_tools.errors import DuplicateTool
from ptc_tools.tool import Tool

_Key: TypeAlias = tuple[str, int]
ATTEMPT: Final[ContextVar[object]] = ContextVar("attempt of a call", default=None)
"""Which attempt of a call runs here: a middleware may make several at one time, and each fails by itself."""


@dataclass(slots=True)
class _Change:
    """One change of the list, on behalf of the call `key`; None once that call has succeeded.

    `entry` None stands for the programs tool. `retires`: a program that is open could call what goes.
    `attempt` made it; None where that is not known, as in a thread that a tool has started by itself.
    """

    key: _Key | None
    adds: bool
    entry: Entry | None
    retires: bool = False
    attempt: object = field(default_factory=ATTEMPT.get)


class LiveTools(Sequence[object]):
    """A read-only view of the list as it is at the moment of looking."""

    def __init__(self, exposure: LiveExposure) -> None:
        self._exposure = exposure

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        return self._exposure.entries[index]

    def __len__(self) -> int:
        return len(self._exposure.entries)

    def __iter__(self) -> Iterator[object]:
        return iter(self._exposure.entries)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in self.names
        return any(entry is item or _made_of(entry, item) for entry in self._exposure.entries)

    @property
    def names(self) -> list[str]:
        """Qualified names, in order."""
        return [_qualified(entry) for entry in self._exposure.entries]

    def __repr__(self) -> str:
        return f"<LiveTools {self.names}>"


class LiveExposure:
    """The exposure of one run. `programs`: how they run; `open_programs` asks which hosted ones are open.

    `retired`: what a resumed run goes on telling the service of, since a program that is open could call it.
    Changes are kept until the calls that made them have ended: what a failed one did is left out, and the
    others' are made again without it.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        programs: ProgramsMode | None,
        open_programs: Callable[[], Sequence[str]] = tuple,
        functions: Mapping[object, Entry] | None = None,
        retired: Iterable[Entry] = (),
        search: SearchSettings | None = None,
    ) -> None:
        self._entries: tuple[Entry, ...] = tuple(entries)
        self.programs = programs
        self._open_programs = open_programs
        self._search = search
        self._of_function: dict[object, Entry] = dict(functions or {})
        self._retired: tuple[Entry, ...] = tuple(retired)
        self._changes: list[_Change] = []
        self._over: dict[_Key, Call] = {}
        self._closed = False
        self._lock = threading.RLock()
        self._live = LiveTools(self)
        self.version = 0
        self.elsewhere: frozenset[tuple[str | None, str]] = frozenset()
        """The names of what the run's sources offer: nothing can be added under one."""
        self.hosted_tool = programs == "hosted"
        self._before = (self._entries, self._retired, self.hosted_tool)  # the first of the changes

    @property
    def tools(self) -> LiveTools | None:
        return None if self._closed else self._live

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    @property
    def has_open_programs(self) -> bool:
        """Whether hosted programs are open now."""
        return bool(self._open_programs())

    @property
    def still_callable(self) -> tuple[Entry, ...]:
        """Removed while a program was open that could call them: they stay on the wire, and are denied."""
        if not self._open_programs():
            self._retired = ()
        return self._retired

    def fixed_for(self, call: Call) -> bool:
        """See `ptc_tools.context.Exposure`."""
        return self.programs == "local" and isinstance(call.caller, Program)

    def add(self, call: Call, tools: object) -> None:
        """See `ToolContext.add_tools`."""
        with self._lock:
            self._refuse(call, "add_tools")
            entries, adds_programs = self._read(tools)
            new: list[Entry] = []
            for entry in entries:
                self._check_new(entry, [*self._entries, *new])
                if not any(entry is known for known in (*self._entries, *new)):
                    new.append(entry)
            Catalog(tool for tool in (*self._entries, *new) if isinstance(tool, Tool))  # names in programs
            if adds_programs:
                self._check_hosted_tool(True)
                self._change(_Change(_id(call), True, None))
            for entry in entries:  # those that are there as well: another call's failure must not take them
                self._change(_Change(_id(call), True, entry))
            self.version += 1

    def remove(self, call: Call, tools: object) -> None:
        """See `ToolContext.remove_tools`."""
        with self._lock:
            self._refuse(call, "remove_tools")
            wanted = [self._selector(one) for one in _several(tools)]
            if any(select(_PROGRAMS_ENTRY) for select in wanted):
                self._check_hosted_tool(False)
                self._change(_Change(_id(call), False, None))
            # What a call that still runs has removed is removed by this one as well, should that one fail.
            gone = [change.entry for change in self._changes if change.entry is not None and not change.adds]
            for entry in (*self._entries, *gone):
                if any(select(entry) for select in wanted):
                    retires = bool(self._open_programs()) and _callable_from_programs(entry)
                    self._change(_Change(_id(call), False, entry, retires))
            self.version += 1

    def settle(self, call: Call, succeeded: bool) -> None:
        """The call ended: its changes stay, or are taken back without touching those of others."""
        with self._lock:
            key = _id(call)
            self._over[key] = call  # keeps the object, so that its id is no other call's
            if not any(change.key == key for change in self._changes):
                return
            if succeeded:
                for change in self._changes:
                    change.key = None if change.key == key else change.key
            else:
                self._undo([change for change in self._changes if change.key == key])
            if all(change.key is None for change in self._changes):
                self._changes.clear()

    def take_back(self, call: Call) -> None:
        """The attempt of the call that runs here failed: what it changed is undone, and not what another did."""
        with self._lock:
            key, attempts = _id(call), (ATTEMPT.get(), None)
            made = [change for change in self._changes if change.key == key and change.attempt in attempts]
            if made:
                self._undo(made)

    def close(self) -> None:
        """The run is over: contexts that somebody kept work no more."""
        self._closed = True

    def restore(self, names: Sequence[str], hosted_tool: bool, known: Iterable[Entry]) -> None:
        """Offers exactly these again, found by name among what is offered and `known`. Raises ContractChanged.

        What goes by that while a program is open that could call it stays on the wire, as it did then.
        """
        with self._lock:
            by_name = {_qualified(entry): entry for entry in (*known, *self._entries)}
            missing = [name for name in names if name not in by_name]
            if missing:
                raise ContractChanged(
                    f"the run offered {', '.join(missing)}, which this runner does not have; give them with tools="
                )
            gone = [entry for entry in self._entries if _qualified(entry) not in names]
            retired = (
                [*self._retired, *filter(_callable_from_programs, gone)] if self._open_programs() else []
            )
            self._entries = tuple(by_name[name] for name in names)
            self._retired = tuple(entry for entry in retired if _qualified(entry) not in names)
            self.hosted_tool = hosted_tool
            self._before = (self._entries, self._retired, self.hosted_tool)
            self.version += 1

    # Inside

    def _undo(self, changes: Sequence[_Change]) -> None:
        self._changes = [kept for kept in self._changes if not any(kept is change for change in changes)]
        self._entries, self._retired, self.hosted_tool = self._before
        for change in self._changes:
            self._make(change)
        self.version += 1

    def _change(self, change: _Change) -> None:
        if not self._changes:
            self._before = (self._entries, self._retired, self.hosted_tool)
        self._changes.append(change)
        self._make(change)

    def _make(self, change: _Change) -> None:
        entry = change.entry
        if entry is None:
            self.hosted_tool = change.adds
            return
        there = any(kept is entry for kept in self._entries)
        if change.adds == there:
            return
        if there:
            self._entries = tuple(kept for kept in self._entries if kept is not entry)
        else:
            self._entries = (*_others(self._entries, entry), entry)
        retired = _others(self._retired, entry)
        self._retired = (*retired, entry) if change.retires else retired

    def _read(self, tools: object) -> tuple[list[Entry], bool]:
        entries, adds_programs = [], False
        for one in _several(tools):
            entry = self._entry(one)
            if is_programs_tool(entry):
                adds_programs = True
            else:
                entries.append(entry)
        return entries, adds_programs

    def _entry(self, value: object) -> Entry:
        if callable(value) and not isinstance(value, (Tool, ClientTool)):
            known = self._of_function.get(value)
            if known is None:
                made = as_entry(value)
                name = entry_name(made)
                there = (
                    one
                    for one in self._entries
                    if isinstance(one, Tool) and _made_of(one, value) and entry_name(one) == name
                )
                known = next(there, made)
                self._of_function[value] = known
            return known
        if isinstance(value, Mapping):
            same = next(
                (entry for entry in self._entries if isinstance(entry, dict) and entry == value), None
            )
            return same if same is not None else as_entry(value)
        return as_entry(value)

    def _check_new(self, entry: Entry, known: Sequence[Entry]) -> None:
        name = entry_name(entry)
        taken = isinstance(entry, Tool) and name in self.elsewhere
        if taken or any(other is not entry and entry_name(other) == name for other in known):
            raise DuplicateTool(
                f"another tool is called {_qualified(entry)!r}; remove it first, or rename one"
            )
        if isinstance(entry, Tool):
            check_own_name(entry, self._search, self.programs)
            if self.programs == "hosted":
                entry.contract.check_for_service()
        if program_only(entry) and self.programs != "hosted":
            raise RuntimeError(
                f"only programs could call {_qualified(entry)!r}, and a local program takes no further tools"
                if self.programs == "local"
                else f"only programs could call {_qualified(entry)!r}, and this run has none"
            )

    def _check_hosted_tool(self, present: bool) -> None:
        if self.programs != "hosted":
            if present:
                raise RuntimeError(f'{HOSTED_PROGRAMS} goes with programs="hosted"')
            return
        if not present and self._open_programs():
            raise RuntimeError(f"{HOSTED_PROGRAMS} cannot be removed while a program is open")

    def _selector(self, value: object) -> Callable[[Entry], bool]:
        if isinstance(value, str):
            return lambda entry: value in _names(entry)
        if isinstance(value, (Tool, ClientTool)):
            return lambda entry: entry is value
        if isinstance(value, Mapping) and isinstance(value.get("type"), str):
            name, wire_type = entry_name(as_entry(value)), value["type"]
            return lambda entry: entry_name(entry) == name or (name[0] is None and wire_type in _names(entry))
        if callable(value) and not isinstance(value, type):
            known = self._of_function.get(value)
            return lambda entry: entry is known or _made_of(entry, value)
        raise TypeError(f"{type(value).__name__} is not a tool: give a name, a tool or the function of one")

    def _refuse(self, call: Call, helper: str) -> None:
        if self._closed:
            raise RuntimeError(f"{helper}() works inside a run only, and this one has ended")
        if _id(call) in self._over:
            raise RuntimeError(f"{helper}() works while the call runs, and this one has ended")


_PROGRAMS_ENTRY: Entry = {"type": HOSTED_PROGRAMS}


def _several(tools: object) -> list[object]:
    if isinstance(tools, (list, tuple, set, frozenset, LiveTools)):
        return list(tools)
    return [tools]


def _id(call: Call) -> _Key:
    return call.call_id, id(call)  # a reused call id is another call


def _others(entries: Iterable[Entry], entry: Entry) -> tuple[Entry, ...]:
    return tuple(kept for kept in entries if entry_name(kept) != entry_name(entry))


def _made_of(entry: Entry, function: object) -> bool:
    tool = entry.tool if isinstance(entry, ClientTool) else entry
    return isinstance(tool, Tool) and tool.function == function


def _names(entry: Entry) -> set[str]:
    """What an entry may be called by: its name, and as the wire calls it where its type is its name there."""
    namespace, name = entry_name(entry)
    names = {_qualified(entry)} | ({name} if namespace is None else set())
    if isinstance(entry, ClientTool) and entry.kind not in ("custom_tool_call", "mcp_approval_request"):
        names.add(str(entry.definition["type"]))
    return names


def _qualified(entry: Entry) -> str:
    return ".".join(part for part in entry_name(entry) if part)


def _callable_from_programs(entry: Entry) -> bool:
    from ptc.toolbox import callers_of

    return "programmatic" in (callers_of(entry) or ())
