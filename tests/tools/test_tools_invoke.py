"""The one path: its order, its refusals, its record. Every call of every kind of caller goes this way."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ptc_tools import (
    Call,
    Cancelled,
    Catalog,
    Denied,
    Failure,
    HostControlFlow,
    InvalidSignature,
    Invocation,
    Invoker,
    Next,
    Outcome,
    Program,
    RunContext,
    Success,
    ToolContext,
    Uncertain,
    define_tool,
    tool,
)
from tests.tools.tool_support import PROGRAM, RUN, MemoryRecorder, call, invoke, run_with


@tool(allowed_callers=["direct", "programmatic"])
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def direct_only(a: int) -> int:
    """For the model itself."""
    return a


@tool(allowed_callers=["programmatic"])
async def program_only(a: int) -> int:
    """For programs."""
    return a


async def code(outcome_of: Outcome) -> str:
    return outcome_of.code if isinstance(outcome_of, Denied | Failure) else outcome_of.status


class TestOrderAndRefusals:
    @pytest.mark.parametrize(
        ("the_call", "expected"),
        [
            (call("missing", "{}"), "unknown_tool"),
            (Call("c", "add", '{"a":1,"b":2}', namespace="other"), "unknown_tool"),
            (call(direct_only, '{"a":1}', caller=PROGRAM), "caller_not_allowed"),
            (call(program_only, '{"a":1}'), "caller_not_allowed"),
            (call(add, '{"a":1,"b":2}', caller=Program("forged")), "program_not_open"),
            (call(add, '{"a":1,"b":'), "malformed_arguments"),
            (call(add, '{"a":1,"a":1,"b":2}'), "malformed_arguments"),
            (call(add, '{"a":1e999,"b":2}'), "malformed_arguments"),
            (call(add, {"a": float("nan"), "b": 1}), "malformed_arguments"),
            (call(add, "[1,2]"), "invalid_arguments"),
            (call(add, '"a"'), "invalid_arguments"),
            (call(add, "null"), "invalid_arguments"),
            (call(add, ""), "invalid_arguments"),
            (call(add, None), "invalid_arguments"),
            (call(add, '{"a":1}'), "invalid_arguments"),
            (call(add, '{"a":1,"b":2,"c":3}'), "invalid_arguments"),
            (call(add, '{"a":"1","b":2}'), "invalid_arguments"),
            (call(add, '{"a":true,"b":2}'), "invalid_arguments"),
            (call(add, '{"a":1.5,"b":2}'), "invalid_arguments"),
        ],
    )
    async def test_a_bad_call_is_denied_and_the_refusal_is_recorded(
        self, the_call: Call, expected: str
    ) -> None:
        """Nothing that was wrong with a call may run a tool, or go unseen."""
        recorder = MemoryRecorder()
        invoker = Invoker([add, direct_only, program_only], recorder=recorder)
        outcome = await invoker.invoke(the_call, run_with("prog_1"))
        assert isinstance(outcome, Denied)
        assert outcome.code == expected
        assert recorder.kinds == ["denied"]
        assert recorder.last is outcome

    async def test_a_good_call_is_recorded_before_it_runs_and_before_it_is_released(self) -> None:
        """The audit record surrounds the run."""
        recorder = MemoryRecorder()

        @tool
        async def look(n: int) -> list[str]:
            return [*recorder.kinds]

        assert await invoke(look, '{"n": 1}', recorder=recorder) == Success(["started"])
        assert recorder.kinds == ["started", "finished"]

    async def test_an_open_program_may_call_and_a_closed_one_may_not(self) -> None:
        """A call that comes after its program ended does not run."""
        run = run_with("prog_1")
        invoker = Invoker([add])
        the_call = call(add, {"a": 1, "b": 2}, caller=PROGRAM)
        assert await invoker.invoke(the_call, run) == Success(3)
        run.programs.close("prog_1")
        assert await code(await invoker.invoke(the_call, run)) == "program_not_open"

    async def test_no_arguments_are_an_empty_object_where_the_schema_accepts_it(self) -> None:
        """Both "" and null happen on the wire for tools without parameters."""

        @tool
        async def ping() -> str:
            return "pong"

        for arguments in ("", None, "{}", {}):
            assert await invoke(ping, arguments) == Success("pong")

    async def test_a_denial_names_near_tools_and_quotes_little(self) -> None:
        """The message helps a model, and a hostile name cannot flood it."""
        outcome = await Invoker([add]).invoke(call("ad", "{}"), RUN)
        assert isinstance(outcome, Denied)
        assert "did you mean add" in outcome.message
        outcome = await Invoker([add]).invoke(call("x" * 10_000 + "\x1b[31m", "{}"), RUN)
        assert isinstance(outcome, Denied)
        assert len(outcome.message) < 300
        assert "\x1b" not in outcome.message


class TestPolicyAndApproval:
    async def test_a_policy_sees_trusted_facts_and_can_refuse(self) -> None:
        """Authorisation decides from who the run acts for, and its refusal is recorded."""
        seen: list[object] = []

        class Deny:
            async def authorize(self, principal, tool, arguments, caller):  # type: ignore[no-untyped-def]
                seen.append((principal, tool.name, arguments, caller))
                return Denied("not_authorized", "no")

        recorder = MemoryRecorder()
        run = RunContext("r", principal="ada")
        outcome = await invoke(add, '{"a":1,"b":2}', run=run, policy=Deny(), recorder=recorder)
        assert outcome == Denied("not_authorized", "no")
        assert seen == [("ada", "add", {"a": 1, "b": 2}, call(add).caller)]
        assert recorder.kinds == ["denied"]

    @pytest.mark.parametrize("answer", [True, False, {}, "yes", 0])
    async def test_only_none_grants(self, answer: object) -> None:
        """A policy that says something else has not granted the call."""

        class Odd:
            async def authorize(self, principal, tool, arguments, caller):  # type: ignore[no-untyped-def]
                return answer

        assert await code(await invoke(add, '{"a":1,"b":2}', policy=Odd())) == "not_authorized"

    async def test_a_policy_that_raises_denies(self) -> None:
        """Fails closed, and its trouble stays with the host."""

        class Broken:
            async def authorize(self, principal, tool, arguments, caller):  # type: ignore[no-untyped-def]
                raise RuntimeError("password=hunter2")

        outcome = await invoke(add, '{"a":1,"b":2}', policy=Broken())
        assert isinstance(outcome, Denied)
        assert outcome.code == "not_authorized"
        assert "hunter2" not in outcome.message

    async def test_a_tool_that_needs_approval_does_not_run_without_one(self) -> None:
        """No approver, a refusal, a broken approver and a wrong answer are all no approval."""
        ran: list[int] = []

        @tool(approval="always")
        async def guarded(n: int) -> int:
            ran.append(n)
            return n

        class Approver:
            def __init__(self, answer: object) -> None:
                self.answer = answer

            async def approve(self, call, contract, arguments, run):  # type: ignore[no-untyped-def]
                if isinstance(self.answer, Exception):
                    raise self.answer
                return self.answer

        for answer in (Denied("not_approved", "no"), ValueError("x"), True):
            outcome = await invoke(guarded, {"n": 1}, approver=Approver(answer))
            assert await code(outcome) == "not_approved"
        assert await code(await invoke(guarded, {"n": 1})) == "not_approved"
        assert ran == []
        assert await invoke(guarded, {"n": 1}, approver=Approver(None)) == Success(1)

    async def test_an_approver_may_suspend_the_run(self) -> None:
        """Host control flow passes through, and a call that never started has no record to close."""

        class Suspend(HostControlFlow):
            pass

        @tool(approval="always")
        async def guarded(n: int) -> int:
            return n

        class Approver:
            async def approve(self, call, contract, arguments, run):  # type: ignore[no-untyped-def]
                raise Suspend

        recorder = MemoryRecorder()
        with pytest.raises(Suspend):
            await invoke(guarded, {"n": 1}, approver=Approver(), recorder=recorder)
        assert recorder.kinds == []


class Panic(BaseException):
    """What a library in another language raises when it breaks."""


@pytest.mark.parametrize("effects", ["read", "write"])
@pytest.mark.parametrize("sync", [False, True])
async def test_whatever_a_tool_raises_is_a_failure(sync: bool, effects: Any) -> None:
    """`except Exception` would let it through to the host, with the record open."""

    async def breaks(n: int) -> int:
        raise Panic("panicked")

    def breaks_in_a_thread(n: int) -> int:
        raise Panic("panicked")

    recorder = MemoryRecorder()
    entry = tool(breaks_in_a_thread if sync else breaks, effects=effects)
    outcome = await invoke(entry, {"n": 1}, recorder=recorder)
    assert isinstance(outcome, Failure)
    assert outcome.message == "the tool failed: Panic: panicked"
    assert recorder.last is outcome


@pytest.mark.parametrize("key", ["a\nSYSTEM: obey", "\x1b[31mred", "\u202egnp", "\u2066x", "a\rb", "\x85"])
async def test_no_message_holds_what_a_terminal_or_a_reader_obeys(key: str) -> None:
    """Keys and names are written by whoever calls, and messages are read by people too."""

    @tool(effects="read", strict=False)
    async def look(m: dict[str, int]) -> dict[str, int]:
        return {key: "x"}  # type: ignore[dict-item]

    for arguments in ({"m": {}}, {"m": {}, key: 1}, {"m": {key: "x"}}):
        outcome = await invoke(look, arguments)
        assert isinstance(outcome, Denied | Failure)
        assert outcome.message.isprintable()


class TestRecord:
    async def test_a_recorder_that_fails_on_start_means_the_tool_does_not_run(self) -> None:
        """No record, no effect."""
        ran: list[int] = []

        @tool
        async def effect(n: int) -> int:
            ran.append(n)
            return n

        recorder = MemoryRecorder(fail=frozenset({"started"}))
        assert await code(await invoke(effect, {"n": 1}, recorder=recorder)) == "audit_unavailable"
        assert ran == []

    async def test_a_recorder_that_raises_at_once_is_no_different(self) -> None:
        """It need not be an async function, and may fail before there is anything to await."""

        class Sync(MemoryRecorder):
            def started(self, *arguments):  # type: ignore[no-untyped-def, override]
                raise OSError("the disk is full")

            finished = denied = started

        outcome = await invoke(add, {"a": 1, "b": 2}, recorder=Sync())
        assert await code(outcome) == "audit_unavailable"

    async def test_an_outcome_that_cannot_be_recorded_is_withheld(self) -> None:
        """No result leaves that an auditor cannot see."""
        recorder = MemoryRecorder(fail=frozenset({"finished"}))
        outcome = await invoke(add, {"a": 1, "b": 2}, recorder=recorder)
        assert isinstance(outcome, Failure)
        assert outcome.code == "audit_unavailable"

    async def test_a_refusal_that_cannot_be_recorded_stays_a_refusal(self) -> None:
        """The log's trouble must not turn a denial into anything else."""
        recorder = MemoryRecorder(fail=frozenset({"denied"}))
        outcome = await invoke(add, "{", recorder=recorder)
        assert isinstance(outcome, Denied)
        assert outcome.code == "audit_unavailable"

    @pytest.mark.parametrize(
        ("effects", "ending"), [("read", Cancelled), ("write", Uncertain), (None, Uncertain)]
    )
    async def test_a_cancelled_call_closes_its_record_before_it_raises(
        self, effects: Any, ending: type[Outcome]
    ) -> None:
        """A run that is given up leaves no open record, and none that calls a change undone."""
        entered = asyncio.Event()

        @tool(effects=effects)
        async def wait_for_ever(n: int) -> int:
            entered.set()
            await asyncio.Event().wait()
            return n

        recorder = MemoryRecorder()
        task = asyncio.create_task(invoke(wait_for_ever, {"n": 1}, recorder=recorder))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert recorder.kinds == ["started", "finished"]
        assert isinstance(recorder.last, ending)

    async def test_cancelling_while_the_record_is_written_still_closes_it(self) -> None:
        """A cancellation between 'started was written' and 'we know it' must not lose the call."""
        writing, go_on = asyncio.Event(), asyncio.Event()

        class Slow(MemoryRecorder):
            async def started(self, *arguments):  # type: ignore[no-untyped-def]
                writing.set()
                await go_on.wait()
                return await super().started(*arguments)

        recorder = Slow()
        task = asyncio.create_task(invoke(add, {"a": 1, "b": 2}, recorder=recorder))  # type: ignore[arg-type]
        await writing.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert recorder.kinds == ["started", "finished"]
        assert isinstance(recorder.last, Cancelled)

    async def test_cancelling_while_the_outcome_is_written_still_writes_it(self) -> None:
        """What happened is recorded as it happened, then the cancellation goes on."""
        writing, go_on = asyncio.Event(), asyncio.Event()

        class Slow(MemoryRecorder):
            async def finished(self, *arguments):  # type: ignore[no-untyped-def]
                writing.set()
                await go_on.wait()
                await super().finished(*arguments)

        recorder = Slow()
        task = asyncio.create_task(invoke(add, {"a": 1, "b": 2}, recorder=recorder))  # type: ignore[arg-type]
        await writing.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert recorder.last == Success(3)

    async def test_host_control_flow_from_a_tool_passes_once_the_record_is_closed(self) -> None:
        """A tool may suspend its run; `except Exception` along the way does not stop that."""

        class Suspend(HostControlFlow):
            pass

        @tool
        async def suspends(n: int) -> int:
            raise Suspend

        recorder = MemoryRecorder()
        with pytest.raises(Suspend):
            await invoke(suspends, {"n": 1}, recorder=recorder)
        assert recorder.kinds == ["started", "finished"]


class TestRunning:
    async def test_an_exception_becomes_a_failure_with_its_type_and_safe_words(self) -> None:
        """The model learns what went wrong; not where the host keeps things."""

        @tool
        async def fails(n: int) -> int:
            raise ValueError("no such SKU\nTraceback is not shown")

        @tool
        def opens(n: int) -> int:
            with open("/srv/private/deploy/secrets.json") as file:
                return len(file.read())

        @tool
        async def says_path(n: int) -> int:
            raise RuntimeError("cannot parse /home/ada/app/config.toml or C:\\Users\\ada\\x.ini")

        outcome = await invoke(fails, {"n": 1})
        assert isinstance(outcome, Failure)
        assert outcome.message == "the tool failed: ValueError: no such SKU"
        assert isinstance(outcome.exception, ValueError)
        for failing in (opens, says_path):
            outcome = await invoke(failing, {"n": 1})
            assert isinstance(outcome, Failure)
            for hidden in ("/srv", "/home", "ada", "secrets.json"):
                assert hidden not in outcome.message

    async def test_a_str_that_fails_does_not_hide_the_failure(self) -> None:
        """An exception class is the application's code too."""

        class Odd(Exception):
            def __str__(self) -> str:
                raise RuntimeError("never")

        @tool
        async def fails(n: int) -> int:
            raise Odd

        outcome = await invoke(fails, {"n": 1})
        assert isinstance(outcome, Failure)
        assert outcome.message == "the tool failed: Odd"

    @pytest.mark.parametrize(
        "raised", [SystemExit(3), asyncio.CancelledError(), StopAsyncIteration(), MemoryError()]
    )
    async def test_what_a_tool_raises_never_ends_the_host(self, raised: BaseException) -> None:
        """`sys.exit()` in a tool, or an inner task that was cancelled, is that tool's failure."""

        @tool
        async def fails(n: int) -> int:
            raise raised

        recorder = MemoryRecorder()
        assert await code(await invoke(fails, {"n": 1}, recorder=recorder)) == "tool_error"
        assert recorder.kinds == ["started", "finished"]

    async def test_a_tool_is_given_up_at_its_deadline(self) -> None:
        """Its own timeout first, the invoker's else."""

        @tool(timeout=0.01)
        async def own(n: int) -> int:
            await asyncio.Event().wait()
            return n

        @tool
        async def default(n: int) -> int:
            await asyncio.Event().wait()
            return n

        assert await code(await invoke(own, {"n": 1}, default_timeout=None)) == "timeout"
        assert await code(await invoke(default, {"n": 1}, default_timeout=0.01)) == "timeout"

    async def test_a_timeout_of_the_tools_own_is_its_failure(self) -> None:
        """Only our deadline is our timeout."""

        @tool
        async def inner(n: int) -> int:
            raise TimeoutError("upstream")

        outcome = await invoke(inner, {"n": 1})
        assert isinstance(outcome, Failure)
        assert outcome.code == "tool_error"

    async def test_a_tool_that_swallows_its_cancellation_is_late_all_the_same(self) -> None:
        """What comes after the deadline is not released as if it had been in time."""

        @tool(timeout=0.01)
        async def stubborn(n: int) -> int:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return n
            return n

        assert await code(await invoke(stubborn, {"n": 1})) == "timeout"

    async def test_a_sync_tool_runs_off_the_event_loop_with_its_context(self) -> None:
        """A blocking tool must not stop the loop, nor the calls beside it."""
        loop, inside = asyncio.get_running_loop(), asyncio.Event()
        go_on = threading.Event()
        names: list[str] = []

        @tool
        def blocks(n: int) -> int:
            names.append(threading.current_thread().name)
            loop.call_soon_threadsafe(inside.set)
            assert go_on.wait(30)
            return n

        task = asyncio.create_task(invoke(blocks, {"n": 7}))  # type: ignore[arg-type]
        await inside.wait()
        go_on.set()
        assert await task == Success(7)
        assert names[0] != threading.main_thread().name

    async def test_sync_tools_run_at_once_within_a_bound(self) -> None:
        """Two calls that wait for each other both get a thread; a hundred do not get a hundred."""
        barrier = threading.Barrier(2)
        threads: set[str] = set()

        @tool
        def meet(n: int) -> int:
            barrier.wait(30)
            threads.add(threading.current_thread().name)
            return n

        @tool
        def count(n: int) -> int:
            threads.add(threading.current_thread().name)
            time.sleep(0.001)
            return n

        invoker = Invoker([meet, count])
        await asyncio.gather(*(invoker.invoke(call(meet, {"n": n}), RUN) for n in range(2)))
        await asyncio.gather(*(invoker.invoke(call(count, {"n": n}), RUN) for n in range(100)))
        assert len(threads) <= 32

    async def test_a_call_given_up_before_it_got_a_thread_never_starts(self) -> None:
        """A sync mutation whose caller was told 'timeout' must not begin afterwards."""
        from ptc_tools import threads

        pool = threads.ThreadPool(limit=1)
        release, ran = threading.Event(), []
        pool.submit(lambda: release.wait(30) and None)
        original, threads._POOL = threads._POOL, pool
        try:

            @tool(timeout=0.01)
            def late(n: int) -> int:
                ran.append(n)
                return n

            assert await code(await invoke(late, {"n": 1})) == "timeout"
            done = threading.Event()
            release.set()
            pool.submit(done.set)
            assert done.wait(30)
            assert ran == []
        finally:
            threads._POOL = original

    async def test_the_context_is_injected_and_is_the_same_path(self) -> None:
        """A tool that calls another tool goes through every check again."""

        @tool
        async def outer(n: int, ctx: ToolContext) -> str:
            inner = await ctx.invoke(call("add", {"a": "x", "b": n}), ctx.run)
            return f"{ctx.run.run_id} {ctx.call.call_id} {ctx.attempt} {inner.status}"

        assert "ctx" not in outer.contract.parameters["properties"]  # type: ignore[operator]
        outcome = await Invoker([outer, add]).invoke(call(outer, {"n": 1}), RUN)
        assert outcome == Success("run_1 call_1 1 denied")


class TestResults:
    @pytest.mark.parametrize(
        "value", ["x", None, float("nan"), float("inf"), object(), {1: 2}, b"\xff", 1.5, "\ud800"]
    )
    async def test_a_result_that_breaks_its_schema_is_a_failure(self, value: object) -> None:
        """An invented or broken result never reaches a program."""

        @tool
        async def broken(n: int) -> int:
            return value  # type: ignore[return-value]

        assert await code(await invoke(broken, {"n": 1})) == "invalid_result"

    async def test_a_raw_tool_must_return_json(self) -> None:
        """What JSON cannot carry is an error, never a silent string."""
        definition = {"name": "raw", "parameters": {"type": "object", "properties": {}}}
        for value in (object(), {1: 2}, float("nan"), {"a": b"x"}):
            outcome = await invoke(define_tool(definition, lambda value=value: value))
            assert await code(outcome) == "invalid_result"

    async def test_a_result_shares_nothing_with_the_tool(self) -> None:
        """What was recorded cannot change afterwards."""
        kept = {"rows": [1]}
        definition = {"name": "raw", "parameters": {"type": "object", "properties": {}}}
        outcome = await invoke(define_tool(definition, lambda: kept))
        kept["rows"].append(2)
        assert outcome == Success({"rows": [1]})

    async def test_a_result_over_the_invokers_size_is_a_failure(self) -> None:
        """A tool must not fill the model's context, nor the host's memory, by accident."""

        @tool
        async def large(n: int) -> str:
            return "x" * n

        assert await invoke(large, {"n": 10}, max_result_bytes=100) == Success("x" * 10)
        outcome = await invoke(large, {"n": 1000}, max_result_bytes=100)
        assert await code(outcome) == "invalid_result"

    async def test_the_message_about_a_broken_result_does_not_quote_it(self) -> None:
        """What a tool should not have returned must not reach the model in the error."""
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        definition = {
            "name": "raw",
            "parameters": {"type": "object", "properties": {}},
            "output_schema": schema,
        }
        outcome = await invoke(define_tool(definition, lambda: {"n": "hunter2"}))
        assert isinstance(outcome, Failure)
        assert "hunter2" not in outcome.message


class TestMiddleware:
    async def test_the_first_middleware_is_the_outermost(self) -> None:
        """An onion, as everywhere."""
        order: list[str] = []

        def layer(name: str):  # type: ignore[no-untyped-def]
            async def middleware(invocation: Invocation, next: Next) -> Outcome:
                order.append(f"{name} in {invocation.tool.contract.name}")
                outcome = await next(invocation)
                order.append(f"{name} out")
                return outcome

            return middleware

        assert await invoke(add, {"a": 1, "b": 2}, middleware=[layer("a"), layer("b")]) == Success(3)
        assert order == ["a in add", "b in add", "b out", "a out"]

    async def test_changed_arguments_are_validated_again(self) -> None:
        """A middleware cannot widen what a tool accepts."""

        def change(arguments: dict[str, object]):  # type: ignore[no-untyped-def]
            async def middleware(invocation: Invocation, next: Next) -> Outcome:
                return await next(invocation.with_arguments(arguments))  # type: ignore[arg-type]

            return middleware

        recorder = MemoryRecorder()
        outcome = await invoke(
            add, {"a": 1, "b": 2}, middleware=[change({"a": 5, "b": 6})], recorder=recorder
        )
        assert outcome == Success(11)
        assert recorder.arguments == [{"a": 5, "b": 6}]
        for bad in ({"a": "x", "b": 1}, {"a": 1}, {"a": 1, "b": float("nan")}, {"a": object(), "b": 1}):
            recorder = MemoryRecorder()
            outcome = await invoke(add, {"a": 1, "b": 2}, middleware=[change(bad)], recorder=recorder)
            assert await code(outcome) == "invalid_arguments"
            assert recorder.kinds == ["denied"]

    async def test_an_answer_without_the_tool_is_authorised_and_recorded(self) -> None:
        """A cache is no way around the policy or the log."""

        async def cache(invocation: Invocation, next: Next) -> Outcome:
            return Success(42)

        class Deny:
            async def authorize(self, principal, tool, arguments, caller):  # type: ignore[no-untyped-def]
                return Denied("not_authorized", "no")

        recorder = MemoryRecorder()
        assert await invoke(add, {"a": 1, "b": 2}, middleware=[cache], recorder=recorder) == Success(42)
        assert recorder.kinds == ["started", "finished"]
        outcome = await invoke(add, {"a": 1, "b": 2}, middleware=[cache], policy=Deny())
        assert await code(outcome) == "not_authorized"

    async def test_an_overridden_result_must_fit_the_schema(self) -> None:
        """What is released is what the contract says, whoever made it."""

        async def override(invocation: Invocation, next: Next) -> Outcome:
            await next(invocation)
            return Success("three")

        recorder = MemoryRecorder()
        outcome = await invoke(add, {"a": 1, "b": 2}, middleware=[override], recorder=recorder)
        assert await code(outcome) == "invalid_result"
        assert recorder.last is outcome

    async def test_a_middleware_may_refuse_and_the_refusal_is_recorded_once(self) -> None:
        """A guard in front of a tool is a denial like any other."""

        async def guard(invocation: Invocation, next: Next) -> Outcome:
            return Denied("limit_exceeded", "enough for today")

        recorder = MemoryRecorder()
        outcome = await invoke(add, {"a": 1, "b": 2}, middleware=[guard], recorder=recorder)
        assert outcome == Denied("limit_exceeded", "enough for today")
        assert recorder.kinds == ["denied"]

    @pytest.mark.parametrize("after", [False, True])
    async def test_a_middleware_that_raises_is_a_recorded_failure(self, after: bool) -> None:
        """Before or after the tool ran: the record is closed either way."""

        async def broken(invocation: Invocation, next: Next) -> Outcome:
            if after:
                await next(invocation)
            raise KeyError("x")

        recorder = MemoryRecorder()
        outcome = await invoke(add, {"a": 1, "b": 2}, middleware=[broken], recorder=recorder)
        assert await code(outcome) == "tool_error"
        assert recorder.kinds == ["started", "finished"]

    async def test_each_attempt_has_its_own_record_and_number(self) -> None:
        """A retry is visible to the auditor and to the tool."""
        attempts: list[int] = []

        @tool(effects="read")
        async def flaky(n: int, ctx: ToolContext) -> int:
            attempts.append(ctx.attempt)
            if ctx.attempt == 1:
                raise ConnectionError("gone")
            return n

        async def again(invocation: Invocation, next: Next) -> Outcome:
            await next(invocation)
            return await next(invocation)

        recorder = MemoryRecorder()
        assert await invoke(flaky, {"n": 1}, middleware=[again], recorder=recorder) == Success(1)
        assert attempts == [1, 2]
        assert recorder.kinds == ["started", "started", "finished", "finished"]

    async def test_a_middleware_that_leaves_after_the_tool_ran_leaves_a_true_record(self) -> None:
        """The effect has happened; that the run was suspended afterwards does not undo it."""

        class Suspend(HostControlFlow):
            pass

        async def leaves(invocation: Invocation, next: Next) -> Outcome:
            await next(invocation)
            raise Suspend

        recorder = MemoryRecorder()
        with pytest.raises(Suspend):
            await invoke(add, {"a": 1, "b": 2}, middleware=[leaves], recorder=recorder)
        assert recorder.last == Success(3)

    async def test_a_middleware_that_returns_something_else_is_a_failure(self) -> None:
        """Only an outcome is an outcome."""

        async def odd(invocation: Invocation, next: Next) -> Outcome:
            return 3  # type: ignore[return-value]

        assert await code(await invoke(add, {"a": 1, "b": 2}, middleware=[odd])) == "tool_error"

    async def test_a_middleware_cannot_name_another_tool(self) -> None:
        """The tool that was resolved is the tool that runs."""
        from dataclasses import replace

        async def swap(invocation: Invocation, next: Next) -> Outcome:
            return await next(replace(invocation, tool=direct_only))

        assert await invoke(add, {"a": 1, "b": 2}, middleware=[swap]) == Success(3)


@pytest.mark.parametrize(
    "odd",
    [
        Call("c", ["add"], {}),  # type: ignore[arg-type]
        Call("c", None, "{}"),  # type: ignore[arg-type]
        Call("c", "add", "{}", namespace=["x"]),  # type: ignore[arg-type]
        Call("c", "add", 5),  # type: ignore[arg-type]
        Call("c", "add", b"{}"),  # type: ignore[arg-type]
        Call("c", "add", {"a": 10**5000, "b": 1}),
        Call("c", "add", {"a": 1, "k" * 100_000: "\x1b"}),
        Call("c", "add", {"a": [[[]]] * 10_000, "b": 1}),
        Call("c", "add", "[" * 100_000),
    ],
    ids=range(9),
)
async def test_an_odd_call_is_denied_and_never_raises(odd: Call) -> None:
    """The path's promise holds for calls that no parser of ours would make."""
    outcome = await Invoker([add]).invoke(odd, RUN)
    assert isinstance(outcome, Denied)
    assert len(outcome.message) < 600


async def test_many_calls_at_once_do_not_mix() -> None:
    """One invoker serves a batch that runs concurrently."""

    @tool
    async def slow(n: int) -> int:
        await asyncio.sleep(0)
        return n

    invoker = Invoker([slow])
    outcomes = await asyncio.gather(*(invoker.invoke(call(slow, {"n": n}), RUN) for n in range(50)))
    assert outcomes == [Success(n) for n in range(50)]


def test_a_stream_is_not_a_result() -> None:
    """A tool returns one value, with a bound."""
    from ptc_tools import InvalidSignature

    async def stream(n: int) -> AsyncIterator[int]:
        yield n

    with pytest.raises(InvalidSignature):
        tool(stream)


def test_the_invoker_refuses_a_deadline_that_is_none() -> None:
    """Zero would look like a deadline and be none."""
    with pytest.raises(ValueError):
        Invoker(Catalog(), default_timeout=0)


async def test_a_tool_called_by_its_qualified_name_is_told_apart() -> None:
    """A model that writes `crm.find` as the name is told what to write instead."""

    @tool(namespace="crm")
    def find() -> int:
        """Find."""
        return 1

    outcome = await Invoker([find]).invoke(Call("c", "crm.find", "{}"), RunContext("r"))
    assert isinstance(outcome, Denied)
    assert "its name is 'find' and its namespace 'crm'" in outcome.message


async def test_an_empty_namespace_is_named_in_the_refusal() -> None:
    """It is not the same as none, and the name alone would look right."""

    @tool
    def find() -> int:
        """Find."""
        return 1

    outcome = await Invoker([find]).invoke(Call("c", "find", "{}", namespace=""), RunContext("r"))
    assert isinstance(outcome, Denied)
    assert "in the namespace ''" in outcome.message


@pytest.mark.parametrize("arguments", ["{}", '{"x": 1, "y": 2}'])
async def test_what_is_missing_or_too_much_is_said_without_a_riddle(arguments: str) -> None:
    """The place is the arguments themselves, which needs no words."""

    @tool
    def find(x: int) -> int:
        """Find."""
        return x

    outcome = await Invoker([find]).invoke(Call("c", "find", arguments), RunContext("r"))
    assert isinstance(outcome, Denied)
    assert "the value itself" not in outcome.message


async def test_a_raw_tool_with_an_annotation_that_means_nothing_is_refused() -> None:
    """It may be the context's, and every call would lack it."""

    def odd(ctx: "NotThere") -> int:  # type: ignore[name-defined]  # noqa: F821
        return 1

    with pytest.raises(InvalidSignature, match="NotThere"):
        define_tool({"name": "t", "parameters": {"type": "object"}}, odd)


async def test_a_raw_tool_finds_types_that_are_defined_beside_it() -> None:
    """As typed tools do."""

    class Local:
        pass

    def fine(x: Local, ctx: ToolContext) -> int:
        return 1

    assert define_tool({"name": "t", "parameters": {"type": "object"}}, fine).takes_context == "ctx"
