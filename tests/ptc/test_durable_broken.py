"""Stores that fail for a moment, and runs that are cancelled while one writes: nothing runs after a step that is missing."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import ptc
from ptc.audit import AuditUnavailable
from ptc.audit.reader import records
from ptc.store import Step, StoredStatus
from ptc_tools.context import RunContext
from tests.ptc.loop_fakes import AT_ONCE, FakeEndpoint, answer, function_call

RAN: list[int] = []
TURNS = [
    [function_call("note", "c0", {"x": 0}), function_call("note", "c1", {"x": 1})],
    [function_call("note", "c2", {"x": 2})],
    [answer("noted")],
]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


@ptc.tool(effects="write")
async def note(x: int, text: str = "") -> int:
    """A mutation that is not idempotent."""
    RAN.append(x)
    return x


def says(body: Any) -> Any:
    """What comes next is told by what was sent, however often it is asked."""
    outputs = sum(item.get("type") == "function_call_output" for item in body["input"])
    return TURNS[{0: 0, 2: 1, 3: 2}[outputs]]


def runner(store: ptc.RunStore, turn: Any = says, **options: Any) -> ptc.Runner:
    endpoint: Any = FakeEndpoint(*[turn] * 9)
    return ptc.Runner(
        client=endpoint,
        model="m",
        tools=[note],
        store=store,
        approver=ptc.PauseForApproval(),
        retry=AT_ONCE,
        **options,
    )


async def recovered(store: ptc.RunStore, turn: Any = says) -> ptc.RunResult[Any]:
    """Gone on with to the end: what was cut off is said to have happened where it did."""
    done = await runner(store, turn).recover("r1")
    while done.status == "paused":
        decisions: dict[str, ptc.Decision] = {
            request.call_id: ptc.Happened(request.arguments["x"])
            if request.arguments["x"] in RAN
            else ptc.Approve()
            for request in done.approvals
        }
        done = await runner(store, turn).recover("r1", decisions=decisions)
    return done


class Interrupted(BaseException):
    """As Ctrl-C: no error that anybody handles."""


class SmallDisk(ptc.SQLiteRunStore):
    """A disk that is full for what is big, and takes what is small."""

    def __init__(self, where: Any, pages: int) -> None:
        self._pages = pages
        super().__init__(where)

    def _open(self) -> sqlite3.Connection:
        db = super()._open()
        db.execute(f"PRAGMA max_page_count={self._pages}").fetchall()
        return db


MANY = [function_call("note", f"c{x}", {"x": x, "text": "" if x else "x" * 30_000}) for x in range(6)]


def says_many(body: Any) -> Any:
    outputs = sum(item.get("type") == "function_call_output" for item in body["input"])
    return [answer("noted")] if outputs else MANY


@pytest.mark.parametrize("pages", [*range(15, 27, 2), 1000])
async def test_nothing_runs_after_a_step_that_the_disk_did_not_take(tmp_path: Path, pages: int) -> None:
    """Also what went to the disk with it and would have had room: the run goes on later from where it stood."""
    async with SmallDisk(tmp_path / "runs.db", pages) as store:
        try:
            await store.create("another", [], {})  # a run is not alone: many steps are on their way at once
            await runner(store, says_many).run("go", run_id="r1")
        except ptc.StoreUnavailable:
            assert pages < 1000
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        if not any(info.run_id == "r1" for info in await store.runs()):
            assert RAN == []
            return
        assert (await recovered(store, says_many)).output_text == "noted"
    assert sorted(RAN) == [0, 1, 2, 3, 4, 5]


class Overtaken(ptc.SQLiteRunStore):
    """Refuses a big step when others are on their way already, and lets those through."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._others, self._refused = asyncio.Event(), asyncio.Event()

    async def append(self, lease: Any, steps: Sequence[Step], **options: Any) -> None:
        admits = [step for step in steps if step.kind == "admitted"]
        if any(len(str(step.data)) > 30_000 for step in admits):
            await self._others.wait()
            self._refused.set()
            raise ptc.StoreUnavailable("the disk is full")
        if admits:
            self._others.set()
            await self._refused.wait()
        await super().append(lease, steps, **options)


async def test_a_step_that_was_on_its_way_when_one_before_it_was_refused_is_none(tmp_path: Path) -> None:
    """Nothing runs for it, and the run can be recovered."""
    async with Overtaken(tmp_path / "runs.db") as overtaken:
        with pytest.raises(ptc.StoreUnavailable, match="full"):
            await runner(overtaken, says_many).run("go", run_id="r1")
        assert RAN == []
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        assert (await recovered(store, says_many)).output_text == "noted"
    assert sorted(RAN) == [0, 1, 2, 3, 4, 5]


class Faulty(ptc.SQLiteRunStore):
    """Does something else instead of, or after, its n-th step."""

    def __init__(
        self, path: Path, at: int, fault: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
    ) -> None:
        super().__init__(path)
        self._left, self._fault = at, fault

    async def append(self, *arguments: Any, **options: Any) -> None:
        self._left -= 1
        write = super().append
        if self._left == 0:
            await self._fault(lambda: write(*arguments, **options))
        else:
            await write(*arguments, **options)


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("error", [OSError, ptc.StoreUnavailable, Interrupted])
async def test_a_store_that_fails_once_in_whatever_way_ends_the_run(
    tmp_path: Path, at: int, error: type[BaseException]
) -> None:
    """A step that may be missing is never followed by another one; the run can be recovered."""

    async def fails(write: Callable[[], Awaitable[None]]) -> None:
        raise error("once")

    async with Faulty(tmp_path / "runs.db", at, fails) as faulty:
        try:
            await runner(faulty).run("go", run_id="r1")
        except (ptc.StoreUnavailable, Interrupted):
            pass
        else:
            assert at > 6  # there were fewer steps: what lingers for a moment goes with others or by itself
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        assert (await recovered(store)).output_text == "noted"
    assert sorted(RAN) == [0, 1, 2]


class Here(ptc.SQLiteRunStore):
    """A store whose step on the event loop is interrupted, before it is written or after."""

    def __init__(self, path: Path, at: int, *, written: bool) -> None:
        super().__init__(path)
        self._left, self._written = at, written

    def append_here(self, lease: Any, steps: Sequence[Step]) -> bool:
        self._left -= 1
        if self._left == 0 and not self._written:
            raise Interrupted
        done = super().append_here(lease, steps)
        if self._left == 0:
            raise Interrupted
        return done


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("at", range(1, 8))
async def test_an_interrupt_in_the_middle_of_a_step_leaves_no_gap(
    tmp_path: Path, at: int, written: bool
) -> None:
    """Ctrl-C may come wherever the program is."""
    async with Here(tmp_path / "runs.db", at, written=written) as store:
        with suppress(Interrupted):
            await runner(store).run("go", run_id="r1")
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        assert (await recovered(store)).output_text == "noted"
    assert sorted(RAN) == [0, 1, 2]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("at", range(1, 9))
async def test_a_run_that_is_cancelled_while_its_store_writes_goes_on(
    tmp_path: Path, at: int, times: int
) -> None:
    """The step comes to its end first, however often somebody cancels; what was let in is never forgotten."""
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def waits(write: Callable[[], Awaitable[None]]) -> None:
        reached.set()
        await go_on.wait()  # a cancellation that came through here would take the step away
        await write()

    async with Faulty(tmp_path / "runs.db", at, waits) as store:
        running = asyncio.create_task(runner(store).run("go", run_id="r1"))
        waiting = asyncio.create_task(reached.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for _ in range(times):  # where there were fewer steps, the run has ended
            running.cancel()
            await asyncio.sleep(0)
        go_on.set()
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError) is reached.is_set()
        (info,) = await store.runs()
        assert not info.held
        assert (await recovered(store)).output_text == "noted"
    assert sorted(RAN) == [0, 1, 2]


class Slow(ptc.SQLiteRunStore):
    """Waits after a run has its place, before it says so."""

    created = asyncio.Event()

    async def create(self, *arguments: Any) -> Any:
        lease = await super().create(*arguments)
        self.created.set()
        await asyncio.sleep(0)
        return lease


@pytest.mark.parametrize("log", [False, True])
async def test_a_run_that_is_cancelled_as_it_gets_its_place_is_free(tmp_path: Path, log: bool) -> None:
    """Nobody would let it go otherwise but the end of its lease."""
    audit = ptc.AuditLog(tmp_path / "runs.db") if log else None
    Slow.created = asyncio.Event()
    async with Slow(audit or tmp_path / "runs.db") as store:
        running = asyncio.create_task(runner(store, audit=audit).run("go", run_id="r1"))
        await Slow.created.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (info,) = await store.runs()
        assert (info.status, info.held) == ("cancelled", False)
        assert (await runner(store, audit=audit).recover("r1")).output_text == "noted"
    if audit is not None:
        audit.close()
    assert sorted(RAN) == [0, 1, 2]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_scope_that_cancels_again_and_again_ends_the_run_all_the_same(
    tmp_path: Path, log: bool, streamed: bool
) -> None:
    """As the scopes of anyio do, and with them web frameworks: when it is left, the run has its end and is free."""
    audit = ptc.AuditLog(tmp_path / "runs.db") if log else None
    begun = asyncio.Event()

    @ptc.tool(effects="read")
    async def wait(x: int) -> int:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return x

    async def go(store: ptc.RunStore) -> None:
        able = ptc.Runner(
            client=FakeEndpoint([function_call("wait", "w", {"x": 1})]),
            model="m",
            tools=[wait],
            store=store,
            audit=audit,
        )
        if streamed:
            async with able.stream("go", run_id="r1") as events:
                async for _ in events:
                    pass
        else:
            await able.run("go", run_id="r1")

    async with ptc.SQLiteRunStore(audit or tmp_path / "runs.db") as store:
        async with anyio.create_task_group() as group:
            group.start_soon(go, store)
            await begun.wait()
            group.cancel_scope.cancel()
        (info,) = await store.runs()
        assert (info.status, info.held) == ("cancelled", False)
    if audit is not None:
        audit.close()


async def test_a_step_that_follows_nothing_is_refused(tmp_path: Path) -> None:
    """By the store itself, with all that goes with it."""
    async with ptc.SQLiteRunStore(tmp_path / "runs.db") as store:
        lease = await store.create("r1", [Step(1, "start", {})], {})
        statuses: tuple[StoredStatus | None, ...] = (None, "completed")
        for steps in (
            [Step(3, "x", {})],
            [Step(3, "x", {}), Step(4, "x", {})],
            [Step(2, "x", {}), Step(4, "x", {})],
        ):
            for status in statuses:
                with pytest.raises(ptc.StoreUnavailable, match="does not follow"):
                    await store.append(lease, steps, status=status)
        await store.append(lease, [Step(2, "x", {})])
        with pytest.raises(ptc.StoreUnavailable, match="does not follow"):
            await store.append(lease, [Step(2, "again", {})])
        await store.release(lease)
        assert [step.n for step in (await store.acquire("r1")).steps] == [1, 2]


async def written(step: Awaitable[None]) -> bool:
    """Whether the log takes it: one that was refused something tries again by itself, soon."""
    try:
        await step
    except AuditUnavailable:
        await asyncio.sleep(0)
        return False
    return True


async def test_a_record_of_a_step_that_follows_nothing_is_refused(tmp_path: Path) -> None:
    """In a log's file step and record are one: there is neither, and the log goes on."""
    context = RunContext("r1")
    with ptc.AuditLog(tmp_path / "a.db") as log:
        async with ptc.SQLiteRunStore(log) as store:
            lease = await store.create("r1", [Step(1, "start", {})], {})

            async def write(statements: Sequence[Any]) -> None:
                await log.event("run.started", {"model": "m"}, context, also=tuple(statements))

            with pytest.raises(AuditUnavailable):
                await store.append_with(lease, [Step(3, "x", {})], write)
            async with asyncio.timeout(60):
                while not await written(store.append_with(lease, [Step(2, "x", {})], write)):
                    pass
            await store.release(lease)
            assert [step.n for step in (await store.acquire("r1")).steps] == [1, 2]
    told = [record["type"] for record in records(tmp_path / "a.db")]
    assert told.count("run.started") == 1


FORKS = """
import asyncio, os, sys
import ptc
from ptc.audit import AuditUnavailable
from ptc.audit.reader import records
from ptc.store import Step, StoredStatus

async def child(store):
    try:
        await asyncio.wait_for(store.create("child", [], {}), 60)
    except ptc.StoreUnavailable as error:
        store.close()
        return 0 if "fork" in str(error) else 2
    return 3

async def parent():
    async with ptc.SQLiteRunStore(sys.argv[1]) as store:
        lease = await store.create("r1", [], {})
        pid = os.fork()
        if pid == 0:
            asyncio._set_running_loop(None)
            code = 4
            try:
                code = asyncio.new_event_loop().run_until_complete(child(store))
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        await store.append(lease, [Step(1, "x", {})])
        (info,) = await store.runs()
        print(info.held)

asyncio.run(parent())
"""


def test_a_store_is_not_taken_through_a_fork(tmp_path: Path) -> None:
    """The child is told, instead of waiting for a thread that it does not have; the parent's runs stay held."""
    told = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, str(tmp_path / "runs.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["0", "True"]
