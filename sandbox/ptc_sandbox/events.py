"""What a running program does, as its driver is told: the events of an `Execution`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ptc_sandbox.result import ProgramResult
from ptc_tools.call import JsonObject


@dataclass(frozen=True, slots=True)
class CallRequested:
    """The program asks for a call of a tool it was granted. It goes on when the call is answered."""

    number: int
    namespace: str | None
    name: str
    arguments: JsonObject
    line: int | None


@dataclass(frozen=True, slots=True)
class CallForged:
    """The child named a tool that was not granted, which no honest guest can do. The program is ended for it.

    There is nothing to answer and nothing to run: this is for the record.
    """

    number: int
    name: str
    arguments: JsonObject
    line: int | None


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The program no longer waits for a call; its answer would be dropped."""

    number: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The program can do nothing until one of `pending` is answered (or `next_timer` seconds have passed)."""

    pending: tuple[int, ...]
    next_timer: float | None


@dataclass(frozen=True, slots=True)
class ChangeRefused:
    """The program called `add_tools` or `remove_tools` and was refused; it goes on.

    `more`: at the program's end, how many further attempts there were that were not told one by one.
    """

    name: str
    line: int | None
    more: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """The program is over and its process is gone or dying."""

    result: ProgramResult


ProgramEvent: TypeAlias = CallRequested | CallForged | CallCancelled | Blocked | ChangeRefused | Ended
