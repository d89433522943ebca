"""Serves the calls of an exported toolset that a registry over HTTP has taken: the provider's side.

It asks for calls, so it needs no address of its own. Each goes the one path, under the provider's policy and
record. It claims what it has room for and nothing else, so the rest waits for a sibling, or is told to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from ptc.registry.client import HttpRegistry
from ptc.registry.errors import RegistryError, RegistryUnreachable
from ptc_tools.call import JsonObject
from ptc_tools.errors import AdmissionConflict, PtcError
from ptc_tools.export import Export, Provided
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.registry_protocol import CallResult, ResolvedCall

CLAIM_WAIT: Final = 20.0
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0
_NO_RESULT: Final = frozenset({413, 422})
"""What a registry answers to a result that it does not take: too large, or not of its form."""


class Provider:
    """`async with Provider(registry, records.export(version="1.0.0")) as provider: await provider.serving()`.

    Entering publishes the toolset, leaving lets calls that run come to their end, for at most `settle` seconds;
    the registration stays unless `remove_on_exit`. At most `max_concurrent` calls run at once. `revision`: see
    `HttpRegistry.publish`. `policy`, `recorder`, `approver` are the provider's own; the principal of a call is
    the name of its consumer's key.
    """

    def __init__(
        self,
        registry: HttpRegistry,
        export: Export,
        *,
        revision: str | None = None,
        policy: Policy = GRANT_REGISTERED,
        recorder: Recorder | None = None,
        approver: Approver | None = None,
        max_concurrent: int = 16,
        settle: float = 30.0,
        remove_on_exit: bool = False,
        on_trouble: Callable[[PtcError], None] | None = None,
    ) -> None:
        if max_concurrent < 1:
            raise ValueError("max_concurrent is a positive number of calls")
        self._registry = registry
        self._export = export
        self._revision = revision
        self._provided = Provided(export, policy=policy, recorder=recorder, approver=approver)
        self._room = asyncio.Semaphore(max_concurrent)
        self._settle = settle
        self._remove = remove_on_exit
        self._on_trouble = on_trouble
        self._calls: set[asyncio.Task[None]] = set()
        self._claiming: asyncio.Task[None] | None = None
        self._token = ""
        self._claim = secrets.token_hex(16)
        self.served = 0
        """Calls that were run and answered."""

    @property
    def token(self) -> str:
        """The token of the registration, once it is published."""
        return self._token

    async def __aenter__(self) -> Self:
        self._token = await self._registry.publish(self._export, revision=self._revision)
        self._claiming = asyncio.create_task(self._claim_all(), name=f"serve {self._export.name}")
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._claiming is not None:
            self._claiming.cancel()
            await asyncio.gather(self._claiming, return_exceptions=True)
            with contextlib.suppress(AdmissionConflict, RegistryError):
                await self._take(0.0)  # a call that was handed out to the claim just now is run, not lost
        if self._calls:
            await asyncio.wait(self._calls, timeout=self._settle)
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        if self._remove:
            with contextlib.suppress(AdmissionConflict, RegistryError):
                await self._registry.remove(self._export.name, self._token)

    async def serving(self) -> None:
        """Returns when the registration was replaced and all of its calls were taken. Raises RegistryForbidden."""
        if self._claiming is None:
            raise RuntimeError("enter the provider first: async with Provider(…) as provider")
        await asyncio.shield(self._claiming)

    async def _claim_all(self) -> None:
        pause = FIRST_PAUSE
        while True:
            async with self._room:
                pass  # only what can run at once is claimed
            try:
                await self._take(CLAIM_WAIT)
                pause = FIRST_PAUSE
            except AdmissionConflict:
                return
            except RegistryUnreachable as error:
                self._tell(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            except RegistryError as error:
                self._tell(error)
                raise

    async def _take(self, wait: float) -> None:
        """Claims a call and starts it. The same claim is asked for until there is an answer, so that a call whose
        answer was lost on the way is not lost itself."""
        answer = await self._registry.claim(self._export.name, self._token, self._claim, wait)
        claim, self._claim = self._claim, secrets.token_hex(16)
        if answer is None:
            return
        taken = _read(answer)
        await self._room.acquire()
        task = asyncio.create_task(self._serve(taken, claim))
        self._calls.add(task)
        task.add_done_callback(self._ended)

    async def _serve(self, taken: _Taken, claim: str) -> None:
        if taken.until <= time.monotonic():  # it waited here for room
            result = CallResult(
                "denied", code="call_refused", message="the call came too late and did not run"
            )
        else:
            result = await self._provided.run(taken.call, principal=taken.consumer)
        try:
            try:
                await self._say(taken, claim, result)
            except RegistryError as error:
                if error.status not in _NO_RESULT:
                    raise
                self._tell(
                    error
                )  # the consumer hears of it as well, and does not wait until its time is over
                await self._say(taken, claim, _not_taken(error))
            self.served += 1
        except PtcError as error:
            self._tell(error)

    async def _say(self, taken: _Taken, claim: str, result: CallResult) -> None:
        """Hands the result over, however long the registry is away while somebody may still want it."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._registry.finish(taken.key, claim, result)
                return
            except RegistryUnreachable as error:
                if time.monotonic() > taken.until + LONGEST_PAUSE:
                    raise
                self._tell(error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        self._room.release()

    def _tell(self, error: PtcError) -> None:
        if self._on_trouble is not None:
            self._on_trouble(error)


@dataclass(frozen=True, slots=True)
class _Taken:
    """A call that was handed out: `consumer` is who the registry says made it, `until` when its time is over by
    the clock of this process: the registry's own may go otherwise."""

    key: str
    consumer: str
    call: ResolvedCall
    until: float


def _not_taken(error: RegistryError) -> CallResult:
    return CallResult(
        "failure",
        code="invalid_result",
        message=f"the tool ran, and its result cannot be handed over: {error.message}",
    )


def _read(answer: JsonObject) -> _Taken:
    key, consumer, seconds = answer.get("key"), answer.get("consumer"), answer.get("seconds")
    try:
        call = ResolvedCall.from_json(answer.get("call"))
    except ValueError as error:
        raise RegistryError(f"the registry handed out what is no call: {error}") from None
    if not isinstance(key, str) or not isinstance(consumer, str) or not isinstance(seconds, (int, float)):
        raise RegistryError("the registry handed out a call without its key, its consumer or its time")
    return _Taken(key, consumer, call, time.monotonic() + seconds)
