"""Cancelling a run holds whoever swallows it: a tool, a middleware, or a function that the run itself calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool
async def pay() -> str:
    """What must not happen any more."""
    RAN.append("pay")
    return "paid"


def stubborn(name: str, started: asyncio.Event) -> Any:
    async def hold() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            RAN.append(name)
        return "swallowed"

    return ptc.tool(hold, name=name, description="Wait, and do not listen.")


def script(calls: int) -> FakeEndpoint:
    first = [function_call(f"hold_{n}", f"c{n}", "{}") for n in range(calls)]
    return FakeEndpoint(first, [function_call("pay", "p", "{}")], [answer()])


def runner(endpoint: FakeEndpoint, calls: int, started: asyncio.Event, **options: Any) -> ptc.Runner:
    tools = [*(stubborn(f"hold_{n}", started) for n in range(calls)), pay]
    return ptc.Runner(client=endpoint, model="m", tools=tools, retry=AT_ONCE, **options)


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_cancelled_run_ends_though_its_tools_swallow_that(calls: int) -> None:
    """Who cancels a run must be able to rely on it that nothing further is bought."""
    endpoint, started = script(calls), asyncio.Event()
    run = asyncio.create_task(runner(endpoint, calls, started).run("go"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert len(endpoint.bodies) == 1
    assert "pay" not in RAN


@pytest.mark.parametrize("calls", [1, 2])
async def test_the_wall_clock_holds_though_tools_swallow_it(calls: int) -> None:
    """A limit that a tool can talk its way out of is none."""
    endpoint, started = script(calls), asyncio.Event()
    limits = ptc.Limits(wall_clock=0.05)
    with pytest.raises(ptc.LimitExceeded) as caught:
        await runner(endpoint, calls, started, limits=limits).run("go")
    assert caught.value.limit == "wall_clock"
    assert len(endpoint.bodies) == 1
    assert "pay" not in RAN


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_stream_that_was_left_ends_its_run_though_tools_swallow_that(calls: int) -> None:
    """A client that went away must not be billed for what follows."""
    endpoint, started = script(calls), asyncio.Event()
    async with runner(endpoint, calls, started).stream("go") as stream:
        async for event in stream:
            if isinstance(event, ptc.CallStarted):
                await started.wait()
                break
    assert len(endpoint.bodies) == 1
    assert "pay" not in RAN


async def test_a_run_ends_though_its_compaction_swallows_the_cancellation() -> None:
    """It runs in the run's own task, with nothing between."""
    endpoint, started = FakeEndpoint([function_call("pay", "p", "{}")], [answer()]), asyncio.Event()

    async def compact(items: list[Any]) -> list[Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            RAN.append("compact")
        return items

    run = asyncio.create_task(
        ptc.Runner(client=endpoint, model="m", tools=[pay], compact=compact, retry=AT_ONCE).run("go")
    )
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert RAN == ["compact"]
    assert not endpoint.bodies


async def test_a_run_inside_a_task_that_was_cancelled_before_goes_its_way() -> None:
    """Cleaning up with a run is its caller's right."""
    endpoint = FakeEndpoint([answer("cleaned up")])

    async def body() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            result = await ptc.Runner(client=endpoint, model="m", retry=AT_ONCE).run("clean up")
            return result.output_text
        return ""

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "cleaned up"
