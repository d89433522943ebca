"""The conversation as a state machine: what it sends, what it makes of a response, and who is to blame."""

from __future__ import annotations

import json
from random import Random
from typing import Any, get_args

import pytest

from ptc.conversation import TRANSITIONS, Conversation, State, Step
from ptc.errors import (
    InvalidInput,
    LocalProtocolError,
    ReasoningNotReplayable,
    RemoteProtocolError,
    UnansweredCalls,
)
from ptc.events import (
    ApprovalRequested,
    CallRequested,
    Commentary,
    Continues,
    Failed,
    Finished,
    Incomplete,
    ProgramClosed,
    ProgramOpened,
    ProgramPaused,
    Refused,
    SearchRequested,
    StillRunning,
)
from ptc.items import output_item
from tests.ptc.loop_fakes import (
    answer,
    by_program,
    commentary,
    function_call,
    program,
    program_output,
    reasoning,
    refusal,
    response,
)


def started(**options: Any) -> Conversation:
    conversation = Conversation(**options)
    conversation.send("hello")
    conversation.request()
    return conversation


def kinds(events: tuple[object, ...]) -> list[type]:
    return [type(event) for event in events]


def test_every_step_has_a_place_in_the_table() -> None:
    """A step that no state allows would be dead, and a state without a row would end in a KeyError."""
    assert set(TRANSITIONS) == set(State)
    assert {step for row in TRANSITIONS.values() for step in row} == set(Step)


def test_a_text_becomes_a_user_message_and_the_request_stores_nothing() -> None:
    """The default keeps the history with the application."""
    conversation = Conversation()
    conversation.send("hello")
    assert conversation.request() == {
        "store": False,
        "input": [{"type": "message", "role": "user", "content": "hello"}],
        "include": ["reasoning.encrypted_content"],
    }


def test_a_request_without_input_is_the_hosts_mistake() -> None:
    """Local errors name step and state, so that a reader knows which rule was broken."""
    with pytest.raises(
        LocalProtocolError, match="'request' is not possible while the conversation is resting"
    ):
        Conversation().request()


def test_a_response_that_nobody_asked_for_is_the_hosts_mistake() -> None:
    """A response is taken only after a request."""
    conversation = Conversation()
    conversation.send("hello")
    with pytest.raises(LocalProtocolError, match="no response is expected while ready"):
        conversation.receive(response(answer()))


def test_input_is_refused_while_a_call_waits() -> None:
    """A message between a call and its output breaks the history."""
    conversation = started()
    conversation.receive(response(function_call()))
    with pytest.raises(UnansweredCalls, match="c1") as error:
        conversation.send("never mind")
    assert error.value.call_ids == ("c1",)


def test_a_call_is_answered_once() -> None:
    """Two outputs for one call are a 400."""
    conversation = started()
    conversation.receive(response(function_call(), function_call(call_id="c2")))
    conversation.answer("c1", output_item(function_call(), "1"))
    with pytest.raises(LocalProtocolError, match="'c1' was answered already"):
        conversation.answer("c1", output_item(function_call(), "1"))
    with pytest.raises(LocalProtocolError, match="'c9' is not pending"):
        conversation.answer("c9", output_item(function_call(call_id="c9"), "1"))


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (
            {"type": "custom_tool_call_output", "call_id": "c1", "output": ""},
            "answered by a function_call_output",
        ),
        ({"type": "function_call_output", "call_id": "c2", "output": ""}, "names another call"),
        ({"type": "function_call_output", "call_id": "c1", "output": ""}, "`caller` unchanged"),
        (
            {"type": "function_call_output", "call_id": "c1", "output": "", "caller": by_program(more=1)},
            "`caller` unchanged",
        ),
    ],
)
def test_an_output_that_the_service_would_refuse_is_refused_here(item: dict[str, Any], what: str) -> None:
    """The host's mistake is found where it was made, not as a 400 of the next request."""
    conversation = started()
    conversation.receive(response(program(), function_call(caller=by_program())))
    with pytest.raises(LocalProtocolError, match=what):
        conversation.answer("c1", item)


def test_outputs_go_back_in_the_order_of_the_calls() -> None:
    """The history is the same however fast each call was."""
    conversation = started()
    calls = [function_call(call_id=f"c{n}") for n in range(4)]
    conversation.receive(response(*calls))
    for call in (calls[2], calls[0], calls[3], calls[1]):
        conversation.answer(call["call_id"], output_item(call, "ok"))
    outputs = [item["call_id"] for item in conversation.history if item["type"] == "function_call_output"]
    assert outputs == ["c0", "c1", "c2", "c3"]


def test_a_program_opens_pauses_and_closes() -> None:
    """Drivers and streams follow a program by these three events."""
    conversation = started()
    call = function_call(caller=by_program())
    opened = conversation.receive(response(reasoning(), program(), call))
    assert kinds(opened) == [ProgramOpened, CallRequested, ProgramPaused]
    assert opened[2] == ProgramPaused("cp", ("c1",))
    assert conversation.open_programs == ("cp",)
    conversation.answer("c1", output_item(call, "{}"))
    conversation.request()
    closed = conversation.receive(response(program_output(result="42"), answer("It is 42.")))
    assert kinds(closed) == [ProgramClosed, Finished]
    assert closed[1] == Finished("It is 42.")
    assert conversation.open_programs == ()


def test_each_client_owned_call_has_its_event() -> None:
    """Functions, custom tools, shell and patches are run; approvals and searches are asked."""
    conversation = started()
    events = conversation.receive(
        response(
            function_call(),
            {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "grep", "input": "x"},
            {
                "type": "shell_call",
                "id": "sh",
                "call_id": "c3",
                "action": {"commands": ["ls"]},
                "status": "in_progress",
            },
            {
                "type": "apply_patch_call",
                "id": "ap",
                "call_id": "c4",
                "operation": {},
                "status": "in_progress",
            },
            {"type": "mcp_approval_request", "id": "mr", "server_label": "s", "name": "t", "arguments": "{}"},
            {"type": "tool_search_call", "id": "ts", "call_id": "c6", "execution": "client", "arguments": {}},
        )
    )
    assert kinds(events) == [CallRequested] * 4 + [ApprovalRequested, SearchRequested]
    assert list(conversation.pending) == ["c1", "c2", "c3", "c4", "mr", "c6"]


def test_what_the_service_answered_itself_is_not_pending() -> None:
    """A shell call in the provider's container comes with its output; a server-side search too."""
    conversation = started()
    events = conversation.receive(
        response(
            {
                "type": "shell_call",
                "id": "sh",
                "call_id": "c3",
                "action": {"commands": ["ls"]},
                "status": "completed",
            },
            {"type": "shell_call_output", "id": "so", "call_id": "c3", "output": []},
            {"type": "tool_search_call", "id": "ts", "call_id": None, "execution": "server", "arguments": {}},
            {"type": "tool_search_output", "id": "to", "call_id": None, "execution": "server", "tools": []},
            answer(),
        )
    )
    assert kinds(events) == [Finished]


def test_failed_and_cancelled_responses_leave_the_history_as_it_was() -> None:
    """The same input may be sent again."""
    for status in ("failed", "cancelled"):
        conversation = started()
        events = conversation.receive(
            response(status=status, error={"code": "server_error", "message": "oops"})
        )
        assert events == (Failed(status, "server_error", "oops"),)
        assert len(conversation.history) == 1
        assert conversation.request()["input"] == conversation.history


def test_a_background_response_is_waited_for() -> None:
    """`queued` and `in_progress` ask for another look, and the id says at what."""
    conversation = started(mode="previous_response")
    assert conversation.receive(response(status="queued", id="r7")) == (StillRunning("r7", "queued"),)
    assert conversation.receive(response(status="in_progress", id="r7")) == (
        StillRunning("r7", "in_progress"),
    )
    assert kinds(conversation.receive(response(answer(), id="r7"))) == [Finished]


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ([function_call(), function_call()], "two calls of one response have the call id 'c1'"),
        ([{**function_call(), "call_id": None}], "came without a call id"),
        ([{**program(), "call_id": ""}], "program item came without a call id"),
        ([program(), program()], "second program"),
        ("nonsense", "not a list"),
        ([1], "not a list"),
    ],
)
def test_a_response_that_breaks_the_protocol_ends_the_conversation(output: Any, what: str) -> None:
    """The service is to blame, nothing of the response runs, and nothing more is sent."""
    conversation = started()
    broken = {**response(), "output": output}
    if output == [program(), program()]:
        conversation.receive(response(program()))
        conversation.request()
    with pytest.raises(RemoteProtocolError, match=what):
        conversation.receive(broken)
    assert conversation.state is State.BROKEN
    with pytest.raises(LocalProtocolError, match="while the conversation is broken"):
        conversation.request()


def test_input_items_may_be_objects_of_the_sdk() -> None:
    """They are taken by `to_dict()`, and what the SDK adds for itself is not sent."""
    from openai.types.responses import ResponseFunctionToolCall

    raw = function_call(**{"async": True, "caller": None, "parsed_arguments": {"x": 1}})
    call = ResponseFunctionToolCall.model_validate(raw)
    conversation = Conversation()
    conversation.send([call, {"type": "function_call_output", "call_id": "c1", "output": "1"}])
    sent = conversation.request()["input"]
    assert isinstance(sent, list)
    assert sent[0] == function_call(**{"async": True, "caller": None})


def output(text: str = "1", **fields: Any) -> Any:
    return {"type": "function_call_output", "call_id": "c1", "output": text} | fields


def test_an_id_may_be_used_again_once_its_call_was_answered() -> None:
    """Some services count calls anew in each response."""
    again = [function_call(), output(), function_call(arguments={"x": 2}), output("2")]
    Conversation().send([{"role": "user", "content": "hi"}, *again])


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (7, "the input is a int"),
        ([], "empty"),
        ([object()], "an input item is a object"),
        ([{"text": "hi"}], "neither `type` nor `role`"),
        ([function_call()], "call c1 has no output"),
        ([function_call(), output(), output()], "call c1 has two outputs"),
        ([function_call(), output("a"), output("b")], "call c1 has two outputs"),
        ([function_call(), function_call(), output()], "two calls with the id c1 wait"),
        ([function_call(), output(type="custom_tool_call_output")], "a function_call_output, not"),
        ([function_call(), {"type": "function_call_output", "call_id": "c1"}], "has no `output`"),
        (
            [program(), function_call(caller=by_program()), output(), program_output()],
            "carry the call's `caller`",
        ),
        ([program(), function_call(), output(caller=by_program())], "carry the call's `caller`"),
        ([program(), program(), program_output()], "two programs have the call id cp"),
        ([program(), program_output(), program_output()], "program cp has two outputs"),
        ([{"type": "item_reference", "id": "rs_1"}], "item references mean nothing"),
        ([reasoning(encrypted=None)], "no encrypted_content"),
    ],
)
def test_input_that_cannot_be_sent_is_refused(value: object, what: str) -> None:
    """Found before a request, in words that say what to give instead."""
    with pytest.raises(InvalidInput, match=what):
        Conversation().send(value)


def test_modes_and_their_ids_go_together() -> None:
    """An id that a mode would never send is a mistake."""
    with pytest.raises(InvalidInput):
        Conversation(mode="conversation")
    with pytest.raises(InvalidInput):
        Conversation(conversation_id="conv_1")
    with pytest.raises(InvalidInput):
        Conversation(previous_response_id="resp_1")


def test_a_chained_conversation_sends_only_what_is_new() -> None:
    """The service holds the rest behind the last response's id."""
    conversation = started(mode="previous_response")
    call = function_call()
    conversation.receive(response(call, id="resp_1"))
    conversation.answer("c1", output_item(call, "1"))
    body = conversation.request()
    assert body["input"] == [{"type": "function_call_output", "call_id": "c1", "output": "1"}]
    assert (body["previous_response_id"], body["store"]) == ("resp_1", True)
    assert len(conversation.history) == 3


def test_a_chained_conversation_falls_back_to_the_full_input() -> None:
    """When the service lost the chain, what we hold is enough to go on."""
    conversation = started(mode="previous_response")
    conversation.receive(response(answer(), id="resp_1"))
    conversation.send("and now?")
    conversation.request()
    conversation.give_up()
    assert conversation.forget_server_state()
    body = conversation.request()
    assert "previous_response_id" not in body
    assert body["input"] == conversation.history


def test_a_chain_that_began_elsewhere_has_nothing_to_fall_back_to() -> None:
    """We never saw its beginning."""
    conversation = started(mode="previous_response", previous_response_id="resp_0")
    conversation.give_up()
    assert not conversation.forget_server_state()


def test_a_stored_conversation_sends_its_id_and_what_is_new() -> None:
    """The conversation object collects items by itself."""
    conversation = started(mode="conversation", conversation_id="conv_1")
    conversation.receive(response(answer()))
    conversation.send("more")
    assert conversation.request() == {
        "store": True,
        "conversation": "conv_1",
        "input": [{"type": "message", "role": "user", "content": "more"}],
    }


def test_history_is_replaced_at_a_boundary_only() -> None:
    """A cut through an open call or program leaves orphans that the service refuses."""
    conversation = started()
    call = function_call(caller=by_program())
    conversation.receive(response(program(), call))
    assert not conversation.at_boundary
    with pytest.raises(LocalProtocolError):
        conversation.replace_history([])
    conversation.answer("c1", output_item(call, "{}"))
    assert not conversation.at_boundary
    conversation.request()
    conversation.receive(response(program_output(), answer()))
    assert conversation.at_boundary
    with pytest.raises(InvalidInput, match="has no output"):
        conversation.replace_history([function_call()])
    conversation.replace_history([{"role": "user", "content": "summary"}])
    assert len(conversation.history) == 1


def test_refusal_commentary_and_unfinished_turns_are_told_apart() -> None:
    """Each is another thing to a driver."""
    assert started().receive(response(refusal("No."))) == (Refused("No.", ""),)
    assert kinds(started().receive(response(commentary()))) == [Commentary, Continues]
    assert kinds(started().receive(response(reasoning()))) == [Continues]
    cut = response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert started().receive(cut) == (Incomplete("max_output_tokens", ""),)


def test_reasoning_that_cannot_be_replayed_fails_before_anything_runs() -> None:
    """The next request would be a 404; tools that ran by then would have run for nothing."""
    conversation = started()
    with pytest.raises(ReasoningNotReplayable, match="rs_1"):
        conversation.receive(response(reasoning(encrypted=None), function_call()))
    assert conversation.state is State.BROKEN


def test_reasoning_of_open_models_carries_itself() -> None:
    """They send its text in the clear, and take it back so."""
    plain = {**reasoning(encrypted=None), "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert kinds(started().receive(response(plain, function_call()))) == [CallRequested]


def sdk_item_types() -> list[str]:
    """Every `type` of the installed SDK's unions of output and input items."""
    from openai.types.responses import response_input_item_param as inputs
    from openai.types.responses import response_output_item as outputs

    found: set[str] = set()
    for model in get_args(get_args(outputs.ResponseOutputItem)[0]):
        found |= set(get_args(model.model_fields["type"].annotation))
    for param in get_args(inputs.ResponseInputItemParam):
        annotation = param.__annotations__.get("type")
        text = annotation.__forward_arg__ if hasattr(annotation, "__forward_arg__") else str(annotation)
        found |= set(text.replace("'", '"').split('"')[1::2])
    return sorted(found)


def some_json(random: Random, depth: int = 2) -> Any:
    kinds: list[Any] = [None, True, random.randint(-(10**20), 10**20), random.random(), "é\u2028\n", ""]
    if depth:
        kinds.append([some_json(random, depth - 1) for _ in range(random.randint(0, 2))])
        kinds.append({f"k{n}": some_json(random, depth - 1) for n in range(random.randint(0, 2))})
    return random.choice(kinds)


def some_item(random: Random, types: list[str], name: str) -> dict[str, Any]:
    """An item of some type, with its own fields where they matter and some that nobody knows."""
    extra = {
        field: some_json(random)
        for field in ("x_new", "async", "caller", "metadata")
        if random.random() < 0.3
    }
    kind = random.choice(types)
    item = {**extra, "type": kind, "id": f"id_{name}", "call_id": f"c_{name}"}
    own: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": [], "encrypted_content": "sealed"},
        "program": {"code": "text(1)", "fingerprint": "f"},
        "function_call": {"name": "f", "arguments": random.choice(["{}", "", "{"]), "status": None},
        "tool_search_call": {
            "execution": random.choice(["client", "server"]),
            "arguments": some_json(random),
        },
        "message": {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hm"}],
            "phase": "commentary",
        },
    }
    return item | own.get(kind, {})


def test_history_out_equals_history_in_for_a_thousand_histories() -> None:
    """Over every item type of the SDK, and one that it does not know: replayed as received, byte for byte."""
    types = [*sdk_item_types(), "item_of_tomorrow"]
    seen: set[str] = set()
    for seed in range(1000):
        random = Random(seed)
        conversation = Conversation()
        conversation.send("begin")
        for turn in range(random.randint(1, 4)):
            output = [some_item(random, types, f"{turn}_{n}") for n in range(random.randint(1, 4))]
            seen |= {item["type"] for item in output}
            received = json.dumps(output)
            conversation.request()
            conversation.receive(response(*output))
            assert json.dumps(conversation.history[-len(output) :]) == received, seed
            for call_id, call in conversation.pending.items():
                conversation.answer(call_id, answer_for(call.item))
        assert json.dumps(conversation.request()["input"]) == json.dumps(conversation.history), seed
    assert seen == set(types)


def answer_for(item: dict[str, Any]) -> dict[str, Any]:
    from ptc.outputs import output_for
    from ptc.reading import pending_of
    from ptc_tools.outcome import Success

    (pending,) = pending_of([item], whole=True)
    value: Any = {"image_url": "data:,"} if item["type"] == "computer_call" else "ok"
    return output_for(pending, Success(value), None)


FIELDS = [
    "call_id",
    "name",
    "arguments",
    "caller",
    "status",
    "id",
    "namespace",
    "input",
    "action",
    "operation",
    "code",
    "result",
    "fingerprint",
    "role",
    "content",
    "phase",
    "summary",
    "encrypted_content",
    "execution",
    "tools",
    "server_label",
    "output",
]


def some_nonsense(random: Random, types: list[str], number: int) -> Any:
    """An item of some type with fields of any kind."""
    item: dict[str, Any] = {"type": random.choice([*types, "x_call", "x_output", None, 5])}
    words = [
        "c2",
        "cp",
        '{"x":1}',
        by_program(),
        None,
        "completed",
        "incomplete",
        "assistant",
        "final_answer",
    ]
    for field in FIELDS:
        if random.random() < 0.6:
            item[field] = random.choice([some_json(random), f"c{number}", f"c{number}", "client", *words])
    return item if random.random() < 0.98 else some_json(random)


def test_whatever_the_service_sends_it_is_taken_or_it_is_the_services_fault() -> None:
    """No other error, and what was taken can be answered and sent back."""
    types = sdk_item_types()
    taken = 0
    for seed in range(3000):
        random = Random(seed)
        conversation = started()
        received: Any = response(*[{} for _ in range(0)])
        received["output"] = [some_nonsense(random, types, n) for n in range(random.randint(0, 4))]
        received["status"] = random.choice(
            ["completed"] * 6 + ["incomplete", "failed", "queued", "new", None, 7]
        )
        for field in ("error", "incomplete_details", "usage", "id", "output"):
            if random.random() < 0.1:
                received[field] = some_json(random)
        if random.random() < 0.02:
            received = some_json(random)
        try:
            conversation.receive(received)
        except RemoteProtocolError:
            assert conversation.state is State.BROKEN, seed
            continue
        for call_id, call in conversation.pending.items():
            conversation.answer(call_id, answer_for(call.item))
        if conversation.state is State.READY:
            json.dumps(conversation.request())
        taken += 1
    assert taken > 500
