"""What this version wrote, later versions read: a sealed state and a store, as they were, finished here.

A file is added for each released version of either format, and none is ever changed. `python
test_durable_fixtures.py` writes those of the version that it runs with, where they are not there yet.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.store.schema import VERSION
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call, outputs_in, reasoning

DATA = Path(__file__).with_name("data")
KEY = b"the key of the state fixtures, public"
TURN = [reasoning(), function_call("look", "a"), function_call("drop", "b"), function_call("note", "c")]


@ptc.tool(effects="read")
def look(x: int) -> int:
    """Look."""
    return x


@ptc.tool(effects="write")
def note(x: int) -> int:
    """A mutation that is not idempotent."""
    return x * 3


@ptc.tool(effects="write", approval="always")
def drop(x: int) -> int:
    """Drop something."""
    return -x


def runner(endpoint: FakeEndpoint, store: ptc.RunStore | None = None) -> ptc.Runner:
    return ptc.Runner(
        client=endpoint,
        model="m",
        tools=[look, note, drop],
        approver=ptc.PauseForApproval(),
        retry=AT_ONCE,
        store=store,
    )


def fixtures(pattern: str) -> list[Any]:
    return [pytest.param(path.read_text(), id=path.stem) for path in sorted(DATA.glob(pattern))]


@pytest.mark.parametrize("text", fixtures("state_v*.json"))
async def test_a_state_of_each_version_is_resumed(text: str) -> None:
    """A run may wait for its approval longer than for the next release."""
    state = ptc.RunState.unseal(text, KEY)
    endpoint = FakeEndpoint([answer("done")])
    result = await runner(endpoint).resume(state, decisions={"b": ptc.Approve()})
    assert (result.status, result.output_text, result.requests) == ("completed", "done", 2)
    assert list(outputs_in(endpoint.bodies[0])) == ["a", "b", "c"]


@pytest.mark.parametrize("text", fixtures("store_v*.sql"))
async def test_a_store_of_each_version_is_recovered(text: str, tmp_path: Path) -> None:
    """The same for a store's file."""
    db = sqlite3.connect(tmp_path / "runs.db")
    db.executescript(text)
    db.close()
    endpoint = FakeEndpoint([answer("done")])
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        paused = await runner(endpoint, store).recover("r1")
        assert [request.call_id for request in paused.approvals] == ["b"]
        result = await runner(endpoint, store).recover("r1", decisions={"b": ptc.Approve()})
    assert (result.status, result.output_text, result.requests) == ("completed", "done", 2)
    assert [report.reused for report in result.calls].count(True) == 2


def test_there_is_a_fixture_of_each_format() -> None:
    """An empty set of files would prove nothing."""
    assert list(DATA.glob("state_v1.json"))
    assert len(list(DATA.glob("store_v*.sql"))) == VERSION


async def test_of_many_that_open_an_earlier_file_one_brings_it_up_to_date(tmp_path: Path) -> None:
    """The processes of a service start at once, after the update."""
    path = tmp_path / "runs.db"
    db = sqlite3.connect(path)
    db.executescript((DATA / "store_v1.sql").read_text())
    before = db.execute("SELECT run, n, at, kind, data FROM steps ORDER BY run, n").fetchall()
    with ThreadPoolExecutor(8) as threads:
        for store in threads.map(ptc.SQLiteRunStore, [path] * 8):
            store.close()
    assert db.execute("SELECT run, n, at, kind, data FROM steps ORDER BY id").fetchall() == before
    assert db.execute("SELECT version FROM run_store").fetchall() == [(VERSION,)]
    db.close()


async def pause(path: Path) -> ptc.RunState:
    async with ptc.SQLiteRunStore(path) as store:
        paused = await runner(FakeEndpoint(TURN), store).run("go", run_id="r1")
    assert paused.state is not None
    return paused.state


def write() -> None:
    """The fixtures of this version: a run that waits for an approval, its siblings finished."""
    state, store_file = DATA / "state_v1.json", DATA / "store_v2.sql"
    made = DATA / "new.db"
    paused = asyncio.run(pause(made))
    if not state.exists():
        state.write_text(paused.seal(KEY))
    if not store_file.exists():
        db = sqlite3.connect(made)
        (identity,) = db.execute("PRAGMA application_id").fetchone()
        lines = [f"PRAGMA application_id={identity};", *db.iterdump()]
        store_file.write_text("\n".join(lines) + "\n")
        db.close()
    for path in DATA.glob("new.db*"):
        path.unlink()


if __name__ == "__main__":
    write()
