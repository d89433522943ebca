"""A call's way through the middleware: what each of them changed, answered or overrode, checked and recorded.

The invoker uses this when it has middleware. Whatever is released went through policy, approval and the
record, also when a middleware answered by itself, so that a cache is no way around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ptc_tools.call import JsonObject
from ptc_tools.disclosure import Told, scrubbed, told
from ptc_tools.errors import InvalidJson
from ptc_tools.middleware import Invocation, Middleware, Next, broke_on_the_way
from ptc_tools.outcome import Cancelled, Denied, Failure, Outcome, Success, Uncertain
from ptc_tools.release import uncertain
from ptc_tools.strict_json import clone

if TYPE_CHECKING:
    from ptc_tools.invoke import Invoker
    from ptc_tools.ledger import Attempt


class Onion:
    """One call in flight. `invoke` is called once."""

    def __init__(self, invoker: Invoker, invocation: Invocation, layers: Sequence[Middleware]) -> None:
        self._invoker = invoker
        self._invocation = invocation
        self._layers = layers
        self._attempts = 0
        self._open: tuple[Attempt, Outcome] | None = None
        self._begun: list[
            JsonObject
        ] = []  # the arguments of the attempts that run, ran, or wait to be admitted
        self._refusal: Denied | None = None
        self._over = False

    async def invoke(self) -> Outcome:
        """Run the layers and release what they come to."""
        handler: Next = self._core
        for layer in reversed(self._layers):
            handler = _bind(layer, handler)
        try:
            outcome = await handler(self._invocation)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                await self._abandon(error)
                raise
            outcome = _middleware_failed(self._invocation, error)
        except Exception as error:  # noqa: BLE001 - the application's code failed, not the host
            outcome = _middleware_failed(self._invocation, error)
        except BaseException as reason:
            await self._abandon(reason)
            raise
        return await self._release(outcome)

    async def _core(self, invocation: Invocation) -> Outcome:
        """The `next` of the innermost layer: everything between middleware and outcome, once per attempt."""
        from ptc_tools.invoke import validate

        current = self._invocation
        if invocation.arguments is not current.arguments:
            try:
                current = current.with_arguments(cast("JsonObject", clone(invocation.arguments)))
            except InvalidJson as error:
                return await self._refuse(Denied("invalid_arguments", f"changed arguments: {error}"))
        # Decoded anew for each attempt: a tool may have changed the objects that it was given.
        keywords = validate(current.tool, current.arguments)
        if isinstance(keywords, Denied):
            return await self._refuse(keywords)
        if self._is_over():
            return await self._refuse(Denied("cancelled", "the call had been answered before this attempt"))
        if not self._may_repeat(current.arguments):
            # What may change something and is not idempotent is not attempted again, whatever a middleware asks.
            return self._broken_off() if self._open is None else self._open[1]
        # Claimed before anything is awaited: of two attempts at one time the second must see the first, also
        # while a policy, an approver or the record has not let that one in yet.
        claim = cast("JsonObject", clone(current.arguments))  # a layer may write into its invocation's
        self._begun.append(claim)
        self._attempts += 1
        number = self._attempts
        try:
            attempt = await self._invoker.admit(current, number)
        except BaseException:
            self._unclaim(claim)
            raise
        if isinstance(attempt, Denied):
            self._unclaim(claim)
            self._refusal = attempt
            return attempt
        if self._is_over():
            self._unclaim(claim)
            return await self._too_late(attempt)
        return await self._run(current, keywords, number, attempt)

    async def _run(
        self, current: Invocation, keywords: dict[str, object], number: int, attempt: Attempt
    ) -> Outcome:
        try:
            outcome = await self._invoker.execute(current, keywords, number)
        except BaseException as reason:
            await self._invoker.abandon(attempt, reason)
            await self._close(reason)
            raise
        if self._is_over():  # nobody waits for it any more, and yet its record has to say how it ended
            return await self._invoker.release(attempt, outcome)
        previous, self._open = self._open, (attempt, outcome)
        if previous is not None:
            await self._invoker.release(*previous)
        return outcome

    async def _too_late(self, attempt: Attempt) -> Outcome:
        """An attempt that was let in after its call had been answered: it does not run, and its record says so."""
        return await self._invoker.release(
            attempt, Cancelled("the call was answered before this attempt ran")
        )

    def _is_over(self) -> bool:
        """Whether the call was answered, or given up: no attempt begins any more."""
        return self._over

    def _unclaim(self, claim: JsonObject) -> None:
        """An attempt that was not let in never began."""
        self._begun = [other for other in self._begun if other is not claim]

    @property
    def _ran(self) -> JsonObject | None:
        """The arguments of the last attempt that was begun, or is about to."""
        return self._begun[-1] if self._begun else None

    def _may_repeat(self, arguments: JsonObject) -> bool:
        """Whether another attempt is the same operation as the last one, or changes nothing.

        A tool that does not say what it does may be asked again after a plain answer, but not where the first
        attempt may still have its effect.
        """
        contract, last = self._invocation.tool.contract, self._ran
        if contract.effects == "read" or last is None:
            return True
        evidence = contract.idempotency
        if evidence is None:
            return not contract.mutates and self._open is not None and not broke_on_the_way(self._open[1])
        operation = evidence.operation(arguments)
        return operation is not None and operation == evidence.operation(last)

    def _broken_off(self) -> Uncertain:
        return uncertain(self._invocation, Told("the call was broken off"), None)

    async def _close(self, reason: BaseException) -> None:
        """An attempt before the one that was broken off has its record closed; it is not the outcome now."""
        previous, self._open = self._open, None
        try:
            if previous is not None:
                await self._invoker.release(*previous)
        except asyncio.CancelledError:
            reason.add_note("the record was closed while the call was being cancelled")

    async def _refuse(self, refusal: Denied) -> Denied:
        call, run = self._invocation.call, self._invocation.run
        if self._attempts:
            call = replace(call, attempt=self._attempts + 1)
        self._refusal = await self._invoker.deny(call, self._invocation.tool.contract, refusal, run)
        return self._refusal

    async def _release(self, outcome: object) -> Outcome:
        self._over = True
        released = self._honest(self._checked(outcome))
        if self._open is None and self._ran is not None and isinstance(released, Uncertain):
            return released  # the record of the attempt that was broken off says so already
        if self._open is not None:
            attempt, _ = self._open
            return await self._invoker.release(attempt, released)
        if released is self._refusal:
            return released
        if isinstance(released, Denied):
            return await self._refuse(released)
        admitted = await self._invoker.admit(self._invocation, self._attempts + 1)
        if isinstance(admitted, Denied):
            return admitted
        return await self._invoker.release(admitted, released)

    def _honest(self, outcome: Outcome) -> Outcome:
        """No layer makes a change that was made, or may have been, into one that was not."""
        if self._ran is None or not self._invocation.tool.contract.mutates or isinstance(outcome, Uncertain):
            return outcome
        if isinstance(outcome, Success):
            return outcome
        was = None if self._open is None else self._open[1]
        if was is outcome or (isinstance(was, Failure) and not isinstance(was, Uncertain)):
            return outcome
        if isinstance(was, Uncertain):
            return was
        told_so = Told(outcome.message, getattr(outcome, "details", None))
        return uncertain(self._invocation, told_so, getattr(outcome, "exception", None))

    def _checked(self, outcome: object) -> Outcome:
        """What a layer gave instead of the tool's own outcome is bounded and validated like a tool's."""
        if self._open is not None and outcome is self._open[1]:
            return self._open[1]
        if isinstance(outcome, Success):
            checked = self._invoker.released_value(self._invocation, outcome.value)
            if isinstance(checked, Success) and type(outcome) is not Success:
                return replace(outcome, value=checked.value)  # it stays partial or empty, as it was given
            return checked
        if self._refusal is not None and outcome is self._refusal:
            return self._refusal
        if isinstance(outcome, Denied | Failure | Cancelled):
            return scrubbed(outcome, self._invocation)
        return Failure("tool_error", f"a middleware returned {type(outcome).__name__}, not an outcome")

    async def _abandon(self, reason: BaseException) -> None:
        self._over = True
        try:
            if self._open is not None:
                # The tool came to its end, so the record says how, though nobody is told any more.
                await self._invoker.release(*self._open)
            elif not self._attempts and self._refusal is None and not getattr(reason, "waits", False):
                await self._invoker.leave(self._invocation, reason)
        except asyncio.CancelledError:
            reason.add_note("the record was closed while the call was being cancelled")


def _bind(layer: Middleware, handler: Next) -> Next:
    async def bound(invocation: Invocation) -> Outcome:
        return await layer(invocation, handler)

    return bound


def _middleware_failed(invocation: Invocation, error: BaseException) -> Failure:
    why = told(error, invocation, by_middleware=True)
    details = None if why.details is None else f"a middleware failed: {why.details}"
    return Failure("tool_error", f"a middleware failed: {why.shown}", error, details=details)
