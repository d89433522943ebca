"""The wire between host and child, the host's side, without I/O: bytes in, events out, and the other way.

What a child sends is hostile until proven otherwise: sizes are checked before anything is kept, JSON is
strict, every frame is checked against the table of what may come when, and call numbers must count up by
one. A breach raises ProtocolViolation and the connection is dead; nothing here looks a tool up or runs it.

Frames (docs/wire.md), a four-byte little-endian length and a JSON array:

    child → host    ["ready"]  ["unconfined", layer, reason]  ["call", number, name, arguments, line, waits]
                    ["cancel", number]  ["blocked", received, [number…], timer_us]  ["out", text]
                    ["refused", name, line]  ["end", {…}]
    host → child    ["rehearse"]  ["start", {…}]  ["answer", number, clock_us, ok, value]  ["tick", clock_us]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from ptc_sandbox.errors import ProtocolViolation
from ptc_sandbox.guest.channel import AROUND_CALL, FEW, count_values
from ptc_sandbox.journal import Answer, CallAnswered
from ptc_sandbox.limits import Limits
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson
from ptc_tools.outcome import Failure

HEADER: Final = 4
_SLACK: Final = 2048
"""What a frame may hold besides the value that its limit is about."""
_AROUND: Final = 2
_OWN_LEVELS: Final = 4
"""Levels of the frame around a program's value; and of what the host itself says, at most."""
_OWN_VALUES: Final = 16
"""JSON values of a frame that are neither a program's nor the numbers of its calls."""

_FRAMES: Final = 50_000
_FRAMES_A_SECOND: Final = 1000
"""Frames from one program, besides those of its calls and timers: many more than any that is not a flood. What is
printed leaves every other millisecond at most."""
_ERROR_FIELDS: Final = frozenset({"type", "code", "message", "line", "excerpt", "wall"})

REHEARSE: Final = b'\x0c\x00\x00\x00["rehearse"]'
"""The one frame that a child may get before its program, from the pool: there is time, make yourself ready."""


class State(Enum):
    """Of one connection, which serves one program."""

    FORKED = auto()
    READY = auto()
    RUNNING = auto()
    ENDED = auto()
    BROKEN = auto()


RECEIVE: Final[dict[State, dict[str, State]]] = {
    State.FORKED: {"ready": State.READY, "unconfined": State.ENDED},
    State.READY: {},
    State.RUNNING: {
        "call": State.RUNNING,
        "cancel": State.RUNNING,
        "blocked": State.RUNNING,
        "out": State.RUNNING,
        "refused": State.RUNNING,
        "end": State.ENDED,
    },
    State.ENDED: {},
    State.BROKEN: {},
}
"""What a child may send in which state, and the state it leads to. What is not here is a violation."""

SEND: Final[dict[State, dict[str, State]]] = {
    State.READY: {"start": State.RUNNING},
    State.RUNNING: {"answer": State.RUNNING, "tick": State.RUNNING},
}
"""What the host may send. What is not here is the host's own mistake."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The child is confined and waits for a program."""


@dataclass(frozen=True, slots=True)
class Unconfined:
    """The child could not confine itself and has ended. Nothing was run."""

    layer: str
    reason: str


@dataclass(frozen=True, slots=True)
class BlockedFrame:
    """The program can do nothing until one of `pending` is answered or `timer_us` comes.

    True only while it has `received` all that was sent: see `Wire.is_stale`.
    """

    received: int
    pending: tuple[int, ...]
    timer_us: int | None


@dataclass(frozen=True, slots=True)
class CallFrame:
    """The program calls a tool by the name it sees; `blocked` where it can do nothing until it is answered."""

    number: int
    name: str
    arguments: JsonObject
    line: int | None
    blocked: BlockedFrame | None = None


@dataclass(frozen=True, slots=True)
class CancelFrame:
    """The program no longer waits for a call."""

    number: int


@dataclass(frozen=True, slots=True)
class OutputFrame:
    """The program printed."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusedFrame:
    """The program tried to change its tools, by `add_tools` or `remove_tools`, and got an error."""

    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class EndFrame:
    """The program's own account of its end: completed, raised, denied (by the language wall) or memory."""

    status: str
    value: JsonValue
    error: JsonObject | None


WireEvent: TypeAlias = (
    Ready | Unconfined | CallFrame | CancelFrame | BlockedFrame | OutputFrame | RefusedFrame | EndFrame
)


class Wire:
    """One connection. Feed it what was read with `receive`; send what the other methods return."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._most_values = limits.values + _OWN_VALUES
        self._most_frames = (
            _FRAMES + 4 * (limits.calls + limits.ticks) + int(_FRAMES_A_SECOND * limits.wall_seconds)
        )
        self._buffer = bytearray()
        self._sent = 0
        self._frames = 0
        self._kept = 0
        self._cancelled: set[int] = set()
        self.calls = 0
        self.state = State.FORKED

    # -- to the child --------------------------------------------------------------------------------

    def start(self, program: JsonObject) -> bytes:
        return self._send("start", ["start", program])

    def answer(self, number: int, clock_us: int, ok: bool, value: JsonValue) -> bytes:
        """Raises InvalidJson where `value` is not JSON or too deep; nothing is sent then."""
        return self._send("answer", ["answer", number, clock_us, ok, value], 1 if ok else _OWN_LEVELS)

    def fitting(self, entry: CallAnswered) -> tuple[CallAnswered, bytes]:
        """The frame for an answer; where its value cannot enter the program, that of a failure that says so."""
        try:
            data = self.answer(entry.number, entry.clock_us, entry.answer.ok, entry.answer.value)
            if len(data) <= self._limits.answer_bytes:
                return entry, data
            most = self._limits.answer_bytes
            reason = f"the result takes {len(data)} bytes; at most {most}"
        except InvalidJson as error:
            reason = error.message
        failure = Answer.of(Failure("invalid_result", f"the result cannot enter the program: {reason}"))
        entry = CallAnswered(entry.number, failure, entry.clock_us)
        return entry, self.answer(entry.number, entry.clock_us, failure.ok, failure.value)

    def tick(self, clock_us: int) -> bytes:
        return self._send("tick", ["tick", clock_us])

    def _send(self, kind: str, frame: list[JsonValue], around: int = _OWN_LEVELS) -> bytes:
        following = SEND.get(self.state, {}).get(kind)
        if following is None:
            raise RuntimeError(f"a {kind} frame cannot be sent to a child that is {self.state.name}")
        body = strict_json.dumps(frame, max_depth=self._limits.depth + around).encode()
        self.state = following
        self._sent += 1
        return len(body).to_bytes(HEADER, "little") + body

    # -- from the child ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[WireEvent]:
        """The events in `data` and in what was left over before. Raises ProtocolViolation at the first breach."""
        buffer = self._buffer
        buffer += data
        events: list[WireEvent] = []
        start = 0
        try:
            while len(buffer) - start >= HEADER:
                size = int.from_bytes(buffer[start : start + HEADER], "little")
                if size > self._limits.frame_bytes:
                    raise ProtocolViolation(
                        f"a frame of {size} bytes is announced; at most {self._limits.frame_bytes}"
                    )
                end = start + HEADER + size
                if len(buffer) < end:
                    break
                events.append(self._event(bytes(buffer[start + HEADER : end])))
                start = end
                if self.state is State.ENDED:
                    start = len(buffer)  # the end is the end: what follows it is nobody's
        except ProtocolViolation:
            self.state = State.BROKEN
            buffer.clear()
            raise
        del buffer[:start]
        return events

    @property
    def silent(self) -> bool:
        """Whether the child has said nothing but that it is ready."""
        return self._frames <= 1 and not self._buffer

    def closed(self) -> None:
        """The child closed its end. Raises ProtocolViolation where it did so inside a frame."""
        if self._buffer:
            raise ProtocolViolation(f"the child ended {len(self._buffer)} bytes into a frame")

    def _event(self, body: bytes) -> WireEvent:
        self._frames += 1
        if self._frames > self._most_frames:
            raise ProtocolViolation(f"the child sent more than {self._most_frames} frames")
        # Before anything is built of them: a value takes many times its text.
        most = self._most_values
        if body.startswith(b'["blocked",'):  # names calls by their numbers
            most += self._limits.calls
        values = count_values(body, most)
        if values > most:
            raise ProtocolViolation(f"a frame holds {values} JSON values; at most {most}")
        try:
            frame = strict_json.loads(body, max_depth=self._limits.depth + _AROUND)
        except InvalidJson as error:
            raise ProtocolViolation(f"a frame is not strict JSON: {error}") from None
        if not isinstance(frame, list) or not frame or not isinstance(frame[0], str):
            raise ProtocolViolation("a frame is not an array that begins with its name")
        kind = frame[0]
        following = RECEIVE[self.state].get(kind)
        if following is None:
            raise ProtocolViolation(
                f"a frame {kind[:20]!r} may not come from a child that is {self.state.name}"
            )
        event = self._read(frame, len(body))
        if isinstance(event, CallFrame):  # calls stay, in the journal
            self._kept += count_values(body, FEW) - AROUND_CALL
            if self._kept > 4 * self._limits.values:
                raise ProtocolViolation(f"the calls hold more than {4 * self._limits.values} JSON values")
        self.state = following
        return event

    def _read(self, frame: Any, size: int) -> WireEvent:
        match frame:
            case ["call", number, str(name), dict(arguments), line, waits] if (
                _is(number, 1) and _is(line, 0, none=True) and _is(waits, 0, none=True)
            ):
                return self._call(CallFrame(number, name[:200], arguments, line), waits, size)
            case ["cancel", number] if _is(number, 1) and number <= self.calls:
                if number in self._cancelled:
                    raise ProtocolViolation(f"call {number} was cancelled twice")
                self._cancelled.add(number)
                return CancelFrame(number)
            case ["blocked", received, list(pending), timer_us] if _is(received, 0) and _is(
                timer_us, 0, none=True
            ):
                return self._blocked(received, pending, timer_us)
            case ["out", str(text)]:
                return OutputFrame(text)
            case ["refused", "add_tools" | "remove_tools" as name, line] if _is(line, 0, none=True):
                return RefusedFrame(name, line)
            case ["end", {"status": "completed", "value": value, **rest}] if not rest:
                self._bound(size, self._limits.result_bytes, "the program's value")
                return EndFrame("completed", value, None)
            case ["end", {"status": "raised" | "denied" as status, "error": dict(error), **rest}] if (
                not rest and error.keys() <= _ERROR_FIELDS
            ):
                self._bound(size, 64 * 1024, "the program's error")
                return EndFrame(status, None, error)
            case ["end", {"status": "memory", **rest}] if not rest:
                return EndFrame("memory", None, None)
            case ["ready"]:
                return Ready()
            case ["unconfined", str(layer), str(reason)]:
                return Unconfined(layer[:100], reason[:1000])
        raise ProtocolViolation(f"a frame {frame[0][:20]!r} is not of its form")

    def _call(self, call: CallFrame, waits: int | None, size: int) -> CallFrame:
        if call.number != self.calls + 1:
            raise ProtocolViolation(f"call number {call.number} follows {self.calls}")
        self._bound(size, self._limits.argument_bytes, "the arguments of a call")
        self.calls = call.number
        if waits is None:
            return call
        return replace(call, blocked=self._blocked(waits, [call.number], None))

    def is_stale(self, frame: BlockedFrame) -> bool:
        """Whether it was said before our last frame reached the child, and so is no longer true."""
        return frame.received < self._sent

    def _blocked(self, received: int, pending: list[Any], timer_us: int | None) -> BlockedFrame:
        if not all(_is(number, 1) and number <= self.calls for number in pending):
            raise ProtocolViolation("a child is blocked on calls that it never made")
        if len(set(pending)) != len(pending):
            raise ProtocolViolation("a child is blocked on a call twice")
        if received > self._sent:
            raise ProtocolViolation("a child has received more than was sent")
        return BlockedFrame(received, tuple(pending), timer_us)

    @staticmethod
    def _bound(size: int, limit: int, what: str) -> None:
        if size > limit + _SLACK:
            raise ProtocolViolation(f"{what} took {size} bytes; at most {limit}")


def _is(value: object, least: int, *, none: bool = False) -> bool:
    """Whether a child's number is one that the host may compute with: an int, not a bool, not huge."""
    if value is None:
        return none
    return type(value) is int and least <= value < 2**53
