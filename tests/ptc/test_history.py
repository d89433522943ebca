"""Cutting a history: whole units or nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ptc.history import orphans, trim, units
from tests.ptc.loop_fakes import answer, by_program, function_call, program, program_output, reasoning


def user(text: str = "hi") -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def output(call_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "1", **fields}


def program_turn(name: str) -> list[dict[str, Any]]:
    """A whole program: two calls, a hosted item that it owns, outputs, end."""
    caller = by_program(name)
    return [
        program(name),
        function_call(call_id=f"{name}1", caller=caller),
        {"type": "code_interpreter_call", "id": f"ci_{name}", "code": "1", "caller": caller},
        output(f"{name}1", caller=caller),
        function_call(call_id=f"{name}2", caller=caller),
        output(f"{name}2", caller=caller),
        program_output(name),
    ]


def test_a_program_and_all_that_it_owns_are_one_unit() -> None:
    """Hosted items count: a caller without its program is refused by the service."""
    items = [user(), *program_turn("p"), answer()]
    assert units(items) == [(0,), (1, 2, 3, 4, 5, 6, 7), (8,)]


def test_a_parallel_batch_and_its_outputs_are_one_unit() -> None:
    """Half of a batch is an orphan."""
    items = [
        user(),
        function_call(call_id="a"),
        function_call(call_id="b"),
        output("b"),
        output("a"),
        answer(),
    ]
    assert units(items) == [(0,), (1, 2, 3, 4), (5,)]


def test_reasoning_stays_with_what_follows_it() -> None:
    """The service answers 400 for reasoning without its following item."""
    items = [user(), reasoning(), function_call(), output("c1"), reasoning("rs_2"), answer()]
    assert units(items) == [(0,), (1, 2, 3), (4, 5)]


def test_trimming_keeps_instructions_the_question_and_what_is_open() -> None:
    """What a cut may never take."""
    rules = {"type": "message", "role": "developer", "content": "rules"}
    opened = [
        program("q"),
        function_call(call_id="q1", caller=by_program("q")),
        output("q1", caller=by_program("q")),
    ]
    items = [rules, user("old"), answer(), user("new"), *opened]
    assert trim(items, keep=1) == [rules, user("new"), *opened]


def test_trimming_takes_no_more_than_it_has_to() -> None:
    """Oldest first, until it fits."""
    items = [user("1"), answer("1"), *program_turn("p"), user("2"), answer("2")]
    assert trim(items, keep=len(items)) == items
    assert trim(items, keep=len(items) - 2) == items[2:]
    assert trim(items, keep=4) == items[-2:]


@given(
    st.lists(st.sampled_from(["user", "say", "calls", "program", "reason"]), max_size=12),
    st.integers(0, 60),
)
def test_no_cut_leaves_an_orphan(turns: list[str], keep: int) -> None:
    """Whatever the history and wherever it is cut, the rest holds together."""
    items: list[dict[str, Any]] = []
    for number, turn in enumerate(turns):
        if turn == "user":
            items.append(user())
        elif turn == "say":
            items.append(answer())
        elif turn == "calls":
            items += [function_call(call_id=f"{number}{i}") for i in "abc"]
            items += [output(f"{number}{i}") for i in "cab"]
        elif turn == "program":
            items += program_turn(f"p{number}_")
        else:
            items += [reasoning(f"rs_{number}"), function_call(call_id=f"r{number}"), output(f"r{number}")]
    kept = trim(items, keep=keep)
    assert orphans(kept) == []
    for before, after in pairwise(kept):
        if before["type"] == "reasoning":
            assert after["type"] == "function_call"


def test_orphans_are_named() -> None:
    """What the service would refuse, in words that say where."""
    assert orphans([output("c1")]) == ["the output of call c1 has no call before it"]
    assert orphans([program_output("p")]) == ["the output of program p has no program before it"]
    assert orphans([function_call(caller=by_program("p"))]) == [
        "function_call c1 belongs to program p, which is not there",
        "call c1 has no output",
    ]
