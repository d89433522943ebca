"""What a run tells its recorder: its start and end, requests, responses and hosted programs.

Field names are those of the log's table of events (docs/audit.md). It decides nothing, and what a recorder
raises goes through: a run that cannot be recorded does not go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptc.approval import Approve, Decision, Deny, Happened
from ptc.events import ProgramClosed, ProgramOpened
from ptc.limits import Spent
from ptc.reporting import RunReporter
from ptc.settings import Settings
from ptc.toolbox import Step
from ptc_tools.call import JsonObject, Program
from ptc_tools.context import RunContext
from ptc_tools.errors import PtcError

_EMBEDDED_PEER = "ptc1."
"""The embedded peer's programs are Python, and its fingerprints say that they are its own."""


class RunRecords:
    """The records of one run. Without a recorder only programs are noted, for the run's own report."""

    def __init__(self, settings: Settings, reporter: RunReporter, context: RunContext, spent: Spent) -> None:
        self._settings = settings
        self._reporter = reporter
        self._context = context
        self._spent = spent
        self._silent = settings.recorder is None

    async def event(self, kind: str, data: JsonObject) -> None:
        await self._reporter.event(kind, data, self._context)

    async def started(self, step: Step, items: Sequence[JsonObject], labels: Mapping[str, str]) -> None:
        if self._silent:
            return
        tools = [
            tool
            for tool in (*step.functions, *step.handlers)
            if step.deferral is None or not step.waits(tool)
        ]
        data: JsonObject = {
            "model": self._settings.model,
            "programs": self._settings.programs,
            "tools": [tool.contract.qualified_name for tool in tools],
            "input": list(items),
            "labels": dict(labels),
        }
        await self.event("run.started", data)

    async def sent(self, step: Step, body: JsonObject, attempt: int) -> None:
        if self._silent:
            return
        items = body["input"]
        data: JsonObject = {
            "request": self._spent.requests,
            "model": self._settings.model,
            "items": len(items) if isinstance(items, list) else 0,
            "tools": list(step.names),
            "attempt": attempt,
        }
        await self.event("request.sent", data)

    async def received(self, response: JsonObject) -> None:
        if self._silent:
            return
        output, error = response.get("output"), response.get("error")
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        data: JsonObject = {
            "request": self._spent.requests,
            "response_id": response.get("id"),
            "status": response.get("status"),
            "items": len(items),
            "calls": sum(str(item.get("type")).endswith("_call") for item in items),
            "usage": response.get("usage"),
            "error": error.get("code") if isinstance(error, dict) else None,
        }
        await self.event("response.received", data)

    async def opened(self, event: ProgramOpened) -> None:
        ours = str(event.item.get("fingerprint")).startswith(_EMBEDDED_PEER)
        data: JsonObject = {"call_id": event.call_id, "code": event.code}
        language = "python" if ours else "javascript"
        await self.event("program.started", {**data, "language": language, "where": "hosted"})

    async def closed(self, event: ProgramClosed) -> None:
        owner = Program(event.call_id)
        calls = sum(report.call.caller == owner for report in self._reporter.calls)
        data: JsonObject = {"call_id": event.call_id, "status": event.status, "calls": calls}
        await self.event("program.finished", {**data, "result": event.result})

    async def decided(self, call_id: str, decision: Decision) -> None:
        if self._silent:
            return
        words = {Approve: "approved", Deny: "denied", Happened: "happened"}
        data: JsonObject = {"call_id": call_id, "decision": words[type(decision)]}
        data["by"] = decision.by
        data["reason"] = decision.reason if isinstance(decision, Deny) else None
        await self.event("approval.decided", data)

    async def ended(
        self, status: str, *, output_text: str | None = None, error: BaseException | None = None
    ) -> None:
        if self._silent:
            return
        usage = self._spent.usage
        data: JsonObject = {
            "status": status,
            "requests": self._spent.requests,
            "calls": len(self._reporter.calls),
            "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        }
        if output_text is not None:
            data["output_text"] = output_text
        if error is not None:
            # Only a code of ours is a stable word; an application's exception may keep anything under that name.
            data["error"] = error.code if isinstance(error, PtcError) else type(error).__name__
            data["message"] = str(error)
        for change in self._context.programs.take_refusals():  # asked for after its program had ended
            told: JsonObject = {
                "call_id": change.caller_id,
                "wall": "host",
                "rule": "tools_are_fixed",
                "line": None,
            }
            more = f", and {change.more} more changes" if change.more else ""
            await self.event("sandbox.violation", {**told, "detail": f"{change.helper}() was refused{more}"})
        await self.event("run.finished", data)
