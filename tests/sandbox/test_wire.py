"""The wire, host's side, without a process: what a hostile child can send, and what comes of it."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptc_sandbox.errors import ProtocolViolation
from ptc_sandbox.limits import Limits
from ptc_sandbox.wire import (
    RECEIVE,
    BlockedFrame,
    CallFrame,
    CancelFrame,
    EndFrame,
    OutputFrame,
    Ready,
    State,
    Wire,
)

LIMITS = Limits(argument_bytes=4096, result_bytes=4096, output_bytes=4096)


def frame(value: Any) -> bytes:
    return raw(json.dumps(value).encode())


def raw(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


def running() -> Wire:
    wire = Wire(LIMITS)
    assert wire.receive(frame(["ready"])) == [Ready()]
    wire.start({"code": ""})
    return wire


def test_a_run_from_ready_to_end() -> None:
    """The ordinary course of frames gives the ordinary course of events."""
    wire = running()
    data = frame(["call", 1, "get", {"i": 1}, 3, None]) + frame(["blocked", 1, [1], None])
    assert wire.receive(data) == [CallFrame(1, "get", {"i": 1}, 3), BlockedFrame(1, (1,), None)]
    wire.answer(1, 10, True, 1)
    assert wire.receive(frame(["out", "hello"])) == [OutputFrame("hello")]
    assert wire.receive(frame(["end", {"status": "completed", "value": 1}])) == [
        EndFrame("completed", 1, None)
    ]
    assert wire.state is State.ENDED


@given(cuts=st.lists(st.integers(0, 80), max_size=10))
def test_frames_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    """A socket may deliver any number of bytes at a time."""
    data = frame(["call", 1, "get", {"i": 1}, 3, None]) + frame(["cancel", 1]) + frame(["out", "x"])
    wire = running()
    events = []
    start = 0
    for end in [*sorted({min(cut, len(data)) for cut in cuts}), len(data)]:
        events += wire.receive(data[start:end])
        start = end
    assert events == [CallFrame(1, "get", {"i": 1}, 3), CancelFrame(1), OutputFrame("x")]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff" * 64, "4294967295 bytes"),
        (b"\x00\x00\x00\x7f", "bytes is announced"),
        (raw(b"\xff\xfe{}"), "strict JSON"),
        (raw(b"{}"), "not an array"),
        (raw(b"[]"), "not an array"),
        (raw(b""), "strict JSON"),
        (frame([7]), "not an array"),
        (raw(b'["call",1,"get",{"i":1,"i":2},3,null]'), "duplicate key"),
        (raw(b'["end",{"status":"completed","value":NaN}]'), "strict JSON"),
        (raw(b'["end",{"status":"completed","value":1e999}]'), "strict JSON"),
        (raw(b'["out","\\ud800"]'), "strict JSON"),
        (raw(b'["call",1,"get",{"i":' + b"[" * 200 + b"]" * 200 + b"},3,null]"), "deep"),
        (frame(["call", 2, "get", {}, None, None]), "follows 0"),
        (frame(["call", 0, "get", {}, None, None]), "not of its form"),
        (frame(["call", 2**60, "get", {}, None, None]), "not of its form"),
        (frame(["call", 1, "get", {}, -1, None]), "not of its form"),
        (frame(["call", 1, "get", {}, 10**400, None]), "not of its form"),
        (frame(["cancel", True]), "not of its form"),
        (frame(["blocked", 1, [], 10**400]), "not of its form"),
        (frame(["blocked", -1, [], None]), "not of its form"),
        (frame(["blocked", 1, [True], None]), "never made"),
        (frame(["call", True, "get", {}, None, None]), "not of its form"),
        (frame(["call", 1.0, "get", {}, None, None]), "not of its form"),
        (frame(["call", 1, "get", [], None, None]), "not of its form"),
        (frame(["call", 1, "get", {}, "3", None]), "not of its form"),
        (frame(["cancel", 1]), "not of its form"),
        (frame(["blocked", 1, [1], None]), "never made"),
        (frame(["blocked", 99, [], None]), "more than was sent"),
        (frame(["ready"]), "RUNNING"),
        (frame(["unconfined", "x", "y"]), "RUNNING"),
        (frame(["answer", 1, 0, True, "forged"]), "RUNNING"),
        (frame(["start", {}]), "RUNNING"),
        (frame(["__class__"]), "RUNNING"),
        (frame(["end", {"status": "killed:time"}]), "not of its form"),
        (frame(["end", {"status": "completed"}]), "not of its form"),
        (frame(["refused", "rm", 1]), "not of its form"),
        (frame(["end", {"status": "completed", "value": 1, "x": 2}]), "not of its form"),
        (frame(["end", {"status": "memory", "value": 1}]), "not of its form"),
        (frame(["end", {"status": "raised", "error": {}, "value": 1}]), "not of its form"),
        (frame(["end", {"status": "raised", "error": {"type": "E", "x": 1}}]), "not of its form"),
        (frame(["call", 1, "get", {}, None, None]) + frame(["cancel", 1]) * 2, "cancelled twice"),
        (frame(["call", 1, "get", {}, None, None]) + frame(["blocked", 1, [1, 1], None]), "a call twice"),
        (frame(["call", 1, "get", {"i": "x" * 8192}, 1, None]), "announced"),
    ],
)
def test_a_breach_ends_the_connection(data: bytes, says: str) -> None:
    """Host wall: one bad frame is a ProtocolViolation, and nothing after it is read."""
    wire = (
        Wire(LIMITS.replace(output_bytes=1, result_bytes=1, argument_bytes=1))
        if "announced" in says
        else running()
    )
    if "announced" in says and wire.state is State.FORKED:
        data = struct.pack("<I", LIMITS.frame_bytes * 100)
    with pytest.raises(ProtocolViolation, match=says):
        wire.receive(data)
    assert wire.state is State.BROKEN
    with pytest.raises(ProtocolViolation):
        wire.receive(frame(["out", "x"]))


def test_a_call_may_say_that_the_program_waits_for_it() -> None:
    """The common case, calls one after the other, takes one frame, and is held to what `blocked` is held to."""
    wire = running()
    (call,) = wire.receive(frame(["call", 1, "get", {}, None, 1]))
    assert call == CallFrame(1, "get", {}, None, BlockedFrame(1, (1,), None))
    with pytest.raises(ProtocolViolation, match="more than was sent"):
        wire.receive(frame(["call", 2, "get", {}, None, 7]))


def test_nothing_may_come_before_the_start() -> None:
    """Host wall: a child that speaks before it has a program is not one of ours any more."""
    wire = Wire(LIMITS)
    wire.receive(frame(["ready"]))
    with pytest.raises(ProtocolViolation, match="READY"):
        wire.receive(frame(["call", 1, "get", {}, None, None]))


def test_a_truncated_frame_at_the_end_is_a_breach() -> None:
    """A child that dies inside a frame did not end in order."""
    wire = running()
    wire.receive(frame(["out", "x"])[:5])
    with pytest.raises(ProtocolViolation, match="into a frame"):
        wire.closed()


def test_a_blocked_is_stale_once_something_was_sent_after_it() -> None:
    """A child that was blocked before our answer reached it is not blocked any more."""
    wire = running()
    wire.receive(frame(["call", 1, "get", {}, None, None]) + frame(["call", 2, "get", {}, None, None]))
    (before,) = wire.receive(frame(["blocked", 1, [1, 2], None]))
    assert isinstance(before, BlockedFrame)
    assert not wire.is_stale(before)
    wire.answer(1, 5, True, None)
    assert wire.is_stale(before)
    (after,) = wire.receive(frame(["blocked", 2, [2], 700]))
    assert after == BlockedFrame(2, (2,), 700)
    assert not wire.is_stale(after)


def test_values_are_counted_before_they_are_built() -> None:
    """Host wall: a small text of brackets would take many times its size as Python values."""
    wire = Wire(LIMITS.replace(values=100))
    wire.receive(frame(["ready"]))
    wire.start({"code": ""})
    wire.receive(frame(["call", 1, "get", {"i": [[]] * 20}, None, None]))
    with pytest.raises(ProtocolViolation, match="JSON values"):
        wire.receive(frame(["call", 2, "get", {"i": [[]] * 60}, None, None]))


def test_the_values_of_all_calls_are_bounded() -> None:
    """Host wall: the journal keeps every call's arguments."""
    wire = Wire(LIMITS.replace(values=50))
    wire.receive(frame(["ready"]))
    wire.start({"code": ""})
    calls = b"".join(frame(["call", number, "get", {"i": [1] * 20}, None, None]) for number in range(1, 100))
    with pytest.raises(ProtocolViolation, match="the calls hold more"):
        wire.receive(calls)


def test_a_flood_of_frames_ends() -> None:
    """Host wall: frames that cost the child nothing cost the host a little each."""
    wire = running()
    wire.receive(frame(["call", 1, "get", {}, None, None]))
    with pytest.raises(ProtocolViolation, match="frames"):
        wire.receive(frame(["out", ""]) * 200_000)


def test_what_follows_the_end_is_nobodys() -> None:
    """Whatever a finaliser writes after the result changes nothing, however the bytes arrive."""
    wire = running()
    (end,) = wire.receive(
        frame(["end", {"status": "completed", "value": 1}]) + frame(["call", 1, "x", {}, None, None])
    )
    assert end == EndFrame("completed", 1, None)


def test_buffering_is_bounded_by_the_largest_frame() -> None:
    """Host wall: bytes are kept only for a frame whose announced size is allowed."""
    wire = running()
    wire.receive(struct.pack("<I", LIMITS.frame_bytes) + b"x" * 100)
    assert len(wire._buffer) == 104
    with pytest.raises(ProtocolViolation):
        running().receive(struct.pack("<I", LIMITS.frame_bytes + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
KINDS = sorted({kind for table in RECEIVE.values() for kind in table} | {"start", "answer", "tick", "result"})
FRAMES = (
    st.tuples(st.sampled_from(KINDS), st.lists(JSON, max_size=5)).map(lambda t: frame([t[0], *t[1]]))
    | JSON.map(frame)
    | st.binary(max_size=64)
    | st.binary(max_size=64).map(raw)
    | st.integers(1, 3).map(lambda n: frame(["call", n, "get", {}, None, None]))
    | st.text(max_size=20).map(lambda t: frame(["out", t]))
)


@given(st.lists(FRAMES, max_size=8))
def test_no_bytes_raise_anything_but_a_violation(chunks: list[bytes]) -> None:
    """Host wall: whatever a child sends is an event or a ProtocolViolation, and the buffer stays bounded."""
    wire = running()
    for chunk in chunks:
        try:
            wire.receive(chunk)
        except ProtocolViolation:
            break
        assert len(wire._buffer) <= LIMITS.frame_bytes + 4


def test_the_host_may_send_only_what_the_state_allows() -> None:
    """A host that answers before it started a program has a bug, and hears of it."""
    with pytest.raises(RuntimeError, match="FORKED"):
        Wire(LIMITS).answer(1, 0, True, None)
