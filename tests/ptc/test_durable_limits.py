"""Limits of runs that go on: they bind what is new, and a run that ended is told as it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="write", allowed_callers=["direct", "programmatic"])
async def note(x: int) -> int:
    """A mutation that is not idempotent."""
    RAN.append(x)
    return x


def says(body: Any) -> Any:
    """Three calls, one after the other; at the last request an answer in any case."""
    outputs = sum(item.get("type") == "function_call_output" for item in body["input"])
    if outputs == 3 or body.get("tool_choice") == "none":
        return [answer(f"noted {outputs}")]
    return [function_call("note", f"c{outputs}", {"x": outputs})]


def runner(store: ptc.RunStore, endpoint: Any, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=[note], store=store, retry=AT_ONCE, **options)


def service() -> FakeEndpoint:
    return FakeEndpoint(*[says] * 9)


LIMITS: list[Callable[..., ptc.Limits]] = [
    lambda **more: ptc.Limits(max_requests=2, **more),
    lambda **more: ptc.Limits(max_calls=1, **more),
    lambda **more: ptc.Limits(max_tokens=20, **more),
]


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_run_that_ended_at_a_limit_goes_on_under_a_wider_one_alone(
    tmp_path: Path, limits: Callable[..., ptc.Limits]
) -> None:
    """Recovered as it was it says so again, however often, and asks and runs nothing."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ptc.LimitExceeded) as first:
            await runner(store, service(), limits=limits()).run("go", run_id="r1")
        ran = RAN.copy()
        for _ in range(3):
            endpoint = service()
            with pytest.raises(ptc.LimitExceeded) as again:
                await runner(store, endpoint, limits=limits()).recover("r1")
            assert (again.value.limit, endpoint.bodies, RAN) == (first.value.limit, [], ran)
        done = await runner(store, service(), limits=limits()).recover("r1", limits=ptc.Limits())
        assert (done.output_text, done.limit) == ("noted 3", None)
        assert RAN[: len(ran)] == ran


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("final_answer", [False, True])
async def test_a_finished_run_is_told_under_whatever_limits(
    tmp_path: Path, limits: Callable[..., ptc.Limits], final_answer: bool
) -> None:
    """It spends nothing any more, and it stays what it is."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        first = await runner(store, service()).run("go", run_id="r1")
        again = await runner(store, service(), limits=limits(final_answer=final_answer)).recover("r1")
        assert (again.output_text, again.limit, again.usage) == (first.output_text, None, first.usage)
        (info,) = await store.runs()
        assert info.status == "completed"


@pytest.mark.parametrize("limits", LIMITS)
async def test_a_last_answer_is_told_as_the_last_one(
    tmp_path: Path, limits: Callable[..., ptc.Limits]
) -> None:
    """Under the limit that it was given at, and under a wider one."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        narrow = limits(final_answer=True)
        first = await runner(store, service(), limits=narrow).run("go", run_id="r1")
        assert first.limit is not None
        for again in (narrow, ptc.Limits()):
            told = await runner(store, FakeEndpoint(), limits=again).recover("r1")
            assert (told.output_text, told.limit) == (first.output_text, first.limit)


PROGRAM = """
told = []
for x in range(4):
    try:
        told.append(await note(x=x))
    except ToolError as error:
        told.append("no")
told
"""


async def test_a_limit_that_a_program_met_holds_after_it(tmp_path: Path) -> None:
    """The program caught its denials; the run is over at its limit all the same, also when it is recovered."""
    code = function_call("run_program", "p", {"code": PROGRAM})
    limits = ptc.Limits(max_calls=3)  # the program itself is one
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ptc.LimitExceeded):
            await runner(store, FakeEndpoint([code]), limits=limits, programs="local").run("go", run_id="r1")
        assert RAN == [0, 1]
        with pytest.raises(ptc.LimitExceeded):
            await runner(store, FakeEndpoint(), limits=limits, programs="local").recover("r1")
        endpoint = FakeEndpoint([answer("done")])
        done = await runner(store, endpoint, programs="local").recover("r1")
        assert (done.output_text, RAN) == ("done", [0, 1])
        (output,) = [item for item in endpoint.inputs[0] if item["type"] == "function_call_output"]
        assert json.loads(output["output"])["value"] == [0, 1, "no", "no"]


async def test_a_call_that_was_let_in_is_not_denied_by_a_limit_of_later(tmp_path: Path) -> None:
    """It was cut off, and may have had its effect: the model would be told that it had none."""
    begun = asyncio.Event()

    @ptc.tool(effects="write", idempotency=ptc.Idempotency("protocol"), name="note")
    async def put(x: int, context: ptc.ToolContext) -> int:
        """An idempotent mutation."""
        RAN.append(x)
        if x == 1 and not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return x

    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        able = ptc.Runner(client=service(), model="m", tools=[put], store=store)
        running = asyncio.create_task(able.run("go", run_id="r1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        endpoint: Any = service()
        narrow = ptc.Runner(
            client=endpoint, model="m", tools=[put], store=store, limits=ptc.Limits(max_calls=1)
        )
        with pytest.raises(ptc.LimitExceeded):  # the third call is denied, and ends the run
            await narrow.recover("r1")
        assert RAN == [0, 1, 1]
        outputs = [item["output"] for item in endpoint.inputs[0] if item["type"] == "function_call_output"]
        assert outputs == ["0", "1"]
