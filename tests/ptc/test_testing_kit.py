"""The public test kit, used as its users use it: scripts, the fixtures of the plugin, captured records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import openai
import pytest

import ptc
import ptc.testing
from ptc.testing import (
    AuditCapture,
    Fault,
    ModelRequest,
    ScriptedModel,
    Settings,
    call,
    capture_audit,
    commentary,
    failed,
    in_process,
    incomplete,
    item,
    program,
    reason,
    refuse,
    run_code,
    say,
)
from ptc_tools.call import Call
from ptc_tools.context import RunContext

if TYPE_CHECKING:
    from ptc.testing.plugin import MakeRunner

pytest_plugins = ["ptc.testing.plugin"]


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def double(n: int) -> dict[str, int]:
    """Twice a number."""
    return {"twice": 2 * n}


async def test_the_fixtures_make_a_run(
    ptc_runner: MakeRunner, scripted_model: Callable[..., ScriptedModel], capture_audit: AuditCapture
) -> None:
    """The three of them together, with a direct call."""
    script = scripted_model(
        call("double", n=4), lambda request: say(str(request.output_of("double")["twice"]))
    )
    runner = await ptc_runner(script, tools=[double])
    result = await runner.run("Twice four?")
    assert result.output_text == "8"
    assert capture_audit.names("started") == capture_audit.names("finished") == ["double"]
    started = next(record for record in capture_audit.records if record.kind == "started")
    assert started.arguments == {"n": 4}
    assert capture_audit.unfinished == []


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_one_script_serves_both_kinds_of_programs(ptc_runner: MakeRunner, programs: Any) -> None:
    """`run_code` writes a program, or calls the code tool, whichever the request has."""
    script = ScriptedModel(
        run_code('(await double(n=21))["twice"]'), lambda request: say(request.program_result)
    )
    runner = await ptc_runner(script, tools=[double], programs=programs)
    result = await runner.run("Twice 21?")
    assert result.output_text == "42"
    assert [report.call.name for report in result.calls if report.call.name != "run_program"] == ["double"]


async def test_a_captured_audit_has_denials_and_events(ptc_runner: MakeRunner) -> None:
    """What never ran is recorded too."""
    with capture_audit() as audit:
        script = ScriptedModel(call("double", n="four"), say("No."))
        runner = await ptc_runner(script, tools=[double], audit=audit)
        await runner.run("?")
    assert audit.names("denied") == ["double"]
    assert "run.started" in audit.names("event")


# --- a script, part by part ------------------------------------------------------------------------------


async def output(*turns: Any, **request: Any) -> list[dict[str, Any]]:
    async with in_process(ScriptedModel(*turns)) as client:
        raw = await client.responses.with_raw_response.create(model="m", input="hi", **request)
        body: dict[str, Any] = raw.http_response.json()
        return [body, *body["output"]]


async def test_each_part_becomes_its_item() -> None:
    """The shape of each on the wire."""
    parts = [reason("think"), commentary("one moment"), call("f", x=1), item({"type": "novel", "a": None})]
    _, reasoning, message, function_call, novel = await output([*parts])
    assert reasoning["summary"] == [{"type": "summary_text", "text": "think"}]
    assert (message["phase"], message["content"][0]["text"]) == ("commentary", "one moment")
    assert (function_call["name"], function_call["arguments"]) == ("f", '{"x":1}')
    assert (novel["type"], novel["a"]) == ("novel", None)
    _, refusal = await output(refuse("no"))
    assert refusal["content"] == [{"type": "refusal", "refusal": "no"}]
    _, old = await output(say("hi", phase=None))
    assert "phase" not in old


@pytest.mark.parametrize("id", [None, "novel_1"])
@pytest.mark.parametrize("alone", [False, True])
async def test_an_item_that_nobody_knows_is_taken_back_as_it_was_sent(id: str | None, alone: bool) -> None:
    """Under an id of the script's own, too; changed, it is refused."""
    novel: dict[str, Any] = {"type": "novel", "a": [None]} | ({} if id is None else {"id": id})
    turn: list[Any] = [item(novel)] if alone else [item(novel), call("double", n=1)]
    async with in_process(ScriptedModel(turn, say("done"))) as client:
        result = await ptc.Runner(client=client, model="m", tools=[double]).run("go")
        assert result.output_text == "done"
        changed: Any = [{**one, "a": 1} if one["type"] == "novel" else one for one in result.items]
        with pytest.raises(openai.BadRequestError, match="Invalid value: 'novel'"):
            await client.responses.create(model="m", input=changed, store=False)


async def test_an_item_that_nobody_knows_and_nobody_sent_is_refused() -> None:
    """An id alone proves nothing."""
    items: Any = [{"role": "user", "content": "hi"}, {"type": "novel", "id": "novel_1", "a": 1}]
    async with in_process(ScriptedModel(say("never"))) as client:
        with pytest.raises(openai.BadRequestError, match="Invalid value: 'novel'"):
            await client.responses.create(model="m", input=items, store=False)


async def test_a_response_can_end_incomplete_or_failed() -> None:
    """With what was said before, and the reason."""
    response, message = await output([say("half", cut=True), incomplete()])
    assert (response["status"], response["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )
    assert message["status"] == "incomplete"
    response, *items = await output(failed("broken"))
    assert (response["status"], response["error"]) == (
        "failed",
        {"code": "server_error", "message": "broken"},
    )
    assert items == []


async def test_arguments_may_be_any_text() -> None:
    """A model writes malformed JSON now and then."""
    _, made = await output(call("f", '{"x": ', call_id="call_mine", extra={"async": True, "novel": 1}))
    assert (made["arguments"], made["call_id"], made["async"], made["novel"]) == (
        '{"x": ',
        "call_mine",
        True,
        1,
    )


async def test_a_turn_sees_the_request() -> None:
    """What a script can choose by."""
    seen: list[ModelRequest] = []

    def turn(request: ModelRequest) -> Any:
        seen.append(request)
        return say("ok")

    function = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    space = {"type": "namespace", "name": "n", "description": "d", "tools": [{**function, "name": "g"}]}
    await output(turn, tools=[function, space], instructions="Be brief.", tool_choice="none")
    request = seen[0]
    assert (request.turn, request.model, request.user_text) == (0, "m", "hi")
    assert (request.instructions, request.tool_choice) == ("Be brief.", "none")
    assert [request.has_tool(name) for name in ("f", "g", "n", "h")] == [True, True, True, False]


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ([], "turn 1 is due"),
        ([lambda _: 1 / 0], "raised ZeroDivisionError"),
        ([program("1")], "no 'programmatic_tool_calling' tool"),
        ([reason()], "needs a part after it"),
    ],
)
async def test_a_mistake_of_the_script_is_told_apart_from_one_of_the_client(turns: Any, words: str) -> None:
    """The code `script_error`, and words for who wrote the script."""
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        await output(*turns)
    assert caught.value.code == "script_error"


async def test_a_program_that_is_too_long_is_a_mistake_of_the_script() -> None:
    """Found before it is run, and told as such."""
    with pytest.raises(openai.BadRequestError, match="The program cannot run") as caught:
        await output(program("#" * 300_000), tools=[{"type": "programmatic_tool_calling"}])
    assert caught.value.code == "script_error"


async def test_then_is_said_at_every_later_turn() -> None:
    """For a conversation without an end."""
    async with in_process(ScriptedModel(say("first"), then=lambda r: say(f"turn {r.turn}"))) as client:
        items: list[Any] = [{"role": "user", "content": "hi"}]
        texts = []
        for _ in range(3):
            response = await client.responses.create(model="m", input=items, store=False)
            items += [entry.to_dict() for entry in response.output] + [{"role": "user", "content": "and?"}]
            texts.append(response.output_text)
    assert texts == ["first", "turn 1", "turn 2"]


async def test_a_fault_in_process_breaks_the_answer_off() -> None:
    """Without a connection there is still no answer."""
    async with in_process(ScriptedModel(say("hi")), faults=[Fault("status", status=503)]) as client:
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model="m", input="hi")
        assert (await client.responses.create(model="m", input="hi")).output_text == "hi"


@pytest.mark.parametrize(
    "value", [{}, {"kind": "boredom"}, {"kind": "slow", "minutes": 1}, [], {"kind": "slow", "times": 0}]
)
def test_a_fault_that_is_none_is_an_error(value: Any) -> None:
    """A fault that is misspelt must not be a test that passes."""
    from ptc.gateway.faults import InvalidFault

    with pytest.raises(InvalidFault):
        Fault.from_json(value)


def test_the_public_names_are_there() -> None:
    """Everything in `__all__`, and nothing loaded before it is used."""
    assert sorted(ptc.testing.__all__) == sorted(set(ptc.testing.__all__))
    for name in ptc.testing.__all__:
        assert getattr(ptc.testing, name) is not None
    with pytest.raises(AttributeError):
        _ = ptc.testing.nothing


@pytest.mark.parametrize("programs", ["hosted", "local"])
async def test_run_code_may_stand_among_other_parts(ptc_runner: MakeRunner, programs: Any) -> None:
    """In a list it is as good as alone, and a reasoning item before it belongs to what it becomes."""
    script = ScriptedModel(
        [reason("r"), run_code("(await double(n=2))['twice']")],
        lambda request: say(request.program_result),
    )
    runner = await ptc_runner(script, tools=[double], programs=programs)
    assert (await runner.run("go")).output_text == "4"


@pytest.mark.parametrize("turn", ["text", 3, [say("a"), "text"], [[say("a")]]])
def test_what_is_no_turn_is_refused_when_the_script_is_made(turn: Any) -> None:
    """A part that is dropped in silence is missed by nobody but the test that has it."""
    with pytest.raises(TypeError, match="no part of a turn"):
        ScriptedModel(turn)


async def test_what_a_function_of_the_request_makes_is_checked_too() -> None:
    """It shows when the turn is due."""
    async with in_process(ScriptedModel(lambda request: "text")) as client:  # type: ignore[arg-type, return-value]
        with pytest.raises(ptc.RequestRejected, match="no part of a turn"):
            await ptc.Runner(client=client, model="m").run("go")


@pytest.mark.parametrize("kind", ["refuse", "lose", "truncate", "cut_stream"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_without_a_connection_its_faults_end_as_with_one(kind: Any, streamed: bool) -> None:
    """The client cannot know what happened, and the runner asks again where nothing can have run twice."""
    fault = Fault(kind, request=1, times=1, after=2)
    retry = ptc.RetryPolicy(attempts=1)
    for policy, passes in ((retry, False), (ptc.RetryPolicy(base_delay=0.0), True)):
        async with in_process(ScriptedModel(say("x")), faults=[fault]) as client:
            runner = ptc.Runner(client=client, model="m", retry=policy)
            if passes:
                result = await runner.stream("q").finish() if streamed else await runner.run("q")
                assert result.output_text == "x"
                continue
            with pytest.raises(ptc.ResponseCut):
                await (runner.stream("q").finish() if streamed else runner.run("q"))


async def test_a_runner_of_the_plugin_meets_faults_and_settings_of_the_peer(
    ptc_runner: MakeRunner, scripted_model: Callable[..., ScriptedModel]
) -> None:
    """As a peer of its own does."""
    settings = Settings(programs=False)
    once = ptc.RetryPolicy(attempts=1)
    faults = [Fault("status")]
    broken = await ptc_runner(scripted_model(say("hello")), faults=faults, retry=once)
    with pytest.raises(ptc.ServerFailed):
        await broken.run("go")
    plain = await ptc_runner(
        scripted_model(say("hello")), settings=settings, tools=[double], programs="hosted"
    )
    with pytest.raises(ptc.ProgramsUnsupported):
        await plain.run("go")


async def test_a_start_without_an_end_is_seen_beside_an_equal_one_that_has_one() -> None:
    """The same call may start twice: in another attempt, in another run of the same script."""
    call_, run = Call("c1", "double", "{}"), RunContext("r1")
    with capture_audit() as audit:
        first = await audit.started(call_, double.contract, {}, run)
        second = await audit.started(call_, double.contract, {}, run)
        await audit.finished(first, ptc.Success(1), 1)
        assert audit.unfinished == [call_]
        await audit.finished(second, ptc.Success(1), 1)
        assert audit.unfinished == []
    assert audit.names("finished") == ["double", "double"]
