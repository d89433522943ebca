"""The seam around a call: an onion of functions, each of which sees the call and decides what is next.

A middleware may change arguments (they are validated again), answer without calling `next`, or override the
outcome. It cannot name another tool, widen a policy's decision, or keep anything from the audit record: the
invoker authorises and records whatever is released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from ptc_tools.call import Call, Caller, JsonObject
from ptc_tools.context import RunContext
from ptc_tools.mutation import is_transport_error
from ptc_tools.outcome import Failure, Outcome, Uncertain
from ptc_tools.tool import AnyTool


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call on its way in. `arguments` fit the tool's schema."""

    tool: AnyTool
    arguments: JsonObject
    call: Call
    run: RunContext

    @property
    def caller(self) -> Caller:
        return self.call.caller

    def with_arguments(self, arguments: JsonObject) -> Invocation:
        """The same call with other arguments, which are validated when it goes on."""
        return replace(self, arguments=arguments)


Next: TypeAlias = Callable[[Invocation], Awaitable[Outcome]]


class Middleware(Protocol):
    """`async def __call__(invocation, next) -> Outcome`. The first of a list is the outermost.

    `next` may be called again, for another attempt; each attempt is authorised and recorded by itself.
    """

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome: ...


class Retry:
    """Tries again what failed on the way: reads, and mutations that are idempotent; never anything else.

    `attempts` counts the first one. Between two attempts it waits `delay` seconds, doubled each time. What
    a tool raised on purpose, a broken result and a refusal are not retried.
    """

    def __init__(self, attempts: int = 3, *, delay: float = 0.2) -> None:
        if attempts < 1 or delay < 0:
            raise ValueError("Retry takes at least one attempt, and no negative delay")
        self._attempts = attempts
        self._delay = delay

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        contract = invocation.tool.contract
        evidence = contract.idempotency
        safe = contract.effects == "read" or (
            evidence is not None and evidence.operation(invocation.arguments) is not None
        )
        outcome = await next(invocation)
        for attempt in range(1, self._attempts):
            if not safe or not broke_on_the_way(outcome):
                break
            await asyncio.sleep(self._delay * 2 ** (attempt - 1))
            outcome = await next(invocation)
        return outcome


def broke_on_the_way(outcome: Outcome) -> bool:
    """Whether nobody knows how far the call came: its connection broke, or it did not answer in time."""
    if isinstance(outcome, Uncertain) or (isinstance(outcome, Failure) and outcome.code == "timeout"):
        return True
    if not isinstance(outcome, Failure) or outcome.exception is None:
        return False
    return outcome.code == "tool_error" and is_transport_error(outcome.exception)
