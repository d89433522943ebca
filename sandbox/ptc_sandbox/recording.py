"""What the sandbox tells the audit log about a program: its start, its end, and what a wall refused.

Field names are those of the log's table of events (docs/audit.md). Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final

from ptc_sandbox.journal import JournalHeader
from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramResult
from ptc_sandbox.stubs import ToolStub
from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.context import RefusedChange, RunContext
from ptc_tools.outcome import Denied
from ptc_tools.record import Recorder

_HOSTS_OWN: Final = ("suspended", "cancelled")
"""The host's own decision about a program, which tried nothing that a wall refused."""


@dataclass(slots=True)
class Recording:
    """The records of one program. Without a recorder it does nothing."""

    recorder: Recorder | None
    run: RunContext
    caller_id: str
    code: str = ""
    stubs: tuple[ToolStub, ...] = ()
    limits: JsonObject = field(default_factory=dict)
    resumed: bool = False
    """Whether the program goes on from the journal of an earlier time."""

    async def started(
        self,
        code: str,
        header: JournalHeader,
        limits: Limits,
        confinement: str,
        stubs: tuple[ToolStub, ...] = (),
    ) -> None:
        """Durable before the program gets a process. Raises what the recorder raises: then nothing runs."""
        if self.recorder is None:
            return
        self.code, self.stubs, self.limits = code, stubs, limits.to_json()
        await self._event(
            "program.started",
            {
                "code": code,
                "language": "python",
                "where": "local",
                "policy_hash": header.policy,
                "limits": self.limits,
                "confinement": confinement,
                "seed": header.seed,
            },
        )

    async def finished(self, result: ProgramResult) -> None:
        """Before the result is released."""
        if self.recorder is None:
            return
        error = result.error
        if error is not None and error.wall is not None and result.status not in _HOSTS_OWN:
            await self._violation(result)
        await self._event(
            "program.finished",
            {
                "status": result.status,
                "wall": error.wall if error else None,
                "calls": len(result.calls),
                "duration_us": result.duration_us,
                "cpu_us": result.cpu_us,
                "peak_memory": result.peak_memory,
                "output": result.output,
                "value": result.value,
                "error_type": error.type if error else None,
                "message": error.message if error else None,
                "line": error.line if error else None,
                "replay": self._replay(result),
            },
        )

    def _replay(self, result: ProgramResult) -> JsonObject | None:
        """What an auditor needs to run the program again. A log encrypts it or leaves it out."""
        if self.recorder is None:
            return None
        stubs: list[JsonValue] = [
            [stub.program_name, stub.name, stub.namespace, list(stub.parameters), stub.doc]
            for stub in self.stubs
        ]
        return {
            "code": self.code,
            "stubs": stubs,
            "limits": self.limits,
            "journal": result.journal.to_json(),
            "resumed": self.resumed,
        }

    async def refused(self, name: str, line: int | None, where: str = "", more: int = 0) -> None:
        """Somebody within the program's reach tried to change the tools; `where`, if not in the program itself.

        `more`: this many attempts, too many to be recorded one by one.
        """
        detail = f"{more} more changes of the tools were refused" if more else f"{name}() was refused{where}"
        await self._event(
            "sandbox.violation", {"wall": "host", "rule": "tools_are_fixed", "line": line, "detail": detail}
        )

    async def refused_outside(self, change: RefusedChange) -> None:
        """The same in a call of the program, or on its CodeAct."""
        where = f" in the call {change.call_id}" if change.call_id else " on its CodeAct"
        await self.refused(change.helper, None, where)
        if change.more:
            await self.refused(change.helper, None, more=change.more)

    async def listen(self) -> None:
        """From now on, after the program's end, record what its tools still try, when they try it.

        For programs outside a run with a model, whose own record does that at its end.
        """
        self.code, self.stubs = "", ()  # what follows is small, and is kept as long as the run's context is
        if self.recorder is None or self.run.exposure is not None:
            return
        loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        async def record(change: RefusedChange) -> None:
            with contextlib.suppress(Exception):  # a log that was closed meanwhile holds no more
                await self.refused_outside(change)

        def begin(change: RefusedChange) -> None:
            task = loop.create_task(record(change))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        def tell(change: RefusedChange) -> bool:
            try:
                loop.call_soon_threadsafe(begin, change)
            except RuntimeError:  # the loop is closed
                return False
            return True

        self.run.programs.tell_late(self.caller_id, tell)
        for change in self.run.programs.take_refusals(self.caller_id):
            await self.refused_outside(change)

    async def forged(self, number: int, name: str, arguments: JsonObject, line: int | None) -> None:
        """The child named a tool that was not granted: it is refused here, before any path."""
        if self.recorder is None:
            return
        call = Call(f"{self.caller_id}:{number}", name, arguments, Program(self.caller_id), None, line)
        refusal = Denied("unknown_tool", f"the program was not granted a tool {name!r}")
        await self.recorder.denied(call, None, refusal, self.run)

    async def _violation(self, result: ProgramResult) -> None:
        error = result.error
        assert error is not None
        if result.status.startswith("killed:"):
            await self._event("sandbox.killed", {"status": result.status, "limit": result.evidence})
        else:
            detail: JsonObject = {"wall": error.wall, "rule": error.code or "uncoded", "line": error.line}
            await self._event("sandbox.violation", {**detail, "detail": error.message})

    async def _event(self, kind: str, data: JsonObject) -> None:
        if self.recorder is not None:
            await self.recorder.event(kind, {"call_id": self.caller_id, **data}, self.run)
