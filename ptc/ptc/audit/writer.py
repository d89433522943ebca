"""Puts records in their places and makes them durable: one thread, groups of records, waiters.

Callers hand in drafts from any thread or event loop and are told when theirs is durable. A group that
cannot be written leaves no trace in the chain: sequence and previous hash move on success alone. It
decides when the circuit opens (nothing is accepted) and closes again; it never drops a record in silence.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from ptc.audit.errors import AuditClosed, AuditUnavailable
from ptc.audit.forks import leaves_to_its_parent
from ptc.audit.hooks import DraftMaker, Hooks, Losses, Place
from ptc.audit.lines import Draft, Entry, place, place_all
from ptc.audit.store import Store, StoreFailed, Sync, system_name
from ptc.audit.waiters import AsyncWaiter, InlineWaiter, Job, ThreadWaiter, tell, unavailable
from ptc_tools.call import JsonObject

_logger: Final = logging.getLogger("ptc.audit")
RETRY_SECONDS: Final = 0.25
"""How often a blocked log tries to write again."""
_MOST_AT_ONCE: Final = 512
"""Records in one group: a checkpoint is late by no more."""

Fail: TypeAlias = Literal["closed", "open"]


class Writer:
    """The one writer of a log. Thread-safe."""

    def __init__(
        self,
        store: Store,
        place: Place,
        *,
        sync: Sync,
        fail: Fail,
        hooks: Hooks,
        make: DraftMaker,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._place = place
        self._sync = sync
        self._fail = fail
        self._hooks = hooks
        self._make = make
        self._clock = clock
        self._queue: list[Job] = []
        self._busy: list[Job] = []
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._writing = threading.RLock()
        self._idle = False
        self._blocked: str | None = None
        self._losses = Losses()
        self._counting = threading.Lock()
        self._closing = False
        self._forked = False
        leaves_to_its_parent(self)
        self._some_expired = False
        self._delayed: list[tuple[list[Job], list[int]]] = []
        self._last_swept: asyncio.AbstractEventLoop | None = None
        self._swept: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self._thread = threading.Thread(target=self._run, name="ptc-audit", daemon=True)
        self._thread.start()

    @property
    def place(self) -> Place:
        return self._place

    @property
    def blocked(self) -> str | None:
        """Name of the error that keeps the log from writing; None while it works."""
        return self._blocked

    def submit(
        self, record: Draft, loop: asyncio.AbstractEventLoop, wait: float
    ) -> asyncio.Future[int | None]:
        """A future of the record's sequence number, done once it is durable; None where fail=open lost it.

        Raises AuditUnavailable when it is not durable after `wait` seconds or the log is blocked.
        """
        if (self._blocked is not None or self._closing) and self._is_refused(record):
            lost: asyncio.Future[int | None] = loop.create_future()
            lost.set_result(None)
            return lost
        waiter = AsyncWaiter(loop, time.monotonic() + wait)
        self._enqueue((record, waiter))
        if loop is not self._last_swept:
            self._last_swept = loop
            if loop not in self._swept:
                self._swept.add(loop)
                loop.call_later(wait, self._sweep, loop, wait)
        return waiter.future

    def write(self, record: Draft) -> int | None:
        """Writes with the caller's own hands (`sync="none"`): no thread, no waiting. Raises as `submit` does."""
        if (self._blocked is not None or self._closing) and self._is_refused(record):
            return None
        waiter = InlineWaiter()
        with self._writing:
            self.refuse_closed()  # it may have been closed while this thread waited for its turn
            due = self._commit_group([(record, waiter)])
        if due:
            with self._wake:
                self._wake.notify()
        if isinstance(waiter.result, AuditUnavailable):
            raise waiter.result
        return waiter.result

    def submit_blocking(self, record: Draft, timeout: float | None = None) -> int | None:
        """The same for a thread. `timeout` in seconds."""
        if (self._blocked is not None or self._closing) and self._is_refused(record):
            return None
        waiter = ThreadWaiter()
        self._enqueue((record, waiter))
        try:
            return waiter.future.result(timeout)
        except TimeoutError:
            raise AuditUnavailable(f"the audit record was not durable after {timeout} s") from None

    def do_due(self, ask: Callable[[], None]) -> None:
        """Asks the hooks for more, and does now what they want done. Raises AuditUnavailable, AuditClosed."""
        self.refuse_closed()  # before the lock, which in a forked child nobody may ever give back
        with self._writing:
            self.refuse_closed()
            ask()
            if self._blocked is None:
                self._do_due()
            if self._blocked is not None:
                raise unavailable(self._blocked)

    def close(self, last: Callable[[], list[Draft]], timeout: float = 10.0) -> None:
        """Writes what is queued, then the log's last words and their checkpoint, and ends the thread. Idempotent."""
        if self._forked:
            return  # the log is the parent's, and so are its last words
        with self._wake:
            if self._closing:
                return
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise AuditUnavailable(f"the audit log cannot be closed: a write has not ended in {timeout} s")
        with self._writing:
            try:
                if self._blocked is None:
                    self._write_last(last())
                if self._blocked is not None:
                    _logger.warning(
                        "the audit log ends without audit.closed (%s)", self._losses.told(self._blocked)
                    )
                self._store.close()
            except (OSError, sqlite3.Error) as error:  # what was to be durable is; nothing more can be done
                _logger.warning("the audit log's file could not be closed in order (%s)", error)

    def leave(self) -> None:
        """In a forked child: two processes that write one log would fork its chain as well."""
        self._closing = self._forked = True
        self._store.leave()

    def _write_last(self, records: list[Draft]) -> None:
        """In one append: a log that was closed without its last checkpoint is taken for a rewritten one."""
        entries = place_all(records, self._place.seq, self._place.prev)
        seal = self._hooks.closing(entries)
        entries.append(place(seal, entries[-1].seq + 1, entries[-1].leaf.hex()))
        try:
            self._append_own(entries)
        except StoreFailed as error:
            self._say_blocked(error.name, len(records))

    def _sweep(self, loop: asyncio.AbstractEventLoop, wait: float) -> None:
        """On `loop`, one timer for all who wait there: fails those whose time is over."""
        if self._expire(loop):
            loop.call_later(min(wait, 0.1), self._sweep, loop, wait)
        else:
            self._swept.discard(loop)
            self._last_swept = None

    def _expire(self, loop: asyncio.AbstractEventLoop) -> bool:
        now = time.monotonic()
        waiting = False
        with self._wake:
            jobs = [*self._busy, *self._queue]
        for _, waiter in jobs:
            if isinstance(waiter, AsyncWaiter) and waiter.loop is loop and not waiter.future.done():
                if waiter.deadline > now:
                    waiting = True
                    continue
                waiter.expired = self._some_expired = True
                self._block("timeout")
                if self._fail == "open":
                    waiter.future.set_result(None)
                else:
                    waiter.future.set_exception(unavailable("timeout"))
        return waiting

    # The writer's thread.

    def _enqueue(self, job: Job) -> None:
        with self._lock:
            self.refuse_closed()
            self._queue.append(job)
            if self._idle:
                self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._queue and not self._closing:
                    self._idle = True
                    self._wake.wait(self._patience())
                    self._idle = False
                jobs, self._queue = self._queue, []
                self._busy = jobs
                closing = self._closing
            try:
                with self._writing:
                    self._work(jobs)
            except Exception:  # noqa: BLE001  the thread must outlive any fault: those who wait are told
                self._block("internal")
                self._fail_jobs(jobs, "internal")
            self._busy = []
            if closing and not self._queue:
                return

    def _patience(self) -> float | None:
        if self._blocked is not None:
            return RETRY_SECONDS
        due = self._hooks.next_due()
        return None if due is None else max(0.0, due - time.monotonic())

    def _work(self, jobs: list[Job]) -> None:
        if self._blocked is not None and not self._try_resume():
            self._fail_jobs(jobs, self._blocked or "EIO")
            return
        for start in range(0, max(1, len(jobs)), _MOST_AT_ONCE):
            part = jobs[start : start + _MOST_AT_ONCE]
            if part:
                self._commit(part)
            if self._blocked is None:
                self._do_due()

    def _do_due(self) -> None:
        while self._blocked is None:
            try:
                record = self._hooks.due(self._store, self._place)
            except (OSError, sqlite3.Error) as error:
                self._block(system_name(error))
                return
            if record is None:
                return
            self._commit([(record, None)])

    def _commit(self, jobs: list[Job]) -> None:
        if self._sync != "each":
            self._commit_group(jobs)
            return
        for number, job in enumerate(jobs, 1):
            self._commit_group([job], more=number < len(jobs))
        self._tell_delayed()

    def _commit_group(self, jobs: list[Job], *, more: bool = False) -> bool:
        """Writes a group and tells its waiters. Whether the hooks have something due.

        With `more` to come at once, the waiters are told while the next record waits for the disk: told
        before, they would take the interpreter from this thread just when it needs it.
        """
        if self._blocked is not None:
            self._fail_jobs(jobs, self._blocked)
            return False
        if self._some_expired:
            jobs = self._without_expired(jobs)
        entries = place_all([record for record, _ in jobs], self._place.seq, self._place.prev)
        try:
            delayed = self._tell_delayed if self._delayed else None
            self._store.append(entries, sync=self._sync != "none", meanwhile=delayed)
        except StoreFailed as error:
            self._block(error.name)
            self._fail_jobs(jobs, error.name)
            self._say_blocked(error.name, len(jobs))
            return False
        self._place.seq, self._place.prev = entries[-1].seq, entries[-1].leaf.hex()
        self._delayed.append((jobs, [entry.seq for entry in entries]))
        if not more:
            self._tell_delayed()
        return self._hooks.written(entries)

    def _tell_delayed(self) -> None:
        delayed, self._delayed = self._delayed, []
        for jobs, seqs in delayed:
            tell(jobs, seqs)

    def _without_expired(self, jobs: list[Job]) -> list[Job]:
        """A call that was already refused for waiting too long did not run: its start is not written."""
        self._some_expired = False
        kept: list[Job] = []
        for record, waiter in jobs:
            if isinstance(waiter, AsyncWaiter) and waiter.expired and record.columns.type == "tool.started":
                with self._counting:
                    self._count_loss(record)
            else:
                kept.append((record, waiter))
        return kept

    # The circuit.

    def _block(self, name: str) -> None:
        if self._blocked is None:
            self._losses = Losses(since_us=self._clock())
            self._blocked = name
            with self._wake:
                self._wake.notify()

    def _say_blocked(self, name: str, refused: int) -> None:
        """With the space kept for this, the log says that it stops; where even that fails, it just stops."""
        try:
            self._store.release_reserve()
            self._say("audit.blocked", {"error": name, "refused": refused})
        except (OSError, StoreFailed):
            return

    def _try_resume(self) -> bool:
        """Writes again, if that works now, and says first what was refused or lost meanwhile."""
        losses = self._losses
        try:
            self._store.keep_reserve()
            data: JsonObject = {"blocked_us": self._clock() - losses.since_us, "refused": losses.refused}
            self._say("audit.resumed", data)
            while True:
                with self._counting:
                    lost, losses.lost = losses.lost, Counter()
                    if not lost:
                        self._blocked = None
                        return True
                self._say_gap(lost, losses)
        except (OSError, StoreFailed):
            return False

    def _say_gap(self, lost: Counter[str], losses: Losses) -> None:
        by_type: JsonObject = dict(lost)
        times: JsonObject = {"from_us": losses.first_us, "to_us": losses.last_us}
        try:
            self._say("audit.gap", {"lost": lost.total(), "by_type": by_type, **times})
        except (OSError, StoreFailed):
            with self._counting:
                losses.lost.update(lost)
            raise

    def _say(self, type: str, data: JsonObject) -> None:
        self._append_own(place_all([self._make(type, data)], self._place.seq, self._place.prev))

    def _append_own(self, entries: list[Entry]) -> None:
        self._store.append(entries, sync=self._sync != "none")
        self._place.seq, self._place.prev = entries[-1].seq, entries[-1].leaf.hex()
        self._hooks.written(entries)

    def _is_refused(self, record: Draft) -> bool:
        """Whether a record that comes now cannot be written; if so, it is counted."""
        self.refuse_closed()
        with self._counting:
            if self._blocked is None:
                return False
            self._count_loss(record)
        if self._fail == "closed":
            raise unavailable(self._blocked or "EIO")
        return True

    def refuse_closed(self) -> None:
        """Raises AuditClosed where nothing can be recorded any more."""
        if self._forked:
            raise AuditClosed(
                "the audit log belongs to the process that opened it: a forked child needs its own"
            )
        if self._closing:
            raise AuditClosed("the audit log is closed: nothing that it would have to record may run")

    def _count_loss(self, record: Draft) -> None:
        self._losses.count(record, is_open=self._fail == "open")

    def _fail_jobs(self, jobs: list[Job], name: str) -> None:
        with self._counting:
            for record, _ in jobs:
                self._count_loss(record)
        if self._fail == "open":
            tell(jobs, [None] * len(jobs))
        else:
            tell(jobs, unavailable(name))
