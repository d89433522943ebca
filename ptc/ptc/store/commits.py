"""Group commit: one thread, one connection, one transaction for all who wait while the disk is busy.

It is given functions that read and write; it decides nothing about what they write. A function that raises
takes back its own changes alone. Nobody is told before the transaction is durable. Whoever is alone, on a disk
that has been quick, is spared the two ways between threads and commits with its own hands.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from ptc.store.errors import StoreError, StoreUnavailable

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], Any]

_QUICK: Final = 0.001
"""Seconds: a commit that takes longer is none that an event loop should wait for."""
_DISTRUST: Final = 100
"""Times as long as a commit took that was not quick the thread does them all: an event loop waits for a slow disk for
about a hundredth of its time."""
_BUSY_MS: Final = 10_000
_COMMITS_A_CHECKPOINT: Final = 250
"""Each changes a page or two. Checkpoints are the thread's: they take some milliseconds."""


class _Job:
    __slots__ = ("again", "error", "future", "one_statement", "result", "work")

    future: asyncio.Future[Any]

    def __init__(self, work: Work, *, one_statement: bool) -> None:
        self.work = work
        self.one_statement = one_statement
        self.result: Any = None
        self.error: StoreError | None = None
        self.again = False
        """Nothing was done, since another process was writing just then."""

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
        self._writing = threading.Lock()
        self._busy = False
        self._distrust_until = 0.0
        self._commits = 0
        self._patient = True
        self._pid = os.getpid()

    async def do(self, work: Callable[[sqlite3.Connection], T], *, one_statement: bool = False) -> T:
        """What `work` returns, once it is durable. Raises what it raised, and StoreUnavailable.

        `one_statement`: it writes with one statement at most, which is a transaction of its own where nobody
        else waits; it must not write where it raises.
        """
        job = _Job(work, one_statement=one_statement)
        job.future = asyncio.get_running_loop().create_future()
        with self._wake:
            self.check_open()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ptc-store", daemon=True)
                self._thread.start()
            self._queue.append(job)
            self._wake.notify()
        result: T = await job.future
        return result

    def check_open(self) -> None:
        """Raises StoreUnavailable where nothing is to be written any more."""
        if self._closing:
            raise StoreUnavailable("the run store is closed")
        if self.forked:
            raise StoreUnavailable(
                "the run store was opened before this process was forked: open it in the process that uses it"
            )

    @property
    def forked(self) -> bool:
        """Whether this is a child that has neither the thread nor a right to the connection."""
        return self._pid != os.getpid()

    def do_here(self, work: Work) -> bool:
        """Commits one statement without the thread: whether it did. For whoever expects nobody else to write.

        Not where the thread is busy, the disk was slow, a checkpoint is due or another process writes. Raises as
        `do` does.
        """
        if self._queue or self._busy:  # in this order: a step must not overtake one that the thread has taken
            return False
        if self._db is None or self._commits >= _COMMITS_A_CHECKPOINT:
            return False
        began = time.monotonic()
        if began < self._distrust_until or not self._writing.acquire(blocking=False):
            return False
        job = _Job(work, one_statement=True)
        try:
            self.check_open()
            self._commit([job], patient=False)
        finally:
            self._writing.release()
        took = time.monotonic() - began
        if took > _QUICK:
            self._distrust_until = began + took * _DISTRUST
        if job.error is not None:
            raise job.error
        return not job.again

    def close(self) -> None:
        """Finishes what is queued. Idempotent."""
        if self.forked:
            return
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
                self._busy = True
                jobs, self._queue = self._queue, []
            with self._writing:
                if not jobs:
                    if self._db is not None:
                        self._db.close()
                    return
                self._commit(jobs, patient=True)
                _tell(jobs)
                self._busy = False
                if self._commits >= _COMMITS_A_CHECKPOINT:
                    self._checkpoint()

    def _checkpoint(self) -> None:
        """Writes the WAL's pages into the database, so that it is written over from its start."""
        self._commits = 0
        with contextlib.suppress(sqlite3.Error):  # the next one does it; what is committed is durable without
            if self._db is not None:
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _commit(self, jobs: list[_Job], *, patient: bool) -> None:
        """`patient`: another process's commit is waited for. The thread does, an event loop never."""
        self._commits += 1
        try:
            if self._db is None:
                self._db, self._patient = self._connect(), True
            db = self._db
            if patient is not self._patient:
                db.execute(f"PRAGMA busy_timeout={_BUSY_MS if patient else 0}")
                self._patient = patient
            if len(jobs) == 1 and jobs[0].one_statement:
                _do(db, jobs[0])
                return
            db.execute("BEGIN IMMEDIATE")
            for job in jobs:
                _try(db, job, alone=len(jobs) == 1)
            db.execute("COMMIT")
        except StoreError as error:
            self._fail(jobs, error)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY and not patient:
                jobs[0].again = True
            else:
                self._fail(jobs, StoreUnavailable(f"the run store cannot write: {error}"))
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
        job.error = StoreUnavailable(
            f"the step does not follow the run's last one, which was not written, or was followed already: {error}"
        )
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
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, settled in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, settled)
        except RuntimeError:
            continue  # that loop is closed: its tasks are gone, the steps stay


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()
