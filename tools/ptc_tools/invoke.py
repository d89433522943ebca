"""The one path to a tool: resolve, caller, parse, validate, middleware, policy, approval, record, run.

Whoever calls (the model, a hosted program, a local program, a gateway's client), the call goes through
`Invoker.invoke`. It never raises for what a model or a tool did, never runs a tool that was not recorded as
started, and never releases an outcome that was not recorded as finished.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from ptc_tools.call import Call, JsonObject, JsonValue, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext, ToolContext
from ptc_tools.contract import Contract
from ptc_tools.errors import HostControlFlow, InvalidJson
from ptc_tools.middleware import Invocation, Middleware
from ptc_tools.onion import Onion
from ptc_tools.outcome import Cancelled, Denied, Failure, Outcome, Success
from ptc_tools.policy import GRANT_REGISTERED, Approver, Policy
from ptc_tools.record import Recorder
from ptc_tools.refusals import caller_not_allowed, program_not_open, unknown_tool
from ptc_tools.results import PLAIN
from ptc_tools.safe_text import describe_exception
from ptc_tools.settle import settled
from ptc_tools.strict_json import clone, loads
from ptc_tools.tool import AnyTool

MAX_RESULT_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Attempt:
    """A call that was recorded as started and must be recorded as finished."""

    tool: AnyTool
    token: object
    began: int


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
        if default_timeout is not None and default_timeout <= 0:
            raise ValueError("default_timeout must be a positive number of seconds, or None")
        self.catalog = catalog if isinstance(catalog, Catalog) else Catalog(catalog)
        self._recorder = recorder
        self._policy = None if policy is GRANT_REGISTERED else policy
        self._approver = approver
        self._middleware = tuple(middleware)
        self._default_timeout = default_timeout
        self._max_result_bytes = max_result_bytes

    def with_catalog(self, catalog: Catalog) -> Invoker:
        """The same rules for another step's catalog."""
        return Invoker(
            catalog,
            recorder=self._recorder,
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
        tool = self.catalog.resolve(call.namespace, call.name)
        if tool is None:
            return await self.deny(call, None, unknown_tool(self.catalog, call), run)
        contract = tool.contract
        caller = call.caller
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
        attempt = await self.admit(invocation)
        if isinstance(attempt, Denied):
            return attempt
        try:
            outcome = await self.execute(invocation, keywords, 1)
        except BaseException as reason:
            await self.abandon(attempt, reason)
            raise
        return await self.release(attempt, outcome)

    async def admit(self, invocation: Invocation) -> Attempt | Denied:
        """Policy, approval, and the record that the call starts. A refusal comes back recorded."""
        contract, call, run = invocation.tool.contract, invocation.call, invocation.run
        refusal = None
        if self._policy is not None:
            refusal = await self._authorize(self._policy, invocation)
        if refusal is None and contract.approval != "never":
            refusal = await self._approve(invocation)
        if refusal is not None:
            return await self.deny(call, contract, refusal, run)
        token: object = None
        if self._recorder is not None:
            record = self._recorder.started(call, contract, invocation.arguments, run)
            try:
                token, cancelled = await settled(record)
            except Exception:  # noqa: BLE001 - whatever the log's reason, a call without a record must not run
                refusal = Denied(
                    "audit_unavailable", "the call could not be recorded, so the tool did not run"
                )
                return await self.deny(call, contract, refusal, run)
            if cancelled:
                reason = asyncio.CancelledError()
                await self.abandon(Attempt(invocation.tool, token, time.perf_counter_ns()), reason)
                raise reason
        return Attempt(invocation.tool, token, time.perf_counter_ns())

    async def _authorize(self, policy: Policy, invocation: Invocation) -> Denied | None:
        contract = invocation.tool.contract
        try:
            decision = await policy.authorize(
                invocation.run.principal, contract, invocation.arguments, invocation.caller
            )
        except Exception:  # noqa: BLE001 - a policy that cannot decide has not granted anything
            return Denied("not_authorized", "the policy could not decide, so the call is refused")
        return _decision(decision, Denied("not_authorized", "the policy did not grant the call"))

    async def _approve(self, invocation: Invocation) -> Denied | None:
        contract = invocation.tool.contract
        if self._approver is None:
            return Denied("not_approved", "this tool needs an approval, and nobody is there to give it")
        try:
            decision = await self._approver.approve(
                invocation.call, contract, invocation.arguments, invocation.run
            )
        except Exception:  # noqa: BLE001 - an approver that fails has not approved anything
            return Denied("not_approved", "the approval failed, so the call is refused")
        return _decision(decision, Denied("not_approved", "the call was not approved"))

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> Outcome:
        """Run the tool under its deadline, and bound and validate what it returns."""
        tool = invocation.tool
        context = ToolContext(invocation.run, invocation.call, self.invoke, attempt, self._recorder)
        seconds = tool.contract.timeout or self._default_timeout
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                value = await tool.call(keywords, context)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return _failed(error)  # nobody cancelled this call: the tool awaited something that was
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the application's code failed
            if deadline.expired() and isinstance(error, TimeoutError):
                return _timed_out(seconds)
            return _failed(error)
        if deadline.expired():
            return _timed_out(seconds)
        return self.result(tool, value)

    def result(self, tool: AnyTool, value: object) -> Outcome:
        """What a tool returned as an outcome: bounded, plain JSON that fits the output schema."""
        try:
            encoded = tool.encode(value, self._max_result_bytes)
        except Exception as error:  # noqa: BLE001 - serialising runs the application's code
            text = str(error) if isinstance(error, ValueError) else describe_exception(error)
            return Failure("invalid_result", f"the tool's result cannot be sent: {text}", error)
        return _fitting(tool, encoded)

    def released_value(self, tool: AnyTool, value: JsonValue) -> Outcome:
        """A value that a middleware gave in the tool's stead, held to the same bounds and schema."""
        try:
            return _fitting(tool, PLAIN.encode(value, self._max_result_bytes))
        except ValueError as error:
            return Failure("invalid_result", f"a middleware's result cannot be sent: {error}", error)

    async def release(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        """Record how the call ended, then hand the outcome out."""
        if self._recorder is None:
            return outcome
        duration = (time.perf_counter_ns() - attempt.began) // 1000
        try:
            _, cancelled = await settled(self._recorder.finished(attempt.token, outcome, duration))
        except Exception as error:  # noqa: BLE001 - an outcome without a record is not released
            message = "the tool ran, but its outcome could not be recorded and is withheld"
            return Failure("audit_unavailable", message, error)
        if cancelled:
            raise asyncio.CancelledError
        return outcome

    async def abandon(self, attempt: Attempt, reason: BaseException) -> None:
        """Close the record of a call that its host gave up. What goes wrong here must not hide the reason."""
        if self._recorder is None:
            return
        message = "the run was suspended" if isinstance(reason, HostControlFlow) else "the call was cancelled"
        duration = (time.perf_counter_ns() - attempt.began) // 1000
        try:
            await settled(self._recorder.finished(attempt.token, Cancelled(message), duration))
        except Exception as error:  # noqa: BLE001 - see above
            reason.add_note(f"the audit record was not closed: {describe_exception(error)}")

    async def deny(self, call: Call, contract: Contract | None, refusal: Denied, run: RunContext) -> Denied:
        """Record a refusal, then hand it out. Without a record the refusal stands, and says so."""
        if self._recorder is None:
            return refusal
        try:
            _, cancelled = await settled(self._recorder.denied(call, contract, refusal, run))
        except Exception:  # noqa: BLE001 - nothing ran; the refusal stands whatever the log's trouble
            return Denied("audit_unavailable", f"{refusal.message} (and the refusal could not be recorded)")
        if cancelled:
            raise asyncio.CancelledError
        return refusal


def parse_arguments(arguments: object) -> object:
    """The JSON value of a call's arguments; none at all stands for `{}`. Raises `InvalidJson`."""
    if isinstance(arguments, str):
        return loads(arguments) if arguments else {}
    if arguments is None:
        return {}
    if isinstance(arguments, dict):
        return clone(arguments)
    if hasattr(arguments, "keys"):
        return clone(dict(cast("JsonObject", arguments)))
    raise InvalidJson(f"arguments must be a JSON object, not {type(arguments).__name__}")


def validate(tool: AnyTool, arguments: object) -> dict[str, object] | Denied:
    """Keyword arguments for the tool's function, or the refusal that says what does not fit."""
    if not isinstance(arguments, dict):
        return Denied("invalid_arguments", f"the arguments must be a JSON object, not {_kind(arguments)}")
    if not tool.check_arguments.is_valid(arguments):
        return Denied("invalid_arguments", f"invalid arguments: {tool.check_arguments.explain(arguments)}")
    try:
        return tool.decode(arguments)
    except ValueError as error:
        return Denied("invalid_arguments", f"invalid arguments: {error}")
    except Exception as error:  # noqa: BLE001 - decoding runs the application's validators
        return Denied("invalid_arguments", f"invalid arguments: {type(error).__name__} in a validator")


def _fitting(tool: AnyTool, value: JsonValue) -> Outcome:
    check = tool.check_result
    if check is None or check.is_valid(value):
        return Success(value)
    return Failure("invalid_result", f"the tool's result breaks its output schema: {check.explain(value)}")


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _decision(decision: object, otherwise: Denied) -> Denied | None:
    """Only None grants: a policy that answers True or {} has not said what it means."""
    if decision is None or isinstance(decision, Denied):
        return decision
    return otherwise


def _failed(error: BaseException) -> Failure:
    return Failure("tool_error", f"the tool failed: {describe_exception(error)}", error)


def _timed_out(seconds: float | None) -> Failure:
    return Failure(
        "timeout",
        f"the tool did not answer within {seconds:g} seconds; whether it had an effect is not known",
    )
