"""The journal: its format, its seal, and what a replay compares."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptc_sandbox.errors import JournalError, JournalForged, ReplayIncompatible
from ptc_sandbox.journal import Answer, CallAnswered, CallDropped, CallMade, Journal, JournalHeader, Ticked
from ptc_sandbox.replay import Replay
from ptc_tools.outcome import Denied, Failure, Success

SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), SCALARS, max_size=3)
NUMBERS = st.integers(1, 99)
ENTRIES = st.one_of(
    st.builds(CallMade, NUMBERS, st.none() | st.just("ns"), st.just("get"), OBJECTS, st.none() | NUMBERS),
    st.builds(CallAnswered, NUMBERS, st.builds(Answer, st.just(True), SCALARS), NUMBERS),
    st.builds(CallAnswered, NUMBERS, st.just(Answer.of(Denied("not_approved", "no"))), NUMBERS),
    st.builds(CallDropped, NUMBERS),
    st.builds(Ticked, NUMBERS),
)
KEY = b"k" * 32


def journal(*entries: Any) -> Journal:
    return Journal(JournalHeader.new(seed=1, epoch_us=2), entries)


@given(st.lists(ENTRIES, max_size=6))
def test_json_and_seal_give_back_what_went_in(entries: list[Any]) -> None:
    """A journal survives storage, byte for byte."""
    made = journal(*entries)
    assert Journal.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert Journal.unseal(made.seal(KEY), KEY) == made


def test_a_changed_seal_is_refused_at_every_byte() -> None:
    """No edit of a sealed journal, however small, is taken for the journal."""
    token = journal(CallMade(1, None, "get", {"i": 1}), CallAnswered(1, Answer(True, 1), 5)).seal(KEY)
    for index in range(len(token)):
        for letter in "AB":
            if token[index] == letter:
                continue
            changed = token[:index] + letter + token[index + 1 :]
            try:
                assert Journal.unseal(changed, KEY) == Journal.unseal(token, KEY)
            except JournalForged:
                continue
            # Only bits that base64 does not use may differ without changing the journal.
            assert index in (token.rindex(".") - 1, len(token) - 1)
    with pytest.raises(JournalForged):
        Journal.unseal(token, b"another key")


@pytest.mark.parametrize("value", [None, [], {}, {"header": {}}, {"header": {"seed": 1}, "entries": []}, "x"])
def test_what_is_no_journal_is_a_journal_error(value: Any) -> None:
    """Anything else than a journal is refused in words, not by an AttributeError."""
    with pytest.raises(JournalError):
        Journal.from_json(value)


def test_an_unknown_entry_is_refused() -> None:
    """A journal of a newer version is not guessed at."""
    data: Any = journal().to_json()
    data["entries"] = [["teleport", 1]]
    with pytest.raises(JournalError, match="does not know"):
        Journal.from_json(data)


@pytest.mark.parametrize(
    "answer", [None, "boom", {}, {"status": "denied"}, {"status": 1, "code": "x", "message": "y"}]
)
def test_an_error_of_another_shape_is_refused(answer: Any) -> None:
    """What a program is told of a failure is built from these fields."""
    data: Any = journal(CallMade(1, None, "get", {})).to_json()
    data["entries"].append(["answer", 1, False, answer, 1])
    with pytest.raises(JournalError, match="does not know"):
        Journal.from_json(data)


@pytest.mark.parametrize(
    "entries",
    [
        (CallAnswered(1, Answer(True, 1), 1),),
        (CallDropped(1),),
        (CallMade(2, None, "get", {}),),
        (CallMade(1, None, "get", {}), CallMade(1, None, "get", {})),
        (
            CallMade(1, None, "get", {}),
            CallAnswered(1, Answer(True, 1), 1),
            CallAnswered(1, Answer(True, 2), 2),
        ),
        (CallMade(1, None, "get", {}), CallAnswered(1, Answer(True, 1), 1), CallDropped(1)),
        (Ticked(5), Ticked(4)),
    ],
)
def test_what_no_run_can_have_written_is_refused(entries: Any) -> None:
    """An answer to no call, a second answer, a skipped number or a clock that goes back is not a journal."""
    with pytest.raises(JournalError):
        Replay(entries)


def test_a_seal_holds_what_the_wire_lets_through() -> None:
    """Arguments as deep as a call may have can be stored and read back."""
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    made = journal(CallMade(1, None, "echo", {"x": deep}))
    assert Journal.unseal(made.seal(KEY), KEY) == made


@pytest.mark.parametrize("field", ["python", "machine", "policy", "stubs", "code", "clock"])
def test_a_header_that_differs_is_named(field: str) -> None:
    """A replay on another machine, version or program is refused, and says which field differs."""
    header = JournalHeader.new(seed=1, epoch_us=2)
    with pytest.raises(ReplayIncompatible, match=field):
        header.check(replace(header, **{field: "other"}))


def test_what_a_program_is_told_keeps_the_kinds_apart() -> None:
    """A result, a denial and a failure stay different in the journal."""
    assert Answer.of(Success(1)) == Answer(True, 1)
    denied = Answer.of(Denied("not_approved", "no"))
    failed = Answer.of(Failure("tool_error", "boom"))
    assert denied.value == {"status": "denied", "code": "not_approved", "message": "no"}
    assert failed.value == {"status": "failure", "code": "tool_error", "message": "boom"}


@pytest.mark.parametrize(
    "done",
    [
        CallMade(1, None, "get", {"i": 2}),
        CallMade(1, None, "get", {"i": True}),
        CallMade(1, None, "get", {"i": 1.0}),
        CallMade(1, None, "other", {"i": 1}),
        CallMade(1, "ns", "get", {"i": 1}),
        CallMade(2, None, "get", {"i": 1}),
        CallDropped(1),
    ],
)
def test_any_difference_diverges(done: CallMade | CallDropped) -> None:
    """Another name, number, argument or JSON type at a call is a divergence that names it."""
    divergence = Replay((CallMade(1, None, "get", {"i": 1}),)).matches(done)
    assert divergence is not None
    assert divergence.number == done.number


def test_a_line_that_moved_is_no_divergence() -> None:
    """The line is for the record; what the program does is what counts."""
    assert Replay((CallMade(1, None, "get", {}, 3),)).matches(CallMade(1, None, "get", {}, 4)) is None


@pytest.mark.parametrize("key", [b"", "", None, "secret"])
def test_a_seal_needs_a_key(key: Any) -> None:
    """A seal under no key could be made by anybody."""
    with pytest.raises(JournalError, match="key of bytes"):
        journal().seal(key)
    with pytest.raises(JournalError, match="key of bytes"):
        Journal.unseal(journal().seal(KEY), key)


@pytest.mark.parametrize("token", [None, 5, b"j1.a.b", "", "j1", "j1.\u00e9.b"])
def test_what_is_no_token_is_a_typed_error(token: Any) -> None:
    """Whatever a store gives back, the host meets one kind of exception."""
    with pytest.raises(JournalForged):
        Journal.unseal(token, KEY)


@pytest.mark.parametrize(
    "change",
    [{"seed": "5"}, {"seed": True}, {"epoch_us": 1.0}, {"python": 3}, {"clock": "slow"}, {"version": "1"}],
)
def test_a_header_of_other_types_is_no_journal(change: dict[str, Any]) -> None:
    """A seed that is a text would run another program than the one recorded."""
    data: Any = journal().to_json()
    with pytest.raises(JournalError, match="not a journal"):
        Journal.from_json({**data, "header": {**data["header"], **change}})
