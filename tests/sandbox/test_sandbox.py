"""Programs in the sandbox: what they compute, how they end, and what the host is told."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from ptc_sandbox import Limits, ProgramResult, Sandbox, SandboxBroken, SandboxClosed
from ptc_sandbox.events import Ended
from ptc_sandbox.forkserver import Child
from ptc_sandbox.pool import Pool
from ptc_tools.call import Call, Program
from ptc_tools.context import RunContext
from ptc_tools.errors import HostControlFlow, RegistrationError
from ptc_tools.outcome import Cancelled, Denied, Outcome, Success
from ptc_tools.tool import tool
from tests.sandbox.conftest import QUICK, descendants
from tests.sandbox.granted import INTEGER, TOOLS, programmatic

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_output_and_last_expression_are_the_result(sandbox: Sandbox) -> None:
    """What a program prints is its output, its last expression its value."""
    result = await sandbox.run("print('a', 1, sep='-')\nprint('b', end='')\n{'n': (1, 2.5, None, True)}")
    assert (result.status, result.output, result.value) == (
        "completed",
        "a-1\nb",
        {"n": [1, 2.5, None, True]},
    )
    assert result.error is None
    assert result.cpu_us is not None


async def test_the_most_memory_that_a_program_had_is_in_its_result(sandbox: Sandbox) -> None:
    """In bytes, with the interpreter that every program has: also where no control group counts it."""
    small = await sandbox.run("1")
    large = await sandbox.run("x = 'a' * 50_000_000\nlen(x)")
    assert small.peak_memory is not None
    assert large.peak_memory is not None
    assert 1_000_000 < small.peak_memory < large.peak_memory - 40_000_000


async def test_a_program_without_a_last_expression_has_no_value(sandbox: Sandbox) -> None:
    """A statement at the end leaves None, as in a notebook."""
    result = await sandbox.run("x = 1")
    assert (result.status, result.value, result.output) == ("completed", None, "")


async def test_calls_go_the_one_path(sandbox: Sandbox) -> None:
    """A call of a program is a Call with the program as its caller, its line, and an id of its own."""
    seen: list[Call] = []

    async def invoke(call: Call, run: RunContext) -> Outcome:
        seen.append(call)
        assert "p1" in run.programs
        return Success(41)

    run = RunContext("run_1")
    result = await sandbox.run(
        "x = 1\ny = await get(i=x)\ny + 1", tools=TOOLS, invoke=invoke, run=run, caller_id="p1"
    )
    assert result.value == 42
    assert seen == [Call("p1:1", "get", {"i": 1}, Program("p1"), None, 2)]
    assert [(call.name, call.line, call.outcome) for call in result.calls] == [("get", 2, Success(41))]
    assert "p1" not in run.programs


async def test_gathered_calls_are_in_flight_at_once(sandbox: Sandbox) -> None:
    """Two calls that wait for each other finish only if both run at the same time."""
    barrier = asyncio.Barrier(2)

    async def meet(i: int) -> int:
        await barrier.wait()
        return i

    code = "import asyncio\nawait asyncio.gather(meet(i=1), meet(i=2))"
    result = await sandbox.run(code, tools=[programmatic("meet", {"i": INTEGER}, meet, INTEGER)])
    assert result.value == [1, 2]


async def test_calls_complete_in_the_order_the_host_finishes_them(sandbox: Sandbox) -> None:
    """As-completed means the host's order, not the order of the calls."""
    second_done = asyncio.Event()

    async def job(i: int) -> int:
        if i == 1:
            await second_done.wait()
        else:
            second_done.set()
        return i

    code = "import asyncio\n[await f for f in asyncio.as_completed([job(i=1), job(i=2)])]"
    result = await sandbox.run(code, tools=[programmatic("job", {"i": INTEGER}, job, INTEGER)])
    assert result.value == [2, 1]


async def test_more_calls_than_may_be_in_flight_wait_their_turn() -> None:
    """The bound on calls at once holds, and every call is answered."""
    now = peak = 0

    async def work(i: int) -> int:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0)
        now -= 1
        return i

    async with Sandbox(limits=Limits(calls_in_flight=3)) as box:
        code = "import asyncio\nsum(await asyncio.gather(*[work(i=i) for i in range(20)]))"
        result = await box.run(code, tools=[programmatic("work", {"i": INTEGER}, work, INTEGER)])
    assert result.value == 190
    assert peak == 3


async def test_a_tools_failure_is_catchable_at_its_await(sandbox: Sandbox) -> None:
    """Whatever the host's exception was, the program gets a ToolError where it awaited, without host paths."""
    code = "try:\n    await read_doc(name='secret')\nexcept ToolError as e:\n    out = [type(e).__name__, e.code, str(e)]\nout"
    result = await sandbox.run(code, tools=TOOLS)
    assert isinstance(result.value, list)
    kind, error_code, message = result.value
    assert (kind, error_code) == ("ToolError", "tool_error")
    assert "PermissionError" in str(message)
    assert "/srv" not in str(message)


async def test_two_failures_in_a_gather_are_both_catchable(sandbox: Sandbox) -> None:
    """Any number of failures at once: each reaches its own await (a report against an interpreter says otherwise)."""
    code = (
        "import asyncio\nrs = await asyncio.gather(read_doc(name='x'), read_doc(name='y'), get(i=1),"
        " return_exceptions=True)\n[type(r).__name__ for r in rs]"
    )
    assert (await sandbox.run(code, tools=TOOLS)).value == ["ToolError", "ToolError", "int"]


async def test_bad_arguments_are_an_error_of_the_call(sandbox: Sandbox) -> None:
    """A wrong type, a missing or an extra argument is refused by the host; nothing is coerced."""
    for call in ("add(a='1', b=2)", "add(a=1)", "add(a=1, b=2, c=3)", "add(a=True, b=1)"):
        result = await sandbox.run(
            f"try:\n    await {call}\nexcept ToolDenied as e:\n    c = e.code\nc", tools=TOOLS
        )
        assert result.value == "invalid_arguments", call


async def test_positional_arguments_go_in_the_declared_order(sandbox: Sandbox) -> None:
    """Models write positional calls; the order of the declaration is what they mean."""
    assert (await sandbox.run("await add(1, b=2)", tools=TOOLS)).value == 3
    result = await sandbox.run("await add(1, 2, 3)", tools=TOOLS)
    assert result.error is not None
    assert result.error.type == "TypeError"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("{1, 2}", "is a set"),
        ("float('nan')", "is nan"),
        ("[1, {'a': float('inf')}]", "is inf"),
        ("{1: 2}", "JSON keys are strings"),
        ("b'x'", "is a bytes"),
        ("object()", "is a object"),
        ("(i for i in [1])", "is a generator"),
        ("'\\ud800'", "surrogate"),
        ("[[[[[[" * 12 + "1" + "]]]]]]" * 12, "nested deeper"),
    ],
)
async def test_what_json_cannot_carry_is_an_error(sandbox: Sandbox, value: str, says: str) -> None:
    """Nothing becomes a string in silence, neither as a value nor as an argument."""
    result = await sandbox.run(value)
    assert result.status == "raised"
    assert says in str(result.error)
    result = await sandbox.run(f"await echo(x={value})", tools=TOOLS)
    assert result.status == "raised"
    assert says in str(result.error)
    assert result.calls == ()


async def test_an_error_names_line_and_source(sandbox: Sandbox) -> None:
    """A model can mend what it can see: type, message, line, the lines around it, and the output so far."""
    result = await sandbox.run("print('before')\nx = 1\nd = {}\nd['k']\n")
    assert result.status == "raised"
    assert result.output == "before\n"
    assert result.error is not None
    assert (result.error.type, result.error.line) == ("KeyError", 4)
    assert result.error.excerpt is not None
    assert ">    4 | d['k']" in result.error.excerpt


async def test_a_syntax_error_names_its_line(sandbox: Sandbox) -> None:
    """A program that is not Python is told where."""
    result = await sandbox.run("x = 1\nif x\n    pass")
    assert result.status == "raised"
    assert result.error is not None
    assert (result.error.type, result.error.line) == ("SyntaxError", 2)


async def test_a_forgotten_await_is_reported_before_the_run(sandbox: Sandbox) -> None:
    """A tool called without await would silently do nothing."""
    result = await sandbox.run("print('ran')\nget(i=1)\nprint('done')", tools=TOOLS)
    assert result.status == "raised"
    assert result.error is not None
    assert (result.error.type, result.error.line, result.output) == ("ForgottenAwait", 2, "")


EVIDENCE = {
    "killed:time": "the host's clock",
    "killed:cpu": "RLIMIT_CPU",
    "killed:memory": "MemoryError",
    "killed:output": "the host's counter",
    "killed:calls": "the host's counter",
}


@pytest.mark.parametrize(
    ("limits", "code", "status"),
    [
        (QUICK.replace(wall_seconds=0.5), "while True: pass", "killed:time"),
        (QUICK.replace(wall_seconds=0.5), "await get(i=-1)", "killed:time"),
        (QUICK.replace(wall_seconds=0.5), "import time\ntime.sleep(1000)", "killed:time"),
        (QUICK.replace(wall_seconds=0.5), "import asyncio\nawait asyncio.sleep(1000)", "killed:time"),
        (QUICK.replace(cpu_seconds=1), "while True: pass", "killed:cpu"),
        (QUICK, "x = []\nwhile True: x.append('a' * 1000000)", "killed:memory"),
        (QUICK.replace(output_bytes=10_000), "while True: print('x' * 1000)", "killed:output"),
        (QUICK.replace(calls=5), "for i in range(10): await get(i=i)", "killed:calls"),
    ],
)
async def test_a_limit_ends_the_program(limits: Limits, code: str, status: str) -> None:
    """Each bound has an outcome of its own, told by evidence."""
    never = asyncio.Event()

    async def get(i: int) -> int:
        if i < 0:
            await never.wait()
        return i

    async with Sandbox(limits=limits) as box:
        result = await box.run(code, tools=[programmatic("get", {"i": INTEGER}, get, INTEGER, "read")])
    assert result.status == status
    assert result.error is not None
    assert EVIDENCE[status] in result.evidence


async def test_the_time_limit_says_what_the_program_waited_for() -> None:
    """Wall clock counts waiting for tools and sleep, and the message tells them from computing."""
    never = asyncio.Event()
    outcomes: list[Outcome | None] = []

    async def slow(i: int) -> int:
        await never.wait()
        return i

    async with Sandbox(limits=Limits(wall_seconds=0.4)) as box:
        result = await box.run(
            "print('x')\nawait slow(i=1)", tools=[programmatic("slow", {"i": INTEGER}, slow, INTEGER, "read")]
        )
        outcomes = [call.outcome for call in result.calls]
        busy = await box.run("print('x')\nwhile True: pass")
        idle = await box.run("import time\ntime.sleep(0.01)\ntime.sleep(1000)")
        idle_async = await box.run("import asyncio\nawait asyncio.sleep(1000)")
        woken = await box.run("import time\ntime.sleep(0.01)\nwhile True: pass")
    assert "while it waited for slow" in str(result.error)
    assert outcomes == [None]
    assert "while it computed" in str(busy.error)
    assert "while it slept" in str(idle.error)
    assert "while it slept" in str(idle_async.error)
    assert "while it computed" in str(woken.error)
    assert result.output == busy.output == "x\n"


async def test_an_oversized_value_or_argument_is_an_error() -> None:
    """An honest program hears of the limit; it need not be killed."""
    async with Sandbox(limits=Limits(result_bytes=1000, argument_bytes=1000, answer_bytes=1000)) as box:
        value = await box.run("'x' * 2000")
        argument = await box.run(
            "try:\n    await echo(x='x' * 2000)\nexcept ValueError as e:\n    m = str(e)\nm", tools=TOOLS
        )
        answer = await box.run(
            "try:\n    await big(i=1)\nexcept ToolError as e:\n    m = e.code\nm",
            tools=[programmatic("big", {"i": INTEGER}, lambda i: "x" * 2000, {"type": "string"})],
        )
    assert value.status == "raised"
    assert "too large" in str(value.error)
    assert "too large" in str(argument.value)
    assert answer.value == "invalid_result"


async def test_a_source_that_is_too_long_is_refused(sandbox: Sandbox) -> None:
    """The host does not even send it."""
    result = await sandbox.run("x = 1\n" * 100_000)
    assert result.status == "denied"
    assert result.error is not None
    assert result.error.code == "source_too_long"


async def test_tools_cannot_be_changed_from_inside(sandbox: Sandbox) -> None:
    """`add_tools` and `remove_tools` raise a catchable RuntimeError that says how tools are changed; it is recorded."""
    events: list[tuple[str, Any]] = []

    class Recorder:
        async def started(self, *_: Any) -> object:
            return None

        async def finished(self, *_: Any) -> None:
            return None

        async def denied(self, *_: Any) -> None:
            return None

        async def event(self, type: str, data: Any, run: RunContext) -> None:
            events.append((type, data))

    code = (
        "out = []\nfor change in (add_tools, remove_tools):\n    try:\n        change([get])\n"
        "    except RuntimeError as e:\n        out.append('between runs' in str(e))\nout + [await get(i=1)]"
    )
    result = await sandbox.run(code, tools=TOOLS, recorder=Recorder())
    assert result.value == [True, True, 1]
    assert [data["detail"] for kind, data in events if kind == "sandbox.violation"] == [
        "add_tools() was refused",
        "remove_tools() was refused",
    ]
    assert events[0][0] == "program.started"
    assert events[-1][0] == "program.finished"


async def test_a_cancelled_await_tells_the_host_and_a_late_answer_is_dropped(sandbox: Sandbox) -> None:
    """The program goes on; the host's call is cancelled and closed."""
    cancelled = asyncio.Event()

    async def slow(i: int) -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return i

    code = (
        "import asyncio\ntry:\n    await asyncio.wait_for(slow(i=1), 0.01)\nexcept asyncio.TimeoutError:\n    pass\n"
        "await get(i=2)"
    )
    tool = programmatic("slow", {"i": INTEGER}, slow, INTEGER, effects="read")
    result = await sandbox.run(code, tools=[*TOOLS, tool])
    assert result.value == 2
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_a_write_that_the_program_gave_up_finishes(sandbox: Sandbox) -> None:
    """What changes something outside is not broken off half way, also when the program is over meanwhile."""
    may_finish, finished = asyncio.Event(), asyncio.Event()

    async def transfer(i: int) -> int:
        await may_finish.wait()
        finished.set()
        return i

    def done() -> bool:
        """Called by the program after it gave the transfer up."""
        may_finish.set()
        return finished.is_set()

    code = (
        "import asyncio\ntry:\n    await asyncio.wait_for(transfer(i=1), 0.01)\nexcept asyncio.TimeoutError:\n    pass\n"
        "await done()"
    )
    tool = programmatic("transfer", {"i": INTEGER}, transfer, INTEGER, effects="write")
    result = await sandbox.run(code, tools=[tool, done])
    assert result.value is False
    assert finished.is_set()
    assert [call.outcome for call in result.calls] == [Success(1), Success(False)]


async def test_host_control_flow_passes_through(sandbox: Sandbox) -> None:
    """What the host raised to leave is not turned into a tool's failure."""

    class Suspend(HostControlFlow):
        pass

    async def invoke(call: Call, run: RunContext) -> Outcome:
        raise Suspend

    with pytest.raises(Suspend):
        await sandbox.run("try:\n    await get(i=1)\nexcept Exception:\n    pass", tools=TOOLS, invoke=invoke)
    assert (await sandbox.run("1")).value == 1


async def test_cancelling_the_run_kills_the_program_and_closes_its_calls(sandbox: Sandbox) -> None:
    """Structured: nothing of the program goes on after the run was cancelled."""
    started, closed = asyncio.Event(), asyncio.Event()

    async def invoke(call: Call, run: RunContext) -> Outcome:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        return Cancelled()

    task = asyncio.create_task(sandbox.run("await get(i=1)", tools=TOOLS, invoke=invoke))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


async def test_a_tool_that_does_not_allow_programs_is_refused(sandbox: Sandbox) -> None:
    """Granting is the host's explicit word; a direct-only tool is not lent to programs."""

    @tool
    def direct_only(i: int) -> int:
        """For the model alone."""
        return i

    with pytest.raises(RegistrationError, match="direct_only"):
        await sandbox.run("1", tools=[direct_only])


async def test_plain_functions_become_tools(sandbox: Sandbox) -> None:
    """Sync or async, typed: that is all a tool of a sandbox alone needs."""

    def double(i: int) -> int:
        """Twice as much."""
        return 2 * i

    assert (await sandbox.run("await double(i=4)", tools=[double])).value == 8


async def test_denials_reach_the_program_as_tool_denied(sandbox: Sandbox) -> None:
    """A policy's no is an exception of its own in the program."""

    async def invoke(call: Call, run: RunContext) -> Outcome:
        return Denied("not_approved", "somebody said no")

    code = "try:\n    await get(i=1)\nexcept ToolDenied as e:\n    r = [e.code, str(e)]\nr"
    result = await sandbox.run(code, tools=TOOLS, invoke=invoke)
    assert result.value == ["not_approved", "somebody said no"]


async def test_a_deadlock_in_the_program_is_told(sandbox: Sandbox) -> None:
    """Waiting for what cannot come ends at once, not at the time limit."""
    result = await sandbox.run("import asyncio\nawait asyncio.Event().wait()")
    assert result.status == "raised"
    assert result.error is not None
    assert result.error.type == "Deadlock"


async def test_asyncio_run_works_with_and_without_top_level_await(sandbox: Sandbox) -> None:
    """Models write both."""
    main = "import asyncio\nasync def main():\n    return await get(i=3)\n"
    assert (await sandbox.run(main + "asyncio.run(main())", tools=TOOLS)).value == 3
    code = main + "a = await get(i=1)\nb = asyncio.run(main())\n[a, b]"
    assert (await sandbox.run(code, tools=TOOLS)).value == [1, 3]


async def test_tasks_left_over_are_cancelled_with_the_program(sandbox: Sandbox) -> None:
    """A call of a task that nobody awaited is given up when the program ends."""
    code = "import asyncio\nt = asyncio.create_task(slow(i=1))\nawait asyncio.sleep(0)\n'done'"

    async def slow(i: int) -> int:
        await asyncio.Event().wait()
        return i

    result = await sandbox.run(code, tools=[programmatic("slow", {"i": INTEGER}, slow, INTEGER, "read")])
    assert result.value == "done"


async def test_many_programs_at_once_each_get_their_own_answers() -> None:
    """Programs do not see each other, however many run."""
    async with Sandbox(ahead=4, concurrency=8) as box:
        results = await asyncio.gather(
            *[box.run(f"x = {n}\nawait get(i=x) + x", tools=TOOLS) for n in range(40)]
        )
    assert [result.value for result in results] == [2 * n for n in range(40)]


async def test_a_fork_server_that_dies_is_replaced() -> None:
    """The next programs run, also one that was given a child which was as good as dead."""
    async with Sandbox(ahead=1) as box:
        await box.run("1")
        before = descendants()
        server = min(before)
        os.kill(server, signal.SIGKILL)
        results = [await box.run("1 + 1") for _ in range(2)]
    assert [(result.status, result.value) for result in results] == [("completed", 2)] * 2


async def run_to_end(box: Sandbox, code: str) -> ProgramResult:
    """By the events of `start`."""
    execution = await box.start(code)
    while not isinstance(event := await execution.next_event(), Ended):
        pass
    return event.result


@pytest.mark.parametrize("how", [Sandbox.run, run_to_end], ids=["run", "start"])
@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize(("kills", "status"), [(1, "completed"), (2, "crashed")])
async def test_a_program_whose_child_is_killed_before_it_did_anything_gets_another(
    monkeypatch: pytest.MonkeyPatch, how: Any, concurrency: int, kills: int, status: str
) -> None:
    """Nothing of it was seen or asked for, so it is safe to begin again; but only once. No place is lost."""
    given: list[Child] = []
    acquire = Pool.acquire

    async def acquire_and_kill(pool: Pool) -> Child:
        child = await acquire(pool)
        if len(given) < kills:
            child.kill()
        given.append(child)
        return child

    monkeypatch.setattr(Pool, "acquire", acquire_and_kill)
    async with Sandbox(ahead=1, limits=QUICK, concurrency=concurrency) as box:
        result = await how(box, "sum(range(10))")
        assert (result.status, len(given)) == (status, 2)
        assert (await box.run("1")).value == 1


@pytest.mark.parametrize("how", [Sandbox.run, run_to_end], ids=["run", "start"])
async def test_where_no_other_child_can_be_had_the_host_is_told(
    monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """The fork server that killed the first may be gone for good: an error, and nobody waits."""
    given = await killed_first(monkeypatch, lambda: SandboxBroken("there is none"))
    async with Sandbox(ahead=1, limits=QUICK) as box:
        with pytest.raises(SandboxBroken, match="there is none"):
            await asyncio.wait_for(how(box, "1"), 20)
        assert len(given) == 1


async def test_a_sandbox_may_be_closed_while_a_program_waits_for_another_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends as cancelled, like any other that runs."""
    waits = asyncio.Event()

    async def nothing_comes() -> BaseException:
        waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    await killed_first(monkeypatch, nothing_comes)
    box = Sandbox(ahead=1, limits=QUICK)
    running = asyncio.create_task(box.run("1"))
    await asyncio.wait_for(waits.wait(), 20)
    await asyncio.wait_for(box.aclose(), 20)
    assert (await asyncio.wait_for(running, 20)).status == "cancelled"


async def killed_first(monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]) -> list[Child]:
    """Let the first child that is given out be killed; whoever asks again gets the error of `then`."""
    given: list[Child] = []
    acquire = Pool.acquire

    async def acquire_once(pool: Pool) -> Child:
        if given:
            error = then()
            raise await error if inspect.isawaitable(error) else error
        given.append(await acquire(pool))
        given[0].kill()
        return given[0]

    monkeypatch.setattr(Pool, "acquire", acquire_once)
    return given


async def test_a_program_that_did_something_is_never_begun_again() -> None:
    """A call that was made must not be made twice."""
    seen: list[int] = []

    async def strike(i: int) -> int:
        seen.append(i)
        (execution,) = box._running
        execution._child.kill()
        return i

    async with Sandbox(ahead=1, limits=QUICK) as box:
        result = await box.run("await strike(i=1)\nwhile True: pass", tools=[strike])
    assert (result.status, seen) == ("crashed", [1])


async def test_a_closed_sandbox_says_so() -> None:
    """Using it again is the host's mistake."""
    box = Sandbox()
    await box.run("1")
    await box.aclose()
    with pytest.raises(SandboxClosed):
        await box.run("1")


async def test_closing_leaves_no_process_and_no_descriptor() -> None:
    """After `aclose` the host is as it was."""
    async with Sandbox() as warm:
        await warm.run("1")
    before, fds = descendants(), len(os.listdir("/proc/self/fd"))
    async with Sandbox(ahead=3) as box:
        await box.run("1")
        running = asyncio.create_task(box.run("while True: pass"))
        await asyncio.sleep(0)
    result = await running
    assert result.status == "cancelled"
    assert descendants() == before
    assert len(os.listdir("/proc/self/fd")) == fds


async def test_the_environment_of_the_host_is_not_there(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret of the host's environment cannot be found by plain CPython behind the kernel wall alone."""
    monkeypatch.setenv("PTC_TEST_SECRET", "canary-7f3a")
    async with Sandbox(language_wall=False) as raw:
        result = await raw.run("import os\nresult = dict(os.environ)")
    assert result.value == {}


@pytest.mark.parametrize(
    ("code", "kind", "message", "line"),
    [
        ("class E(Exception):\n    lineno = property(lambda s: 1 / 0)\nraise E('x')", "E", "x", 3),
        ("class E(SyntaxError):\n    lineno = property(lambda s: 1 / 0)\nraise E('x')", "E", "x", 3),
        ("raise SyntaxError('x', ('f', 10**5000, 1, 't'))", "SyntaxError", "x", 1),
        (
            "class P:\n    def __str__(self): raise KeyError\nraise SyntaxError(P())",
            "SyntaxError",
            "(its text could not be made)",
            3,
        ),
        (
            "class P:\n    def __eq__(self, o): raise KeyError\n    __str__ = __eq__\nraise SystemExit(P())",
            "SystemExit",
            "(its text could not be made)",
            4,
        ),
    ],
)
async def test_an_exception_may_say_what_it_likes(
    sandbox: Sandbox, code: str, kind: str, message: str, line: int
) -> None:
    """What a program's own exception raises when it is asked is not the end of the process, but told."""
    result = await sandbox.run(code)
    assert result.status == "raised"
    assert result.error is not None
    assert (result.error.type, result.error.message, result.error.line) == (kind, message, line)


async def test_groups_that_hold_each_other_are_told_in_part(sandbox: Sandbox) -> None:
    """Sixty levels of five are more exceptions than anybody can print."""
    result = await sandbox.run(
        "e = ValueError('v')\nfor _ in range(60): e = ExceptionGroup('g', [e] * 5)\nraise e"
    )
    assert result.error is not None
    assert result.error.message.startswith("g (5 sub-exceptions): ExceptionGroup: g (5 sub-exceptions): ")
