"""The one path to a tool: resolve, caller, parse, validate, middleware, policy, approval, record, run.

Whoever calls (the model, a hosted program, a local program, a gateway's client), the call goes through
`Invoker.invoke`. It never raises for what a model or a tool did, never runs a tool that was not recorded as
started, and never releases an outcome that was not recorded as finished.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from ptc_tools.bounds import check_range
from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext, ToolContext
from ptc_tools.contract import Contract
from ptc_tools.deadline import Expired, within
from ptc_tools.disclosure import scrubbed
from ptc_tools.errors import HostControlFlow, InvalidJson, UnknownKey
from ptc_tools.frozen import freeze_object
from ptc_tools.ledger import Attempt, Ledger
from ptc_tools.middleware import Invocation, Middleware
from ptc_tools.onion import Onion
from ptc_tools.outcome import Denied, Outcome
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.refusals import caller_not_allowed, program_not_open, unknown_tool
from ptc_tools.release import failed, released, timed_out
from ptc_tools.results import PLAIN
from ptc_tools.strict_json import clone, loads
from ptc_tools.tool import AnyTool

Asks: TypeAlias = Callable[[Call, Contract, JsonObject, RunContext], bool]
MAX_RESULT_BYTES = 4 * 1024 * 1024


class Invoker:
    """Runs calls against one catalog. Cheap to make; one may serve many runs at once.

    `default_timeout` (seconds) holds for tools that declare none; None means no deadline. A result larger
    than `max_result_bytes` of JSON is a failure.
    """

    def __init__(
        self,
        catalog: Catalog | Iterable[AnyTool],
        *,
        recorder: Recorder | None = None,
        policy: Policy = GRANT_REGISTERED,
        approver: Approver | None = None,
        middleware: Sequence[Middleware] = (),
        default_timeout: float | None = 60.0,
        max_result_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        if default_timeout is not None and not default_timeout > 0:
            raise ValueError("default_timeout must be a positive number of seconds, or None")
        self.catalog = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
        self._ledger = Ledger(recorder)
        self._policy = None if policy is GRANT_REGISTERED else policy
        self._asks: Asks | None = getattr(approver, "asks", None)
        # Nobody to ask, nothing to record.
        self._unobserved = self._policy is None and recorder is None and self._asks is None
        self._approver = approver
        self._middleware = tuple(middleware)
        self._default_timeout = default_timeout
        self._max_result_bytes = max_result_bytes

    def with_catalog(self, catalog: Catalog) -> Invoker:
        """The same rules for another step's catalog."""
        return Invoker(
            catalog,
            recorder=self._ledger.recorder,
            policy=self._policy or GRANT_REGISTERED,
            approver=self._approver,
            middleware=self._middleware,
            default_timeout=self._default_timeout,
            max_result_bytes=self._max_result_bytes,
        )

    async def invoke(self, call: Call, run: RunContext) -> Outcome:
        """Run one call, or refuse it, and say how it ended.

        Raises only what the host itself raised to leave (`HostControlFlow`, `KeyboardInterrupt`) and
        `asyncio.CancelledError`, each after the record of the call was closed.
        """
        caller = call.caller
        tool = self.catalog.resolve(call.namespace, call.name)
        if tool is None and isinstance(caller, Program):
            tool = run.programs.granted(caller.caller_id, call.namespace, call.name)
        if tool is None:
            return await self.deny(call, None, unknown_tool(self.catalog, call), run)
        contract = tool.contract
        if caller.kind not in contract.allowed_callers:
            return await self.deny(call, contract, caller_not_allowed(contract, caller), run)
        if isinstance(caller, Program) and caller.caller_id not in run.programs:
            return await self.deny(call, contract, program_not_open(), run)
        try:
            arguments = parse_arguments(call.arguments)
        except InvalidJson as error:
            refusal = Denied("malformed_arguments", f"the arguments are not acceptable JSON: {error}")
            return await self.deny(call, contract, refusal, run)
        keywords = validate(tool, arguments)
        if isinstance(keywords, Denied):
            return await self.deny(call, contract, keywords, run)
        invocation = Invocation(tool, cast("JsonObject", arguments), call, run)
        if self._middleware:
            return await Onion(self, invocation, self._middleware).invoke()
        if self._unobserved and contract.approval == "never":
            return await self.execute(invocation, keywords, 1)
        attempt = await self.admit(invocation)
        if isinstance(attempt, Denied):
            return attempt
        try:
            outcome = await self.execute(invocation, keywords, 1)
        except BaseException as reason:
            await self.abandon(attempt, reason)
            raise
        return await self._ledger.finish(attempt, outcome)

    async def admit(self, invocation: Invocation, attempt: int = 1) -> Attempt | Denied:
        """Policy, approval, and the record that the call starts. A refusal comes back recorded."""
        contract, call, run = invocation.tool.contract, invocation.call, invocation.run
        if attempt != call.attempt:
            call = replace(call, attempt=attempt)
        refusal = None
        if self._policy is not None:
            refusal = await self._authorize(self._policy, invocation)
        if refusal is None and (contract.approval != "never" or self._asks is not None):
            refusal = await self._approve(invocation)
        if refusal is not None:
            return await self.deny(call, contract, refusal, run)
        return await self._ledger.start(call, contract, invocation.arguments, run)

    async def _authorize(self, policy: Policy, invocation: Invocation) -> Denied | None:
        contract = invocation.tool.contract
        try:
            decision = await policy.authorize(
                invocation.run.principal, contract, freeze_object(invocation.arguments), invocation.caller
            )
        except Exception:  # noqa: BLE001 - a policy that cannot decide has not granted anything
            return Denied("not_authorized", "the policy could not decide, so the call is refused")
        return _decision(decision, Denied("not_authorized", "the policy did not grant the call"), invocation)

    async def _approve(self, invocation: Invocation) -> Denied | None:
        if self._approver is None:
            return Denied("not_approved", "this tool needs an approval, and nobody is there to give it")
        call, contract, run = invocation.call, invocation.tool.contract, invocation.run
        arguments = freeze_object(invocation.arguments)
        try:
            if contract.approval == "never" and not (
                self._asks and self._asks(call, contract, arguments, run)
            ):
                return None
            decision = await self._approver.approve(call, contract, arguments, run)
        except Exception:  # noqa: BLE001 - an approver that fails has not approved anything
            return Denied("not_approved", "the approval failed, so the call is refused")
        refusal = _decision(decision, Denied("not_approved", "the call was not approved"), invocation)
        return None if refusal is None else _in_its_words(refusal, invocation)

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> Outcome:
        """Run the tool under its deadline, and bound and validate what it returns."""
        tool = invocation.tool
        seconds = tool.contract.timeout or self._default_timeout
        context = None
        if tool.takes_context is not None:
            context = ToolContext(
                invocation.run,
                invocation.call,
                self.invoke,
                attempt,
                recorder=self._ledger.recorder,
                deadline=None if seconds is None else time.monotonic() + seconds,
            )
        try:
            value = await within(seconds, tool.call(keywords, context))
        except Expired:
            return timed_out(invocation, seconds)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return failed(invocation, error)  # nobody cancelled the call: it awaited something that was
        except (HostControlFlow, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the application's code failed, in whatever way
            return failed(invocation, error)
        return released(invocation, tool.codec, value, self._max_result_bytes)

    def released_value(self, invocation: Invocation, value: JsonValue) -> Outcome:
        """A value that a middleware gave in the tool's stead, held to the same bounds and schema."""
        return released(invocation, PLAIN, value, self._max_result_bytes)

    async def release(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        """Record how the call ended, then hand the outcome out."""
        return await self._ledger.finish(attempt, outcome)

    async def abandon(self, attempt: Attempt, reason: BaseException) -> None:
        """Close the record of a call that its host gave up."""
        await self._ledger.abandon(attempt, reason)

    async def leave(self, invocation: Invocation, reason: BaseException) -> None:
        """Record a call that its host gave up before the tool could run: as refused, or with what was given."""
        call, contract, run = invocation.call, invocation.tool.contract, invocation.run
        given = reason.outcome if isinstance(reason, HostControlFlow) else None
        if given is None or isinstance(given, Denied):
            message = "the call was given up before its tool ran"
            refusal = given or Denied("cancelled", f"{message}: {reason}" if str(reason) else message)
            await self._ledger.deny(call, contract, refusal, run)
            return
        attempt = await self._ledger.start(call, contract, invocation.arguments, run)
        if not isinstance(attempt, Denied):
            await self._ledger.finish(attempt, given)

    async def deny(self, call: Call, contract: Contract | None, refusal: Denied, run: RunContext) -> Denied:
        """Record a refusal, then hand it out."""
        return await self._ledger.deny(call, contract, refusal, run)


def parse_arguments(arguments: object) -> object:
    """The JSON value of a call's arguments; none at all stands for `{}`. Raises `InvalidJson`."""
    if isinstance(arguments, str):
        return loads(arguments) if arguments else {}
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return clone(arguments if isinstance(arguments, dict) else dict(arguments))
    raise InvalidJson(f"arguments must be a JSON object, not {type(arguments).__name__}")


def validate(tool: AnyTool, arguments: object) -> dict[str, object] | Denied:
    """Keyword arguments for the tool's function, or the refusal that says what does not fit."""
    if not isinstance(arguments, dict):
        return Denied("invalid_arguments", f"the arguments must be a JSON object, not {_kind(arguments)}")
    try:
        fits = tool.check_arguments.is_valid(arguments)
    except ValueError as error:
        return Denied("invalid_arguments", f"invalid arguments: {error}")
    if not fits:
        return Denied("invalid_arguments", f"invalid arguments: {tool.check_arguments.explain(arguments)}")
    if tool.withheld and not tool.withheld.isdisjoint(arguments):
        name = min(tool.withheld & arguments.keys())
        return Denied("invalid_arguments", f"invalid arguments: {name} is no parameter of this tool")
    try:
        keywords = tool.decode(arguments)
    except ValueError as error:
        return Denied("invalid_arguments", f"invalid arguments: {error}")
    except Exception as error:  # noqa: BLE001 - decoding runs the application's validators
        return Denied("invalid_arguments", f"invalid arguments: {type(error).__name__} in a validator")
    search = tool.contract.bounds.search
    if search is not None:
        reason = check_range(keywords, search)  # of what the tool is given, not of how it was written
        if reason is not None:
            return Denied("limit_exceeded", f"the call searches too far: {reason}")
    return keywords


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _in_its_words(refusal: Denied, invocation: Invocation) -> Denied:
    """A no to a call, as its tool's confirmation puts it for the model."""
    publication = invocation.tool.contract.publication
    confirmation = None if publication is None else publication.confirmation
    if confirmation is None or refusal.code != "not_approved":
        return refusal
    try:
        words = confirmation.refusal(invocation.arguments)
    except UnknownKey:
        return refusal
    return refusal if words is None else replace(refusal, message=words)


def _decision(decision: object, otherwise: Denied, invocation: Invocation) -> Denied | None:
    """Only None grants: a policy that answers True or {} has not said what it means."""
    if decision is None:
        return None
    return scrubbed(decision, invocation) if isinstance(decision, Denied) else otherwise
