"""The seam between the one path and the audit log: what is recorded about a call, and when.

`ptc.audit` implements it. The invoker calls `started` and waits before a tool runs, and `finished` and
waits before the outcome is released: an implementation returns only when its record is as durable as it
promises. If `started` raises, the tool does not run. It is given values as they were, and may keep what a
contract names in `sensitive_parameters` and `sensitive_results` only as a digest (`ptc_tools.redacting`).
"""

from __future__ import annotations

from typing import Protocol

from ptc_tools.call import Call, JsonObject, JsonValue
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied, Outcome


class Recorder(Protocol):
    """Receives the life of each call. One recorder may serve many runs at once."""

    async def started(self, call: Call, contract: Contract, arguments: JsonValue, run: RunContext) -> object:
        """Before the tool runs, with the validated arguments. What it returns comes back in `finished`."""

    async def finished(self, token: object, outcome: Outcome, duration_us: int) -> None:
        """After the tool ended and before its outcome is released. `duration_us`: microseconds."""

    async def denied(self, call: Call, contract: Contract | None, outcome: Denied, run: RunContext) -> None:
        """For a call that never ran; `contract` is None where no tool of that name exists."""

    async def event(self, type: str, data: JsonObject, run: RunContext) -> None:
        """Anything else that an auditor asks for: `run.started`, `program.started`, `request.sent` …"""
