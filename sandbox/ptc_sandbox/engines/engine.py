"""The seam: what the rest of the project asks of whatever runs programs.

`Sandbox` is an engine. Another one takes a program and the tools it was granted, sends every call down the
path it is given, and says how the program ended as a value. It never decides whether a call may run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias

from ptc_sandbox.limits import Limits
from ptc_sandbox.result import ProgramResult
from ptc_tools.call import Call
from ptc_tools.context import RunContext
from ptc_tools.outcome import Outcome
from ptc_tools.record import Recorder
from ptc_tools.tool import AnyTool

Invoke: TypeAlias = Callable[[Call, RunContext], Awaitable[Outcome]]
"""The one path, as an engine sees it: `Invoker.invoke` of the tools that the program was granted."""


class Engine(Protocol):
    """Runs programs. `ptc_sandbox.engines.conformance` checks that one keeps what this promises."""

    limits: Limits

    async def run(
        self,
        code: str,
        *,
        tools: Iterable[AnyTool | Callable[..., Any]] = (),
        run: RunContext | None = None,
        invoke: Invoke | None = None,
        recorder: Recorder | None = None,
        caller_id: str | None = None,
    ) -> ProgramResult:
        """Run `code` with `tools`. What the program does wrong is in the result, never raised."""
        ...

    async def aclose(self) -> None:
        """End everything; nothing is left afterwards."""
        ...
