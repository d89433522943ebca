"""One run's place in a store: each step is durable before it has an effect.

Steps that nothing outside can see yet are noted, and go in order with the next one that must be durable. It
stands where the audit record stands, so that no call escapes it; with a store in the log's own file a step
and its record are one transaction. It decides nothing about a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

from ptc.approval import ApprovalRequest, Decision
from ptc.cancelling import uncut
from ptc.exposure import LiveExposure
from ptc.journaling import KeptEntries
from ptc.lingering import Lingering
from ptc.offered import Offered
from ptc.outcome_json import outcome_to_json
from ptc.past import Past, call_to_json, decision_to_json
from ptc.settings import Settings
from ptc.stepping import DurableRecorder
from ptc.store.errors import LeaseLost, RequestUncertain
from ptc.store.protocol import Lease, RunStore, Step, StoredStatus, immediate
from ptc.toolbox import Entry
from ptc.unbroken import Unbroken
from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext, idempotency_key
from ptc_tools.contract import Contract
from ptc_tools.errors import PtcError
from ptc_tools.ledger import GIVEN_UP
from ptc_tools.outcome import Cancelled, Outcome, Success, Uncertain
from ptc_tools.settle import Done

if TYPE_CHECKING:
    from ptc.store.sqlite import SQLiteRunStore
    from ptc_sandbox.journal import Entry as JournalEntry
    from ptc_sandbox.journal import JournalHeader

Note: TypeAlias = "tuple[str, JsonObject]"
"""The kind and the data of a step that is to come."""
T = TypeVar("T")
_UNDER_WAY = ("queued", "in_progress")
in_tool: ContextVar[bool] = ContextVar("in_tool", default=False)
"""Whether this is called from within a tool of the application: what a call gives there is seen at once."""


class Durable:
    """`past` is empty for a new run. An async context manager: while it is open the lease is kept."""

    def __init__(
        self,
        store: RunStore,
        run_id: str,
        *,
        labels: Mapping[str, str],
        past: Past | None = None,
        lease: Lease | None = None,
        was: StoredStatus = "running",
        resend: bool = False,
    ) -> None:
        self.past = past or Past()
        self.run_id = run_id
        self.waiting = {call_id for call_id in self.past.asked if not self.past.is_done(call_id)}
        self.attempts: dict[str, int] = {key: call.attempts for key, call in self.past.calls.items()}
        self._store = store
        self._labels = labels
        self._lease = lease
        self._resend = resend
        self._next = self.past.last + 1
        self._notes: list[Note] = []
        self._joint: SQLiteRunStore | None = None
        self._immediate = immediate(store)
        self._channel = ""
        self._open: set[asyncio.Future[None]] = set()
        self._contracts: dict[int, tuple[Contract, str]] = {}
        self._known_contracts = set(self.past.contracts)
        self._replayed: set[int] = set()
        self._keeping: asyncio.Task[None] | None = None
        self._lingers = False
        self._last: tuple[Call, str] | None = None
        self._lingering = Lingering(lambda: bool(self._notes), lambda: self.written(None))
        self._ended = False
        self._unbroken = Unbroken()
        self.offered = Offered(self.past)
        self.was = was
        self.limit: str | None = None
        self.request: Callable[[], int] = lambda: 0

    # Life

    def settings(self, settings: Settings, *, watched: bool = False) -> Settings:
        """The same with a recorder that makes every record a step. `watched`: somebody is told of each call."""
        recorder = settings.recorder
        self._lingers = recorder is None and not watched
        if recorder is not None and getattr(self._store, "log", None) is recorder:
            self._joint = cast("SQLiteRunStore", self._store)
        return replace(settings, recorder=DurableRecorder(self, recorder))

    def watch(self, exposure: LiveExposure, request: Callable[[], int], known: Sequence[Entry]) -> None:
        """Told once by the driver: what the run offers, which request it is at, and the tools it may find."""
        self.offered.watch(exposure, known)
        self.request = request

    async def begin(self, start: JsonObject) -> None:
        """A new run gets its place. Raises RunExists."""
        await uncut(self._begin(start))  # cut, the run would be held by nobody

    async def _begin(self, start: JsonObject) -> None:
        if self._lease is None:
            first = self._numbered([("start", start)])
            self._lease = await self._store.create(self.run_id, first, self._labels)
        self._keeping = asyncio.create_task(self._keep_lease())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await uncut(self._leave(), after=error)

    async def _leave(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        await self._lingering.close()
        await self.let_go()

    async def let_go(self) -> None:
        """The run is free for others; where it ended it is already."""
        if self._lease is None or self._ended:
            return
        with suppress(Exception):  # what ended the run matters more; the lease runs out by itself
            if self.past and self._next == self.past.last + 1:  # nothing was done: it is as it was
                await self._store.append(self._lease, (), status=self.was)
            else:
                await self._store.release(self._lease)

    async def _keep_lease(self) -> None:
        assert self._lease is not None
        while True:
            await asyncio.sleep(self._store.lease_seconds / 3)
            try:
                await self._store.renew(self._lease)
            except LeaseLost as lost:
                self._unbroken.ends_with(lost)
                return
            except Exception:  # noqa: BLE001, S112 - tried again: the next step finds out what is wrong
                continue

    # Steps

    def note(self, kind: str, data: JsonObject) -> None:
        """A step that goes with the next one that is made durable."""
        self._notes.append((kind, data))

    def end(
        self, write: Callable[..., Coroutine[Any, Any, None]] | None, step: Note
    ) -> Coroutine[Any, Any, None]:
        """A call has ended. Its outcome is durable before it can have an effect.

        Where it goes to the model or a confined program alone, its first effect is the run's next step, which it
        is durable with, or after `LINGER` seconds, so that a crash seldom finds a finished call without it.
        """
        if not self._lingers or in_tool.get():
            return self.written(write, step)
        self._unbroken.check()
        first = not self._notes
        self._notes.append(step)
        self._lingering.begin(first=first)
        return Done(None)

    async def commit(
        self,
        write: Callable[..., Coroutine[Any, Any, T]] | None,
        *own: Note,
        status: StoredStatus | None = None,
    ) -> T | None:
        """Makes `own` and what was noted before durable, and the record that `write` writes.

        They are one transaction where one file has both. It is not cut in half where the caller is cancelled.
        Raises LeaseLost, StoreUnavailable, and what `write` raises; after that nothing more is written.
        """
        if write is None and status is None and len(own) == 1 and self.commit_here(own[0]):
            return None
        return await uncut(self.written(write, *own, status=status))

    async def written(
        self,
        write: Callable[..., Coroutine[Any, Any, T]] | None,
        *own: Note,
        status: StoredStatus | None = None,
    ) -> T | None:
        """As `commit`, for who sees to it himself that it is not cut."""
        joint = self._joint if write is not None else None
        await self._in_order("joint" if joint is not None else "own")
        self._unbroken.check()
        if self._lease is None:  # the run ended before it began
            return None if write is None else await write()
        steps = self._taken(own)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open.add(done)
        try:
            if joint is not None and write is not None and (steps or status is not None):
                result: T | None = await self._together(joint, steps, write, status)
            else:
                if steps or status is not None:
                    await self._append(steps, status)
                result = None if write is None else await write()
            self._ended = self._ended or status is not None
            return result
        except PtcError as error:
            self._unbroken.ends_with(error)
            raise
        finally:
            self._open.discard(done)
            done.set_result(None)

    async def _together(
        self,
        joint: SQLiteRunStore,
        steps: Sequence[Step],
        write: Callable[..., Coroutine[Any, Any, T]],
        status: StoredStatus | None,
    ) -> T:
        assert self._lease is not None
        with self._unbroken.writing():
            return await joint.append_with(
                self._lease, steps, lambda statements: write(also=tuple(statements)), status=status
            )

    async def _append(self, steps: Sequence[Step], status: StoredStatus | None) -> None:
        assert self._lease is not None
        with self._unbroken.writing():
            await self._store.append(self._lease, steps, status=status)

    async def _in_order(self, channel: str) -> None:
        """Two ways lead to the file; a step does not overtake one that went the other way."""
        while self._open and self._channel != channel:
            await asyncio.wait(tuple(self._open))
        self._channel = channel

    def commit_here(self, own: Note) -> bool:
        """`commit` of one step where the store takes it without a wait. False: nothing was done."""
        if self._immediate is None or self._lease is None or self._open or self._unbroken.error is not None:
            return False
        notes, first = self._notes, self._next
        steps = self._taken((own,))
        with self._unbroken.writing():
            done = self._immediate.append_here(self._lease, steps)
        if not done:
            self._notes, self._next = notes, first
        return done

    def _taken(self, own: Sequence[Note]) -> list[Step]:
        """What was noted, and `own`, as steps that are written now."""
        steps = self._numbered([*self._notes, *own])
        self._notes = []
        return steps

    def _numbered(self, notes: Sequence[Note]) -> list[Step]:
        steps = [Step(self._next + index, kind, data) for index, (kind, data) in enumerate(notes)]
        self._next += len(steps)
        return steps

    # What the driver asks and tells

    def next_response(self, *, conversation: bool) -> JsonObject | None:
        """The next recorded response to the request that the run is at. Raises RequestUncertain."""
        number = self.request()
        known = self.past.responses.get(number)
        if known:
            response = known.pop(0)
            self._replayed.add(id(response))
            return response
        if conversation and number in self.past.sent and known is None and not self._resend:
            raise RequestUncertain(
                f"request {number} of run {self.run_id!r} may have reached its conversation; look there, and"
                " recover with resend=True to send it again",
                run_id=self.run_id,
            )
        return None

    async def received(self, response: JsonObject, programs: str | None) -> bool:
        """Notes a response, unless it is one of the past: then False. One that goes on is durable at once."""
        if id(response) in self._replayed:
            return False
        note: Note = (
            "received",
            {"request": self.request(), "response": response, "programs": programs},
        )
        if response.get("status") in _UNDER_WAY:
            await self.commit(None, note)
        else:
            self._notes.append(note)
        return True

    def answered(self, calls: Sequence[tuple[str, JsonObject, Outcome]], *, refused: bool) -> None:
        """Outputs of calls, before they are sent. `refused`: whether the run's limit of calls was reached."""
        self.waiting -= {call_id for call_id, _, _ in calls}
        told: list[JsonValue] = [
            [call_id, item, outcome_to_json(outcome)] for call_id, item, outcome in calls
        ]
        self.note("answered", {"request": self.request(), "calls": told, "refused": refused})

    def asked(self, request: ApprovalRequest, contract: Contract) -> None:
        self.waiting.add(request.call_id)
        token = self._token(contract)
        self.note("asked", {"request": request.to_json(), "contract": token})

    def decided(self, call_id: str, decision: Decision, at_us: int) -> None:
        told = decision_to_json(decision)
        self.note("decided", {"call_id": call_id, "decision": told, "at_us": at_us})

    def status_after(self, error: BaseException, status: str) -> str:
        """How the run ends with this error: one that waited, and waits still, goes on waiting."""
        waits = self.was == "paused" and bool(self.waiting)
        return "paused" if waits and not isinstance(error, asyncio.CancelledError) else status

    def settle(self, key: str, outcome: Outcome) -> None:
        """What became of an uncertain call, found out without running it."""
        self.note(
            "outcome", {"key": key, "outcome": outcome_to_json(outcome), "settled": True, "found": True}
        )

    def keep_journal(
        self, program: str, recorded: int | None
    ) -> Callable[[JournalHeader], list[JournalEntry]]:
        """For the sandbox: given the journal's header, the list that its entries are appended to."""

        def keep(header: JournalHeader) -> list[JournalEntry]:
            if recorded is None:
                self.note("journal", {"program": program, "header": asdict(header)})
            return KeptEntries(self, program, header, recorded or 0)

        return keep

    # Calls

    def key(self, call: Call, run: RunContext) -> str:
        """The whole identity of a call, and what a service is given to know it by."""
        last = self._last  # it is asked for several times of each call
        if last is None or last[0] is not call:
            last = self._last = (call, idempotency_key(run, call))
        return last[1]

    def admission(
        self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext
    ) -> tuple[str, Note]:
        """The key of a call, and the step that says that it is about to run."""
        self.waiting.discard(call.call_id)
        key = self.key(call, run)
        attempt = self.attempts[key] = self.attempts.get(key, 0) + 1
        data: JsonObject = {
            "key": key,
            "attempt": attempt,
            **call_to_json(call),
            "arguments": arguments,
            "request": self.request(),
            "contract": self._token(contract),
        }
        return key, ("admitted", data)

    def ending(self, key: str, outcome: Outcome) -> Note:
        """The step that says how a call ended."""
        given_up = isinstance(outcome, Uncertain) and outcome.message == GIVEN_UP
        settled = not given_up and not isinstance(outcome, Cancelled)
        data: JsonObject = {"key": key, "outcome": outcome_to_json(outcome), "settled": settled}
        if isinstance(outcome, Success) and self.offered.changed():
            data["offered"] = self.offered.to_json()
        return "outcome", data

    def _token(self, contract: Contract) -> str:
        """The contract's fingerprint; the contract itself is kept once for each run."""
        known = self._contracts.get(id(contract))
        if known is None or known[0] is not contract:
            known = self._contracts[id(contract)] = (contract, contract.fingerprint())
        token = known[1]
        if token not in self._known_contracts:
            self._known_contracts.add(token)
            self.note("contract", {"token": token, "contract": contract.to_json()})
        return token
