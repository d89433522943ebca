"""The runner: endings, errors, limits, concurrency, and its faces (async, sync, stream)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import ptc
from ptc.history import orphans
from ptc_tools.call import Call
from ptc_tools.context import RunContext
from tests.ptc.loop_fakes import (
    AT_ONCE,
    FakeEndpoint,
    answer,
    by_program,
    commentary,
    function_call,
    outputs_in,
    program,
    program_output,
    reasoning,
    refusal,
    response,
)


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def echo(x: int) -> dict[str, int]:
    """Give x back."""
    return {"x": x}


@ptc.tool
async def boom(x: int) -> dict[str, int]:
    """Fail."""
    raise ValueError("out of paper")


def runner(endpoint: FakeEndpoint, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", **({"tools": [echo, boom], "retry": AT_ONCE} | options))


class Memory:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    async def started(self, call: Call, contract: Any, arguments: Any, run: RunContext) -> object:
        self.told.append(("started", call.call_id))
        return call.call_id

    async def finished(self, token: object, outcome: Any, duration_us: int) -> None:
        self.told.append(("finished", token))

    async def denied(self, call: Call, contract: Any, outcome: Any, run: RunContext) -> None:
        self.told.append(("denied", (call.call_id, outcome.code)))

    async def event(self, type: str, data: Any, run: RunContext) -> None:
        self.told.append((type, data))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]


# Results


async def test_a_run_reports_calls_programs_usage_and_its_items() -> None:
    """Everything that happened is in the result, whoever caused it."""
    endpoint = FakeEndpoint(
        [reasoning(), program(code="text(await tools.echo({x: 1}))"), function_call(caller=by_program())],
        [program_output(result="1"), answer("It is 1.")],
    )
    result = await runner(endpoint, programs="hosted").run("go", run_id="run_7")
    assert (result.run_id, result.output_text, result.status, result.requests) == (
        "run_7",
        "It is 1.",
        "completed",
        2,
    )
    assert result.usage == ptc.Usage(input_tokens=20, output_tokens=10, total_tokens=30, requests=2)
    (call,) = result.calls
    assert call.call == Call("c1", "echo", '{"x": 1}', ptc.Program("cp"))
    assert (call.outcome, call.request) == (ptc.Success({"x": 1}), 1)
    assert result.programs == (
        ptc.ProgramReport("cp", "text(await tools.echo({x: 1}))", "javascript", "1", "completed"),
    )
    assert [item["type"] for item in result.items] == [
        "message",
        "reasoning",
        "program",
        "function_call",
        "function_call_output",
        "program_output",
        "message",
    ]


async def test_the_next_turn_goes_on_from_the_result() -> None:
    """`to_input` gives the items back unchanged, with the new message after them."""
    endpoint = FakeEndpoint([reasoning(), answer("one")], [answer("two")])
    first = await runner(endpoint).run("go")
    second = await runner(endpoint).run(first.to_input("and?"))
    assert endpoint.inputs[1] == [*first.items, {"type": "message", "role": "user", "content": "and?"}]
    assert second.output_text == "two"


async def test_a_refusal_is_a_result() -> None:
    """The model may say no; that is not an error of the run."""
    result = await runner(FakeEndpoint([refusal("I will not.")])).run("go")
    assert (result.status, result.refusal, result.output_text) == ("refused", "I will not.", "")


async def test_an_answer_may_be_data() -> None:
    """A type is asked for as strict JSON and read back as the type."""
    from pydantic import BaseModel

    class Left(BaseModel):
        sku: str
        units: int

    endpoint = FakeEndpoint(
        [answer('{"sku": "a", "units": 11}')], [answer("[1, 2]")], [answer('{"value": [1, 2]}')]
    )
    result = await runner(endpoint).run("go", output_type=Left)
    assert result.output == Left(sku="a", units=11)
    sent = endpoint.bodies[0]["text"]["format"]
    assert (sent["type"], sent["name"], sent["strict"]) == ("json_schema", "Left", True)
    assert sent["schema"]["additionalProperties"] is False
    with pytest.raises(ptc.InvalidOutput, match="value"):
        await runner(endpoint).run("go", output_type=list[int])
    assert (await runner(endpoint).run("go", output_type=list[int])).output == [1, 2]


@pytest.mark.parametrize("text", ["no json", '{"units": "many"}', '{"units": 1, "units": 2}', "{}"])
async def test_an_answer_that_does_not_fit_is_an_error(text: str) -> None:
    """Never a half-read value; the text is there to look at."""
    schema = {"type": "object", "properties": {"units": {"type": "integer"}}, "required": ["units"]}
    with pytest.raises(ptc.InvalidOutput) as error:
        await runner(FakeEndpoint([answer(text)])).run("go", output_type=schema)
    assert error.value.text == text


# Errors


async def test_a_failed_response_is_a_typed_error_with_the_services_words() -> None:
    """Nothing is invented from a response that failed."""
    failed = response(status="failed", error={"code": "server_error", "message": "oops"})
    with pytest.raises(ptc.ResponseFailed, match=r"server_error.*oops") as error:
        await runner(FakeEndpoint(failed)).run("go", run_id="run_1")
    assert (error.value.run_id, error.value.error_code, error.value.safe_to_retry) == (
        "run_1",
        "server_error",
        True,
    )


async def test_an_error_carries_the_transcript_and_whether_it_is_safe_to_run_again() -> None:
    """A tool that ran may have had an effect."""
    endpoint = FakeEndpoint([function_call()], ptc.RequestRejected("no"))
    with pytest.raises(ptc.RequestRejected) as error:
        await runner(endpoint).run("go")
    assert [item["type"] for item in error.value.items] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert not error.value.safe_to_retry
    assert error.value.usage is not None
    assert error.value.usage.total_tokens == 15


async def test_tool_errors_go_back_to_the_model_by_default() -> None:
    """The model can try something else; no traceback, and never a made-up result."""
    endpoint = FakeEndpoint([function_call("boom")], [answer()])
    result = await runner(endpoint).run("go")
    error = outputs_in(endpoint.bodies[1])["c1"]["error"]
    assert (error["type"], result.calls[0].outcome.status) == ("tool_error", "failure")
    assert "Traceback" not in error["message"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (function_call("boom", "c2"), "tool_error"),
        (function_call("nobody", "c2"), "unknown_tool"),
        (function_call("echo", "c2", {"x": "1"}), "invalid_arguments"),
        (function_call("echo", "c2", "{"), "malformed_arguments"),
    ],
)
async def test_raised_tool_errors_come_after_the_batch_was_answered(call: dict[str, Any], code: str) -> None:
    """Siblings finish and are recorded; then the error names call and reason."""
    endpoint = FakeEndpoint([function_call(), call, function_call(call_id="c3")])
    memory = Memory()
    with pytest.raises(ptc.ToolCallError) as error:
        await runner(endpoint, on_tool_error="raise", audit=memory).run("go")
    raised = error.value
    assert (raised.call_id, raised.outcome.status != "success") == ("c2", True)
    assert getattr(raised.outcome, "code", None) == code
    assert isinstance(raised, ptc.ToolCallFailed)
    assert orphans(raised.items) == []
    assert memory.kinds.count("finished") + memory.kinds.count("denied") == 3
    if code == "tool_error":
        assert isinstance(raised.__cause__, ValueError)


async def test_the_service_may_be_unreachable() -> None:
    """Refused connections are retried, then named."""
    endpoint = FakeEndpoint(*[ptc.EndpointUnreachable("no connection") for _ in range(4)])
    with pytest.raises(ptc.EndpointUnreachable) as error:
        await runner(endpoint).run("go")
    assert len(endpoint.bodies) == 4
    assert error.value.safe_to_retry


async def test_a_wait_that_is_too_long_is_not_waited() -> None:
    """The error says how long the service asked for; the application decides."""
    endpoint = FakeEndpoint(ptc.RateLimited("429", status=429, retry_after=1e6))
    with pytest.raises(ptc.RateLimited) as error:
        await runner(endpoint, retry=ptc.RetryPolicy()).run("go")
    assert error.value.retry_after == 1e6


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"model": ""}, "model="),
        ({"client": object()}, "client= is a object"),
        ({"programs": "maybe"}, "programs="),
        ({"on_tool_error": "ignore"}, "on_tool_error="),
        ({"max_requests": 0}, "max_requests is 0"),
        ({"request": {"tools": []}}, "request= cannot set tools"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "gone"}}, "names 'gone', which is not among the tools"),
        ({"background": True}, "background responses are stored"),
        (
            {"tools": [{"type": "programmatic_tool_calling"}], "programs": "local"},
            'goes with programs="hosted"',
        ),
    ],
)
def test_a_runner_that_cannot_work_is_refused_at_construction(options: dict[str, Any], what: str) -> None:
    """Before any request, in words that say what to give."""
    given = {"client": FakeEndpoint(), "model": "m", "tools": [echo]} | options
    with pytest.raises(ptc.ConfigurationError, match=what):
        ptc.Runner(**given)


def test_tools_for_programs_alone_need_programs() -> None:
    """Nobody could call them."""

    @ptc.tool(allowed_callers=["programmatic"])
    def only() -> int:
        """One."""
        return 1

    with pytest.raises(ptc.ConfigurationError, match="only programs may call only"):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[only])


@pytest.mark.parametrize("tools", [[echo, echo], [echo, ptc.tool(lambda: None, name="echo")]])
def test_two_tools_of_one_name_are_refused(tools: list[Any]) -> None:
    """Dispatch would be a matter of luck."""
    with pytest.raises(ptc.DuplicateTool, match="echo"):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=tools)


@pytest.mark.parametrize("tool", [7, {"name": "x"}, int, None])
def test_what_is_not_a_tool_is_refused(tool: Any) -> None:
    """With a TypeError, as for every argument of a wrong type."""
    with pytest.raises(TypeError):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[tool])


def test_a_function_definition_without_its_function_is_refused() -> None:
    """Its calls could not be answered."""
    with pytest.raises(ptc.RegistrationError, match="define_tool"):
        ptc.Runner(client=FakeEndpoint(), model="m", tools=[{"type": "function", "name": "x"}])


# Limits


def always(*items: dict[str, Any]) -> Callable[[Any], Any]:
    numbers = iter(range(1000))
    return lambda body: [{**item, "call_id": f"{item.get('call_id')}_{next(numbers)}"} for item in items]


async def test_failing_batches_end_a_run() -> None:
    """A model that repeats the same mistake is stopped, and one success starts the count again."""
    bad, good = always(function_call("boom")), always(function_call("echo"))
    endpoint = FakeEndpoint(bad, good, bad, bad, [answer()])
    with pytest.raises(ptc.LimitExceeded) as error:
        await runner(endpoint, limits=ptc.Limits(max_failing_batches=2)).run("go")
    assert (error.value.limit, len(endpoint.bodies)) == ("max_failing_batches", 4)


async def test_tokens_end_a_run() -> None:
    """By the service's own count."""
    endpoint = FakeEndpoint(always(function_call()), always(function_call()), [answer()])
    with pytest.raises(ptc.LimitExceeded) as error:
        await runner(endpoint, limits=ptc.Limits(max_tokens=30)).run("go")
    assert (error.value.limit, len(endpoint.bodies)) == ("max_tokens", 2)


async def test_the_wall_clock_ends_a_run_and_every_call_is_answered() -> None:
    """A tool that hangs does not hang the run."""
    began = asyncio.Event()

    @ptc.tool
    async def hang() -> str:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()
        return ""

    endpoint = FakeEndpoint([function_call(), function_call("hang", "c2", "{}")])
    memory = Memory()
    with pytest.raises(ptc.LimitExceeded) as error:
        await runner(endpoint, tools=[echo, hang], limits=ptc.Limits(wall_clock=0.05), audit=memory).run("go")
    assert error.value.limit == "wall_clock"
    assert orphans(error.value.items) == []
    assert memory.kinds.count("started") == memory.kinds.count("finished") == 2


async def test_after_a_limit_the_model_may_be_asked_for_its_answer() -> None:
    """One last request, in which no tool may be called."""
    endpoint = FakeEndpoint(always(function_call()), [answer("so far")])
    result = await runner(endpoint, limits=ptc.Limits(max_requests=1, final_answer=True)).run("go")
    assert (result.output_text, result.limit) == ("so far", "max_requests")
    assert endpoint.bodies[1]["tool_choice"] == "none"


async def test_a_model_that_calls_after_the_limit_gets_no_further_word() -> None:
    """The call of the last request does not run."""
    calls = always(function_call())
    endpoint = FakeEndpoint(calls, calls)
    memory = Memory()
    with pytest.raises(ptc.RequestLimitExceeded):
        await runner(endpoint, limits=ptc.Limits(max_requests=1, final_answer=True), audit=memory).run("go")
    assert (memory.kinds.count("started"), memory.kinds.count("denied")) == (1, 1)


# Concurrency


async def test_the_calls_of_a_batch_are_in_flight_at_once() -> None:
    """This test would never end otherwise: each call waits for the other."""
    here = asyncio.Barrier(2)

    @ptc.tool
    async def meet(x: int) -> int:
        """Wait for the other."""
        await here.wait()
        return x

    endpoint = FakeEndpoint([function_call("meet", "a"), function_call("meet", "b")], [answer()])
    await runner(endpoint, tools=[meet]).run("go")
    assert outputs_in(endpoint.bodies[1]) == {"a": 1, "b": 1}


async def test_concurrency_is_bounded() -> None:
    """No more at once than the application allows, and all of them run."""
    now, most = 0, 0

    @ptc.tool
    async def busy(x: int) -> int:
        """Be busy."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now -= 1
        return x

    calls = [function_call("busy", f"c{n}", {"x": n}) for n in range(20)]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, tools=[busy], max_concurrent_calls=3).run("go")
    assert most == 3
    assert outputs_in(endpoint.bodies[1]) == {f"c{n}": n for n in range(20)}


async def test_a_cancelled_run_closes_its_records() -> None:
    """Cancellation reaches the tools, and nothing is left started without an end."""
    began = asyncio.Event()
    ended: list[str] = []

    @ptc.tool
    async def hang(x: int) -> int:
        """Wait for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned")
        return x

    memory = Memory()
    endpoint = FakeEndpoint([function_call("hang", "a"), function_call("hang", "b")])
    task = asyncio.create_task(runner(endpoint, tools=[hang], audit=memory).run("go"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert memory.kinds.count("started") == memory.kinds.count("finished") >= 1
    assert len(ended) == memory.kinds.count("started")
    assert memory.told[-1][0] == "run.finished"
    assert memory.told[-1][1]["status"] == "cancelled"


# Audit


async def test_the_audit_record_follows_the_run() -> None:
    """Requests before they are sent, responses before they are acted on, calls around the tool."""
    memory = Memory()
    endpoint = FakeEndpoint([program(), function_call(caller=by_program())], [program_output(), answer("x")])
    await runner(endpoint, programs="hosted", audit=memory).run("go")
    assert memory.kinds == [
        "run.started",
        "request.sent",
        "response.received",
        "program.started",
        "started",
        "finished",
        "request.sent",
        "response.received",
        "program.finished",
        "run.finished",
    ]
    data = dict(memory.told)
    assert data["run.started"]["tools"] == ["echo", "boom"]
    assert data["program.started"]["call_id"] == data["program.finished"]["call_id"] == "cp"
    assert data["program.finished"]["calls"] == 1
    assert (data["run.finished"]["status"], data["run.finished"]["output_text"]) == ("completed", "x")


async def test_a_tool_without_a_record_does_not_run() -> None:
    """The recorder may refuse; then the model is told, and nothing happened."""
    ran: list[int] = []

    @ptc.tool
    def effect(x: int) -> int:
        """Do something."""
        ran.append(x)
        return x

    class Full(Memory):
        async def started(self, call: Call, contract: Any, arguments: Any, run: RunContext) -> object:
            raise OSError("disk full")

    endpoint = FakeEndpoint([function_call("effect")], [answer()])
    await runner(endpoint, tools=[effect], audit=Full()).run("go")
    assert ran == []
    assert outputs_in(endpoint.bodies[1])["c1"]["error"]["type"] == "audit_unavailable"


async def test_a_run_that_cannot_be_recorded_does_not_start() -> None:
    """An auditor would see requests of a run that never began."""

    class Closed(Memory):
        async def event(self, type: str, data: Any, run: RunContext) -> None:
            raise OSError("closed")

    endpoint = FakeEndpoint([answer()])
    with pytest.raises(OSError, match="closed"):
        await runner(endpoint, audit=Closed()).run("go")
    assert endpoint.bodies == []


# Faces


def test_run_sync_needs_no_event_loop() -> None:
    """Also from several threads at once, over one client."""
    endpoint = FakeEndpoint(*[[answer()] for _ in range(8)])
    face = runner(endpoint)
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(face.run_sync("go").output_text)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["done"] * 8


async def test_run_sync_inside_a_loop_says_what_to_do() -> None:
    """It would block the loop that the caller runs on."""
    with pytest.raises(ptc.LocalProtocolError, match="use `await run"):
        runner(FakeEndpoint([answer()])).run_sync("go")


def test_run_sync_raises_what_the_run_raises() -> None:
    """Errors are the same in every face."""
    with pytest.raises(ptc.ResponseFailed):
        runner(FakeEndpoint(response(status="failed"))).run_sync("go")


async def test_a_stream_tells_what_happens_and_ends_with_the_same_result() -> None:
    """Text in pieces, programs, calls, the answer; the history is that of the unstreamed run."""
    script = (
        [commentary("Looking."), program(), function_call(caller=by_program())],
        [program_output(), answer("It is one.")],
    )
    plain = await runner(FakeEndpoint(*script), programs="hosted").run("go")
    told: list[Any] = []
    async with runner(FakeEndpoint(*script), programs="hosted").stream("go") as events:
        async for event in events:
            told.append(event)
    assert events.result.items == plain.items
    assert (
        "".join(e.text for e in told if isinstance(e, ptc.TextDelta) and e.phase == "final_answer")
        == "It is one."
    )
    assert [type(e).__name__ for e in told if not isinstance(e, ptc.TextDelta)] == [
        "RunStarted",
        "RequestSent",
        "ProgramOpened",
        "ProgramPaused",
        "Commentary",
        "CallStarted",
        "CallFinished",
        "RequestSent",
        "ProgramClosed",
        "Finished",
        "RunFinished",
    ]


async def test_leaving_a_stream_ends_its_run() -> None:
    """A client that went away must not leave tools running."""
    began, ended = asyncio.Event(), asyncio.Event()

    @ptc.tool
    async def hang(x: int) -> int:
        """Wait for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return x

    async with runner(FakeEndpoint([function_call("hang")]), tools=[hang]).stream("go") as events:
        async for event in events:
            if isinstance(event, ptc.CallStarted):
                await began.wait()
                break
    assert ended.is_set()
    with pytest.raises(ptc.LocalProtocolError):
        events.result


async def test_a_stream_raises_what_its_run_raises() -> None:
    """The iteration ends with the error, not in silence."""
    stream = runner(FakeEndpoint(response(status="failed"))).stream("go")
    with pytest.raises(ptc.ResponseFailed):
        await stream.finish()


async def test_a_cut_stream_is_never_half_a_response() -> None:
    """Without its last event nothing of it counts."""

    class Cut(FakeEndpoint):
        async def stream(self, body: dict[str, Any], *, timeout: float | None = None) -> Any:
            async for event in super().stream(body):
                if event["type"].startswith("response.completed"):
                    return
                yield event

    with pytest.raises(ptc.ResponseCut):
        await runner(Cut([function_call()]), retry=ptc.RetryPolicy(attempts=1)).stream("go").finish()


# Background, modes


async def test_a_background_response_is_polled() -> None:
    """The service works on; the runner looks again until it is done."""
    endpoint = FakeEndpoint(response(status="queued", id="r1"))
    endpoint.retrieved = [response(status="in_progress", id="r1"), ptc.ServerFailed("blip"), [answer("late")]]
    face = runner(endpoint, background=True, poll_interval=0, history="previous_response")
    result = await face.run("go")
    assert result.output_text == "late"
    assert endpoint.bodies[0]["background"] is True
    assert endpoint.bodies[0]["store"] is True


async def test_a_cancelled_background_run_is_cancelled_at_the_service() -> None:
    """It would go on and cost money."""
    endpoint = FakeEndpoint(response(status="queued", id="r1"))
    face = runner(endpoint, background=True, poll_interval=60, history="previous_response")
    task = asyncio.create_task(face.run("go"))
    await endpoint.asked.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert endpoint.cancelled == ["r1"]


async def test_a_chained_run_falls_back_to_its_full_input_once() -> None:
    """A service that lost the chain does not lose the turn."""
    lost = ptc.RequestRejected("gone", status=400, error_code="previous_response_not_found")
    endpoint = FakeEndpoint([function_call()], lost, [answer("still here")])
    result = await runner(endpoint, history="previous_response").run("go")
    assert result.output_text == "still here"
    assert endpoint.bodies[1]["previous_response_id"] == "resp_1"
    assert "previous_response_id" not in endpoint.bodies[2]
    assert len(endpoint.inputs[2]) == 3
    assert result.requests == 2


async def test_programs_auto_falls_back_before_anything_has_run() -> None:
    """Where the deployment cannot, the sandbox here can."""
    unsupported = ptc.ProgramsUnsupported("no", status=400)
    endpoint = FakeEndpoint(unsupported, [answer("local")])
    sandbox: Any = FakeSandbox()
    result = await runner(endpoint, programs="auto", sandbox=sandbox).run("go")
    assert result.output_text == "local"
    assert {"type": "programmatic_tool_calling"} in endpoint.bodies[0]["tools"]
    names = [tool.get("name") for tool in endpoint.bodies[1]["tools"]]
    assert names == ["echo", "boom", "run_program"]
    assert "allowed_callers" not in endpoint.bodies[1]["tools"][0]


class FakeSandbox:
    """Enough of a sandbox to make a code tool that is never called."""

    class limits:
        wall_seconds = 1.0

    async def run(self) -> None:
        raise AssertionError("never called")


async def test_programs_unsupported_says_what_to_try() -> None:
    """The deployment may be fine without them."""
    endpoint = FakeEndpoint(ptc.ProgramsUnsupported("no", status=400))
    with pytest.raises(ptc.ProgramsUnsupported):
        await runner(endpoint, programs="hosted").run("go")


# Compaction


async def test_the_history_is_cut_where_nothing_is_open() -> None:
    """The application cuts whole units; it is not asked while a program or a call is open."""
    asked: list[int] = []

    def compact(items: Any) -> Any:
        asked.append(len(items))
        return ptc.trim(items, keep=1)

    endpoint = FakeEndpoint(
        [function_call(call_id="a")],
        [program(), function_call(call_id="b", caller=by_program())],
        [program_output()],
        [answer()],
    )
    result = await runner(endpoint, programs="hosted", compact=compact).run("go")
    assert asked == [1, 3, 5]
    assert [len(sent) for sent in endpoint.inputs] == [1, 1, 4, 1]
    assert orphans(result.items) == []


async def test_a_cut_that_leaves_an_orphan_is_refused() -> None:
    """Before the service would."""
    endpoint = FakeEndpoint([function_call()], [answer()])
    with pytest.raises(ptc.InvalidInput, match="no call before it"):
        await runner(endpoint, compact=lambda items: items[-1:]).run("go")


async def test_an_option_that_a_run_does_not_have_is_a_type_error() -> None:
    """A misspelt limit must not be no limit."""
    options: Any = {"max_request": 1}
    with pytest.raises(TypeError, match="no option max_request"):
        await runner(FakeEndpoint()).run("go", **options)


async def test_a_run_goes_on_where_another_broke_off() -> None:
    """The transcript of an error is an input; a program that was open in it may go on calling."""
    broken = FakeEndpoint([program(), function_call(caller=by_program())], ptc.ServerFailed("500"))
    with pytest.raises(ptc.ServerFailed) as error:
        await runner(broken, programs="hosted").run("go")
    again = function_call(call_id="c2", caller=by_program())
    endpoint = FakeEndpoint([again], [program_output(), answer("whole")])
    result = await runner(endpoint, programs="hosted").run(list(error.value.items))
    assert outputs_in(endpoint.bodies[1])["c2"] == {"x": 1}
    assert result.output_text == "whole"


@pytest.mark.parametrize(("begun", "kind"), [(False, ptc.RateLimited), (True, ptc.ServerFailed)])
def test_a_rate_limit_in_the_middle_of_a_stream_is_ambiguous(begun: bool, kind: type[Exception]) -> None:
    """A program may have started by then."""
    from ptc.streaming import StreamReader

    reader = StreamReader()
    if begun:
        reader.feed({"type": "response.output_item.added", "output_index": 0, "item": program()})
    with pytest.raises(kind):
        reader.feed({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("history", "stored"),
        ("limits", {"max_requests": 3}),
        ("limits", ptc.Limits),
        ("retry", 3),
        ("middleware", ["audit"]),
        ("compact", 100),
        ("instructions", ["Be brief."]),
        ("policy", None),
        ("policy", lambda principal, contract, arguments, caller: None),
        ("approver", ptc.PauseForApproval),
        ("audit", print),
        ("sandbox", "local"),
        ("store", "runs.db"),
        ("call_timeout", 0),
        ("call_timeout", "60"),
        ("request_timeout", -1),
        ("request_timeout", float("nan")),
        ("poll_interval", None),
        ("poll_interval", -0.1),
        ("principal", 7),
        ("tenant", b"t"),
        ("labels", {"team": 1}),
        ("labels", ["team"]),
    ],
)
def test_what_a_runner_cannot_work_with_is_refused_when_it_is_made(option: str, value: object) -> None:
    """In the middle of a run it would be a failure of the wrong thing, or go unseen."""
    options: dict[str, Any] = {option: value}
    with pytest.raises(ptc.ConfigurationError, match=f"{option}="):
        ptc.Runner(client=FakeEndpoint(), model="m", **options)


@pytest.mark.parametrize(
    ("option", "value"), [("limits", {"max_requests": 3}), ("run_id", 5), ("labels", {"a": 1}), ("tenant", 1)]
)
async def test_what_a_run_cannot_work_with_is_refused_before_it_begins(option: str, value: object) -> None:
    """The same for what one run has of its own."""
    endpoint = FakeEndpoint()
    options: Any = {option: value}
    with pytest.raises(ptc.ConfigurationError, match=f"{option}="):
        await ptc.Runner(client=endpoint, model="m").run("go", **options)
    assert endpoint.bodies == []


@pytest.mark.parametrize(
    "name", ["max_requests", "max_calls", "max_tokens", "wall_clock", "max_concurrent_calls"]
)
@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan")])
def test_a_limit_is_a_positive_number(name: str, value: object) -> None:
    """One that compares as nothing would be no limit at all."""
    limits: dict[str, Any] = {name: value}
    with pytest.raises(ptc.ConfigurationError, match=name):
        ptc.Limits(**limits)


def test_calls_at_once_are_always_bounded() -> None:
    """There is no unbounded number of them."""
    with pytest.raises(ptc.ConfigurationError, match="max_concurrent_calls"):
        ptc.Limits(max_concurrent_calls=None)  # type: ignore[arg-type]
