"""A run that goes on, streamed: what happens from now on is told, what happened before is not told as new."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="read")
def look(x: int) -> int:
    """Look."""
    RAN.append(("look", x))
    return x


@ptc.tool(effects="write", approval="always")
def drop(x: int) -> int:
    """Drop."""
    RAN.append(("drop", x))
    return -x


def runner(endpoint: Any, store: ptc.RunStore | None, **options: Any) -> ptc.Runner:
    options = {"approver": ptc.PauseForApproval(), "retry": AT_ONCE} | options
    return ptc.Runner(client=endpoint, model="m", tools=[look, drop], store=store, **options)


TURN = [function_call("look", "a"), function_call("drop", "b")]


def told(events: list[ptc.RunEvent]) -> list[tuple[str, str, bool]]:
    """Calls, as a reader of the stream hears of them."""
    calls: list[tuple[str, str, bool]] = []
    for event in events:
        if isinstance(event, ptc.CallStarted):
            calls.append(("started", event.call.call_id, False))
        elif isinstance(event, ptc.CallFinished):
            calls.append(("finished", event.report.call.call_id, event.report.reused))
    return calls


async def test_a_recovered_run_is_streamed(tmp_path: Path) -> None:
    """The approved call starts and finishes; the one before is given again, and says so; then comes the answer."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(FakeEndpoint(TURN), store).run("go", run_id="r1")
        assert paused.status == "paused"
        RAN.clear()
        able = runner(FakeEndpoint([answer("gone for good")]), store)
        async with able.recover_stream("r1", decisions={"b": ptc.Approve()}) as stream:
            events = [event async for event in stream]
    assert told(events) == [("finished", "a", True), ("started", "b", False), ("finished", "b", False)]
    text = "".join(event.text for event in events if isinstance(event, ptc.TextDelta))
    assert (text, stream.result.output_text, RAN) == ("gone for good", "gone for good", [("drop", 1)])
    assert isinstance(events[0], ptc.RunStarted)
    assert isinstance(events[-1], ptc.RunFinished)


@pytest.mark.parametrize("kept", ["state", "store"])
async def test_a_paused_run_is_resumed_streamed(tmp_path: Path, kept: str) -> None:
    """With a store and without one."""
    store = ptc.SQLiteRunStore(tmp_path / "runs.db") if kept == "store" else None
    paused = await runner(FakeEndpoint(TURN), store).run("go")
    assert paused.state is not None
    able = runner(FakeEndpoint([answer("gone")]), store)
    async with able.resume_stream(paused.state, decisions={"b": ptc.Deny("no")}) as stream:
        result = await stream.finish()
    assert (result.output_text, RAN, result.run_id) == ("gone", [("look", 1)], stream.run_id)
    if store is not None:
        await store.aclose()


async def test_a_stream_that_cannot_begin_says_why_and_holds_nothing(tmp_path: Path) -> None:
    """The error comes by the iteration, as every error of a streamed run; the run stays free."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        await runner(FakeEndpoint(TURN), store).run("go", run_id="r1")
        for run_id, decisions, error in (
            ("r2", {}, ptc.RunUnknown),
            ("r1", {"zz": ptc.Approve()}, ptc.InvalidInput),
        ):
            with pytest.raises(error):
                await runner(FakeEndpoint(), store).recover_stream(run_id, decisions=decisions).finish()
        (info,) = await store.runs()
        assert not info.held
        with pytest.raises(ptc.ConfigurationError):
            await runner(FakeEndpoint(), None).recover_stream("r1").finish()
        with pytest.raises(TypeError, match="colour"):
            await runner(FakeEndpoint(), store).recover("r1", colour="red")  # type: ignore[call-arg]


async def test_leaving_a_recovered_stream_cancels_it_and_it_can_be_recovered_again(tmp_path: Path) -> None:
    """As with any stream; and nothing that ran runs again."""
    begun = asyncio.Event()

    class Silent(FakeEndpoint):
        async def stream(self, body: Any, *, timeout: float | None = None) -> Any:
            begun.set()
            await asyncio.Event().wait()
            yield {}

    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        await runner(FakeEndpoint(TURN), store).run("go", run_id="r1")
        async with runner(Silent(), store).recover_stream("r1", decisions={"b": ptc.Approve()}) as stream:
            async for _ in stream:
                if begun.is_set() or ("drop", 1) in RAN:
                    break
        (info,) = await store.runs()
        assert (info.status, info.held) == ("cancelled", False)
        async with runner(FakeEndpoint([answer("gone")]), store).recover_stream("r1") as stream:
            assert (await stream.finish()).output_text == "gone"
    assert RAN.count(("drop", 1)) == 1


async def test_what_a_stream_tells_of_a_call_is_durable_before(tmp_path: Path) -> None:
    """Its reader may act on it: show it, book it. Then it must not be forgotten."""
    path = tmp_path / "runs.db"
    seen: list[int] = []
    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([function_call("look", "a")], [answer()])
        async with runner(endpoint, store).stream("go") as stream:
            async for event in stream:
                if isinstance(event, ptc.CallFinished):
                    seen.append(outcomes(path))
    assert seen == [1]


async def test_what_a_tool_sees_of_its_own_calls_is_durable_before(tmp_path: Path) -> None:
    """And for a tool that passes a call through the one path."""
    path = tmp_path / "runs.db"
    seen: list[int] = []

    @ptc.tool(effects="read")
    async def ask(context: ptc.ToolContext) -> int:
        """Look twice."""
        for x in range(2):
            await context.invoke(ptc.Call(f"inner:{x}", "look", {"x": x}), context.run)
            seen.append(outcomes(path))
        return 2

    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([function_call("ask", "a", {})], [answer()])
        able = ptc.Runner(client=endpoint, model="m", tools=[look, ask], store=store, retry=AT_ONCE)
        assert (await able.run("go")).output_text
    assert seen == [1, 2]
    assert RAN == [("look", 0), ("look", 1)]


async def test_an_outcome_is_durable_with_the_next_call_of_its_program(tmp_path: Path) -> None:
    """Nobody else has seen it until then: a call of a program costs one sync, and none is lost by it."""
    path = tmp_path / "runs.db"
    seen: list[int] = []

    @ptc.tool(effects="read", allowed_callers=["programmatic"])
    def count() -> int:
        """How many outcomes are durable."""
        seen.append(outcomes(path))
        return len(seen)

    code = function_call("run_program", "p", {"code": "[await count() for _ in range(5)]"})
    async with ptc.SQLiteRunStore(path) as store:
        able = ptc.Runner(
            client=FakeEndpoint([code], [answer()]),
            model="m",
            tools=[count],
            programs="local",
            store=store,
            retry=AT_ONCE,
        )
        await able.run("go")
    assert seen == [0, 1, 2, 3, 4]
    assert outcomes(path) == 6  # with that of the program's own call


async def test_an_outcome_is_durable_soon_though_nothing_follows(tmp_path: Path) -> None:
    """A sibling that takes long does not keep it from the disk."""
    path = tmp_path / "runs.db"

    @ptc.tool(effects="read")
    async def wait() -> int:
        """Until the sibling's outcome is there."""
        async with asyncio.timeout(30):
            while not outcomes(path):  # noqa: ASYNC110 - there is nothing but the file to see it by
                await asyncio.sleep(0.001)
        return 1

    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint(
            [function_call("wait", "a", {}), function_call("look", "b")], [answer("both")]
        )
        able = ptc.Runner(client=endpoint, model="m", tools=[look, wait], store=store, retry=AT_ONCE)
        assert (await able.run("go")).output_text == "both"


def outcomes(path: Path) -> int:
    """Durable ones, as another process sees them."""
    db = sqlite3.connect(path)
    try:
        (count,) = db.execute("SELECT count(*) FROM steps WHERE kind = 'outcome'").fetchone()
        return int(count)
    finally:
        db.close()
