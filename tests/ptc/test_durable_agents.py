"""Runners as tools in runs that are kept: a call that was cut off goes on with the run that it had."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="write")
async def note(x: int) -> int:
    """A mutation that is not idempotent."""
    RAN.append("note")
    return x


def stuck(effects: Any, begun: asyncio.Event) -> ptc.AnyTool:
    """A tool that never ends the first time."""

    @ptc.tool(effects=effects, name="last")
    async def last(x: int) -> int:
        """The last thing to do."""
        RAN.append("last")
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return x

    return last


def says(*turns: Any, text: str) -> FakeEndpoint:
    def turn(body: Any) -> Any:
        outputs = sum(item.get("type") == "function_call_output" for item in body["input"])
        return turns[outputs] if outputs < len(turns) else [answer(text)]

    return FakeEndpoint(*[turn] * 9)


def outer_of(
    inner_store: Any, store: Any, last: ptc.AnyTool, **options: Any
) -> tuple[ptc.Runner, FakeEndpoint]:
    asked = says([function_call("note", "n")], [function_call("last", "l")], text="inner")
    endpoints: list[Any] = [asked, says([function_call("helper", "h", {"input": "go"})], text="outer")]
    inner = ptc.Runner(client=endpoints[0], model="m", tools=[note, last], store=inner_store, retry=AT_ONCE)
    outer = ptc.Runner(
        client=endpoints[1],
        model="m",
        tools=[inner.as_tool("helper", "Helps.", **options)],
        store=store,
        approver=ptc.PauseForApproval(),
        retry=AT_ONCE,
    )
    return outer, asked


async def cut_off(path: Path, last: ptc.AnyTool, begun: asyncio.Event, **options: Any) -> None:
    """An outer run that ended while its inner run was in its last call."""
    async with ptc.SQLiteRunStore(path) as store:
        outer, _ = outer_of(store, store, last, **options)
        running = asyncio.create_task(outer.run("go", run_id="r1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


IDEMPOTENT = {"effects": "write", "idempotency": ptc.Idempotency("protocol")}


@pytest.mark.parametrize("options", [{"effects": "read"}, IDEMPOTENT, {}])
async def test_a_call_that_is_run_again_goes_on_with_its_run(tmp_path: Path, options: dict[str, Any]) -> None:
    """What the inner run did it does not do again, nor does it ask its model again; there is one such run."""
    begun = asyncio.Event()
    last = stuck("read", begun)
    await cut_off(tmp_path / "runs.db", last, begun, **options)
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        outer, asked = outer_of(store, store, last, **options)
        done = await outer.recover("r1")
        if not options:  # nobody knows what such a helper does
            assert done.status == "paused"
            done = await outer.recover("r1", decisions={"h": ptc.Approve()})
        outputs = [item["output"] for item in done.items if item["type"] == "function_call_output"]
        assert (done.output_text, outputs, RAN) == ("outer", ["inner"], ["note", "last", "last"])
        assert len(asked.bodies) == 1
        infos = {info.run_id == "r1": info for info in await store.runs()}
        assert [info.status for info in infos.values()] == ["completed"] * 2
        assert infos[False].labels["parent_run_id"] == "r1"


async def test_a_mutation_of_the_inner_run_that_was_cut_off_does_not_happen_again(tmp_path: Path) -> None:
    """Nobody can be asked from inside a call: the call fails, and its run waits for who looks after it."""
    begun = asyncio.Event()
    last = stuck("write", begun)
    await cut_off(tmp_path / "runs.db", last, begun, effects="read")
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        outer, _ = outer_of(store, store, last, effects="read")
        done = await outer.recover("r1")
        assert RAN == ["note", "last"]
        (report,) = [report for report in done.calls if report.call.name == "helper"]
        assert report.outcome.status == "failure"
        (waiting,) = await store.runs(status="paused")
        assert waiting.labels["parent_run_id"] == "r1"


async def test_another_call_of_an_agent_has_a_run_of_its_own(tmp_path: Path) -> None:
    """Also with the same words, and in the same run."""
    begun = asyncio.Event()
    begun.set()
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        inner: Any = says([function_call("note", "n")], text="inner")
        calls = [function_call("helper", f"h{n}", {"input": "go"}) for n in range(2)]
        helper = ptc.Runner(client=inner, model="m", tools=[note], store=store, retry=AT_ONCE)
        client: Any = FakeEndpoint(calls, [answer("outer")], calls, [answer("outer")])
        outer = ptc.Runner(
            client=client, model="m", tools=[helper.as_tool("helper", "Helps.")], store=store, retry=AT_ONCE
        )
        for run_id in ("r1", "r2"):
            await outer.run("go", run_id=run_id)
        assert RAN == ["note"] * 4
        assert len(await store.runs()) == 6


@pytest.mark.parametrize("kept", ["inner", "outer"])
async def test_where_one_of_them_is_not_kept_each_call_has_a_run_of_its_own(
    tmp_path: Path, kept: str
) -> None:
    """An outer run that nobody keeps may use its id and its call ids again."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        for _ in range(2):
            begun = asyncio.Event()
            begun.set()
            inner_store = store if kept == "inner" else None
            outer, _ = outer_of(inner_store, None if kept == "inner" else store, stuck("read", begun))
            await outer.run("go", run_id="same" if kept == "inner" else None)
    assert RAN == ["note", "last"] * 2
