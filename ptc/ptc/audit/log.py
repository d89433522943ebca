"""The audit log: who called what, with what, on whose authority, what came back; durable before it is told.

It implements `ptc_tools.record.Recorder`. A tool runs only after its start is on disk, and its result is
released only after its end is. It is told everything and shows what its levels allow; no tool, program or
model can change those. It never drops a record in silence.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ptc._version import __version__
from ptc.audit.errors import AuditError, AuditUnavailable, InvalidAuditConfig
from ptc.audit.files import Files, SystemFiles
from ptc.audit.hooks import Place
from ptc.audit.journals import Journals
from ptc.audit.jsonl import JsonLines
from ptc.audit.keeper import Checkpoints, Keeper, Rotation
from ptc.audit.keys import Keyring
from ptc.audit.lines import Draft, Statement, place_all
from ptc.audit.notes import Signer, origin
from ptc.audit.policy import Level, Levels
from ptc.audit.records import Records, Started
from ptc.audit.redact import Redaction, Redactor
from ptc.audit.resume import Standing, standing
from ptc.audit.sqlite import SqliteStore
from ptc.audit.store import End, Store, Sync, suffix_kind
from ptc.audit.told import Line, Told
from ptc.audit.values import Unencodable
from ptc.audit.writer import Fail, Writer
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied, Outcome
from ptc_tools.settle import Done

if TYPE_CHECKING:
    import os

    from ptc.audit.anchors import Anchor

DEFAULT_WAIT: Final = 5.0


class AuditLog:
    """An append-only, tamper-evident log in one file: `audit.jsonl` (JSON lines) or `audit.db` (SQLite).

        with ptc.AuditLog("audit.db") as log:
            runner = ptc.Runner(client=..., model=..., tools=[...], audit=log)

    `levels`: what content it may hold, `Levels.of("metadata")` if not said: no arguments, no results.
    `redact`: how secrets are found in what the levels allow.
    `keys`: `Keyring.default()` if not said, a file outside the log (PTC_AUDIT_KEYS names it).
    `sync`: `group` (one disk sync for all who wait), `each`, or `none` (survives a crash of the process, not
    of the machine).
    `fail`: `closed`, so that nothing runs unrecorded; `open` must be chosen and writes how much it lost.
    `wait`: seconds a call waits for its record before it is refused.
    `journals`: keep what replaying local programs needs, encrypted beside the log; if not said, where the
    level of events is `full`.
    `rotate`, `checkpoints`, `anchors`: see `Rotation`, `Checkpoints`, `anchors.Anchor`.

    Opening it takes the writer's lock and repairs a torn end; raises AuditUnavailable where the file cannot be
    made or opened, AuditLocked, AuditCorrupt, AuditKeyError, InvalidAuditConfig. It is closed by `close()`,
    `async with`, `with`, and at the latest when the interpreter ends. One log may serve many runs, event
    loops and threads at once.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        levels: Levels | Level | None = None,
        redact: Redaction | None = None,
        keys: Keyring | None = None,
        sync: Sync = "group",
        fail: Fail = "closed",
        wait: float = DEFAULT_WAIT,
        rotate: Rotation | None = None,
        checkpoints: Checkpoints | None = None,
        anchors: Sequence[Anchor] = (),
        signed: bool = True,
        journals: bool | None = None,
        clock: Callable[[], int] | None = None,
        files: Files | None = None,
    ) -> None:
        self.path = Path(path)
        if sync not in ("each", "group", "none") or fail not in ("closed", "open") or not wait > 0:
            raise InvalidAuditConfig("sync is each, group or none; fail is closed or open; wait is above 0 s")
        self._levels = levels if isinstance(levels, Levels) else Levels.of(levels or "metadata")
        self._wait = wait
        self._inline = sync == "none"
        self._clock = clock or _microseconds
        kind = suffix_kind(self.path)
        keyring = keys or Keyring.default()
        store: Store = (
            JsonLines(self.path, files or SystemFiles(), durable_writes=sync == "each")
            if kind == "jsonl"
            else SqliteStore(self.path, durable=sync != "none")
        )
        stood = standing(_open(store, self.path), self.path, store, keyring)
        self.log_id = stood.log or secrets.token_hex(16)
        digest_key = keyring.active("digest")
        signer = Signer(origin(self.log_id), keyring.active("signing").secret) if signed else None
        self._records = Records(
            self.log_id,
            levels=self._levels,
            redactor=Redactor(redact or Redaction(), digest_key),
            key=digest_key,
            clock=self._clock,
        )
        checkpoints = checkpoints or Checkpoints()
        self._checkpoint_records = checkpoints.records
        keeps = self._levels.events == "full" if journals is None else journals
        self._journal_key = keyring.active("journal").id if keeps else None
        self._keeper = Keeper(
            frontier=stood.frontier,
            file_first_seq=stood.file_first_seq,
            file_opened_us=stood.file_opened_us or self._clock(),
            since_checkpoint=stood.since_checkpoint,
            origin=origin(self.log_id),
            digest_key=digest_key.id,
            journal_key=self._journal_key,
            signer=signer,
            checkpoints=checkpoints,
            rotation=rotate or Rotation(),
            anchors=tuple(anchors),
            make=self._records.own,
            take_counted=self._records.take_uncounted,
            clock=self._clock,
        )
        self._fail = fail
        self._journals = Journals(self.path, self.log_id, keyring) if keeps else None
        self._told = Told() if keeps else None
        rotates = rotate is not None and (rotate.bytes is not None or rotate.seconds is not None)
        self.can_hold_runs = kind == "sqlite" and fail == "closed" and not rotates
        self._writer = Writer(
            store,
            Place(stood.seq, stood.prev),
            sync=sync,
            fail=fail,
            hooks=self._keeper,
            make=self._records.own,
            clock=self._clock,
        )
        self._finalizer = weakref.finalize(self, _close, self._writer, self._records, self._keeper, stood.seq)
        self.verifier_key = signer.verifier_key if signer else None
        try:
            self._say_opened(stood, sync, fail, digest_key.id)
        except BaseException:
            self._finalizer()
            raise

    # ptc_tools.record.Recorder

    def started(
        self,
        call: Call,
        contract: Contract,
        arguments: JsonValue,
        run: RunContext,
        *,
        also: tuple[Statement, ...] = (),
    ) -> Coroutine[Any, Any, Started]:
        """Durable when awaited. Raises AuditUnavailable: then the tool must not run.

        `also`: of a run store in this log's file (`ptc.store`), for the transaction of the record.
        """
        token, record = self._records.started(call, contract, arguments, run)
        line = None
        if self._told is not None and (told := self._told.of(run.run_id, call.caller)) is not None:
            token.told, token.call_id = told, call.call_id
            if record is None:
                told.unrecorded(call.call_id)
            else:
                line = told.draft(call.call_id, record)
        record = self._with(record, also)
        if record is None:
            return Done(token)
        if not self._inline:
            return self._start(token, record, line)
        try:
            token.seq = self._writer.write(record)
        except AuditError as error:
            return Done(error=error)
        if line is not None:
            line.sure = token.seq is not None
        return Done(token)

    async def _start(self, token: Started, record: Draft, line: Line | None) -> Started:
        token.seq = await self._writer.submit(record, asyncio.get_running_loop(), self._wait)
        if line is not None:
            line.sure = token.seq is not None
        return token

    def finished(
        self, token: object, outcome: Outcome, duration_us: int, *, also: tuple[Statement, ...] = ()
    ) -> Coroutine[Any, Any, None]:
        """Durable when awaited. Raises AuditUnavailable: then the result must not be released."""
        assert isinstance(token, Started)
        record = self._records.finished(token, outcome, duration_us)
        line = None if token.told is None or record is None else token.told.draft(token.call_id, record)
        record = self._with(record, also)
        return Done(None) if record is None else self._write(record, line)

    def denied(
        self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext
    ) -> Coroutine[Any, Any, None]:
        """Durable when awaited: also at level `none`."""
        record = self._records.denied(call, contract, outcome, run)
        told = None if self._told is None else self._told.of(run.run_id, call.caller)
        return self._write(record, None if told is None else told.draft(call.call_id, record))

    def _with(self, record: Draft | None, also: tuple[Statement, ...]) -> Draft | None:
        """The record with a store's statements; where the level is `none`, the count of such calls carries them."""
        if not also:
            return record
        if record is None:
            record = self._records.take_uncounted() or self._records.own("audit.counted", {"calls": {}})
        return record._replace(also=also)

    def _write(self, record: Draft, line: Line | None = None) -> Coroutine[Any, Any, None]:
        if not self._inline:
            return self._wait_for(record, line)
        try:
            seq = self._writer.write(record)
        except AuditError as error:
            return Done(error=error)
        if line is not None:
            line.sure = seq is not None
        return Done(None)

    async def _wait_for(self, record: Draft, line: Line | None) -> None:
        seq = await self._writer.submit(record, asyncio.get_running_loop(), self._wait)
        if line is not None:
            line.sure = seq is not None

    async def event(
        self, type: str, data: JsonObject, run: RunContext, *, also: tuple[Statement, ...] = ()
    ) -> None:
        """Durable when it returns. The `replay` of a program goes into its journal, never into a record."""
        if "replay" in data:
            data = await self._with_journal(type, data, run)
        record, line = self._records.event(type, data, run), None
        if self._told is not None and type == "run.recovered":
            self._told.recovered(run.run_id)
        if self._told is not None and type == "program.started":
            program = str(data.get("call_id"))
            line = self._told.begin(run.run_id, program).draft(program, record)
        await self._write(record._replace(also=also) if also else record, line)

    async def _with_journal(self, type: str, data: JsonObject, run: RunContext) -> JsonObject:
        data = dict(data)
        bundle, call_id = data.pop("replay"), data.get("call_id")
        told = None if self._told is None else self._told.take(run.run_id, str(call_id))
        if self._journals is None or type != "program.finished" or not isinstance(bundle, dict):
            return data
        self._writer.refuse_closed()  # first: else a journal would lie there that no record links to
        bundle = {**bundle, "told": told, "end": dict(data)}
        try:
            data["journal"] = await asyncio.to_thread(self._journals.keep, run.run_id, str(call_id), bundle)
        except (OSError, Unencodable) as error:
            if self._fail == "closed":
                raise AuditUnavailable(f"the program's journal cannot be kept ({error})", ran=True) from error
            data["journal"] = None
        return data

    # For hosts.

    @property
    def blocked(self) -> str | None:
        """Name of the error that keeps the log from writing, as ENOSPC; None while it works."""
        return self._writer.blocked

    def checkpoint(self) -> None:
        """Signs the tree head now; durable when it returns. Raises AuditUnavailable where it cannot write, and
        AuditClosed once the log was closed, or in a forked child: the log is the parent's."""
        self._writer.do_due(self._keeper.ask)

    def close(self) -> None:
        """Writes the last checkpoint and `audit.closed`, and releases the file. Idempotent."""
        self._finalizer()

    async def aclose(self) -> None:
        """`close` without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def _say_opened(self, stood: Standing, sync: Sync, fail: Fail, key_id: str) -> None:
        promised = stood.signing_key is not None or self.verifier_key is not None
        opened: JsonObject = {
            "created": stood.log is None,
            "writer": __version__,
            "sync": sync,
            "fail": fail,
            "policy": self._levels.hash,
            "levels": self._levels.to_json(),
            "digest_key": key_id,
            "signing_key": self.verifier_key,
            "journal_key": self._journal_key,
            "checkpoint_records": self._checkpoint_records,
            "clean": stood.clean,
            "unsigned": list(stood.unsigned) if stood.unsigned and promised else None,
        }
        for type, data in _openings(stood, opened):
            self._writer.submit_blocking(self._records.own(type, data), self._wait)


def _open(store: Store, path: Path) -> End | None:
    try:
        return store.open()
    except OSError as error:
        raise AuditUnavailable(
            f"the audit log {path.absolute()} cannot be opened for writing ({error.strerror or error}): give it"
            " a path in a folder that this process may write to, on a disk with space left"
        ) from error


def _openings(stood: Standing, opened: JsonObject) -> Iterable[tuple[str, JsonObject]]:
    if stood.recovered is not None:
        yield "audit.recovered", stood.recovered
    yield "audit.opened", opened
    if stood.log is None:
        return
    for purpose, before in (("digest", stood.digest_key), ("signing", stood.signing_key)):
        if before != (now := opened[f"{purpose}_key"]):
            yield "audit.key_changed", {"purpose": purpose, "from": before, "to": now}
    now = opened["journal_key"]  # a log may begin or cease to keep journals: that is no other key
    if None not in (stood.journal_key, now) and stood.journal_key != now:
        yield "audit.key_changed", {"purpose": "journal", "from": stood.journal_key, "to": now}


def _close(writer: Writer, records: Records, keeper: Keeper, since: int) -> None:
    def last_words() -> list[Draft]:
        counted = records.take_uncounted()
        before = [] if counted is None else [counted]
        written = writer.place.seq - since + len(before)
        # Its own signature: where the write ends just behind it, that it was closed can still be believed.
        note = keeper.note(place_all(before, writer.place.seq, writer.place.prev))
        return [*before, records.own("audit.closed", {"records": written, "note": note})]

    writer.close(last_words)


def _microseconds() -> int:
    return time.time_ns() // 1000
