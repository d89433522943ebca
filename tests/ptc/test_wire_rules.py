"""The nineteen rules of the wire that a driver keeps, each by its number."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

import ptc
from ptc.conversation import Conversation
from ptc.history import orphans, trim
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    client_of,
    commentary,
    events_of,
    function_call,
    outputs_in,
    program,
    program_output,
    reasoning,
    response,
)

RAN: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def echo(x: int) -> dict[str, int]:
    """Give x back."""
    RAN.append(x)
    return {"x": x}


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def boom(x: int) -> dict[str, int]:
    """Fail."""
    RAN.append(x)
    raise ValueError("out of paper")


def runner(endpoint: FakeEndpoint, **options: Any) -> ptc.Runner:
    options = {"tools": [echo, boom], "programs": "hosted", "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", **options)


async def test_rule_1_history_is_replayed_as_it_came() -> None:
    """`async`, explicit nulls and unknown fields survive; only `created_by` and the SDK's own go."""
    call = function_call(
        **{"async": True, "namespace": None, "caller": None, "created_by": "x", "new": {"a": None}}
    )
    endpoint = FakeEndpoint([call], [answer()])
    await runner(endpoint).run("go")
    sent = endpoint.inputs[1][1]
    assert sent == {key: value for key, value in call.items() if key != "created_by"}


async def test_rule_1_through_the_real_sdk() -> None:
    """No model of the SDK stands between the wire and the history."""
    items = [
        {"type": "thing_of_tomorrow", "id": "t1", "async": True, "data": {"deep": None}},
        function_call(caller=None, parsed_field=1.50),
    ]
    bodies: list[Any] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json=response(*(items if len(bodies) == 1 else [answer()])))

    async with client_of(handler) as client:
        await ptc.Runner(client=client, model="m", tools=[echo]).run("go")
    assert bodies[1]["input"][1:3] == items


async def test_rule_2_items_are_known_by_their_type() -> None:
    """An unknown item is passed on, and is not taken for a message."""
    unknown = {
        "type": "vision_call",
        "id": "v",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x"}],
    }
    endpoint = FakeEndpoint([unknown], [answer("real")])
    result = await runner(endpoint).run("go")
    assert result.output_text == "real"
    assert endpoint.inputs[1][1] == unknown


@pytest.mark.parametrize(
    "caller",
    [
        {"caller": None},
        {"caller": {"type": "direct"}},
        {"caller": {"type": "program", "caller_id": "cp", "depth": 2, "note": None}},
        {},
    ],
)
@pytest.mark.parametrize("name", ["echo", "boom", "nobody"])
async def test_rule_3_the_caller_goes_back_as_it_came(caller: dict[str, Any], name: str) -> None:
    """Null stays null, unknown fields stay, absent stays absent; for results and errors alike."""
    endpoint = FakeEndpoint([program(), function_call(name, **caller)], [answer()])
    await runner(endpoint).run("go")
    output = endpoint.inputs[1][3]
    assert {key: output[key] for key in output if key == "caller"} == caller


async def test_rule_4_every_call_has_exactly_one_output() -> None:
    """Success, error, denied, unknown, malformed: one output each, in order."""
    calls = [
        function_call(call_id="ok"),
        function_call("boom", "fails"),
        function_call("nobody", "unknown"),
        function_call(call_id="bad", arguments="{"),
        function_call(call_id="forged", caller=by_program("nope")),
    ]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint).run("go")
    assert [item["call_id"] for item in endpoint.inputs[1][6:]] == ["ok", "fails", "unknown", "bad", "forged"]
    errors = [value["error"]["type"] for value in outputs_in(endpoint.bodies[1]).values() if "error" in value]
    assert errors == ["tool_error", "unknown_tool", "malformed_arguments", "program_not_open"]


async def test_rule_4_a_timed_out_call_is_answered() -> None:
    """A call that hangs must not leave the conversation without its output."""

    @ptc.tool(timeout=0.01)
    async def hang() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    endpoint = FakeEndpoint([function_call("hang", arguments="{}")], [answer()])
    await runner(endpoint, tools=[hang]).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["type"] == "timeout"


@pytest.mark.parametrize(
    ("name", "arguments"), [("boom", {"x": 1}), ("echo", {"y": 1}), ("echo", "nonsense")]
)
async def test_rule_5_an_error_for_a_program_is_an_object(name: str, arguments: Any) -> None:
    """Plain text is answered with HTTP 400."""
    endpoint = FakeEndpoint(
        [program(), function_call(name, arguments=arguments, caller=by_program())], [answer()]
    )
    await runner(endpoint).run("go")
    error = outputs_in(endpoint.bodies[1])["c1"]["error"]
    assert set(error) == {"type", "message"}


async def test_rule_5_the_schema_says_that_errors_may_come() -> None:
    """A program written against a schema that hides errors computes with nothing."""
    endpoint = FakeEndpoint([answer()], [answer()])
    await runner(endpoint).run("go")
    await runner(endpoint, errors_in_schema=False).run("go")
    schemas = [body["tools"][0]["output_schema"] for body in endpoint.bodies]
    assert schemas[1] in schemas[0]["anyOf"]
    assert any("error" in option.get("properties", {}) for option in schemas[0]["anyOf"])


@pytest.mark.parametrize("caller_id", ["other", "", "CP", "cp "])
async def test_rule_6_a_forged_caller_runs_nothing(caller_id: str) -> None:
    """Only a program that this conversation opened may call, and only until it ends."""
    endpoint = FakeEndpoint([program(), function_call(caller=by_program(caller_id))], [answer()])
    result = await runner(endpoint).run("go")
    assert RAN == []
    assert result.calls[0].outcome.status == "denied"


@pytest.mark.parametrize(
    "output",
    [
        [function_call(caller=by_program()), program()],
        [function_call(call_id="c0"), function_call(caller=by_program()), program()],
        [{"type": "code_interpreter_call", "id": "ci", "code": "1", "caller": by_program()}, program()],
        [program_output(), program(), function_call(caller=by_program())],
    ],
)
async def test_rule_6_what_comes_before_its_program_is_refused(output: list[Any]) -> None:
    """The program was not open where its call stood, and a service takes no such history back: nothing of the
    response runs, where the call alone would have had its effect first."""
    for streamed in (False, True):
        endpoint = FakeEndpoint(output, [program_output(), answer()])
        face = runner(endpoint)
        with pytest.raises(ptc.RemoteProtocolError, match="before its program"):
            await (face.stream("go").finish() if streamed else face.run("go"))
        assert (RAN, len(endpoint.bodies)) == ([], 1)


async def test_rule_6_a_program_that_ended_calls_no_more() -> None:
    """A late call is as forged as an invented one."""
    endpoint = FakeEndpoint([program()], [program_output(), function_call(caller=by_program())], [answer()])
    await runner(endpoint).run("go")
    assert RAN == []
    assert outputs_in(endpoint.bodies[2])["c1"]["error"]["type"] == "program_not_open"


async def test_rule_7_nothing_of_a_truncated_batch_runs() -> None:
    """Arguments may be cut anywhere, also where they still parse."""
    cut = response(
        function_call(),
        function_call(call_id="c2"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    endpoint = FakeEndpoint(cut)
    with pytest.raises(ptc.ResponseIncomplete, match="max_output_tokens") as error:
        await runner(endpoint).run("go")
    assert RAN == []
    assert orphans(error.value.items) == []
    assert error.value.safe_to_retry


async def test_rule_7_an_item_that_is_cut_stops_its_batch() -> None:
    """The response may say completed and its last call not."""
    calls = [function_call(), function_call(call_id="c2", status="incomplete")]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint).run("go")
    assert RAN == []
    assert {value["error"]["type"] for value in outputs_in(endpoint.bodies[1]).values()} == {
        "incomplete_response"
    }


async def test_rule_7_a_completed_final_answer_ends_the_run() -> None:
    """Going on would ask for an answer that is there; the reason is reported."""
    cut = response(
        answer("42"), function_call(), status="incomplete", incomplete_details={"reason": "content_filter"}
    )
    result = await runner(FakeEndpoint(cut)).run("go")
    assert (result.output_text, result.incomplete_reason, RAN) == ("42", "content_filter", [])
    assert orphans(result.items) == []


async def test_rule_8_what_is_neither_call_nor_answer_goes_on() -> None:
    """A program alone, its output alone, commentary alone."""
    endpoint = FakeEndpoint([program()], [program_output()], [commentary("Hm.")], [answer("42")])
    result = await runner(endpoint).run("go")
    assert (result.output_text, result.requests) == ("42", 4)


async def test_rule_8_the_answer_is_the_final_phase() -> None:
    """Commentary beside it, and unphased text before it, are not the answer."""
    both = [commentary("Hm. "), answer("preamble", phase=None), answer("A"), answer("B")]
    assert (await runner(FakeEndpoint(both)).run("go")).output_text == "AB"
    assert (
        await runner(FakeEndpoint([commentary(), answer("old", phase=None)])).run("go")
    ).output_text == "old"


async def test_rule_8_what_comes_twice_was_said_once() -> None:
    """The same item under the same id: told once, closed once, and sent back once, since ids may not repeat. Two
    messages of different ids are two."""
    first = [reasoning(), reasoning(), program(), function_call(caller=by_program())]
    last = [program_output(), program_output(), answer("It is 4."), answer("It is 4.")]
    endpoint = FakeEndpoint(first, last, [answer("a"), answer("a", id="msg_2")])
    face = runner(endpoint)
    result = await face.run("go")
    assert result.output_text == "It is 4."
    kinds = [item["type"] for item in result.items]
    assert [kinds.count(kind) for kind in ("reasoning", "program_output", "message")] == [1, 1, 2]
    assert (await face.run(result.to_input("next"))).output_text == "aa"


async def test_rule_8_going_on_has_an_end() -> None:
    """A model that only comments is stopped by the request limit."""
    endpoint = FakeEndpoint(*[[commentary()] for _ in range(9)])
    with pytest.raises(ptc.RequestLimitExceeded) as error:
        await runner(endpoint, max_requests=3).run("go")
    assert len(endpoint.bodies) == 3
    assert len(error.value.items) == 4


async def test_rule_9_order_is_kept_and_reasoning_comes_encrypted() -> None:
    """Reasoning stays before what follows it; nothing is referred to by id."""
    output = [reasoning(), program(), function_call(caller=by_program()), commentary()]
    endpoint = FakeEndpoint(output, [answer()])
    await runner(endpoint, request={"include": ["message.output_text.logprobs"]}).run("go")
    assert endpoint.inputs[1][1:5] == output
    body = endpoint.bodies[0]
    assert (body["store"], body["include"]) == (
        False,
        ["message.output_text.logprobs", "reasoning.encrypted_content"],
    )


def test_rule_10_a_program_is_one_unit_for_cutting() -> None:
    """What is cut takes the program, its calls, their outputs and its output; ids stay."""
    caller = by_program()
    turn = [
        {"role": "user", "content": "old"},
        program(),
        function_call(caller=caller),
        {"type": "function_call_output", "call_id": "c1", "output": "{}", "caller": caller},
        program_output(),
        answer(),
    ]
    items = [*turn, {"role": "user", "content": "new"}]
    for keep in range(len(items) + 1):
        kept = trim(items, keep=keep)
        assert orphans(kept) == []
        assert [item for item in items if item in kept] == kept


async def test_rule_11_programs_and_their_tools_are_sent_every_time() -> None:
    """A continuation without the hosted tool is refused."""
    endpoint = FakeEndpoint([program(), function_call(caller=by_program())], [program_output()], [answer()])
    await runner(endpoint).run("go")
    assert endpoint.bodies[0]["tools"] == endpoint.bodies[1]["tools"] == endpoint.bodies[2]["tools"]
    assert endpoint.bodies[2]["tools"].count({"type": "programmatic_tool_calling"}) == 1


async def test_rule_12_dispatch_is_on_namespace_and_name() -> None:
    """Two tools of one name are two tools, and the namespace stays on replay, on the error path too."""

    @ptc.tool(namespace="left", name="pick")
    def left() -> str:
        """Left."""
        return "left"

    @ptc.tool(namespace="right", name="pick")
    def right() -> str:
        """Right."""
        raise ValueError("no")

    calls = [
        function_call("pick", "a", "{}", namespace="left"),
        function_call("pick", "b", "{}", namespace="right"),
        function_call("pick", "c", "{}"),
    ]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, tools=[left, right], programs=None).run("go")
    outputs = outputs_in(endpoint.bodies[1])
    assert outputs["a"] == "left"
    assert outputs["b"]["error"]["type"] == "tool_error"
    assert outputs["c"]["error"]["type"] == "unknown_tool"
    assert endpoint.inputs[1][1:4] == calls


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": 1',
        '{"x": 1, "x": 2}',
        '{"x": NaN}',
        '{"x": 1e999}',
        "[]",
        "null",
        '"x"',
        "",
        None,
        '{"x": "\\ud800"}',
    ],
)
async def test_rule_13_malformed_arguments_run_nothing(arguments: str | None) -> None:
    """A model's text is JSON to the letter, or an error output."""
    call = {**function_call(), "arguments": arguments}
    endpoint = FakeEndpoint([call], [answer()])
    await runner(endpoint).run("go")
    assert RAN == []
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["type"] in (
        "malformed_arguments",
        "invalid_arguments",
    )


@pytest.mark.parametrize("arguments", ["", None, "{}"])
async def test_rule_13_no_arguments_are_fine_where_none_are_needed(arguments: str | None) -> None:
    """The schema decides."""

    @ptc.tool
    def now() -> str:
        """What time it is."""
        return "noon"

    endpoint = FakeEndpoint([{**function_call("now"), "arguments": arguments}], [answer()])
    await runner(endpoint, tools=[now]).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"] == "noon"


async def test_rule_13_an_object_in_place_of_text_runs_nothing() -> None:
    """The wire says text; what is not text was not made by the service."""
    endpoint = FakeEndpoint([{**function_call(), "arguments": {"x": 1}}], [answer()])
    await runner(endpoint).run("go")
    assert RAN == []


SAFE = [lambda: ptc.RateLimited("429", status=429), lambda: ptc.EndpointUnreachable("refused")]
AMBIGUOUS = [
    lambda: ptc.EndpointTimeout("slow"),
    lambda: ptc.ServerFailed("500", status=500),
    lambda: ptc.ResponseCut("cut"),
]


@pytest.mark.parametrize("failure", SAFE)
async def test_rule_14_what_was_not_worked_on_is_sent_again(failure: Any) -> None:
    """Also while a program is open, with the same input; nothing runs twice."""
    endpoint = FakeEndpoint(
        [program(), function_call(caller=by_program())], failure(), failure(), [program_output(), answer()]
    )
    result = await runner(endpoint).run("go")
    assert RAN == [1]
    assert endpoint.bodies[1] == endpoint.bodies[2] == endpoint.bodies[3]
    assert result.requests == 2


@pytest.mark.parametrize("failure", AMBIGUOUS)
async def test_rule_14_an_ambiguous_failure_is_not_repeated_while_programs_may_run(failure: Any) -> None:
    """A blind retry could repeat the program's calls."""
    for turns in ([failure()], [[program(), function_call(caller=by_program())], failure()]):
        endpoint = FakeEndpoint(*turns)
        with pytest.raises(ptc.EndpointError) as error:
            await runner(endpoint).run("go")
        assert not error.value.safe_to_retry
        assert endpoint.turns == []


@pytest.mark.parametrize("failure", AMBIGUOUS)
async def test_rule_14_without_programs_an_ambiguous_failure_is_repeated(failure: Any) -> None:
    """Our tools ran before the request, and do not run again."""
    endpoint = FakeEndpoint(failure(), [function_call()], failure(), [answer()])
    await runner(endpoint, programs=None).run("go")
    assert RAN == [1]


@pytest.mark.parametrize("failure", AMBIGUOUS)
@pytest.mark.parametrize("late", [False, True])
async def test_rule_14_nothing_is_said_twice_in_a_conversation(failure: Any, late: bool) -> None:
    """The service may have taken the input in before it failed, and has it still."""
    endpoint = FakeEndpoint(*([[function_call()]] if late else []), failure(), [answer()])
    with pytest.raises(ptc.EndpointError) as error:
        await runner(endpoint, programs=None, history="conversation").run("go", conversation_id="conv_1")
    assert not error.value.safe_to_retry
    assert len(endpoint.bodies) == 1 + late


async def test_rule_14_a_conversation_that_is_busy_is_waited_for() -> None:
    """The service did nothing with the request yet."""
    locked = ptc.ConversationLocked("busy", status=409)
    endpoint = FakeEndpoint(locked, [answer()])
    result = await runner(endpoint, history="conversation").run("go", conversation_id="conv_1")
    assert result.output_text == "done"


async def test_rule_14_the_client_itself_retries_nothing() -> None:
    """One attempt of the driver is one request on the wire, whatever the client was set to."""
    seen: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("x-stainless-retry-count", "0"))
        return httpx2.Response(500, json={"error": {"message": "oops"}})

    async with client_of(handler, max_retries=5) as client:
        with pytest.raises(ptc.ServerFailed):
            await ptc.Runner(client=client, model="m", tools=[echo], programs="hosted").run("go")
    assert seen == ["0"]


async def test_rule_14_an_executed_call_is_never_executed_again() -> None:
    """The same call once more, by id, name, arguments and caller, is answered with what it gave."""
    again = function_call(arguments='{ "x" : 1 }')
    endpoint = FakeEndpoint([function_call()], [again], [answer()])
    result = await runner(endpoint).run("go")
    assert RAN == [1]
    assert outputs_in(endpoint.bodies[2])["c1"] == {"x": 1}
    assert [report.reused for report in result.calls] == [False, True]


@pytest.mark.parametrize(
    "other",
    [
        function_call(arguments={"x": 2}),
        function_call("boom"),
        function_call(caller=by_program()),
    ],
)
async def test_rule_15_a_reused_call_id_inherits_nothing(other: dict[str, Any]) -> None:
    """Results bind to the whole identity of a call."""
    endpoint = FakeEndpoint([program(), function_call()], [other], [answer()])
    result = await runner(endpoint).run("go")
    assert len(RAN) == 2
    assert not any(report.reused for report in result.calls)


async def test_rule_16_calls_of_a_run_and_of_a_program_are_bounded_here() -> None:
    """`max_tool_calls` of the service bounds built-in tools only."""
    calls = [function_call(call_id=f"c{n}", arguments={"x": n}, caller=by_program()) for n in range(4)]
    endpoint = FakeEndpoint([program(), *calls], [answer()])
    await runner(endpoint, limits=ptc.Limits(max_calls_per_program=2)).run("go")
    assert len(RAN) == 2
    denied = [value for value in outputs_in(endpoint.bodies[1]).values() if "error" in value]
    assert [value["error"]["type"] for value in denied] == ["limit_exceeded"] * 2
    RAN.clear()
    endpoint = FakeEndpoint([program(), *calls], [answer()])
    with pytest.raises(ptc.LimitExceeded) as error:
        await runner(endpoint, limits=ptc.Limits(max_calls=3)).run("go")
    assert (error.value.limit, len(RAN)) == ("max_calls", 3)
    outputs = [item for item in error.value.items if item["type"] == "function_call_output"]
    assert len(outputs) == len(calls)


async def test_after_the_last_call_of_a_run_the_model_may_answer() -> None:
    """With `final_answer`, once, without tools."""
    calls = [function_call(call_id=f"c{n}", arguments={"x": n}) for n in range(2)]
    endpoint = FakeEndpoint(calls, [answer("so far")])
    result = await runner(endpoint, limits=ptc.Limits(max_calls=1, final_answer=True)).run("go")
    assert (result.output_text, result.limit) == ("so far", "max_calls")
    assert endpoint.bodies[1]["tool_choice"] == "none"


async def test_rule_17_a_stream_is_read_from_its_done_items() -> None:
    """The `added` item is not whole, and the last event's own output may be empty."""
    turn = [reasoning(), program(), function_call(caller=by_program())]

    class Streamed(FakeEndpoint):
        async def stream(self, body: dict[str, Any], *, timeout: float | None = None) -> Any:
            whole = self._next(body)
            events = list(events_of(whole))
            events[-1] = {**events[-1], "response": {**whole, "output": []}}
            for event in events:
                yield event

    endpoint = Streamed(turn, [program_output(), answer("42")])
    stream = runner(endpoint).stream("go")
    told = [type(event).__name__ async for event in stream]
    assert stream.result.output_text == "42"
    assert endpoint.inputs[1][1:4] == turn
    assert "ProgramOpened" in told
    assert "ProgramClosed" in told


async def test_rule_18_a_deferred_tool_is_loaded_before_it_runs() -> None:
    """The model is told to search first, and once it has, the call runs."""

    @ptc.tool(defer_loading=True)
    def rare() -> str:
        """Seldom needed."""
        RAN.append(1)
        return "found"

    search: Any = {"type": "tool_search", "execution": "server"}
    call = function_call("rare", "c1", "{}")
    found = {
        "type": "tool_search_output",
        "id": "to",
        "call_id": None,
        "execution": "server",
        "tools": [{"type": "function", "name": "rare"}],
    }
    endpoint = FakeEndpoint([call], [found, {**call, "call_id": "c2"}], [answer()])
    await runner(endpoint, tools=[rare, search]).run("go")
    assert "search first" in outputs_in(endpoint.bodies[1])["c1"]["error"]["message"]
    assert outputs_in(endpoint.bodies[2])["c2"] == "found"
    assert RAN == [1]


@pytest.mark.parametrize(
    "name", ["tool_search", "programmatic_tool_calling", "code_interpreter", "web_search"]
)
def test_rule_19_reserved_names_are_refused_at_registration(name: str) -> None:
    """The service would refuse or confuse them in the middle of a run."""
    with pytest.raises(ptc.InvalidName, match=name):
        ptc.tool(lambda: None, name=name)


def test_rule_10_the_runner_offers_no_cut_while_anything_is_open() -> None:
    """A boundary is where no call and no program is open."""
    conversation = Conversation()
    conversation.send("go")
    conversation.request()
    conversation.receive(response(program()))
    assert not conversation.at_boundary
