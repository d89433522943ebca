"""Who may call what: the two seams at which an application decides, and their defaults.

Both are asked after the arguments were validated and before anything is recorded as started. They decide
from trusted context and the contract; a model's words reach them as `arguments` and nothing else.
"""

from __future__ import annotations

from typing import Protocol

from ptc_tools.call import Call, Caller, JsonObject
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.outcome import Denied


class Policy(Protocol):
    """Decides whether a principal may make a call. If it raises, the call is denied."""

    async def authorize(
        self, principal: str | None, tool: Contract, arguments: JsonObject, caller: Caller
    ) -> Denied | None:
        """None grants the call. A `Denied` with `not_authorized` refuses; its message is for the model."""


class GrantRegistered:
    """The default policy: what the application registered may be called by whom the contract allows."""

    async def authorize(
        self, principal: str | None, tool: Contract, arguments: JsonObject, caller: Caller
    ) -> Denied | None:
        return None


class Approver(Protocol):
    """Asked for each call of a tool with `approval="always"`. If it raises, the call is denied.

    It may also raise a `HostControlFlow`, to suspend a run until somebody has decided.
    """

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Denied | None:
        """None approves this call with these arguments, once. A `Denied` with `not_approved` refuses it."""


GRANT_REGISTERED = GrantRegistered()
