"""The runner against the strict peer: random scripts in every driver, and every fault that the peer knows."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptc
import ptc.sync
from ptc.history import orphans
from ptc.testing import (
    Fault,
    Peer,
    ScriptedModel,
    call,
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
from tests.ptc.loop_fakes import AT_ONCE

RAN: Counter[str] = Counter()


@ptc.tool(allowed_callers=["direct", "programmatic"])
async def echo(x: int, context: ptc.ToolContext) -> dict[str, int]:
    """Give x back; odd numbers fail."""
    RAN[context.call.call_id] += 1
    if x % 2:
        raise ValueError("odd")
    return {"x": x}


@ptc.tool(namespace="side", allowed_callers=["direct", "programmatic"])
async def touch(context: ptc.ToolContext) -> int:
    """Touch."""
    RAN[context.call.call_id] += 1
    return 1


SMALL = st.integers(0, 5)
CALLS = st.one_of(
    st.builds(lambda x: call("echo", x=x), SMALL),
    st.just(call("touch", namespace="side")),
    st.just(call("nobody", x=1)),
    st.sampled_from([call("echo", '{"x": '), call("echo", '{"y": 1}'), call("echo", "")]),
)


def gather(numbers: list[int]) -> str:
    calls = ", ".join(f"echo(x={n})" for n in numbers)
    return f"import asyncio\nlen(await asyncio.gather({calls}, side_touch(), return_exceptions=True))"


PROGRAMS = st.one_of(
    st.builds(lambda n: program(gather(n)), st.lists(SMALL, max_size=3)),
    st.builds(lambda n: program(gather(n), calls_later=True, result_alone=True), st.lists(SMALL, max_size=2)),
    st.just(program("total = 0\nfor n in (2, 4):\n    total += (await echo(x=n))['x']\ntotal")),
    st.just(program("1 / 0")),
)
EITHER = st.builds(lambda numbers: run_code(gather(numbers)), st.lists(SMALL, max_size=3))
"""A program of the service or one that runs here, as the request has it."""
TURNS = st.one_of(
    EITHER.map(lambda part: [part]),
    st.builds(lambda part, more: [part, *more], EITHER, st.lists(CALLS, min_size=1, max_size=2)),
    st.builds(lambda parts: [*parts, incomplete()], st.lists(CALLS, min_size=1, max_size=2)),
    st.lists(CALLS, min_size=1, max_size=4),
    st.builds(lambda parts: [reason("hm"), *parts], st.lists(CALLS, min_size=1, max_size=2)),
    st.just([commentary("Let me see.")]),
    st.just([item({"type": "item_of_tomorrow", "data": {"a": None}})]),
)
HOSTED = st.one_of(
    TURNS, PROGRAMS.map(lambda part: [part]), PROGRAMS.map(lambda part: [reason("think"), part])
)
ENDINGS = st.sampled_from(
    [
        [say("done")],
        [say("old", phase=None)],
        [commentary("so"), say("done")],
        [reason("sure"), say("done")],
        [refuse("No.")],
        [say("done"), incomplete()],
        [call("echo", x=2), incomplete()],
        [failed()],
    ]
)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """(where the history lives, where programs run, the turns)."""
    history = draw(st.sampled_from(["stateless", "previous_response", "conversation"]))
    programs = draw(st.sampled_from(["hosted", "local"]))
    turns = draw(st.lists(HOSTED if programs == "hosted" else TURNS, max_size=3))
    return history, programs, [*turns, draw(ENDINGS)]


def normal(items: Any) -> str:
    """A history with the names that differ from run to run replaced in the order of their appearance."""
    text = json.dumps(list(items))
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        return names.setdefault(match.group(), f"id{len(names)}")

    text = re.sub(r"\b(?:call|fc|msg|rs|prog|pgm|po|item|resp|ctc|ptc1)[_.][\w.=-]{8,}", rename, text)
    return re.sub(r'"(?:encrypted_content|fingerprint|id)": "[^"]*"', '"sealed"', text)


def ended(driver: str, client: Any, **options: Any) -> tuple[str, str, tuple[Any, ...]]:
    """(how it ended, its words, its transcript)."""
    run: dict[str, Any] = {}
    if options["history"] == "conversation":
        run["conversation_id"] = blocking(client.conversations.create()).id
    runner = ptc.Runner(
        client=client, model="m", tools=[echo, touch], max_requests=30, retry=AT_ONCE, **options
    )
    try:
        match driver:
            case "stream":
                result = blocking(streamed(runner, **run))
            case "async":
                result = blocking(runner.run("go", **run))
            case _:
                result = runner.run_sync("go", **run)
    except ptc.RunError as error:
        return type(error).__name__, "", error.items
    return result.status, result.output_text or str(result.refusal), result.items


async def streamed(runner: ptc.Runner, **options: Any) -> Any:
    return await runner.stream("go", **options).finish()


def blocking(work: Any) -> Any:
    """In the loop in which synchronous runs go on, so that all drivers share a peer and a sandbox."""

    async def wait() -> Any:
        return await work

    return ptc.sync.run_blocking(wait(), "test")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ptc.Sandbox]:
    box = ptc.Sandbox()
    blocking(box.__aenter__())
    yield box
    blocking(box.__aexit__(None, None, None))


def check_script(script: tuple[Any, Any, list[Any]], sandbox: ptc.Sandbox) -> None:
    history, programs, turns = script
    endings = []
    for driver in ("async", "stream", "sync"):
        peer = in_process(ScriptedModel(*turns))
        client = blocking(peer.__aenter__())
        try:
            RAN.clear()
            options = {"history": history, "programs": programs, "sandbox": sandbox}
            endings.append(ended(driver, client, **options))
            assert all(count == 1 for count in RAN.values())
        finally:
            blocking(peer.__aexit__(None, None, None))
    for kind, _, items in endings:
        assert kind in ("completed", "refused", "ResponseIncomplete", "ResponseFailed")
        assert orphans(items) == []
    first, *others = ((kind, words, normal(items)) for kind, words, items in endings)
    assert others == [first, first]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=scripts())
def test_every_script_ends_the_same_in_every_driver(script: Any, sandbox: ptc.Sandbox) -> None:
    """No 400, no unanswered call, no call run twice, and one history, wherever history and programs are."""
    check_script(script, sandbox)


@pytest.mark.soak
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=scripts())
def test_very_many_scripts_end_the_same_in_every_driver(script: Any, sandbox: ptc.Sandbox) -> None:
    """The same with more of them."""
    check_script(script, sandbox)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer(f"{Path(__file__).with_name('loop_script.py')}:script") as running:
        yield running


def client_for(peer: Peer) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=peer.base_url, api_key="any")


DOCUMENTED = (
    ptc.EndpointError,
    ptc.RemoteProtocolError,
    ptc.LimitExceeded,
    ptc.ResponseFailed,
    ptc.ResponseIncomplete,
)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("request_number", [1, 2, 3])
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 429, "retry_after": 0.0},
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 503},
        {"kind": "refuse"},
        {"kind": "lose"},
        {"kind": "truncate"},
        {"kind": "cut_stream"},
        {"kind": "slow", "seconds": 0.01},
        {"kind": "drop_item"},
        {"kind": "duplicate_item"},
        {"kind": "reorder_items"},
        {"kind": "garbage"},
    ],
    ids=lambda fault: f"{fault['kind']}{fault.get('status', '')}",
)
async def test_a_fault_is_survived_or_is_the_documented_error(
    peer: Peer, fault: dict[str, Any], request_number: int, streamed: bool
) -> None:
    """Never a hang, never a call that ran twice, never an invented answer."""
    RAN.clear()
    peer.plan(Fault(request=request_number, **fault))
    failure: ptc.RunError | None = None
    async with client_for(peer) as client, asyncio.timeout(30):
        runner = ptc.Runner(
            client=client, model="m", tools=[echo, touch], programs="hosted", max_requests=10, retry=AT_ONCE
        )
        try:
            result = await (runner.stream("go").finish() if streamed else runner.run("go"))
        except DOCUMENTED as error:
            failure = error
    assert all(count == 1 for count in RAN.values())
    if failure is None:
        assert result.output_text == "It is 4."
    else:
        assert fault["kind"] != "slow"
        assert failure.run_id is not None
        assert not (RAN and failure.safe_to_retry)


def test_every_face_has_the_same_history(peer: Peer) -> None:
    """Async, streamed, and synchronous over either kind of client."""

    def runner(client: Any) -> ptc.Runner:
        return ptc.Runner(client=client, model="m", tools=[echo, touch], programs="hosted", retry=AT_ONCE)

    async def in_a_loop() -> list[Any]:
        async with client_for(peer) as client:
            return [await runner(client).run("go"), await runner(client).stream("go").finish()]

    peer.plan()
    results = asyncio.run(in_a_loop())
    with openai.OpenAI(base_url=peer.base_url, api_key="any") as client:
        results.append(runner(client).run_sync("go"))
    shared = client_for(peer)
    results += [runner(shared).run_sync("go"), runner(shared).run_sync("again")]
    ptc.sync.run_blocking(shared.close(), "close")
    assert [result.output_text for result in results] == ["It is 4."] * 5
    histories = [normal(result.items[1:]) for result in results]
    assert histories == histories[:1] * 5


async def test_429_is_always_survived(peer: Peer) -> None:
    """Also while the program is open: the service did nothing yet."""
    for number in (1, 2, 3, 4):
        peer.plan(Fault("status", request=number, status=429, retry_after=0.0))
        async with client_for(peer) as client:
            runner = ptc.Runner(
                client=client, model="m", tools=[echo, touch], programs="hosted", retry=AT_ONCE
            )
            assert (await runner.run("go")).output_text == "It is 4."


async def test_hosted_and_local_programs_give_the_same_answer() -> None:
    """One script, one question, wherever the program runs."""
    script = ScriptedModel(run_code("a = await echo(x=4)\na['x']"), say("done"))
    for programs in ("hosted", "local", "auto"):
        async with in_process(script) as client:
            runner = ptc.Runner(client=client, model="m", tools=[echo], programs=programs, retry=AT_ONCE)
            result = await runner.run("go")
        assert (result.output_text, result.programs[0].result) == ("done", "4")


async def test_auto_falls_back_on_a_deployment_without_programs() -> None:
    """The peer's own refusal is understood."""
    from ptc.gateway.peer import Settings

    script = ScriptedModel(run_code("a = await echo(x=4)\na['x']"), say("done"))
    async with in_process(script, settings=Settings(programs=False)) as client:
        for programs, language in (("auto", "python"), ("hosted", None)):
            runner = ptc.Runner(client=client, model="m", tools=[echo], programs=programs, retry=AT_ONCE)
            if language is None:
                with pytest.raises(ptc.ProgramsUnsupported, match='programs="local"'):
                    await runner.run("go")
            else:
                assert (await runner.run("go")).programs[0].language == language
