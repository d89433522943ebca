"""The peer's reading of requests under hypothesis: whatever comes is answered or refused, and never a crash."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptc.gateway.fingerprint import FINGERPRINT, program_state
from ptc.gateway.history import read_history
from ptc.gateway.ids import OF_A_PROGRAM, Mint, Place, place_of
from ptc.gateway.reasoning import ENCRYPTED_REASONING
from ptc.gateway.rejection import Rejected
from ptc.gateway.request import read_request
from ptc.gateway.seal import BrokenSeal, ForeignSeal, MalformedSeal, Seal, SealError
from ptc.gateway.shapes import ITEMS
from ptc.gateway.stream import encode, response_events
from ptc_tools import strict_json

SEAL = Seal(b"the key of these tests")
MINT = Mint(SEAL)
Item = dict[str, Any]

FUNCTION: Item = {
    "type": "function",
    "name": "get",
    "parameters": {
        "type": "object",
        "properties": {"sku": {"type": "string"}},
        "required": ["sku"],
        "additionalProperties": False,
    },
    "strict": True,
    "allowed_callers": ["direct", "programmatic"],
    "output_schema": {
        "anyOf": [{"type": "object"}, {"$ref": "#/$defs/e"}],
        "$defs": {"e": {"type": "object"}},
    },
}


def a_body() -> Item:
    """A request with one of nearly everything, in order."""
    reasoning = MINT.identify({"type": "reasoning", "summary": []}, Place(0, 0, False), "0" * 10)
    reasoning["encrypted_content"] = SEAL.seal(ENCRYPTED_REASONING, {"id": reasoning["id"]})
    bare = {"type": "program", "call_id": "call_p", "code": "await get(sku='a')"}
    item = MINT.identify(bare, Place(0, 1, True), "0" * 10)
    state = program_state(item, {"seed": 1}, [[None, "get"]], model="m")
    owner = {"type": "program", "caller_id": "call_p"}
    call: Item = {"type": "function_call", "call_id": "call_1", "name": "get", "arguments": '{"sku":"a"}'}
    owned = MINT.identify({**call, "caller": owner}, Place(0, OF_A_PROGRAM, False), "1" * 10)
    direct = MINT.identify({**call, "call_id": "call_2"}, Place(0, 2, False), "2" * 10)
    return {
        "model": "m",
        "instructions": "Be brief.",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tool_choice": {"type": "function", "name": "get"},
        "metadata": {"a": "b"},
        "temperature": 1,
        "tools": [
            FUNCTION,
            {"type": "namespace", "name": "n", "description": "d", "tools": [{**FUNCTION, "name": "g"}]},
            {"type": "custom", "name": "c", "format": {"type": "text"}},
            {"type": "tool_search", "execution": "client"},
            {"type": "programmatic_tool_calling"},
        ],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            reasoning,
            {**item, "fingerprint": SEAL.seal(FINGERPRINT, state)},
            owned,
            direct,
            {"type": "function_call_output", "call_id": "call_1", "output": '{"a":1}', "caller": owner},
            {"type": "function_call_output", "call_id": "call_2", "output": "x"},
            {"type": "tool_search_call", "call_id": "call_s", "arguments": {}, "execution": "client"},
            {"type": "tool_search_output", "call_id": "call_s", "tools": [FUNCTION], "execution": "client"},
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "server_label": "s",
                "name": "n",
                "arguments": "{}",
            },
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {
                "type": "local_shell_call",
                "id": "ls_1",
                "call_id": "call_l",
                "action": {},
                "status": "completed",
            },
            {"type": "local_shell_call_output", "id": "call_l", "output": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
        ],
    }


def read(body: Any) -> None:
    request = read_request(body)
    read_history(request.items, request.tools, SEAL, model="m")


def refusal(body: Any) -> Rejected | None:
    try:
        read(body)
    except Rejected as rejected:
        return rejected
    return None


def test_the_body_that_is_mutated_is_in_order() -> None:
    """Else every mutation would be refused for the same reason."""
    read(a_body())


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["function", "program", "message", "call_1", "call_p", "{}", "direct", "assistant", "\ud7ff"]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "name", "id", "caller", "tools", "call_id", "x"]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        found += paths(inner, (*path, key))
    return found


PATHS = paths(a_body())


def mutate(body: Item, path: tuple[Any, ...], action: str, value: Any) -> None:
    """Change the body at a path, where that still exists."""
    holder: Any = body
    for step in path[:-1]:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return
    key = path[-1]
    if isinstance(holder, dict) and key in holder:
        if action == "delete":
            del holder[key]
        elif action == "rename":
            holder[f"{key}_"] = holder.pop(key)
        else:
            holder[key] = value
    elif isinstance(holder, list) and isinstance(key, int) and key < len(holder):
        if action == "delete":
            del holder[key]
        elif action == "rename":
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = value


mutations = st.tuples(st.sampled_from(PATHS), st.sampled_from(["replace", "delete", "rename"]), values)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(mutations, min_size=1, max_size=3))
def test_a_mutated_request_is_taken_or_refused(changes: list[tuple[tuple[Any, ...], str, Any]]) -> None:
    """Nothing that a client sends makes the peer fail: each answer is a response or a refusal with its words."""
    body = a_body()
    for path, action, value in changes:
        mutate(body, path, action, value)
    rejected = refusal(body)
    if rejected is not None:
        assert rejected.status in (400, 401, 404)
        assert rejected.message
        json.dumps(rejected.body())


@settings(max_examples=500, deadline=None)
@given(values)
def test_any_json_at_all_is_refused_or_taken(body: Any) -> None:
    """A body need not resemble a request."""
    rejected = refusal(body)
    assert rejected is None or rejected.status == 400


known = st.sampled_from(sorted(ITEMS))
json_objects = st.dictionaries(st.text(max_size=5), values, max_size=4)


@given(json_objects, st.text(max_size=5), st.integers(0, 0xFFFF), st.integers(0, 0xFFF), st.booleans())
def test_an_item_is_recognised_as_long_as_it_is_unchanged(
    fields: Item, key: str, turn: int, ordinal: int, reasoned: bool
) -> None:
    """What the id says is what it was made with; and any change to the item is seen."""
    fields = {name: value for name, value in fields.items() if name not in ("created_by", "id", "type")}
    item = MINT.identify({"type": "novel", **fields}, Place(turn, ordinal, reasoned), "0123456789")
    assert place_of(item["id"]) == Place(turn, ordinal, reasoned)
    again = json.loads(strict_json.dumps(item))
    assert MINT.is_unchanged(again)
    assert not MINT.is_unchanged({**again, f"{key}+": 1})
    assert not Mint(Seal(b"another key")).is_unchanged(again)


@given(json_objects, st.integers(0, 300), st.sampled_from("abcdef0123456789.-_"))
def test_a_sealed_text_shows_every_change(value: Item, place: int, letter: str) -> None:
    """One letter is enough; another key and another purpose are seen as well."""
    text = SEAL.seal("a purpose", value)
    assert SEAL.open("a purpose", text) == value
    changed = text[: place % len(text)] + letter + text[place % len(text) + 1 :]
    if changed != text:
        with pytest.raises(SealError):
            SEAL.open("a purpose", changed)
    with pytest.raises(BrokenSeal):
        SEAL.open("another purpose", text)
    with pytest.raises(ForeignSeal):
        Seal(b"another key").open("a purpose", text)


@given(st.text(max_size=60))
def test_a_text_that_nobody_sealed_is_not_opened(text: str) -> None:
    """Whatever it looks like."""
    with pytest.raises(MalformedSeal):
        SEAL.open("a purpose", text)


parts = st.one_of(
    st.builds(lambda text: {"type": "output_text", "text": text, "annotations": []}, st.text(max_size=40)),
    st.builds(lambda text: {"type": "refusal", "refusal": text}, st.text(max_size=40)),
)
items = st.one_of(
    st.builds(
        lambda p: {"type": "message", "id": "m", "content": p, "role": "assistant"},
        st.lists(parts, max_size=3),
    ),
    st.builds(lambda text: {"type": "function_call", "id": "f", "arguments": text}, st.text(max_size=40)),
    st.builds(lambda text: {"type": "custom_tool_call", "id": "c", "input": text}, st.text(max_size=40)),
    st.builds(
        lambda text: {"type": "program", "id": "p", "code": text, "fingerprint": "x"}, st.text(max_size=40)
    ),
    st.builds(
        lambda text: {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text}]},
        st.text(max_size=40),
    ),
    st.builds(lambda more: {**more, "type": "novel"}, json_objects),
)


@given(st.lists(items, max_size=5), st.sampled_from(["completed", "incomplete", "failed"]))
def test_a_stream_comes_to_the_same_output(output: list[Item], status: str) -> None:
    """The `done` items are the output, the deltas add up to the texts, and the numbers have no hole."""
    opened = {"id": "resp", "status": "in_progress", "output": []}
    done = {**opened, "status": status, "output": output}
    events = [json.loads(encode(event).split(b"data: ", 1)[1]) for event in response_events(opened, done)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == output
    assert events[-1]["type"] == f"response.{status}"
    assert events[-1]["response"] == done
    for event in events:
        if event["type"].endswith(".done") and "text" in event:
            deltas = [
                other["delta"]
                for other in events
                if other["type"] == event["type"].removesuffix("done") + "delta"
                and all(
                    other.get(k) == event.get(k) for k in ("output_index", "content_index", "summary_index")
                )
            ]
            assert "".join(deltas) == event["text"]
