"""Responses and calls that must not be acted on: what is recorded, answered and said of trying again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ptc
from ptc.history import orphans
from ptc.streaming import StreamReader
from ptc.testing import ScriptedModel, call, capture_audit, in_process, program, say
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    Item,
    answer,
    by_program,
    function_call,
    outputs_in,
    program_output,
    reasoning,
    response,
)
from tests.ptc.loop_fakes import program as program_item

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def echo(x: int) -> int:
    """Give x back."""
    RAN.append(x)
    return x


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def nothing() -> None:
    """Give nothing."""


@ptc.tool(allowed_callers=["programmatic"])
async def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


@ptc.tool
async def note(text: str) -> str:
    """For the model alone."""
    return text


OWNED = function_call(call_id="c1", caller=by_program())
REFUSED: dict[str, Item] = {
    "failed": response(program_item(), OWNED, status="failed", error={"code": "e", "message": "m"}),
    "cancelled": response(program_item(), OWNED, status="cancelled"),
    "one id twice": response(program_item(), OWNED, function_call(call_id="c1")),
    "reasoning lost": response(reasoning(encrypted=None), program_item(), OWNED),
    "no call id": response(program_item(), OWNED, function_call(call_id="c2") | {"call_id": None}),
    "two programs of one id": response(program_item(), OWNED, program_item()),
    "not json": response(program_item(), OWNED, {"type": "x", "v": float("nan")}),
}


@pytest.mark.parametrize("kind", list(REFUSED))
async def test_a_refused_response_is_on_record_and_not_safe_to_try_again(kind: str) -> None:
    """Its program has been opened (rule 14), and each of its calls was asked for and did not run."""
    endpoint = FakeEndpoint(REFUSED[kind])
    with capture_audit() as audit:
        runner = ptc.Runner(
            client=endpoint, model="m", tools=[echo], programs="hosted", audit=audit, retry=AT_ONCE
        )
        with pytest.raises(ptc.RunError) as error:
            await runner.run("go")
    raised = error.value
    calls = [item for item in REFUSED[kind]["output"] if item["type"] == "function_call"]
    assert RAN == []
    assert not raised.safe_to_retry
    assert [record.kind for record in audit.records].count("denied") == len(calls)
    assert [item for item in raised.items if item["type"] == "function_call"] == calls
    assert "incomplete_response" in {
        outputs["error"]["type"] for outputs in outputs_in({"input": list(raised.items)}).values()
    }
    assert len(endpoint.bodies) == 1


async def test_a_response_that_failed_without_programs_is_safe_to_try_again() -> None:
    """Nothing can have run."""
    endpoint = FakeEndpoint(response(function_call(), status="failed"))
    with pytest.raises(ptc.ResponseFailed) as error:
        await ptc.Runner(client=endpoint, model="m", tools=[echo]).run("go")
    assert error.value.safe_to_retry
    assert orphans(error.value.items) == []


MALFORMED: list[tuple[Item, str]] = [
    ({"name": None}, "`name` is missing"),
    ({"name": ""}, "`name` is empty"),
    ({"name": 5}, "`name` is a number"),
    ({"namespace": {"a": 1}}, "`namespace` is an object"),
    ({"arguments": {"x": 1}}, "`arguments` is an object"),
    ({"arguments": [1]}, "`arguments` is an array"),
    ({"arguments": True}, "`arguments` is a boolean"),
]


@pytest.mark.parametrize(("fields", "said"), MALFORMED)
async def test_a_call_whose_fields_mean_nothing_is_denied(fields: Item, said: str) -> None:
    """It runs no tool that happens to fit, and the model is told what is wrong."""
    endpoint = FakeEndpoint([function_call() | fields], [answer()])
    result = await ptc.Runner(client=endpoint, model="m", tools=[echo]).run("go")
    assert RAN == []
    error = outputs_in(endpoint.bodies[1])["c1"]["error"]
    assert error["type"] == "malformed_arguments"
    assert said in error["message"]
    assert [report.outcome.status for report in result.calls] == ["denied"]


async def test_a_tool_named_like_an_item_type_is_not_run_for_a_call_without_a_name() -> None:
    """What a call lacks is not made up for by its type."""

    @ptc.tool
    def function_call_() -> int:
        """Odd."""
        RAN.append(1)
        return 1

    tool = ptc.define_tool(
        {"name": "function_call", "parameters": {"type": "object"}}, function_call_.function
    )
    endpoint = FakeEndpoint([function_call() | {"name": None}], [answer()])
    await ptc.Runner(client=endpoint, model="m", tools=[tool]).run("go")
    assert RAN == []


# Results that are no objects (rule 5)


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_a_result_of_any_type_reaches_a_program(programs: Any) -> None:
    """Hosted, it stands in an object, since the service takes no other; a local program gets it as it is."""
    get = "['result']" if programs == "hosted" else ""
    code = f"a = (await echo(x=3)){get}\nb = (await words(text='x y')){get}\nc = (await nothing()){get}\n[a, b, c]"
    from ptc.testing import run_code

    model = ScriptedModel(run_code(code), lambda request: say(request.program_result))
    async with in_process(model) as client:
        runner = ptc.Runner(client=client, model="m", tools=[echo, words, nothing], programs=programs)
        assert (await runner.run("go")).output_text.replace(" ", "") == '[3,["x","y"],null]'


async def test_an_error_of_a_call_in_a_program_stays_an_error_object() -> None:
    """It is not wrapped: the program tells it from a result by its key."""
    model = ScriptedModel(
        program("(await echo(x='three'))['error']['type']"), lambda r: say(r.program_result)
    )
    async with in_process(model) as client:
        result = await ptc.Runner(client=client, model="m", tools=[echo], programs="hosted").run("go")
    assert result.output_text == "invalid_arguments"


@pytest.mark.parametrize(("programs", "output"), [("hosted", {"result": 3}), (None, 3), ("local", 3)])
async def test_a_direct_calls_output_is_what_the_wire_said_it_is(programs: Any, output: Any) -> None:
    """The schema is the tool's, whoever calls: where it is sent and says an object, an object it is."""
    endpoint = FakeEndpoint([function_call(arguments={"x": 3})], [answer()])
    await ptc.Runner(client=endpoint, model="m", tools=[echo], programs=programs).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"] == output
    assert ("output_schema" in endpoint.bodies[0]["tools"][0]) is (programs == "hosted")


@pytest.mark.parametrize("programs", ["hosted", "auto"])
def test_a_raw_definition_that_promises_programs_no_object_is_refused(programs: Any) -> None:
    """It goes unchanged, so that every one of its results would be answered with 400."""
    raw: dict[str, Any] = {
        "name": "raw",
        "parameters": {"type": "object"},
        "output_schema": {"type": "integer"},
    }
    tool = ptc.define_tool({**raw, "allowed_callers": ["direct", "programmatic"]}, lambda: 1)
    with pytest.raises(ptc.RegistrationError, match="must describe an object"):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[tool], programs=programs)
    for other in ("local", None):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[tool], programs=other)


# Local programs


async def test_the_code_tool_says_what_is_not_for_programs() -> None:
    """A program that used such a name would only find that it does not exist."""
    endpoint = FakeEndpoint([answer()])
    await ptc.Runner(client=endpoint, model="m", tools=[echo, note], programs="local").run("go")
    told = {tool["name"]: tool for tool in endpoint.bodies[0]["tools"]}["run_program"]["description"]
    assert "call them yourself, directly: note." in told


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_a_failing_call_of_a_program_is_raised_wherever_it_runs(programs: Any) -> None:
    """`on_tool_error="raise"` is one promise, and the calls of the batch are answered before it is kept."""
    from ptc.testing import run_code

    async with in_process(ScriptedModel(run_code("await echo(x='three')"), say("no"))) as client:
        runner = ptc.Runner(client=client, model="m", tools=[echo], programs=programs, on_tool_error="raise")
        with pytest.raises(ptc.ToolCallError) as error:
            await runner.run("go")
    raised = error.value
    assert isinstance(raised, ptc.ToolCallFailed)
    assert (raised.call.name, raised.outcome.code) == ("echo", "invalid_arguments")
    assert [text for text in orphans(raised.items) if "no output" in text] == []


async def test_a_program_that_ended_is_not_open_for_calls() -> None:
    """Rule 6: a call of it that comes later is forged."""
    endpoint = FakeEndpoint(
        [program_item(), OWNED],
        [program_output(), function_call(call_id="c2", caller=by_program())],
        [answer()],
    )
    await ptc.Runner(client=endpoint, model="m", tools=[echo], programs="hosted").run("go")
    assert RAN == [1]
    assert outputs_in(endpoint.bodies[2])["c2"]["error"]["type"] == "program_not_open"


async def test_a_call_from_the_wire_cannot_speak_for_a_local_program() -> None:
    """Rule 6: the id of the code tool's own call is known to the model, and the program is open while it runs."""
    inside, looked = asyncio.Event(), asyncio.Event()

    @ptc.tool(allowed_callers=["programmatic"])
    async def wait() -> int:
        """Wait until the forged call had its chance."""
        inside.set()
        await looked.wait()
        return 1

    async def hold(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if invocation.call.name == "look":
            await inside.wait()
        return await next(invocation)

    @ptc.tool
    async def look() -> int:
        """Let the program go on."""
        looked.set()
        return 1

    called = [
        function_call("run_program", "p1", {"code": "await wait()"}),
        function_call("look", "l1", "{}"),
        function_call("words", "c2", {"text": "a b"}, caller=by_program("p1")),
    ]
    endpoint = FakeEndpoint(called, [answer()])
    runner = ptc.Runner(
        client=endpoint, model="m", tools=[words, wait, look], programs="local", middleware=[hold],
        max_concurrent_calls=2,
    )  # fmt: skip
    await runner.run("go")
    outputs = outputs_in(endpoint.bodies[1])
    assert outputs["p1"]["value"] == 1
    assert outputs["c2"]["error"]["type"] == "program_not_open"


@pytest.mark.parametrize("item", [{"id": "x"}, {"type": 5, "id": "x"}, {"type": "from_the_future"}])
async def test_an_item_of_no_known_type_is_not_an_answer(item: Item) -> None:
    """It is passed through, and the conversation goes on (rule 8)."""
    endpoint = FakeEndpoint([item], [answer("A")])
    assert (await ptc.Runner(client=endpoint, model="m").run("go")).output_text == "A"
    assert endpoint.inputs[1][-1] == item


@pytest.mark.parametrize("status", ["", [], 0, False, 5, {}])
async def test_a_status_that_says_nothing_runs_nothing(status: Any) -> None:
    """Only a response that is completed does (rule 7)."""
    endpoint = FakeEndpoint(response(function_call(), status=status))
    with pytest.raises((ptc.RemoteProtocolError, ptc.ResponseIncomplete)):
        await ptc.Runner(client=endpoint, model="m", tools=[echo]).run("go")
    assert RAN == []


@pytest.mark.parametrize("ended", ["failed", "incomplete", "cancelled"])
@pytest.mark.parametrize("status", [None, "completed"])
def test_a_stream_ends_as_its_last_event_says(ended: str, status: Any) -> None:
    """Whatever the response in it says: calls of a response that failed must not run."""
    reader = StreamReader()
    reader.feed({"type": f"response.{ended}", "response": {"status": status, "output": [function_call()]}})
    assert reader.response()["status"] == ended


async def test_a_direct_call_of_the_peers_script_is_answered_with_its_caller() -> None:
    """Null and absent are not the same (rule 3), and the peer knows the difference."""
    model = ScriptedModel(
        [call("echo", x=1, extra={"caller": None}), call("echo", x=2, extra={"caller": {"type": "direct"}})],
        [call("echo", x=3)],
        say("done"),
    )
    async with in_process(model) as client:
        result = await ptc.Runner(client=client, model="m", tools=[echo], programs="hosted").run("go")
    assert (result.output_text, RAN) == ("done", [1, 2, 3])


def test_a_stream_that_gives_two_items_for_one_place_is_broken() -> None:
    """One of them would be lost in silence, and it may be a call."""
    reader = StreamReader()
    event = {"type": "response.output_item.done", "output_index": 0, "item": function_call()}
    reader.feed(event)
    reader.feed(event)  # the same once more says nothing new
    with pytest.raises(ptc.ResponseCut, match="one place"):
        reader.feed({**event, "item": function_call(arguments={"x": 2})})


@pytest.mark.parametrize("kind", [None, 5, [], {}])
def test_a_stream_event_of_no_known_type_is_passed_over(kind: Any) -> None:
    """New ones come without notice."""
    assert StreamReader().feed({"type": kind}) is None
