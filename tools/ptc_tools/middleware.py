"""The seam around a call: an onion of functions, each of which sees the call and decides what is next.

A middleware may change arguments (they are validated again), answer without calling `next`, or override the
outcome. It cannot name another tool, widen a policy's decision, or keep anything from the audit record: the
invoker authorises and records whatever is released.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from ptc_tools.call import Call, Caller, JsonObject
from ptc_tools.context import RunContext
from ptc_tools.outcome import Outcome
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
