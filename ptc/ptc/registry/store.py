"""A registry's file: SQLite (WAL) with what is registered now, which registrations were replaced, and the calls.

Each method is one transaction, so that a decision and what follows from it are one step, whoever else asks.
It holds arguments and results as they are: the file is for its owner alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar, cast

from ptc.registry.claims import OF_CLAIM, WAITING, Claimed, give_back, take
from ptc.registry.database import open_database
from ptc.registry.errors import RegistryError, RegistryForbidden
from ptc.registry.waiting import Waiting
from ptc_tools.admission import (
    CallState,
    KnownCall,
    check_replacement,
    decide,
    left_open,
    not_admitted,
    registration_token,
)
from ptc_tools.call import JsonObject
from ptc_tools.errors import AdmissionConflict, RegistryOverloaded, SourceMissing
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo
from ptc_tools.strict_json import dumps

DEFAULT_WAIT: Final = 60.0
LONGEST_WAIT: Final = 24 * 3600.0
FORGET_EACH: Final = 500
"""Calls after which those are forgotten that ended long ago."""
KEEP_CALLS: Final = 7 * 24 * 3600.0
_TOO_LATE: Final = dumps(
    CallResult(
        "denied", code="call_refused", message="no provider took the call in time; it did not run"
    ).to_json()
)
T = TypeVar("T")


class RegistryStore:
    """`store = RegistryStore("registry.db")`; close it with `aclose`.

    `max_waiting`: calls of one registration that may wait for a provider; further ones are told to come
    again. `keep_calls` (seconds): how long an ended call keeps its result. Raises RegistryStoreUnreadable.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_waiting: int = 1_000,
        keep_calls: float = KEEP_CALLS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self._max_waiting = max_waiting
        self._keep = keep_calls
        self._clock = clock
        self._db = open_database(self.path)
        self._thread = ThreadPoolExecutor(1, "ptc-registry")
        self._waiting = Waiting()
        self._written = 0

    # Registrations

    async def publish(
        self,
        name: str,
        version: str,
        description: str | None,
        tools: Sequence[JsonObject],
        *,
        owner: str,
        revision: str | None = None,
        expected_token: str | None = None,
        request: str | None = None,
    ) -> str:
        """Registers a toolset in place of the one of that name; gives the token.

        The declarations were checked. `request`: asked again under the same, the answer is the same. Raises
        AdmissionConflict, and RegistryForbidden for a toolset of another owner: who registered a name first keeps it.
        """
        unique = None if request is None else f"request {owner} {request}"
        under = unique if revision is None else f"revision {revision}"
        token = await asyncio.to_thread(registration_token, name, tools, under, version)
        text = await asyncio.to_thread(dumps, list(tools))

        def work(db: sqlite3.Connection) -> str:
            row = db.execute("SELECT token, owner FROM toolsets WHERE name = ?", (name,)).fetchone()
            current = None if row is None else str(row[0])
            last = row[1] if row is not None else _last_owner(db, name)
            if last is not None and last != owner:
                raise RegistryForbidden(f"toolset {name!r} belongs to another publisher", status=403)
            retired = db.execute("SELECT 1 FROM replaced WHERE token = ?", (token,)).fetchone() is not None
            check_replacement(name, current, expected_token, token, retired)
            if current is not None and current != token:
                self._retire(db, current, name, owner)
            values = (name, token, version, description, owner, text, self._clock())
            db.execute("INSERT OR REPLACE INTO toolsets VALUES (?,?,?,?,?,?,?)", values)
            return token

        return await self._do(work)

    async def remove(self, name: str, token: str, *, owner: str) -> None:
        """Takes a toolset away. Calls that were published keep their results. Raises AdmissionConflict."""

        def work(db: sqlite3.Connection) -> None:
            row = db.execute("SELECT token, owner FROM toolsets WHERE name = ?", (name,)).fetchone()
            if row is None:
                if db.execute("SELECT 1 FROM replaced WHERE token = ?", (token,)).fetchone():
                    return
                raise SourceMissing(f"there is no toolset {name!r}")
            if row[1] != owner:
                raise RegistryForbidden(f"toolset {name!r} belongs to another publisher", status=403)
            if row[0] != token:
                raise AdmissionConflict(f"toolset {name!r} was replaced meanwhile; it is not removed")
            self._retire(db, token, name, owner)
            db.execute("DELETE FROM toolsets WHERE name = ?", (name,))

        await self._do(work)
        self._waiting.wake(f"token {token}")

    async def toolsets(self) -> list[ToolsetInfo]:
        """All that are registered now, by name."""

        def work(db: sqlite3.Connection) -> list[ToolsetInfo]:
            rows = db.execute("SELECT name, version, token FROM toolsets ORDER BY name")
            return [ToolsetInfo(*row) for row in rows]

        return await self._read(work)

    async def resolve(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        """A toolset as it is registered now; without its tools if the token is `known`."""

        def work(db: sqlite3.Connection) -> tuple[object, ...] | None:
            row: tuple[object, ...] | None = db.execute(
                "SELECT token, version, description, CASE WHEN token = ? THEN NULL ELSE tools END"
                " FROM toolsets WHERE name = ?",
                (known or "", name),
            ).fetchone()
            return row

        row = await self._read(work)
        if row is None:
            return None
        token, version, description, text = cast("tuple[str, str, str | None, str | None]", row)
        tools = None if text is None else cast("list[JsonObject]", await asyncio.to_thread(json.loads, text))
        return ResolvedToolset(name, token, tools, version, description)

    # Calls, from the consumer's side

    async def submit(self, consumer: str, call: ResolvedCall) -> CallResult | None:
        """Publishes a call, or attaches to what is known of it; its result, or None while it has none.

        Raises CallNotAdmitted, AdmissionConflict, CallIdentityConflict, RegistryOverloaded.
        """

        def work(db: sqlite3.Connection) -> tuple[CallResult | None, Exception | None, bool]:
            known, ended = self._known(db, consumer, call.key)
            current = db.execute("SELECT token FROM toolsets WHERE name = ?", (call.toolset,)).fetchone()
            action = decide(known, call, None if current is None else current[0])
            if action == "attach":
                return ended, None, False
            error: Exception | None = None
            state: CallState = "published"
            if action == "reject":
                state, error = "rejected", not_admitted(call)
            elif self._is_full(db, call.token):
                state = "overloaded"
                error = RegistryOverloaded(
                    f"{call.toolset} has no room for the call now; the same call may be made again",
                    call_id=call.call_id,
                )
            self._write(db, consumer, call, state)
            return None, error, state == "published"

        result, error, published = await self._do(work)
        if error is not None:
            raise error
        if published:
            self._waiting.wake(f"token {call.token}")
        return result

    async def wait(self, consumer: str, key: str, seconds: float) -> CallResult | None:
        """The result of a published call, as soon as it is there; None after so many seconds.

        A call that no provider took in its time is over: it did not run, and will not.
        """

        def work(db: sqlite3.Connection) -> str | None:
            row = db.execute(
                "SELECT n, result, claim, until FROM calls WHERE consumer = ? AND key = ?", (consumer, key)
            ).fetchone()
            if row is None or row[1] is not None or row[2] is not None or row[3] > self._clock():
                return None if row is None else row[1]
            db.execute(
                f"UPDATE calls SET state = 'finished', result = ? WHERE n = ? AND {WAITING}",  # noqa: S608
                (_TOO_LATE, row[0]),
            )
            (text,) = db.execute("SELECT result FROM calls WHERE n = ?", (row[0],)).fetchone()
            return cast("str | None", text)

        text = await self._waiting.until(f"call {consumer} {key}", lambda: self._read(work), seconds)
        return None if text is None else CallResult.from_json(json.loads(text))

    # Calls, from the provider's side

    async def claim(self, name: str, token: str, claim: str, seconds: float, *, owner: str) -> Claimed | None:
        """The oldest call that waits for this registration, as this provider's own; None after so many seconds.

        `claim` is a fresh secret of the provider's: asked again with the same, the answer is the same.
        Calls of a registration that was replaced meanwhile are claimed as well: they were published for it.
        Who leaves before it has the answer has taken nothing: cancelled, it gives the call back. Raises
        RegistryForbidden, and AdmissionConflict once it was replaced and none of its calls waits.
        """
        last: Claimed | None = None

        def work(db: sqlite3.Connection) -> Claimed | None:
            nonlocal last
            current, known = _registered(db, token, name, owner)
            if not known:
                raise RegistryForbidden(
                    f"toolset {name!r} is not registered so by this publisher", status=403
                )
            last = take(db, token, claim, self._clock())
            if last is None and not current:
                raise AdmissionConflict(f"toolset {name!r} was replaced; this registration has no more calls")
            return last

        try:
            return await self._waiting.until(f"token {token}", lambda: self._do(work), seconds)
        except asyncio.CancelledError:
            # The thread does what it was told, and this stands behind it: by then it is known what was taken.
            await asyncio.shield(self.give_back(token, lambda: last))
            raise

    async def give_back(self, token: str, claimed: Callable[[], Claimed | None]) -> None:
        """A call whose provider went before it had the answer waits for another. Nothing for one it had before."""

        def work(db: sqlite3.Connection) -> bool:
            taken = claimed()
            return taken is not None and taken.held is not None and give_back(db, token, taken.held)

        with suppress(
            RegistryError, RuntimeError
        ):  # a store that is closed meanwhile hands nothing out any more
            if await self._do(work):
                self._waiting.wake(f"token {token}")

    async def finish(
        self, key: str, claim: str, result: CallResult, *, owner: str, covers: Callable[[str], bool]
    ) -> None:
        """Says how a claimed call ended, once. `covers`: the toolsets whose calls this provider may answer.

        Raises AdmissionConflict for a claim that is none, RegistryForbidden for one of another's toolset.
        """
        text = dumps(result.to_json())

        def work(db: sqlite3.Connection) -> str:
            row = db.execute(
                f"SELECT n, state, consumer, token, call FROM calls WHERE key = ? AND {OF_CLAIM}",  # noqa: S608
                (key, claim),
            ).fetchone()
            if row is None:
                raise AdmissionConflict(
                    "there is no such claim: the call is another provider's, or forgotten"
                )
            number, state, consumer, token, call = row
            name = str(json.loads(call)["toolset"])
            if not covers(name) or not any(_registered(db, token, name, owner)):
                raise RegistryForbidden("the call is not one of this publisher's toolsets", status=403)
            if state == "published":
                db.execute("UPDATE calls SET state = 'finished', result = ? WHERE n = ?", (text, number))
            return str(consumer)

        consumer = await self._do(work)
        self._waiting.wake(f"call {consumer} {key}")

    def hang_up(self) -> None:
        """Nobody waits any longer: the process is about to end, and whoever waits asks again elsewhere."""
        self._waiting.hang_up()

    async def aclose(self) -> None:
        """Lets go of the file. Idempotent."""
        self._thread.shutdown(wait=True)
        self._db.close()

    # Inside

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """One transaction, in the thread that has the connection."""

        def transaction() -> T:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                value = work(self._db)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            return value

        return await self._in_thread(transaction)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """One statement that reads, in that thread."""
        return await self._in_thread(lambda: work(self._db))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise RegistryError(f"the registry's database failed: {error}", status=503) from error

    def _retire(self, db: sqlite3.Connection, token: str, name: str, owner: str) -> None:
        db.execute("INSERT OR IGNORE INTO replaced VALUES (?,?,?,?)", (token, name, owner, self._clock()))

    def _known(
        self, db: sqlite3.Connection, consumer: str, key: str
    ) -> tuple[KnownCall | None, CallResult | None]:
        """What there is of a call, and its result."""
        row = db.execute(
            "SELECT state, digest, token, call, result, until FROM calls WHERE consumer = ? AND key = ?",
            (consumer, key),
        ).fetchone()
        if row is None:
            return None, None
        state, digest, token, call, text, until = row
        result = None if text is None else CallResult.from_json(json.loads(text))
        gone = state == "published" and until <= self._clock()
        is_open = gone or (state == "finished" and left_open(result))
        return KnownCall(state, digest, token, json.loads(call)["attempt"], is_open), result

    def _is_full(self, db: sqlite3.Connection, token: str) -> bool:
        (waiting,) = db.execute(
            f"SELECT count(*) FROM calls WHERE token = ? AND {WAITING} AND until > ?",  # noqa: S608 - no text
            (token, self._clock()),
        ).fetchone()
        return bool(waiting >= self._max_waiting)

    def _write(self, db: sqlite3.Connection, consumer: str, call: ResolvedCall, state: str) -> None:
        now = self._clock()
        wait = min(DEFAULT_WAIT if call.timeout is None else call.timeout, LONGEST_WAIT)
        until = (
            now + wait - min(1.0, wait / 10)
        )  # a little before the consumer's own deadline, so that it hears why
        values = (consumer, call.key, call.digest, state, call.token, dumps(call.to_json()), now, until)
        self._written += 1
        if self._written % FORGET_EACH == 1:
            db.execute("DELETE FROM calls WHERE at < ? AND until < ?", (now - self._keep, now))
        db.execute(
            "INSERT INTO calls (consumer, key, digest, state, token, call, at, until) VALUES (?,?,?,?,?,?,?,?)"
            " ON CONFLICT (consumer, key) DO UPDATE SET state = excluded.state, token = excluded.token,"
            " call = excluded.call, claim = NULL, result = NULL, at = excluded.at, until = excluded.until",
            values,
        )


def _registered(db: sqlite3.Connection, token: str, name: str, owner: str) -> tuple[bool, bool]:
    """Whether this is the current registration of the owner's toolset of that name, and whether it is or was one."""
    asked = (token, name, owner)
    current, replaced = (
        db.execute(f"SELECT 1 FROM {table} WHERE token = ? AND name = ? AND owner = ?", asked).fetchone()  # noqa: S608
        for table in ("toolsets", "replaced")
    )
    return current is not None, current is not None or replaced is not None


def _last_owner(db: sqlite3.Connection, name: str) -> str | None:
    """Whose a name was that is not registered now: it stays theirs."""
    row = db.execute("SELECT owner FROM replaced WHERE name = ? ORDER BY at DESC LIMIT 1", (name,)).fetchone()
    return None if row is None else str(row[0])
