"""Point 6 through middleware: a change that may have been made stays one, whatever a layer does with it."""

import asyncio
from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic import Field

from ptc_tools import (
    Cancelled,
    Denied,
    Failure,
    Idempotency,
    Invocation,
    Next,
    Outcome,
    RegistrationError,
    Retry,
    Success,
    Uncertain,
    define_tool,
    tool,
)
from tests.tools.tool_support import MemoryRecorder, invoke


def writing(error: Exception | None = None):  # type: ignore[no-untyped-def]
    ran: list[str] = []

    @tool(effects="write")
    async def write(status: str) -> str:
        """Set it."""
        ran.append(status)
        if error is not None:
            raise error
        return status

    return write, ran


async def failing(invocation: Invocation, next: Next) -> Outcome:
    await next(invocation)
    raise ValueError("the cache is full")


async def test_a_middleware_that_fails_after_a_change_leaves_it_uncertain() -> None:
    """'Failed' would have the model make the change again."""
    write, ran = writing()
    recorder = MemoryRecorder()
    outcome = await invoke(write, {"status": "open"}, middleware=[failing], recorder=recorder)
    assert isinstance(outcome, Uncertain)
    assert ran == ["open"]
    assert recorder.kinds == ["started", "finished"]
    assert recorder.last is outcome


@pytest.mark.parametrize(
    "instead",
    [lambda: Denied("not_authorized", "no"), Cancelled, lambda: Failure("tool_error", "no"), lambda: None],
)
@pytest.mark.parametrize("error", [None, ConnectionError("broke")])
async def test_no_layer_says_that_a_change_was_not_made(
    instead: Callable[[], Outcome], error: Exception | None
) -> None:
    """A refusal means that the tool never ran."""

    async def layer(invocation: Invocation, next: Next) -> Outcome:
        await next(invocation)
        return instead()

    write, _ = writing(error)
    assert isinstance(await invoke(write, {"status": "open"}, middleware=[layer]), Uncertain)


async def test_a_change_that_a_layer_broke_off_is_not_made_again() -> None:
    """A deadline of a layer's own is no reason to believe that nothing happened."""
    ran: list[int] = []

    @tool(effects="write")
    async def write(n: int) -> int:
        ran.append(n)
        await asyncio.Event().wait()
        return n

    async def impatient(invocation: Invocation, next: Next) -> Outcome:
        try:
            return await asyncio.wait_for(next(invocation), 0.01)
        except TimeoutError:
            return await next(invocation)

    recorder = MemoryRecorder()
    outcome = await invoke(write, {"n": 1}, middleware=[impatient], recorder=recorder)
    assert isinstance(outcome, Uncertain)
    assert ran == [1]
    assert recorder.kinds == ["started", "finished"]
    assert isinstance(recorder.last, Uncertain)


@pytest.mark.parametrize(("operation", "runs"), [("op_1", 3), ("", 1), (None, 1)])
async def test_only_a_call_that_names_its_operation_is_tried_again(operation: str | None, runs: int) -> None:
    """Without an operation id the service sees three orders."""
    ran: list[str | None] = []

    @tool(effects="write", idempotency=Idempotency("operation_id", "op"))
    async def order(op: str | None) -> str:
        ran.append(op)
        raise ConnectionError

    for middleware in (Retry(3, delay=0), _stubborn):
        ran.clear()
        assert isinstance(await invoke(order, {"op": operation}, middleware=[middleware]), Uncertain)
        assert len(ran) == runs


async def _stubborn(invocation: Invocation, next: Next) -> Outcome:
    await next(invocation)
    await next(invocation)
    return await next(invocation)


async def test_another_operation_is_no_second_attempt() -> None:
    """A layer that makes a new id for each attempt would make a change for each."""
    ran: list[str] = []

    @tool(effects="write", idempotency=Idempotency("operation_id", "op"))
    async def order(op: str) -> str:
        ran.append(op)
        return op

    async def renaming(invocation: Invocation, next: Next) -> Outcome:
        await next(invocation.with_arguments({"op": "a"}))
        return await next(invocation.with_arguments({"op": "b"}))

    assert await invoke(order, {"op": "x"}, middleware=[renaming]) == Success("a")
    assert ran == ["a"]


def test_an_operation_id_is_a_required_parameter() -> None:
    """One that may be left out is no evidence for the calls that do."""

    async def order(op: Annotated[str, Field(description="The operation.")] = "") -> str:
        return op

    evidence = Idempotency("operation_id", "op")
    with pytest.raises(RegistrationError, match="require it"):
        tool(order, effects="write", idempotency=evidence)
    schema = {"type": "object", "properties": {"op": {"type": "string"}}}
    with pytest.raises(RegistrationError, match="require it"):
        define_tool({"name": "order", "parameters": schema}, order, effects="write", idempotency=evidence)  # type: ignore[dict-item]


@pytest.mark.parametrize(("error", "times"), [(ConnectionResetError("gone"), 1), (ValueError("no"), 3)])
async def test_a_tool_of_undeclared_effects_in_doubt_is_not_run_again(error: Exception, times: int) -> None:
    """Nobody said that it only reads: a layer that insists must not repeat what may still have its effect."""
    ran: list[int] = []

    @tool
    async def undeclared(a: int) -> int:
        """Do it."""
        ran.append(a)
        raise error

    async def insist(invocation: Invocation, next: Next) -> Outcome:
        for _ in range(3):
            outcome = await next(invocation)
        return outcome

    outcome = await invoke(undeclared, {"a": 1}, middleware=[insist, Retry(3, delay=0)])
    assert isinstance(outcome, Failure)
    assert outcome.code == "tool_error"
    assert ran == [1] * times


async def test_a_tool_of_undeclared_effects_that_is_late_is_not_run_again() -> None:
    """Its first attempt may be on its way still."""
    ran: list[int] = []

    @tool(timeout=0.01)
    async def undeclared(a: int) -> int:
        """Do it."""
        ran.append(a)
        await asyncio.Event().wait()
        return a

    async def insist(invocation: Invocation, next: Next) -> Outcome:
        await next(invocation)
        return await next(invocation)

    outcome = await invoke(undeclared, {"a": 1}, middleware=[insist])
    assert isinstance(outcome, Failure)
    assert outcome.code == "timeout"
    assert ran == [1]


async def test_an_idempotent_tool_of_undeclared_effects_is_run_again() -> None:
    """Its service promises that a second attempt has no second effect."""
    ran: list[int] = []

    @tool(idempotency=Idempotency("service"))
    async def undeclared(a: int) -> int:
        """Do it."""
        ran.append(a)
        raise ConnectionResetError("gone")

    await invoke(undeclared, {"a": 1}, middleware=[Retry(3, delay=0)])
    assert ran == [1, 1, 1]
