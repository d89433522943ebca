"""Counts calls where they pass: the outermost layer around each, whoever makes it."""

from __future__ import annotations

from ptc.limits import Limits, Spent
from ptc_tools.call import Program
from ptc_tools.middleware import Invocation, Next
from ptc_tools.outcome import Denied, Outcome


class Budget:
    """Middleware that admits a call or denies it by the run's limits; it stands before all other."""

    def __init__(self, spent: Spent, limits: Limits) -> None:
        self._spent = spent
        self._limits = limits

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        caller = invocation.caller
        program = caller.caller_id if isinstance(caller, Program) else None
        refusal = self._spent.call_refusal(self._limits, invocation.call.call_id, program)
        return await next(invocation) if refusal is None else Denied("limit_exceeded", refusal)
