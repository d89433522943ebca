"""Group commit: one thread, one connection, one transaction for all who wait while the disk is busy.

It is given functions that read and write; it decides nothing about what they write. A function that raises
takes back its own changes alone. Nobody is told before the transaction is durable.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ptc.store.errors import StoreError, StoreUnavailable

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], Any]


class _Job:
    __slots__ = ("error", "future", "loop", "one_statement", "result", "work")

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop, *, one_statement: bool) -> None:
        self.work = work
        self.one_statement = one_statement
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.result: Any = None
        self.error: StoreError | None = None

    def settle(self) -> None:
        if self.future.done():
            return  # whoever waited was cancelled
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Commits:
    """The writer of one database. Any number of event loops may use it."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._db: sqlite3.Connection | None = None
        self._queue: list[_Job] = []
        self._wake = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    async def do(self, work: Callable[[sqlite3.Connection], T], *, one_statement: bool = False) -> T:
        """What `work` returns, once it is durable. Raises what it raised, and StoreUnavailable.

        `one_statement`: it writes with one statement at most, which is a transaction of its own where nobody
        else waits; it must not write where it raises.
        """
        job = _Job(work, asyncio.get_running_loop(), one_statement=one_statement)
        with self._wake:
            if self._closing:
                raise StoreUnavailable("the run store is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ptc-store", daemon=True)
                self._thread.start()
            self._queue.append(job)
            self._wake.notify()
        result: T = await job.future
        return result

    def close(self) -> None:
        """Finishes what is queued. Idempotent."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    self._wake.wait()
                jobs, self._queue = self._queue, []
            if not jobs:
                if self._db is not None:
                    self._db.close()
                return
            self._commit(jobs)
            _tell(jobs)

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            db = self._db = self._db or self._connect()
            if len(jobs) == 1 and jobs[0].one_statement:
                _do(db, jobs[0])
                return
            db.execute("BEGIN IMMEDIATE")
            for job in jobs:
                _try(db, job, alone=len(jobs) == 1)
            db.execute("COMMIT")
        except StoreError as error:
            self._fail(jobs, error)
        except Exception as error:  # noqa: BLE001 - the thread outlives any fault: those who wait are told
            self._fail(jobs, StoreUnavailable(f"the run store cannot write: {error}"))

    def _fail(self, jobs: list[_Job], error: StoreError) -> None:
        for job in jobs:
            job.error = job.error or error
        db, self._db = self._db, None  # a connection that failed is not trusted with the next group
        if db is not None:
            db.close()


def _do(db: sqlite3.Connection, job: _Job) -> bool:
    """Whether the job did what it was to do; if not, it is told why."""
    try:
        job.result = job.work(db)
    except StoreError as error:
        job.error = error
    except sqlite3.IntegrityError as error:
        job.error = StoreUnavailable(f"the store has such a step already: {error}")
    return job.error is None


def _try(db: sqlite3.Connection, job: _Job, *, alone: bool) -> None:
    if not alone:
        db.execute("SAVEPOINT job")
    if not _do(db, job):
        if not alone:
            db.execute("ROLLBACK TO job")
        else:
            db.execute("ROLLBACK")
            db.execute("BEGIN IMMEDIATE")
    if not alone:
        db.execute("RELEASE job")


def _tell(jobs: list[_Job]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, settled in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, settled)
        except RuntimeError:
            continue  # that loop is closed: its tasks are gone, the steps stay


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
