"""Who may call what: the two seams at which an application decides, and their defaults.

Both are asked after the arguments were validated and before anything is recorded as started. They decide
from trusted context and the contract; a model's words reach them as `arguments` and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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


class RequireAuthority:
    """Grants a call if its principal holds all that the tool's `authority` names.

    `held` maps principals to what they hold; a principal that is not in it, None included, holds nothing.
    With `hide` a run is not even shown what it may not call.
    """

    def __init__(self, held: Mapping[str | None, Collection[str]], *, hide: bool = False) -> None:
        for principal, names in held.items():
            if isinstance(names, str):
                raise TypeError(f"what {principal!r} holds is a list of names: [{names!r}]")
        self._held = {principal: frozenset(names) for principal, names in held.items()}
        self._hide = hide

    def permits(self, principal: str | None, tool: Contract, labels: Mapping[str, str]) -> bool:
        """Whether a run sees the tool: see `ptc_tools.sources.Visibility`."""
        return not self._hide or set(tool.authority) <= self._held.get(principal, frozenset())

    async def authorize(
        self, principal: str | None, tool: Contract, arguments: JsonObject, caller: Caller
    ) -> Denied | None:
        lacking = set(tool.authority) - self._held.get(principal, frozenset())
        if not lacking:
            return None
        return Denied("not_authorized", f"{tool.qualified_name} needs {', '.join(sorted(lacking))}")


class Approver(Protocol):
    """Asked for each call of a tool with `approval="always"`. If it raises, the call is denied.

    One that has a method `asks(call, contract, arguments, run) -> bool` is asked about the calls of other tools
    as well where that says so.

    It may also raise a `HostControlFlow`, to suspend a run until somebody has decided.
    """

    async def approve(
        self, call: Call, contract: Contract, arguments: JsonObject, run: RunContext
    ) -> Denied | None:
        """None approves this call with these arguments, once. A `Denied` with `not_approved` refuses it."""


GRANT_REGISTERED = GrantRegistered()
