"""What public reports found broken in other loops, as the right behaviour of this one: each by its reference."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

import ptc
from ptc.history import orphans, trim
from ptc.items import for_request
from ptc_tools.call import Call
from ptc_tools.context import RunContext
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    client_of,
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


def runner(endpoint: Any, **options: Any) -> ptc.Runner:
    options = {"tools": [echo], "programs": "hosted", "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", **options)


async def test_openai_agents_python_4253_ids_survive_persistence() -> None:
    """Items whose id is required keep it over a store and into the next turn."""
    turn = [reasoning(), program(), function_call(caller=by_program())]
    endpoint = FakeEndpoint(turn, [program_output(), answer()], [answer()])
    first = await runner(endpoint).run("go")
    stored = json.loads(json.dumps(first.to_input("next")))
    await runner(endpoint).run(stored)
    sent = endpoint.inputs[2]
    assert [item.get("id") for item in sent] == [item.get("id") for item in stored]
    assert {item["type"] for item in sent if "id" in item} >= {
        "program",
        "program_output",
        "reasoning",
        "message",
    }


def transcript() -> list[dict[str, Any]]:
    caller = by_program()
    return [
        {"role": "user", "content": "old"},
        reasoning(),
        program(),
        function_call(call_id="a", caller=caller),
        {"type": "code_interpreter_call", "id": "ci", "code": "1", "status": "completed", "caller": caller},
        {"type": "function_call_output", "call_id": "a", "output": "{}", "caller": caller},
        program_output(),
        answer(),
        function_call(call_id="b"),
        function_call(call_id="c"),
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": "1"},
        {"role": "user", "content": "new"},
    ]


def test_openai_agents_python_3878_3879_a_program_transcript_is_cut_as_one() -> None:
    """Program, nested calls, outputs and end stand or fall together."""
    for keep in range(14):
        kept = trim(transcript(), keep=keep)
        kinds = [item.get("type") for item in kept]
        assert kinds.count("program") == kinds.count("program_output")
        assert orphans(kept) == []


def test_openai_agents_js_1472_hosted_items_of_a_program_go_with_it() -> None:
    """A caller that arrives as an extra field counts as ownership."""
    for keep in range(14):
        kept = trim(transcript(), keep=keep)
        owned = any(item.get("type") == "code_interpreter_call" for item in kept)
        assert owned is any(item.get("type") == "program" for item in kept)


async def test_litellm_41913_what_was_declared_is_sent() -> None:
    """allowed_callers, strict and parallel_tool_calls reach the wire as they were written."""
    definition: Any = {
        "type": "function",
        "name": "raw",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "required": []},
        "strict": True,
        "allowed_callers": ["programmatic"],
        "output_schema": {"type": "object"},
        "x_vendor": {"a": 1},
    }
    endpoint = FakeEndpoint([answer()])
    raw = ptc.define_tool(definition, lambda: {"ok": True})
    await runner(endpoint, tools=[raw], request={"parallel_tool_calls": False}).run("go")
    assert endpoint.bodies[0]["tools"][0] == definition
    assert endpoint.bodies[0]["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    "call",
    [
        function_call(),
        {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "x", "input": ""},
        {
            "type": "shell_call",
            "id": "sh",
            "call_id": "c1",
            "action": {"commands": []},
            "status": "in_progress",
        },
        {"type": "apply_patch_call", "id": "ap", "call_id": "c1", "operation": {}, "status": "in_progress"},
    ],
)
async def test_lingua_339_callers_round_trip_on_calls_and_outputs(call: dict[str, Any]) -> None:
    """In equals out, for all four kinds of call."""
    owned = {**call, "caller": by_program(unknown=[1, None])}
    endpoint = FakeEndpoint([program(), owned], [answer()])
    await runner(endpoint).run("go")
    assert endpoint.inputs[1][2] == owned
    assert endpoint.inputs[1][3]["caller"] == owned["caller"]


async def test_codex_40749_every_record_links_program_call_and_result() -> None:
    """Nested execution can be measured: who called, for how long, with what end."""
    rows: list[tuple[str, Any]] = []

    class Log:
        async def started(self, call: Call, contract: Any, arguments: Any, run: RunContext) -> object:
            assert isinstance(call.caller, ptc.Program)
            rows.append(("started", (run.run_id, call.call_id, call.name, call.caller.caller_id)))
            return call.call_id

        async def finished(self, token: object, outcome: Any, duration_us: int) -> None:
            rows.append(("finished", (token, outcome.status, duration_us >= 0)))

        async def denied(self, call: Call, contract: Any, outcome: Any, run: RunContext) -> None:
            raise AssertionError

        async def event(self, type: str, data: Any, run: RunContext) -> None:
            if type.startswith("program."):
                rows.append((type, data["call_id"]))

    endpoint = FakeEndpoint([program(), function_call(caller=by_program())], [program_output(), answer()])
    result = await runner(endpoint, audit=Log()).run("go", run_id="r")
    assert rows == [
        ("program.started", "cp"),
        ("started", ("r", "c1", "echo", "cp")),
        ("finished", ("c1", "success", True)),
        ("program.finished", "cp"),
    ]
    (report,) = result.calls
    assert report.call.caller == ptc.Program("cp")
    assert report.duration_us >= 0


@pytest.mark.parametrize("arguments", ["{}", "{bad"])
async def test_codex_23839_and_vercel_ai_20265_namespace_survives_on_both_paths(arguments: str) -> None:
    """The failing call keeps its namespace as the one that works does, and dispatch is on both names."""

    @ptc.tool(namespace="crm")
    def find() -> str:
        """Find."""
        return "found"

    call = function_call("find", arguments=arguments, namespace="crm")
    endpoint = FakeEndpoint([call], [answer()])
    await runner(endpoint, tools=[find], programs=None).run("go")
    assert endpoint.inputs[1][1] == call


@pytest.mark.parametrize("name", ["tool_search", "programmatic_tool_calling"])
def test_hermes_agent_83122_reserved_names_are_refused_at_registration(name: str) -> None:
    """Instead of a 400 in the middle of a run."""
    with pytest.raises(ptc.InvalidName, match="reserved"):
        ptc.tool(lambda: None, name=name)


async def test_openai_agents_js_1518_a_deferred_tool_called_too_early_does_not_kill_the_run() -> None:
    """It is not run; the model is told to search, and the loop goes on."""

    @ptc.tool(defer_loading=True)
    def rare() -> str:
        """Seldom needed."""
        RAN.append(1)
        return ""

    endpoint = FakeEndpoint([function_call("rare", arguments="{}")], [answer("recovered")])
    result = await runner(endpoint, tools=[rare], programs=None).run("go")
    assert (RAN, result.output_text) == ([], "recovered")
    assert "search first" in outputs_in(endpoint.bodies[1])["c1"]["error"]["message"]


async def test_openai_agents_python_1660_reasoning_keeps_its_following_item() -> None:
    """The whole output goes back in its order."""
    output = [reasoning("rs_1"), function_call(call_id="a"), reasoning("rs_2"), function_call(call_id="b")]
    endpoint = FakeEndpoint(output, [answer()])
    await runner(endpoint).run("go")
    assert endpoint.inputs[1][1:5] == output


async def test_langchain_38372_nothing_refers_to_what_was_not_stored() -> None:
    """Encrypted reasoning is asked for, replayed, and missed early; no item reference is ever sent."""
    endpoint = FakeEndpoint([reasoning(), function_call()], [answer()])
    await runner(endpoint).run("go")
    assert "reasoning.encrypted_content" in endpoint.bodies[0]["include"]
    assert endpoint.inputs[1][1] == reasoning()
    RAN.clear()
    endpoint = FakeEndpoint([reasoning(encrypted=None), function_call()], [answer()])
    with pytest.raises(ptc.ReasoningNotReplayable):
        await runner(endpoint).run("go")
    assert (RAN, len(endpoint.bodies)) == ([], 1)


async def test_hermes_agent_27988_a_completed_answer_in_an_incomplete_response_ends_the_run() -> None:
    """No useless continuation; the reason is reported."""
    cut = response(answer("42"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    endpoint = FakeEndpoint(cut)
    result = await runner(endpoint).run("go")
    assert (result.output_text, result.incomplete_reason, len(endpoint.bodies)) == (
        "42",
        "max_output_tokens",
        1,
    )


async def test_openai_python_2720_sdk_fields_do_not_leak_into_the_replay() -> None:
    """Replay is built from raw dicts; input that came through the SDK's parser is cleaned."""
    from openai.types.responses import ParsedResponseFunctionToolCall

    parsed = ParsedResponseFunctionToolCall.construct(**function_call(), parsed_arguments={"x": 1})
    assert "parsed_arguments" in parsed.to_dict()
    endpoint = FakeEndpoint([answer()])
    output = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    await runner(endpoint).run([{"role": "user", "content": "hi"}, parsed, output])
    assert endpoint.inputs[0][1] == function_call()


def test_openai_3_57_explicit_nulls_and_async_survive() -> None:
    """The guides' `model_dump(exclude_none=True)` loses both."""
    item = {
        "type": "function_call",
        "async": True,
        "call_id": None,
        "outputs": None,
        "code": None,
        "created_by": "m",
    }
    assert for_request(item) == {key: value for key, value in item.items() if key != "created_by"}


async def test_agno_10366_a_later_failure_repeats_no_tool() -> None:
    """Only the request is sent again, with the same input; ambiguous failures of programs are not."""
    endpoint = FakeEndpoint(
        [function_call()], ptc.RateLimited("429"), ptc.EndpointUnreachable("no"), [answer()]
    )
    await runner(endpoint).run("go")
    assert RAN == [1]
    assert endpoint.bodies[1] == endpoint.bodies[3]
    endpoint = FakeEndpoint([function_call(call_id="c2")], ptc.ServerFailed("500"), [answer()])
    with pytest.raises(ptc.ServerFailed):
        await runner(endpoint).run("go")
    assert RAN == [1, 1]


def test_omnigent_2449_a_cut_never_splits_a_batch() -> None:
    """A parallel batch and its outputs are in or out."""
    for keep in range(14):
        kept = [item.get("call_id") for item in trim(transcript(), keep=keep)]
        assert kept.count("b") == kept.count("c")
        assert kept.count("b") in (0, 2)


async def test_effect_8355_a_lost_chain_falls_back_once() -> None:
    """Full input without previous_response_id, once; a second loss is an error."""
    lost = ptc.RequestRejected("gone", status=400, error_code="previous_response_not_found")
    endpoint = FakeEndpoint([function_call()], lost, lost)
    with pytest.raises(ptc.RequestRejected):
        await runner(endpoint, history="previous_response").run("go")
    assert len(endpoint.bodies) == 3
    assert "previous_response_id" not in endpoint.bodies[2]


async def test_anthropic_sdk_python_1801_the_latest_handle_goes_on_every_continuation() -> None:
    """There a container, here the chain: what a program waits in is named by the last response that had a name,
    whether calls succeeded, failed or were refused, and a response without one does not lose it."""
    nameless = {**response(function_call("nobody", call_id="c2", caller=by_program())), "id": None}
    endpoint = FakeEndpoint(
        [program(), function_call(caller=by_program())],
        nameless,
        [function_call(arguments="{", call_id="c3", caller=by_program())],
        [program_output(), answer()],
    )
    result = await runner(endpoint, history="previous_response").run("go")
    assert result.output_text == "done"
    named = [body.get("previous_response_id") for body in endpoint.bodies]
    assert named == [None, "resp_1", "resp_1", "resp_3"]
    since = [(item["type"], item.get("call_id")) for item in endpoint.inputs[2]]
    assert since == [
        ("function_call_output", "c1"),
        ("function_call", "c2"),
        ("function_call_output", "c2"),
    ], "what came since the last name is sent along with it"
    assert [item.get("call_id") for item in endpoint.inputs[3]] == ["c3"]


async def test_pydantic_ai_7833_a_lost_handle_is_dropped_once_and_reruns_nothing() -> None:
    """A program that waits goes on from the full input, which has it, or the run ends in a typed error."""
    lost = ptc.RequestRejected("gone", status=404, error_code="previous_response_not_found")
    waiting = [program(), function_call(caller=by_program())]
    endpoint = FakeEndpoint(waiting, lost, [program_output(), answer()])
    result = await runner(endpoint, history="previous_response").run("go")
    assert (result.output_text, RAN) == ("done", [1])
    assert [item["type"] for item in endpoint.inputs[2]][-3:] == [
        "program",
        "function_call",
        "function_call_output",
    ]

    RAN.clear()
    endpoint = FakeEndpoint(waiting, lost, lost)
    with pytest.raises(ptc.RequestRejected) as caught:
        await runner(endpoint, history="previous_response").run("go")
    assert (len(endpoint.bodies), RAN, caught.value.safe_to_retry) == (3, [1], False)


async def test_smolagents_2464_a_call_returns_at_its_limit() -> None:
    """Not when the hung worker happens to end."""
    hung = asyncio.Event()

    @ptc.tool(timeout=0.01)
    async def hang() -> str:
        """Hang."""
        await hung.wait()
        return ""

    endpoint = FakeEndpoint([function_call("hang", arguments="{}")], [answer()])
    await runner(endpoint, tools=[hang]).run("go")
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["type"] == "timeout"


async def test_codex_33036_a_program_that_never_ends_is_given_up() -> None:
    """Requests of a run are bounded; nothing polls for ever."""
    endpoint = FakeEndpoint([program()], *[[] for _ in range(20)])
    with pytest.raises(ptc.RequestLimitExceeded):
        await runner(endpoint, max_requests=5).run("go")
    assert len(endpoint.bodies) == 5


NEVER_ENDING = {
    "computes": "while True: pass",
    "sleeps": "import asyncio\nawait asyncio.sleep(3600)",
    "waits for nothing": "import asyncio\nawait asyncio.Event().wait()",
    "waits for a tool": "await hang()",
    "catches what ends it": "while True:\n    try:\n        await hang()\n    except BaseException:\n        pass",
}


@pytest.mark.parametrize("code", NEVER_ENDING.values(), ids=NEVER_ENDING)
async def test_codex_33190_38495_a_program_has_a_deadline_and_gives_its_slot_back(code: str) -> None:
    """The one slot is free for the next run whatever the program did; the model is told once, and asks for
    nothing in between."""
    hung = asyncio.Event()

    @ptc.tool(allowed_callers=["programmatic"])
    async def hang() -> int:
        """Hang."""
        await hung.wait()
        return 1

    limits = ptc.SandboxLimits(wall_seconds=1.0)
    async with ptc.Sandbox(limits=limits, concurrency=1) as sandbox:
        for number in (1, 2):
            endpoint = FakeEndpoint([function_call("run_program", "p", {"code": code})], [answer()])
            face = runner(endpoint, tools=[hang], programs="local", sandbox=sandbox)
            result = await face.run("go")
            told = outputs_in(endpoint.bodies[1])["p"]
            assert told["status"] != "completed", (number, told)
            assert (result.output_text, result.requests, len(endpoint.bodies)) == ("done", 2, 2)
        endpoint = FakeEndpoint([function_call("run_program", "p", {"code": "1 + 1"})], [answer()])
        await runner(endpoint, tools=[hang], programs="local", sandbox=sandbox).run("go")
        assert outputs_in(endpoint.bodies[1])["p"]["value"] == 2


async def test_codex_33036_a_call_of_a_program_has_its_own_deadline() -> None:
    """It fails at its await, and the program goes on."""
    hung = asyncio.Event()

    @ptc.tool(allowed_callers=["programmatic"], timeout=0.05)
    async def hang() -> int:
        """Hang."""
        await hung.wait()
        return 1

    code = "try:\n    await hang()\nexcept Exception as error:\n    told = str(error)\ntold"
    told = await run_here(code, hang)
    assert (told["status"], "did not answer" in told["value"]) == ("completed", True)


async def test_vercel_ai_18143_calls_of_a_program_are_approved_like_others() -> None:
    """Whoever calls; a denial reaches the program as an error object."""
    asked: list[Any] = []

    class Nobody:
        async def approve(
            self, call: Call, contract: Any, arguments: Any, run: RunContext
        ) -> ptc.Denied | None:
            asked.append(call.caller)
            return ptc.Denied("not_approved", "ask somebody else")

    @ptc.tool(approval="always", allowed_callers=["direct", "programmatic"])
    def drop() -> dict[str, int]:
        """Drop everything."""
        RAN.append(1)
        return {}

    call = function_call("drop", arguments="{}", caller=by_program())
    endpoint = FakeEndpoint([program(), call, function_call("drop", "c2", "{}")], [answer()])
    await runner(endpoint, tools=[drop], approver=Nobody()).run("go")
    assert RAN == []
    assert asked == [ptc.Program("cp"), ptc.Direct()]
    outputs = outputs_in(endpoint.bodies[1])
    assert [outputs[call_id]["error"]["type"] for call_id in ("c1", "c2")] == ["not_approved"] * 2


async def test_inspect_ai_5365_items_without_an_id_are_no_obstacle() -> None:
    """A null id stalls nobody here, streamed or not; a call without a call id is the service's fault."""
    nameless = {**function_call(), "id": None}
    for streamed in (False, True):
        endpoint = FakeEndpoint([nameless], [answer("ok")])
        face = runner(endpoint)
        result = await (face.stream("go").finish() if streamed else face.run("go"))
        assert result.output_text == "ok"
        assert endpoint.inputs[1][1] == nameless


async def run_here(code: str, *tools: Any) -> dict[str, Any]:
    """What the model is told of a program that ran here; the run itself came to its end."""
    endpoint = FakeEndpoint([function_call("run_program", "p", {"code": code})], [answer()])
    result = await runner(endpoint, tools=list(tools) or [echo], programs="local").run("go")
    assert result.output_text == "done"
    return dict(outputs_in(endpoint.bodies[1])["p"])


async def test_smolagents_2395_objects_of_a_program_do_not_reach_the_host() -> None:
    """Only JSON crosses: nothing is left whose methods could run here later."""
    told = await run_here("class Sly:\n    def __eq__(self, other):\n        return True\nSly()")
    assert (told["status"], told["error"]["type"]) == ("raised", "NotJson")
    told = await run_here("class Sly:\n    def __del__(self):\n        pass\nSly()")
    assert (told["status"], told["error"]["code"]) == ("denied", "forbidden_name")
    assert (await run_here("class Sly(int):\n    pass\nawait echo(x=Sly(3))"))["value"] == {"x": 3}
    assert [type(x) for x in RAN] == [int]


async def test_monty_839_323_tool_errors_inside_gather_are_caught_where_they_are_awaited() -> None:
    """One, or two at once: neither passes the program's own handling, and the program goes on."""

    @ptc.tool(allowed_callers=["programmatic"])
    async def fail(x: int) -> int:
        """Fail."""
        raise ValueError(f"no {x}")

    code = """
import asyncio
caught = []
try:
    await asyncio.gather(fail(x=1), fail(x=2))
except Exception as error:
    caught.append(type(error).__name__)
both = await asyncio.gather(fail(x=3), fail(x=4), return_exceptions=True)
[caught, len([one for one in both if isinstance(one, Exception)]), await echo(x=5)]
"""
    told = await run_here(code, echo, fail)
    assert told["status"] == "completed", told
    caught, failed, after = told["value"]
    assert (len(caught), failed, after) == (1, 2, {"x": 5})


async def test_phoenix_14784_a_program_that_exhausts_its_stack_is_a_failed_program() -> None:
    """The interpreter is in a child process: this one goes on, and serves the next program."""
    told = await run_here("def down(n):\n    return down(n + 1)\ndown(0)")
    assert (told["status"], told["error"]["type"]) == ("raised", "RecursionError")
    assert (await run_here("await echo(x=1)"))["value"] == {"x": 1}


async def test_the_guides_snippet_is_not_what_goes_over_the_wire() -> None:
    """Through the real SDK: items come back as the bytes said, numbers and order included."""
    raw = (
        '{"type":"program","id":"p","call_id":"cp","code":"x","fingerprint":"f","later":{"b":1.0,"a":[null]}}'
    )
    bodies: list[bytes] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(request.content)
        output = raw if len(bodies) == 1 else json.dumps(answer())
        return httpx2.Response(200, text=f'{{"id":"r","status":"completed","output":[{output}]}}')

    async with client_of(handler) as client:
        await runner(client).run("go")
    assert raw.encode() in bodies[1]
