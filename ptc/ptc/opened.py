"""The hosted programs of one conversation: which were opened, and which are open still.

It is told every item, of the input and of responses alike, in order. It never changes an item and decides
nothing about a call; two programs with one call id it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptc.errors import RemoteProtocolError
from ptc.events import Event, PendingCall, ProgramClosed, ProgramOpened, ProgramPaused
from ptc.items import call_key, is_output, item_type, owner_of
from ptc_tools.call import JsonObject, Program


class HostedPrograms:
    """Iterates over the call ids of those that may make calls now, in the order in which they came."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._known: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def events_of(self, output: Sequence[JsonObject]) -> list[Event]:
        """What a response opens and closes; nothing is noted yet. Raises RemoteProtocolError.

        What belongs to a program comes after it: an item before it is out of order, or forged.
        """
        events: list[Event] = []
        known = set(self._known)
        to_come = {call_key(item) for item in output if item_type(item) == "program"} - known
        for item in output:
            kind, call_id = item_type(item), item.get("call_id")
            owner = owner_of(item) if kind != "program_output" else call_key(item)
            if owner is not None and owner in to_come and owner not in known:
                raise RemoteProtocolError(f"a {kind} item came before its program, {owner!r}")
            if kind not in ("program", "program_output"):
                continue
            if not isinstance(call_id, str) or not call_id:
                raise RemoteProtocolError(f"a {kind} item came without a call id")
            if kind == "program":
                if call_id in known:
                    raise RemoteProtocolError(f"a second program came with the call id {call_id!r}")
                known.add(call_id)
                events.append(ProgramOpened(call_id, str(item.get("code") or ""), item))
            else:
                status = str(item.get("status") or "completed")
                events.append(ProgramClosed(call_id, str(item.get("result") or ""), status, item))
        return events

    def note(self, items: Sequence[JsonObject]) -> None:
        """Items that are in the history now."""
        for item in items:
            kind, call_id = item_type(item), item.get("call_id")
            if kind == "program" and isinstance(call_id, str):
                self._open[call_id] = None
                self._known.add(call_id)
            elif kind == "program_output" and isinstance(call_id, str):
                self._open.pop(call_id, None)

    def note_waiting(self, items: Sequence[JsonObject]) -> None:
        """An input that goes on from a history of the service's: a program whose call it answers waits there.

        The application says so, which sends the output; a service that knows no such program refuses it.
        """
        for item in items:
            owner = owner_of(item) if is_output(item) else None
            if owner is not None and owner not in self._known:
                self._open[owner] = None

    def paused_by(self, pending: Sequence[PendingCall]) -> list[Event]:
        """The open programs that wait for these calls."""
        waiting: dict[str, list[str]] = {}
        for call in pending:
            if isinstance(call.call.caller, Program) and call.call.caller.caller_id in self._open:
                waiting.setdefault(call.call.caller.caller_id, []).append(call.call.call_id)
        return [ProgramPaused(program, tuple(calls)) for program, calls in waiting.items()]
