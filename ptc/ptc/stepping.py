"""The recorder of a durable run: what is recorded of it is a step of it, in the order in which it happened.

It stands where the audit record stands, so that no call escapes the store. It writes nothing itself and
decides nothing about a call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ptc.outcome_json import outcome_to_json
from ptc.past import call_to_json
from ptc.store.protocol import StoredStatus
from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied, Outcome
from ptc_tools.record import Recorder
from ptc_tools.settle import Done

if TYPE_CHECKING:
    from ptc.durable import Durable, Note


@dataclass(slots=True)
class _Token:
    key: str
    token: object


class DurableRecorder:
    """The recorder of a durable run: a step and, where there is one, the application's own record."""

    def __init__(self, durable: Durable, inner: Recorder | None) -> None:
        self._durable = durable
        self._inner = inner

    def started(
        self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext
    ) -> Coroutine[Any, Any, object]:
        inner = self._inner
        key, step = self._durable.admission(call, contract, arguments, run)
        if inner is None:
            done = self._durable.commit_here(step)
            return Done(_Token(key, None)) if done else self._admit(key, None, step)
        call = replace(call, attempt=self._durable.attempts[key])  # over all processes of the run
        return self._admit(key, _writing(inner.started, call, contract, arguments, run), step)

    async def _admit(
        self, key: str, write: Callable[..., Coroutine[Any, Any, Any]] | None, step: Note
    ) -> object:
        return _Token(key, await self._durable.written(write, step))

    def finished(self, token: object, outcome: Outcome, duration_us: int) -> Coroutine[Any, Any, None]:
        assert isinstance(token, _Token)
        inner = self._inner
        step = self._durable.ending(token.key, outcome)
        write = None if inner is None else _writing(inner.finished, token.token, outcome, duration_us)
        return self._durable.end(write, step)

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        caller = call.caller
        if isinstance(caller, Program) and call.call_id.startswith(f"{caller.caller_id}:"):
            # What a program here is told stands in its journal; that the run reports it, in this step.
            data: JsonObject = {"request": self._durable.request(), "outcome": outcome_to_json(outcome)}
            self._durable.note("denied", {**call_to_json(call), **data})
        if self._inner is not None:
            await self._inner.denied(call, contract, outcome, run)

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        status: StoredStatus | None = None
        own: list[Note] = []
        durable, past = self._durable, self._durable.past
        match type:
            case "run.started" if past:
                type, data = "run.recovered", {"steps": past.last, "status": durable.was}
            case "request.sent":
                sent: JsonObject = {"request": data["request"], "attempt": data["attempt"]}
                if durable.limit is not None:
                    sent["limit"] = durable.limit
                own.append(("sent", {**sent, "offered": durable.offered.to_json()}))
            case "program.started" | "program.finished":
                told = self._program(type, data)
                if told is None:
                    return
                own.append(told)
            case "run.finished":
                status = cast("StoredStatus", data["status"])
                if past.ended == status and "error" not in data:
                    await durable.commit(None, status=status)
                    return
                own.append(("ended", {"status": status}))
        write = None if self._inner is None else _writing(self._inner.event, type, data, run)
        await durable.commit(write, *own, status=status)

    def _program(self, type: str, data: JsonObject) -> Note | None:
        """None where the past has told this already: a recovered run reads its responses once more."""
        key = str(data["call_id"])
        if data.get("where") == "hosted" or "result" in data:
            return None if (type, key) in self._durable.past.told else ("told", {"type": type, "key": key})
        kept = ("call_id", "code", "language", "status", "value", "output")
        told: JsonObject = {name: data[name] for name in kept if name in data}
        return "program", {"request": self._durable.request(), "type": type, "data": told}


def _writing(record: Callable[..., Any], *arguments: Any) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def write(**also: Any) -> Any:
        return await record(*arguments, **also)

    return write
