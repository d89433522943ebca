"""What a run does where the wire, the SDK or a failed attempt leaves something behind that it must not keep."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import openai
import pydantic
import pytest

import ptc
from ptc.testing import ScriptedModel, call, in_process, program, say
from ptc_tools.outcome import Denied
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, client_of, function_call, outputs_in, response


@pytest.fixture(autouse=True)
def _experiments_are_fine() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptc.ExperimentalWarning)
        yield


def runner(endpoint: Any, *tools: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=list(tools), **({"retry": AT_ONCE} | options))


def offered(body: Any) -> list[str]:
    return [str(tool.get("name") or tool["type"]) for tool in body.get("tools") or []]


@ptc.tool
def extra() -> str:
    """A tool that a call may add."""
    return "x"


# What the SDK adds


class Answer(pydantic.BaseModel):
    """A structured answer."""

    a: int


async def test_what_the_sdk_parsed_is_not_sent_back() -> None:
    """The service refuses the field, and the text beside it says the same."""
    async with in_process(ScriptedModel(say('{"a": 1}'), say("ok"))) as client:
        parsed = await client.responses.parse(model="m", input="x", text_format=Answer)
        again = [{"role": "user", "content": "x"}, *parsed.output, {"role": "user", "content": "go on"}]
        result = await runner(client).run(again)
    assert result.output_text == "ok"


async def test_a_field_named_parsed_stays_where_it_is_the_services() -> None:
    """What we do not know, we pass on."""
    unknown = {"type": "oracle", "id": "o", "content": [{"type": "vision", "parsed": {"a": 1}}]}
    endpoint = FakeEndpoint([unknown, function_call("extra", "c", "{}")], [answer()])
    await runner(endpoint, extra).run("go")
    assert unknown in endpoint.inputs[1]


# What a failed attempt leaves


def loader(failures: int) -> ptc.Tool[Any, Any]:
    left = [failures]

    @ptc.tool(effects="read")
    async def load(ctx: ptc.ToolContext) -> str:
        """Add a tool, and fail at first."""
        if left[0]:
            left[0] -= 1
            ctx.add_tools(extra)
            raise ptc.TransportError("the line broke")
        return "ok"

    return load


async def test_a_retried_call_keeps_nothing_of_the_attempt_that_failed() -> None:
    """A change that is made by something that then fails is taken back."""
    endpoint = FakeEndpoint([function_call("load", "c", "{}")], [answer()])
    await runner(endpoint, loader(1), middleware=[ptc.Retry(3, delay=0)]).run("go")
    assert outputs_in(endpoint.bodies[1]) == {"c": "ok"}
    assert offered(endpoint.bodies[1]) == ["load"]


async def test_a_failure_that_a_middleware_makes_good_keeps_no_change() -> None:
    """The tool failed, whatever is told of it."""

    async def make_good(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        await next(invocation)
        return ptc.Success("made good")

    endpoint = FakeEndpoint([function_call("load", "c", "{}")], [answer()])
    await runner(endpoint, loader(1), middleware=[make_good]).run("go")
    assert offered(endpoint.bodies[1]) == ["load"]


async def test_an_attempt_that_failed_takes_nothing_of_another_call_back() -> None:
    """Each call has its own changes."""

    @ptc.tool
    async def other(ctx: ptc.ToolContext) -> str:
        """Add the same tool, and succeed."""
        ctx.add_tools(extra)
        return "ok"

    calls = [function_call("other", "o", "{}"), function_call("load", "c", "{}")]
    endpoint = FakeEndpoint(calls, [answer()])
    await runner(endpoint, other, loader(1), middleware=[ptc.Retry(2, delay=0)]).run("go")
    assert offered(endpoint.bodies[1]) == ["other", "load", "extra"]


# Calls that cannot be answered by an error

COMPUTER = {"type": "computer_call", "id": "cc", "call_id": "k", "action": {"type": "wait"}}


@pytest.mark.parametrize("how", ["raises", "denied"])
async def test_a_computer_call_without_a_screenshot_says_why(how: str) -> None:
    """Its output can carry nothing else; what ran beside it is in the transcript all the same."""

    def look(request: dict[str, Any]) -> dict[str, Any]:
        raise ptc.ToolError("no screen here")

    async def deny(invocation: ptc.Invocation, next: ptc.Next) -> ptc.Outcome:
        if how == "denied" and invocation.tool.contract.name == "computer_call":
            return Denied("not_authorized", "no screen here")
        return await next(invocation)

    computer = ptc.client_tool({"type": "computer"}, look)
    for batch in (
        [function_call("extra", "c", "{}"), COMPUTER],
        [COMPUTER, function_call("extra", "c", "{}")],
    ):
        with pytest.raises(ptc.ToolCallFailed, match="no screen here") as caught:
            await runner(FakeEndpoint(batch), extra, computer, middleware=[deny]).run("go")
        assert caught.value.call.name == "computer_call"
        assert outputs_in({"input": caught.value.items}) == {"c": "x"}
        assert not caught.value.safe_to_retry


# How tools other than functions are taken away


def shell(request: dict[str, Any]) -> str:
    """The handler of the shell."""
    return "out"


@pytest.mark.parametrize("what", ["shell", "shell_call", shell, {"type": "shell"}], ids=str)
async def test_a_client_tool_goes_by_its_type_and_by_its_handler(what: Any) -> None:
    """Who takes the shell away must not find it there."""

    @ptc.tool
    async def lock(ctx: ptc.ToolContext) -> str:
        """Take the shell away."""
        ctx.remove_tools(what)
        return "locked"

    endpoint = FakeEndpoint([function_call("lock", "c", "{}")], [answer()])
    await runner(endpoint, lock, ptc.client_tool({"type": "shell"}, shell)).run("go")
    assert offered(endpoint.bodies[1]) == ["lock"]


# How long a service asks to wait


def limited(retry_after: str) -> tuple[openai.AsyncOpenAI, list[int]]:
    asked: list[int] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        asked.append(1)
        if len(asked) == 1:
            headers = {"retry-after": retry_after}
            return httpx2.Response(429, json={"error": {"message": "slow down"}}, headers=headers)
        return httpx2.Response(200, json=response(answer()))

    return client_of(respond), asked


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("wait", ["7200", "86400", None], ids=["hours", "day", "date"])
async def test_a_wait_that_is_too_long_is_told_and_not_cut_short(wait: str | None) -> None:
    """A service that asks for hours must not be asked again at once."""
    client, asked = limited(wait or in_seconds(7200))
    with pytest.raises(ptc.RateLimited) as caught:
        await runner(client).run("go")
    assert len(asked) == 1
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 7000


@pytest.mark.parametrize("wait", [in_seconds(-60), "soon", "-1", "inf", "nan"])
async def test_a_wait_that_is_over_or_makes_no_sense_is_not_kept(wait: str) -> None:
    """The policy's own wait stands then."""
    client, asked = limited(wait)
    result = await runner(client).run("go")
    assert (result.output_text, len(asked)) == ("done", 2)


# Where the service keeps the history


@ptc.tool
def look(x: int) -> int:
    """Look."""
    return x


async def ends(invocation: Any, next: Any) -> Any:
    await next(invocation)
    raise ptc.TerminateRun("enough")


@pytest.mark.parametrize("history", ["previous_response", "conversation"])
@pytest.mark.parametrize("how", ["terminated", "limit", "completed", "refused"])
async def test_a_run_that_ended_early_is_gone_on_from_in_the_services_history(history: Any, how: str) -> None:
    """The service waits for the outputs of the last calls, and takes no item twice: `unsent` is just that."""
    turns: Any = [[call("look", x=1), call("look", x=2)], say("It goes on.")]
    script = ScriptedModel(*(turns if how in ("terminated", "limit") else turns[1:]), then=say("It goes on."))
    async with in_process(script) as client:
        own: Any = {"middleware": [ends]} if how == "terminated" else {}
        place: Any = {}
        if history == "conversation":
            place = {"conversation_id": (await client.conversations.create()).id}
        going = runner(client, look, history=history, **own).run(
            "go", limits=ptc.Limits(max_requests=1), **place
        )
        if how == "limit":
            with pytest.raises(ptc.RequestLimitExceeded) as caught:
                await going
            ended: Any = caught.value
        else:
            ended = await going
        waiting = [item["type"] for item in ended.unsent]
        assert waiting == (["function_call_output"] * 2 if how in ("terminated", "limit") else [])
        if history == "previous_response":
            place = {"previous_response_id": ended.response_id}
        further = await runner(client, look, history=history).run([*ended.unsent, "Go on."], **place)
    assert further.output_text == "It goes on."
    assert further.calls == ()


@ptc.tool(allowed_callers=["programmatic"])
async def count(x: int) -> dict[str, int]:
    """Count."""
    return {"x": x}


@pytest.mark.parametrize("history", ["stateless", "previous_response", "conversation"])
async def test_a_program_that_waits_in_the_services_history_goes_on(history: Any) -> None:
    """The output of its call says that it is open: its further calls are no forgeries."""
    code = "a = await count(x=1)\nb = await count(x=2)\nb['x']"
    script = ScriptedModel(program(code), lambda request: say(str(request.program_result)))
    async with in_process(script) as client:
        place: Any = {}
        if history == "conversation":
            place = {"conversation_id": (await client.conversations.create()).id}
        own: Any = {"programs": "hosted", "history": history}
        ended = await runner(client, count, middleware=[ends], **own).run("go", **place)
        if history == "previous_response":
            place = {"previous_response_id": ended.response_id}
        waiting = ended.items if history == "stateless" else ended.unsent
        further = await runner(client, count, **own).run(list(waiting), **place)
    assert [report.outcome.status for report in further.calls] == ["success"]
    assert further.output_text == "2"


async def test_an_output_opens_no_program_where_the_history_is_ours() -> None:
    """There the program itself has to be in it."""
    caller = {"type": "program", "caller_id": "cp"}
    output = {"type": "function_call_output", "call_id": "c0", "output": "{}", "caller": caller}
    with pytest.raises(ptc.InvalidInput, match="belongs to program cp"):
        await runner(FakeEndpoint([answer()]), count, programs="hosted").run([output])


async def test_a_run_whose_history_is_ours_has_nothing_unsent() -> None:
    """All of it is sent, every time."""
    result = await runner(FakeEndpoint([function_call("look")], [answer()]), look, middleware=[ends]).run(
        "go"
    )
    assert (result.status, result.unsent) == ("terminated", ())


# Streams


async def test_a_stream_that_two_read_ends_for_both() -> None:
    """Each event is told once; nobody waits for ever."""
    stream = runner(FakeEndpoint([function_call("look")], [answer()]), look).stream("go")
    both = await asyncio.gather(stream.finish(), stream.finish())
    assert both[0] is both[1]
    failing = runner(FakeEndpoint(response(status="failed"))).stream("go")
    ended = await asyncio.gather(failing.finish(), failing.finish(), return_exceptions=True)
    assert [type(error) for error in ended] == [ptc.ResponseFailed] * 2


async def test_a_stream_that_another_closes_ends_and_says_that_there_is_no_result() -> None:
    """Who iterates is not cancelled with the run."""
    started, hung = asyncio.Event(), asyncio.Event()

    @ptc.tool
    async def hang() -> str:
        """Hang."""
        started.set()
        await hung.wait()
        return ""

    stream = runner(FakeEndpoint([function_call("hang", arguments="{}")]), hang).stream("go")
    reading = asyncio.create_task(stream.finish())
    await started.wait()
    await stream.aclose()
    with pytest.raises(ptc.LocalProtocolError, match="ended before it had one"):
        await reading
