"""The run store in one SQLite file (WAL): a row for each run, and its steps, never changed once written.

Given an audit log instead of a path it lives in the log's own file, so that a step and its audit record are
one transaction. It holds arguments, results and responses as they are: the file is for its owner alone.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, cast

from ptc.audit.schema import APPLICATION_ID as OF_AN_AUDIT_LOG
from ptc.errors import ConfigurationError
from ptc.store.commits import Commits
from ptc.store.errors import (
    RunExists,
    RunLeased,
    RunUnknown,
    StoreError,
    StoreUnavailable,
    StoreUnreadable,
)
from ptc.store.files import make_file
from ptc.store.holders import is_dead, new_holder
from ptc.store.protocol import Lease, RunInfo, Step, StoredRun, StoredStatus
from ptc.store.rows import IN_ONE, appending, following, json_of, lost, now_us, rows_of, text_of
from ptc.store.schema import ADD, APPLICATION_ID, READ, prepare, steps_of

if TYPE_CHECKING:
    from ptc.audit import AuditLog

_END: Final = "UPDATE runs SET status = ?, holder = NULL, updated = ? WHERE run = ? AND epoch = ?"

_CHECKPOINT_PAGES: Final = 1024
"""How far the WAL grows at most (4 MiB); mostly `Commits` writes it back after half of that. From then on it is
written over, and a sync of what has its place on the disk already takes two thirds of one that makes a file longer."""

Statement: TypeAlias = "tuple[str, tuple[object, ...]]"
T = TypeVar("T")

_EPOCHS: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
"""Who holds what in a store that shares an audit log's file: a log has one process, so this decides."""


class SQLiteRunStore:
    """Runs in one file: `SQLiteRunStore("runs.db")`, or `SQLiteRunStore(log)` in an audit log's database.

        store = ptc.SQLiteRunStore(log)
        runner = ptc.Runner(client=..., model=..., tools=[...], audit=log, store=store)

    In a log's file a call's admission and its `tool.started` are one transaction, and so are its outcome and
    `tool.finished`; an audit log is written by one process, so such a store is too. A file of its own may be
    shared by processes of one machine. `lease` (seconds) is how long a run stays its holder's when that is not
    known to be dead. Raises ConfigurationError, StoreUnreadable. Close it with `aclose`, `close` or `with`.
    """

    def __init__(self, where: str | os.PathLike[str] | AuditLog, *, lease: float = 30.0) -> None:
        number = lease if isinstance(lease, int | float) and not isinstance(lease, bool) else 0
        if not (number > 0 and math.isfinite(number)):
            raise ConfigurationError(f"lease={lease!r}: give a positive number of seconds")
        self.lease_seconds = lease
        self.log: AuditLog | None = None
        if isinstance(where, (str, os.PathLike)):
            self.path = Path(where)
        else:
            self.path = _path_in(where)
            self.log = where
            self._epochs = _EPOCHS.setdefault(where, {})
        self._holder = new_holder()
        self._held: dict[str, Lease] = {}
        self._known: tuple[Lease, int, int] | None = None
        """The last step that was made durable by `append_here`: its lease, its number, and the run's own id."""
        self._open().close()
        self._commits = Commits(self._open)

    # ptc.store.RunStore

    async def create(self, run_id: str, steps: Sequence[Step], labels: Mapping[str, str]) -> Lease:
        lease = Lease(run_id, 1, self._holder)
        rows = rows_of(run_id, steps)
        now = now_us()
        run = (run_id, "running", 1, self._holder, now + self._term, now, now, text_of(dict(labels)))

        def work(db: sqlite3.Connection) -> None:
            if db.execute("SELECT 1 FROM runs WHERE run = ?", (run_id,)).fetchone():
                raise RunExists(f"the store has a run {run_id!r} already", run_id=run_id)
            db.execute("INSERT INTO runs VALUES (NULL,?,?,?,?,?,?,?,?)", run)
            db.executemany(ADD, rows)

        await self._commits.do(work)
        return self._hold(lease)

    async def acquire(self, run_id: str) -> StoredRun:
        now = now_us()

        def work(db: sqlite3.Connection) -> StoredRun:
            row = db.execute(
                "SELECT id, status, epoch, holder, expires, created FROM runs WHERE run = ?", (run_id,)
            ).fetchone()
            if row is None:
                raise RunUnknown(f"there is no run {run_id!r} in {self.path}", run_id=run_id)
            key, status, epoch, holder, expires, created = row
            if holder is not None and expires > now and not is_dead(holder):
                raise RunLeased(
                    f"the run {run_id!r} is driven by {holder}; wait for it, or {(expires - now) / 1e6:.0f} s"
                    " until its lease has run out",
                    holder=holder,
                    run_id=run_id,
                )
            lease = Lease(run_id, epoch + 1, self._holder)
            db.execute(
                "UPDATE runs SET epoch = ?, holder = ?, expires = ?, updated = ?, status = 'running' WHERE run = ?",
                (lease.epoch, self._holder, now + self._term, now, run_id),
            )
            read = tuple(
                Step(n, kind, json_of(data, run_id)) for n, kind, data in db.execute(READ, steps_of(key))
            )
            return StoredRun(run_id, cast("StoredStatus", status), read, lease, created)

        stored = await self._commits.do(work)
        self._hold(stored.lease)
        return stored

    async def append(
        self, lease: Lease, steps: Sequence[Step], *, status: StoredStatus | None = None
    ) -> None:
        if status is None and self.append_here(lease, steps):
            return
        if status is None and 0 < len(steps) <= IN_ONE:
            await self._commits.do(appending(lease, steps), one_statement=True)
            return
        rows = rows_of(lease.run_id, steps)

        def work(db: sqlite3.Connection) -> None:
            self._check(db, lease)
            db.executemany(ADD, rows)
            if status is not None:
                db.execute(_END, (status, now_us(), lease.run_id, lease.epoch))

        await self._commits.do(work)
        if status is not None:
            self._held.pop(lease.run_id, None)

    def append_here(self, lease: Lease, steps: Sequence[Step]) -> bool:
        """See ptc.store.ImmediateStore. Where this process drives one run only, nobody else is to be let in."""
        if len(self._held) != 1 or not 0 < len(steps) <= IN_ONE:
            return False
        known, last = self._known, steps[-1].n
        if known is not None and known[0] == lease and known[1] == steps[0].n - 1:
            done = self._commits.do_here(following(lease, known[2], steps))
            self._known = (lease, last, known[2]) if done else known
            return done
        keys: list[int] = []
        done = self._commits.do_here(appending(lease, steps, keys))
        if done:
            self._known = (lease, last, keys[0])
        return done

    async def append_with(
        self,
        lease: Lease,
        steps: Sequence[Step],
        write: Callable[[Sequence[Statement]], Awaitable[T]],
        *,
        status: StoredStatus | None = None,
    ) -> T:
        """Steps in the transaction of an audit record: `write` is given the statements to go with it."""
        self._commits.check_open()
        if self._epochs.get(lease.run_id) != lease.epoch:
            raise lost(lease)
        statements: list[Statement] = [(ADD, row) for row in rows_of(lease.run_id, steps)]
        if status is not None:
            statements.append((_END, (status, now_us(), lease.run_id, lease.epoch)))
        return await write(statements)

    async def renew(self, lease: Lease) -> None:
        def work(db: sqlite3.Connection) -> None:
            self._check(db, lease)
            db.execute("UPDATE runs SET expires = ? WHERE run = ?", (now_us() + self._term, lease.run_id))

        await self._commits.do(work)

    async def release(self, lease: Lease) -> None:
        if self._held.get(lease.run_id) == lease:
            del self._held[lease.run_id]
        await self._commits.do(lambda db: _let_go(db, lease))

    async def runs(self, *, status: StoredStatus | None = None) -> tuple[RunInfo, ...]:
        now = now_us()

        def work(db: sqlite3.Connection) -> tuple[RunInfo, ...]:
            rows = db.execute(
                "SELECT run, status, created, updated, holder, expires, labels FROM runs"
                " WHERE ? IS NULL OR status = ? ORDER BY created, run",
                (status, status),
            )
            return tuple(_info(row, now) for row in rows)

        return await self._commits.do(work)

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    # For hosts

    def close(self) -> None:
        """Lets go of everything, also of the leases that are still held. Idempotent."""
        self._commits.close()
        if self._commits.forked:
            return  # what is held is the parent's
        if self._held and self.path.exists():
            db = self._open()
            try:
                for lease in self._held.values():
                    _let_go(db, lease)
            finally:
                db.close()
        self._held.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    @property
    def _term(self) -> int:
        return int(self.lease_seconds * 1_000_000)

    def _hold(self, lease: Lease) -> Lease:
        self._held[lease.run_id] = lease
        if self.log is not None:
            self._epochs[lease.run_id] = lease.epoch
        return lease

    def _check(self, db: sqlite3.Connection, lease: Lease) -> None:
        row = db.execute("SELECT epoch, holder FROM runs WHERE run = ?", (lease.run_id,)).fetchone()
        if row != (lease.epoch, lease.holder):
            raise lost(lease)

    def _open(self) -> sqlite3.Connection:
        make_file(self.path)
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            self._check_file(db)
            db.execute("PRAGMA journal_mode=WAL").fetchall()
            db.execute("PRAGMA synchronous=FULL")
            db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
            prepare(db, self.path, own_file=self.log is None)
        except sqlite3.OperationalError as error:
            db.close()
            raise StoreUnavailable(f"{self.path} cannot be opened: {error}") from error
        except (sqlite3.DatabaseError, StoreError) as error:
            db.close()
            if isinstance(error, StoreError):
                raise
            raise StoreUnreadable(
                f"{self.path} is no run store, or it is damaged ({error}): give the store another path"
            ) from error
        return db

    def _check_file(self, db: sqlite3.Connection) -> None:
        (identity,) = db.execute("PRAGMA application_id").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self.log is None and identity == OF_AN_AUDIT_LOG:
            raise StoreUnreadable(
                f"{self.path} is an audit log's database: open the log, and give it to the store, as in"
                f" SQLiteRunStore(AuditLog(path)); with `ptc run`, add --audit {self.path}"
            )
        if self.log is None and identity != APPLICATION_ID and (identity or tables):
            raise StoreUnreadable(f"{self.path} is another application's database: give the store its own")


def _path_in(log: AuditLog) -> Path:
    if not hasattr(log, "can_hold_runs"):
        raise ConfigurationError(f"a run store is given a path or a ptc.AuditLog, not {type(log).__name__}")
    if not log.can_hold_runs:
        raise ConfigurationError(
            f"{log.path} cannot hold runs: that takes a .db log that is not rotated and fails closed;"
            " give the store a file of its own"
        )
    return log.path


def _let_go(db: sqlite3.Connection, lease: Lease) -> None:
    db.execute("UPDATE runs SET holder = NULL WHERE run = ? AND epoch = ?", (lease.run_id, lease.epoch))


def _info(row: tuple[Any, ...], now: int) -> RunInfo:
    run_id, status, created, updated, holder, expires, labels = row
    held = holder is not None and expires > now and not is_dead(holder)
    words = {name: str(word) for name, word in json_of(labels, run_id).items()}
    return RunInfo(run_id, status, created, updated, held, words)
