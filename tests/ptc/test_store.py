"""The run store: what its steps promise, who may write, and files that are not its own."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.store import Lease, RunLeased, RunStore, Step, StoreError, StoreUnreadable, conformance
from ptc.store.conformance import Nonconforming, check


async def test_the_store_keeps_every_rule_of_the_suite_that_ships(tmp_path: Path) -> None:
    """Two clients of one file, as two processes would be."""

    async def make() -> RunStore:
        return ptc.SQLiteRunStore(tmp_path / "runs.db")

    await check(make)


async def test_a_store_that_keeps_its_runs_when_it_is_closed_breaks_a_rule(tmp_path: Path) -> None:
    """Whoever comes next would have to wait for a holder that is no more."""

    class Keeps(ptc.SQLiteRunStore):
        async def aclose(self) -> None:
            self._held.clear()
            await super().aclose()

    async def make() -> RunStore:
        return Keeps(tmp_path / "runs.db")

    with pytest.raises(Nonconforming, match="closing_lets_runs_go"):
        await check(make)


class Odd(ptc.SQLiteRunStore):
    """Takes no lease for as long as it is told."""

    really = 3600.0

    @property  # type: ignore[override]
    def lease_seconds(self) -> float:
        return self.really

    @lease_seconds.setter
    def lease_seconds(self, seconds: float) -> None:
        pass


class Brief(Odd):
    really = 0.001


class Gapped(ptc.SQLiteRunStore):
    """Says that it has what it refused."""

    async def append(self, *arguments: Any, **options: Any) -> None:
        with suppress(ptc.StoreUnavailable):
            await super().append(*arguments, **options)


@pytest.mark.parametrize(
    ("kind", "rule", "says"),
    [
        (Odd, "a_lease_that_is_not_renewed_runs_out", "is held after"),
        (Brief, "", "was another|was not raised"),
        (Gapped, "", "StoreError was not raised"),
    ],
)
async def test_a_store_that_breaks_a_rule_of_the_suite_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ptc.SQLiteRunStore], rule: str, says: str
) -> None:
    """Leases that never run out, or at once; steps without the one before them."""
    monkeypatch.setattr(conformance, "SHORT", 0.05)

    async def make() -> RunStore:
        return kind(tmp_path / "runs.db")

    with pytest.raises(Nonconforming, match=f"{rule}.*{says}"):
        await check(make)


async def test_a_run_whose_holder_was_killed_is_free_at_once(tmp_path: Path) -> None:
    """A lease need not run out where the machine knows that its holder is gone."""
    path = tmp_path / "runs.db"
    program = (
        "import asyncio, os, ptc, sys\n"
        "async def main():\n"
        "    store = ptc.SQLiteRunStore(sys.argv[1], lease=3600)\n"
        "    await store.create('r1', [], {})\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -9
    async with ptc.SQLiteRunStore(path) as store:
        assert (await store.acquire("r1")).lease.epoch == 2


async def test_a_process_that_holds_a_run_keeps_it_until_it_is_gone(tmp_path: Path) -> None:
    """Two processes, one run: the second is told who has it, and gets it when that one was killed."""
    path = tmp_path / "runs.db"
    program = (
        "import asyncio, ptc, sys\n"
        "async def main():\n"
        "    store = ptc.SQLiteRunStore(sys.argv[1], lease=3600)\n"
        "    await store.create('r1', [], {})\n"
        "    print('held', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(path), stdout=pipe)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    async with ptc.SQLiteRunStore(path) as store:
        with pytest.raises(RunLeased, match=f":{holder.pid}:"):
            await store.acquire("r1")
        holder.kill()
        await holder.wait()
        assert (await store.acquire("r1")).lease.epoch == 2


async def test_a_holder_elsewhere_keeps_its_run_until_the_lease_has_run_out(tmp_path: Path) -> None:
    """Nothing is known of another machine's processes."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        await store.create("r1", [], {})
        db = sqlite3.connect(store.path)
        with db:
            db.execute("UPDATE runs SET holder = 'elsewhere:1:2:ab'")
        with pytest.raises(RunLeased) as refused:
            await store.acquire("r1")
        assert refused.value.holder == "elsewhere:1:2:ab"
        with db:
            db.execute("UPDATE runs SET expires = 1")
        db.close()
        assert (await store.acquire("r1")).lease.epoch == 2


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """Neither another database nor a text is written to."""
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE mine (x)")
    db.close()
    text = tmp_path / "text.db"
    text.write_text("not a database at all, but long enough to look at" * 10)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(StoreUnreadable):
            ptc.SQLiteRunStore(path)
        if path == text:
            assert path.read_bytes() == before


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """An older library does not guess what a newer one wrote."""
    ptc.SQLiteRunStore(tmp_path / "runs.db").close()
    db = sqlite3.connect(tmp_path / "runs.db")
    with db:
        db.execute("UPDATE run_store SET version = version + 1")
    db.close()
    with pytest.raises(StoreUnreadable):
        ptc.SQLiteRunStore(tmp_path / "runs.db")


async def test_a_step_of_a_forged_lease_is_refused(tmp_path: Path) -> None:
    """The epoch alone is no right to write."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        lease = await store.create("r1", [], {})
        with pytest.raises(ptc.LeaseLost):
            await store.append(Lease("r1", lease.epoch, "another"), [Step(1, "x", {})])


async def test_an_event_loop_goes_on_while_another_process_writes(tmp_path: Path) -> None:
    """A lone run commits by its own hands, but it never waits for somebody else's lock with them."""
    path = tmp_path / "runs.db"
    async with ptc.SQLiteRunStore(path) as store:
        lease = await store.create("r1", [], {})
        await store.append(lease, [Step(1, "noted", {})])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.append(lease, [Step(2, "noted", {})]))
        for _ in range(100):  # turns of the loop: they come, and the step does not
            await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        await waiting
        await store.append(lease, [Step(3, "noted", {})])
    async with ptc.SQLiteRunStore(path) as store:
        assert [step.n for step in (await store.acquire("r1")).steps] == [1, 2, 3]


async def test_the_log_of_writes_is_written_over_in_a_long_run(tmp_path: Path) -> None:
    """A run of thousands of steps leaves no file that grows with each, and none of them is lost or out of order."""
    path = tmp_path / "runs.db"
    async with ptc.SQLiteRunStore(path) as store:
        lease = await store.create("r1", [], {})
        for number in range(1, 1_201):
            await store.append(lease, [Step(number, "noted", {"text": "x" * 500})])
        assert os.path.getsize(f"{path}-wal") < 3 << 20  # noqa: ASYNC240  a few microseconds
    async with ptc.SQLiteRunStore(path) as store:
        assert [step.n for step in (await store.acquire("r1")).steps] == list(range(1, 1_201))


async def test_steps_of_many_runs_and_a_lone_one_keep_their_order(tmp_path: Path) -> None:
    """Whether the thread or the run itself commits, a step never overtakes the one before it."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        leases = [await store.create(f"r{index}", [], {}) for index in range(4)]

        async def write(lease: Lease, count: int) -> None:
            for number in range(1, count, 2):
                both = [store.append(lease, [Step(number + k, "noted", {})]) for k in range(2)]
                await asyncio.gather(*both)
            await store.append(lease, [], status="completed")

        await asyncio.gather(*(write(lease, 20 * (index + 1)) for index, lease in enumerate(leases)))
        for index in range(4):
            steps = (await store.acquire(f"r{index}")).steps
            assert [step.n for step in steps] == list(range(1, 20 * (index + 1) + 1))


async def test_a_lone_run_that_adds_step_after_step_leaves_no_gap_and_loses_no_lease(tmp_path: Path) -> None:
    """What a store remembers of its last step spares it a look at the file, not the refusal."""
    path = tmp_path / "runs.db"
    async with ptc.SQLiteRunStore(path) as store:
        lease = await store.create("r1", [Step(1, "start", {})], {})
        for number in (2, 3, 4):
            await store.append(lease, [Step(number, "noted", {})])
        for odd in (6, 4, 1):
            with pytest.raises(StoreError):
                await store.append(lease, [Step(odd, "noted", {})])
        await store.append(lease, [Step(5, "noted", {}), Step(6, "noted", {})])
        with pytest.raises(StoreError):
            await store.append(lease, [Step(7, "noted", {}), Step(9, "noted", {})])
        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE runs SET epoch = epoch + 1, holder = 'another'")
        db.close()
        with pytest.raises(ptc.LeaseLost):
            await store.append(lease, [Step(7, "noted", {})])
    async with ptc.SQLiteRunStore(path, lease=0.001) as store:
        db = sqlite3.connect(path)
        with db:
            db.execute("UPDATE runs SET holder = NULL")
        db.close()
        assert [step.n for step in (await store.acquire("r1")).steps] == [1, 2, 3, 4, 5, 6]
