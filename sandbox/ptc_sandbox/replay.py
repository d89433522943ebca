"""Replay: the journal of an earlier run against what the program does now, step by step.

The program must do what it did; it is told what it was told. The first step that differs is a
`ReplayDiverged` that names it. Pure bookkeeping: no process, no clock.
"""

from __future__ import annotations

from ptc_sandbox.errors import JournalError, ReplayDiverged
from ptc_sandbox.journal import CallAnswered, CallDropped, CallMade, Entry, Ticked


class Replay:
    """A cursor over recorded entries. `active` until all of them have happened again."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        _check(entries)
        self._entries = entries
        self._next = 0

    @property
    def active(self) -> bool:
        return self._next < len(self._entries)

    def matches(self, done: CallMade | CallDropped) -> ReplayDiverged | None:
        """Take one step that the program has done; the error where the journal says otherwise."""
        expected = self._entries[self._next]
        same = _same(expected, done)
        self._next += 1
        if same:
            return None
        return ReplayDiverged(
            f"the program does {_say(done)} where the journal has {_say(expected)}", number=_number(done)
        )

    def next_told(self) -> CallAnswered | Ticked | None:
        """The next thing that the program was told, if the journal is at one."""
        if not self.active:
            return None
        entry = self._entries[self._next]
        if isinstance(entry, (CallMade, CallDropped)):
            return None
        self._next += 1
        return entry

    def stuck(self) -> ReplayDiverged:
        """The program waits where the journal says that it went on."""
        expected = self._entries[self._next]
        return ReplayDiverged(
            f"the program waits where the journal has {_say(expected)}", number=_number(expected)
        )

    def ended_early(self) -> ReplayDiverged:
        """The program ended where the journal says that it went on."""
        expected = self._entries[self._next]
        return ReplayDiverged(
            f"the program ended where the journal has {_say(expected)}", number=_number(expected)
        )


def _check(entries: tuple[Entry, ...]) -> None:
    """Raise JournalError for a journal that no run can have written."""
    made = 0
    open_calls: set[int] = set()
    clock_us = 0
    for entry in entries:
        if isinstance(entry, CallMade):
            made += 1
            if entry.number != made:
                raise JournalError(f"the journal has call {entry.number} where call {made} follows")
            open_calls.add(made)
        elif isinstance(entry, (CallAnswered, CallDropped)):
            if entry.number not in open_calls:
                raise JournalError(f"the journal has {_say(entry)}, which was not waiting")
            open_calls.discard(entry.number)
        if isinstance(entry, (CallAnswered, Ticked)):
            if entry.clock_us < clock_us:
                raise JournalError(f"the journal's clock goes back at {_say(entry)}")
            clock_us = entry.clock_us


def _same(expected: Entry, done: CallMade | CallDropped) -> bool:
    if isinstance(expected, CallMade) and isinstance(done, CallMade):
        return (expected.number, expected.namespace, expected.name, expected.arguments) == (
            done.number,
            done.namespace,
            done.name,
            done.arguments,
        ) and _typed(expected.arguments) == _typed(done.arguments)
    return expected == done


def _typed(value: object) -> object:
    """For comparing JSON: Python holds True == 1 and 1 == 1.0, JSON does not."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return (type(value), value)


def _say(entry: Entry) -> str:
    match entry:
        case CallMade(number, namespace, name, arguments):
            tool = f"{namespace}.{name}" if namespace else name
            return f"call {number} of {tool} with {str(arguments)[:200]}"
        case CallDropped(number):
            return f"the cancellation of call {number}"
        case CallAnswered(number):
            return f"the answer to call {number}"
        case Ticked(clock_us):
            return f"the time {clock_us} µs"


def _number(entry: Entry) -> int | None:
    return None if isinstance(entry, Ticked) else entry.number
