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


async def shielded(invocation: Invocation, next: Next) -> Outcome:
    """A deadline of its own that leaves the first attempt running."""
    first = asyncio.ensure_future(next(invocation))
    await turns()
    second = await next(invocation)
    await first
    return second


async def at_once(invocation: Invocation, next: Next) -> Outcome:
    return (await asyncio.gather(next(invocation), next(invocation)))[0]


async def hedged(invocation: Invocation, next: Next) -> Outcome:
    tries = [asyncio.ensure_future(next(invocation)) for _ in range(3)]
    done, waiting = await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
    if waiting:
        await asyncio.wait(waiting)
    return done.pop().result()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class SlowPolicy:
    async def authorize(self, *_: object) -> None:
        await turns()
        await turns()


class SlowApprover:
    async def approve(self, *_: object) -> None:
        await turns()
        await turns()


class SlowRecorder(MemoryRecorder):
    async def started(self, *given: object) -> object:
        await turns()
        await turns()
        return await super().started(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize("layer", [shielded, at_once, hedged])
@pytest.mark.parametrize(
    "slow",
    [{}, {"policy": SlowPolicy()}, {"approver": SlowApprover()}, {"recorder": SlowRecorder()}],
    ids=["nothing", "policy", "approver", "recorder"],
)
async def test_two_attempts_at_one_time_make_a_change_once(layer, slow) -> None:  # type: ignore[no-untyped-def]
    """The second must see the first, also while the first waits to be let in."""
    ran: list[int] = []

    @tool(effects="write", commitment="moves money", approval="always" if "approver" in slow else "never")
    async def pay(cents: int) -> str:
        """Move money."""
        ran.append(cents)
        await turns()
        return "moved"

    outcome = await invoke(pay, {"cents": 5}, middleware=[layer], **slow)
    assert ran == [5]
    assert isinstance(outcome, Uncertain) or outcome == Success("moved")


async def test_an_attempt_that_is_refused_leaves_room_for_another() -> None:
    """Nothing ran, so a layer may ask again."""
    write, ran = writing()

    class Once:
        asked = 0

        async def authorize(self, *_: object) -> Denied | None:
            self.asked += 1
            return Denied("not_authorized", "not yet") if self.asked == 1 else None

    async def twice(invocation: Invocation, next: Next) -> Outcome:
        await next(invocation)
        return await next(invocation)

    outcome = await invoke(write, {"status": "open"}, middleware=[twice], policy=Once())
    assert outcome == Success("open")
    assert ran == ["open"]


async def test_no_attempt_begins_once_the_call_is_answered() -> None:
    """Whoever was given the answer would not hear of what the attempt did."""
    write, ran = writing()
    later: list[asyncio.Future[Outcome]] = []

    async def answers(invocation: Invocation, next: Next) -> Outcome:
        async def afterwards() -> Outcome:
            await turns()
            return await next(invocation)

        later.append(asyncio.ensure_future(afterwards()))
        return Success("cached")

    recorder = MemoryRecorder()
    assert await invoke(write, {"status": "open"}, middleware=[answers], recorder=recorder) == Success(
        "cached"
    )
    refused = await later[0]
    assert isinstance(refused, Denied)
    assert refused.code == "cancelled"
    assert ran == []
    assert recorder.kinds == ["started", "finished", "denied"]


async def test_an_attempt_that_outlives_its_call_has_its_record_closed() -> None:
    """What it did is known when it ends, though nobody waits any more."""
    ends = asyncio.Event()
    later: list[asyncio.Future[Outcome]] = []

    @tool(effects="write", commitment="sets it")
    async def write(status: str) -> str:
        """Set it."""
        await ends.wait()
        return status

    async def leaves(invocation: Invocation, next: Next) -> Outcome:
        later.append(asyncio.ensure_future(next(invocation)))
        await turns()
        return Failure("timeout", "too slow")

    recorder = MemoryRecorder()
    outcome = await invoke(write, {"status": "open"}, middleware=[leaves], recorder=recorder)
    assert isinstance(outcome, Uncertain)
    ends.set()
    await later[0]
    assert recorder.kinds == ["started", "finished"]
    assert recorder.last == Success("open")


async def test_a_tool_that_does_not_say_is_recorded_as_it_was_released() -> None:
    """Uncertain to the model and cancelled in the log would be two stories."""

    @tool
    async def undeclared(n: int) -> int:
        """Do something."""
        await asyncio.Event().wait()
        return n

    async def impatient(invocation: Invocation, next: Next) -> Outcome:
        first = asyncio.ensure_future(next(invocation))
        await turns()
        first.cancel()
        await asyncio.wait([first])
        return await next(invocation)

    recorder = MemoryRecorder()
    outcome = await invoke(undeclared, {"n": 1}, middleware=[impatient], recorder=recorder)
    assert isinstance(outcome, Uncertain)
    assert recorder.kinds == ["started", "finished"]
    assert isinstance(recorder.last, Uncertain)


async def test_a_change_whose_inner_task_was_cancelled_is_uncertain() -> None:
    """The request may have gone out before somebody cancelled the task that sent it."""

    @tool(effects="write", commitment="sets it")
    async def write(n: int) -> int:
        """Set it."""
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner
        return n

    assert isinstance(await invoke(write, {"n": 1}), Uncertain)
