"""A registry in this process: toolsets come, go and are replaced while runs go on.

It keeps the rules of every registry (`ptc_tools.admission`) in memory, for programs that change their own
tools, and for tests. It serves any number of event loops; what it knows ends with the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ptc_tools.admission import (
    CallState,
    KnownCall,
    check_replacement,
    decide,
    left_open,
    not_admitted,
    registration_token,
)
from ptc_tools.errors import AdmissionConflict, RegistryOverloaded, SourceMissing
from ptc_tools.export import Export, Provided
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo


@dataclass(slots=True)
class _Registered:
    token: str
    provided: Provided


@dataclass(slots=True)
class _Record:
    state: CallState
    call: ResolvedCall
    result: Future[CallResult] = field(default_factory=Future)

    def known(self) -> KnownCall:
        ended = self.state == "finished" and self.result.done()
        is_open = ended and (self.result.cancelled() or left_open(self.result.result()))
        return KnownCall(self.state, self.call.digest, self.call.token, self.call.attempt, is_open)


class LocalRegistry:
    """`registry = LocalRegistry(); registry.publish(records.export(version="1.0.0"))`.

    `policy`, `recorder`, `approver` are the provider's, for the calls that it runs. With `max_concurrent` calls
    under way further ones are told to come again. The last `keep_calls` calls are remembered; of those no retry
    runs twice.
    """

    def __init__(
        self,
        *,
        policy: Policy = GRANT_REGISTERED,
        recorder: Recorder | None = None,
        approver: Approver | None = None,
        max_concurrent: int | None = None,
        keep_calls: int = 10_000,
    ) -> None:
        if max_concurrent is not None and max_concurrent < 1:
            raise ValueError("max_concurrent is a positive number of calls, or None")
        if keep_calls < 1:
            raise ValueError("keep_calls is a positive number of calls")
        self._policy, self._recorder, self._approver = policy, recorder, approver
        self._room = max_concurrent
        self._keep = keep_calls
        self._lock = threading.Lock()
        self._toolsets: dict[str, _Registered] = {}
        self._retired: set[str] = set()
        self._calls: OrderedDict[str, _Record] = OrderedDict()
        self._running = 0

    # The provider's side

    def publish(
        self, export: Export, *, revision: str | None = None, expected_token: str | None = None
    ) -> str:
        """Registers a toolset, in place of the one of that name; gives the registration's token.

        `revision`: publishing the same tools again under it keeps the token. `expected_token`: the
        registration that is to be replaced. Raises AdmissionConflict.
        """
        provided = Provided(export, policy=self._policy, recorder=self._recorder, approver=self._approver)
        token = registration_token(export.name, export.declarations, revision, export.version)
        with self._lock:
            known = self._toolsets.get(export.name)
            current = None if known is None else known.token
            check_replacement(export.name, current, expected_token, token, token in self._retired)
            if current is not None and current != token:
                self._retired.add(current)
            self._toolsets[export.name] = _Registered(token, provided)
        return token

    def remove(self, name: str, token: str) -> None:
        """Takes a toolset away. Calls that were published keep their results. Raises AdmissionConflict."""
        with self._lock:
            known = self._toolsets.get(name)
            if known is None:
                if token in self._retired:
                    return
                raise SourceMissing(f"there is no toolset {name!r}")
            if known.token != token:
                raise AdmissionConflict(f"toolset {name!r} was replaced meanwhile; it is not removed")
            self._retired.add(token)
            del self._toolsets[name]

    # The consumer's side: ptc_tools.registry_protocol.RegistryClient

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        with self._lock:
            return [
                ToolsetInfo(name, known.provided.export.version, known.token)
                for name, known in self._toolsets.items()
            ]

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        with self._lock:
            found = self._toolsets.get(name)
        if found is None:
            return None
        export = found.provided.export
        tools = None if found.token == known else export.declarations
        return ResolvedToolset(name, found.token, tools, export.version, export.description)

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        record, provided = self._admit(call)
        if provided is not None:
            return await self._publish(record, provided)
        try:
            # Shielded: who waits for a call beside the one that runs it does not end it by leaving.
            return await asyncio.shield(asyncio.wrap_future(record.result))
        except asyncio.CancelledError:
            if record.result.cancelled() and not _leaving():
                # Who ran it was cancelled: what it did is not known, and it does not run again.
                return CallResult(
                    "uncertain", code="uncertain", message="the call was cancelled while it ran"
                )
            raise

    def _admit(self, call: ResolvedCall) -> tuple[_Record, Provided | None]:
        """Decides and records in one step; gives what has to run, or None where something is known."""
        with self._lock:
            known = self._toolsets.get(call.toolset)
            record = self._calls.get(call.key)
            action = decide(
                None if record is None else record.known(), call, None if known is None else known.token
            )
            if record is None or (action == "publish" and record.state != "overloaded"):
                record = self._calls[call.key] = _Record("rejected", call)
                self._forget()
            if action == "reject":
                raise not_admitted(call)
            if action == "attach":
                return record, None
            assert known is not None, "only the current registration is published to"
            if self._room is not None and self._running >= self._room:
                record.state = "overloaded"
                raise RegistryOverloaded(
                    f"{call.toolset} has no room for the call now; the same call may be made again",
                    call_id=call.call_id,
                )
            record.state, record.call = "published", call
            self._running += 1
            return record, known.provided

    async def _publish(self, record: _Record, provided: Provided) -> CallResult:
        try:
            result = await provided.run(record.call)
        except BaseException:
            record.result.cancel()
            raise
        finally:
            with self._lock:
                self._running -= 1
                record.state = "finished"
        record.result.set_result(result)
        return result

    def _forget(self) -> None:
        """Lets the oldest go that have ended."""
        while len(self._calls) > self._keep:
            for key, record in self._calls.items():
                if record.state != "published":
                    del self._calls[key]
                    break
            else:
                return


def _leaving() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
