"""Stores on bad disks: full at any page, damaged, of another version, of another application."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import ptc
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[Any] = []


@ptc.tool(effects="write")
def note(text: str) -> str:
    """A mutation that is not idempotent."""
    RAN.append(text)
    return text


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


class SmallDisk(ptc.SQLiteRunStore):
    """A disk that is full at so many pages."""

    def __init__(self, path: Path, pages: int) -> None:
        self._pages = pages
        super().__init__(path)

    def _open(self) -> sqlite3.Connection:
        db = super()._open()
        db.execute(f"PRAGMA max_page_count={self._pages}").fetchall()
        return db


TURNS = [[function_call("note", f"c{turn}", {"text": f"{turn}{'x' * 3000}"})] for turn in range(4)]


def says(body: Any) -> Any:
    """What comes next is told by what was sent, however often it is asked."""
    outputs = sum(item.get("type") == "function_call_output" for item in body["input"])
    return TURNS[outputs] if outputs < len(TURNS) else [answer("noted")]


def service() -> FakeEndpoint:
    return FakeEndpoint(*[says] * 20)


def runner(endpoint: Any, store: ptc.RunStore, **options: Any) -> ptc.Runner:
    return ptc.Runner(client=endpoint, model="m", tools=[note], store=store, retry=AT_ONCE, **options)


@pytest.mark.parametrize("pages", [*range(6, 24), 1000])
async def test_a_run_on_a_full_disk_goes_on_when_there_is_space(tmp_path: Path, pages: int) -> None:
    """It stops before the first thing that it could not write down; nothing is lost, nothing happens twice."""
    path = tmp_path / "runs.db"
    async with SmallDisk(path, pages) as store:
        first = runner(service(), store).run("go", run_id="r1")
        if pages < 24:
            with pytest.raises(ptc.StoreUnavailable, match="full"):
                await first
        else:
            assert (await first).output_text == "noted"
    before = RAN.copy()
    async with ptc.SQLiteRunStore(path) as store:
        able = runner(service(), store)
        if not any(info.run_id == "r1" for info in await store.runs()):
            assert before == []
            done = await able.run("go", run_id="r1")
        else:
            done = await able.recover("r1")
            while done.status == "paused":
                (request,) = done.approvals
                happened = str(request.arguments["text"])
                decision = ptc.Happened(happened) if happened in RAN else ptc.Approve()
                done = await able.recover("r1", decisions={request.call_id: decision})
    assert done.output_text == "noted"
    assert [text[0] for text in RAN] == ["0", "1", "2", "3"]


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """It may say what this one does not understand; in a file of its own, and in an audit log's."""
    path = tmp_path / "runs.db"
    ptc.SQLiteRunStore(path).close()
    with ptc.AuditLog(tmp_path / "a.db") as log:
        ptc.SQLiteRunStore(log).close()
    for file in (path, tmp_path / "a.db"):
        db = sqlite3.connect(file)
        with db:
            db.execute("UPDATE run_store SET version = version + 1")
        db.close()
    with pytest.raises(ptc.StoreUnreadable, match=r"version 3; this library reads 1 to 2"):
        ptc.SQLiteRunStore(path)
    with ptc.AuditLog(tmp_path / "a.db") as log, pytest.raises(ptc.StoreUnreadable, match="version 3"):
        ptc.SQLiteRunStore(log)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE steps SET data = '{' WHERE n = 2",
        "UPDATE steps SET data = '[]' WHERE n = 2",
        "UPDATE steps SET data = '{}' WHERE n = 1",
        "UPDATE steps SET data = '{}' WHERE n = 2",
        "UPDATE steps SET data = '{}' WHERE kind = 'received'",
        "UPDATE steps SET data = '{}' WHERE kind = 'admitted'",
        "UPDATE steps SET data = '{}' WHERE kind = 'outcome'",
        "UPDATE steps SET data = json_set(data, '$.contract', 'gone') WHERE kind = 'admitted'",
        "UPDATE steps SET data = json_set(data, '$.outcome', json('{\"status\": \"odd\"}')) WHERE kind = 'outcome'",
        "UPDATE steps SET kind = 'another' WHERE n = 3",
        "UPDATE steps SET data = '" + "[" * 3000 + "' WHERE n = 3",
        "DELETE FROM steps WHERE n = 1",
        "DELETE FROM steps WHERE n = 3",
        "DELETE FROM steps WHERE kind = 'admitted'",
        "DELETE FROM steps",
    ],
)
async def test_a_damaged_run_is_refused_and_runs_nothing(tmp_path: Path, damage: str) -> None:
    """What cannot be read is said to be unreadable, by a typed error, and the run is free again."""
    path = tmp_path / "runs.db"
    async with ptc.SQLiteRunStore(path) as store:
        endpoint = FakeEndpoint([function_call("note", "c1", {"text": "one"})], [answer("noted")])
        await runner(endpoint, store).run("go", run_id="r1")
    RAN.clear()
    db = sqlite3.connect(path)
    with db:
        db.execute(damage)
    db.close()
    async with ptc.SQLiteRunStore(path) as store:
        with pytest.raises(ptc.StoreUnreadable, match="r1"):
            await runner(FakeEndpoint(), store).recover("r1")
        (info,) = await store.runs()
        assert not info.held
    assert RAN == []
