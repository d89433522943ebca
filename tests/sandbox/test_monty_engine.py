"""The Monty engine beyond the conformance suite: its bounds, its calls, its records, its processes."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip("pydantic_monty", reason="the extra `monty` is not installed")

from ptc_sandbox import (
    Confinement,
    ConfinementUnavailable,
    Limits,
    SandboxBroken,
    SandboxClosed,
    code_tool,
)
from ptc_sandbox.engines import conformance
from ptc_sandbox.engines.monty import MontyEngine
from ptc_tools.call import Call, JsonObject, Program
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Denied, Failure, Outcome, Success
from ptc_tools.tool import tool
from tests.sandbox.syscall_proxy import write_binary

LIMITS = Limits(wall_seconds=20, cpu_seconds=10, memory_bytes=64 << 20, output_bytes=10_000, calls=50)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[MontyEngine]:
    """One engine for the module: each program still gets a worker of its own."""
    async with MontyEngine(limits=LIMITS) as made:
        yield made


pytestmark = pytest.mark.asyncio(loop_scope="module")


@tool(allowed_callers=["programmatic"])
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@tool(name="search", namespace="records", allowed_callers=["programmatic"])
def search(query: str, limit: int = 3) -> list[str]:
    """Some records."""
    return [query] * limit


class Log:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[str, JsonObject]] = []
        self.calls: list[str] = []

    async def started(self, call: Call, *_: object, **__: object) -> None:
        self.calls.append(call.name)

    async def finished(self, *_: object, **__: object) -> None:
        pass

    async def denied(self, *_: object, **__: object) -> None:
        pass

    async def event(self, kind: str, data: JsonObject, run: RunContext) -> None:
        self.events.append((kind, data))


async def test_a_tool_in_a_namespace_is_called_by_its_program_name(engine: MontyEngine) -> None:
    """`records.search` is `records_search`, and positional arguments go where the tool declares them."""
    result = await engine.run("await records_search('a', limit=2)", tools=[search])
    assert (result.status, result.value) == ("completed", ["a", "a"])
    (call,) = result.calls
    assert (call.namespace, call.name, call.arguments) == ("records", "search", {"query": "a", "limit": 2})
    assert call.line == 1


async def test_calls_take_the_path_that_was_given(engine: MontyEngine) -> None:
    """The engine decides nothing: the path sees each call with its caller, and its word is final."""
    seen: list[Call] = []

    async def invoke(call: Call, run: RunContext) -> Outcome:
        seen.append(call)
        return Success(7) if len(seen) == 1 else Denied("not_authorized", "not you")

    code = "a = await double(number=1)\ntry:\n    await double(number=2)\nexcept Exception as e:\n    b = str(e)\n[a, b]"
    result = await engine.run(code, tools=[double], invoke=invoke, caller_id="p1")
    assert result.value == [7, "not you"]
    assert [call.caller for call in seen] == [Program("p1")] * 2
    assert [call.line for call in result.calls] == [1, 3]


FAILURES = {
    "ToolDenied": Denied("not_authorized", "not you"),
    "ToolTimeout": Failure("timeout", "too slow"),
    "ToolUncertain": Failure("uncertain", "it may have happened"),
    "RuntimeError": Failure("tool_error", "broken"),
}


@pytest.mark.parametrize("kind", FAILURES)
async def test_each_failure_of_a_tool_is_caught_by_its_name_and_by_no_other(
    engine: MontyEngine, kind: str
) -> None:
    """The names that the model was told exist here too, though the interpreter has no classes for them."""

    async def invoke(call: Call, run: RunContext) -> Outcome:
        return FAILURES[kind]

    handlers = "".join(f"except {name}:\n    r = '{name}'\n" for name in FAILURES)
    result = await engine.run(f"try:\n    await double(number=1)\n{handlers}r", tools=[double], invoke=invoke)
    assert result.value == kind
    result = await engine.run(
        "try:\n    await double(number=1)\nexcept ToolError as e:\n    r = str(e)\nr",
        tools=[double],
        invoke=invoke,
    )
    assert result.value == FAILURES[kind].message


async def test_the_code_tool_takes_any_engine(engine: MontyEngine) -> None:
    """What a model is given to run programs with does not depend on what runs them."""
    path = Invoker([code_tool(engine, [double]), double])
    outcome = await path.invoke(
        Call("c1", "run_program", {"code": "await double(number=3)"}), RunContext(run_id="r1")
    )
    assert isinstance(outcome, Success)
    assert outcome.value == {"status": "completed", "value": 6}


async def test_gathered_calls_are_under_way_together(engine: MontyEngine) -> None:
    """Neither would end if the engine made them one after the other."""
    both = asyncio.Event()
    begun: list[int] = []

    @tool(allowed_callers=["programmatic"])
    async def meet(number: int) -> int:
        """Wait for the other."""
        begun.append(number)
        if len(begun) == 2:
            both.set()
        await both.wait()
        return number

    result = await engine.run(
        "import asyncio\nawait asyncio.gather(meet(number=1), meet(number=2))", tools=[meet]
    )
    assert result.value == [1, 2]


async def test_sleeps_overlap_with_calls(engine: MontyEngine) -> None:
    """A program's sleep is waited for by the host, and bounded by its limits."""
    code = "import asyncio, time\ntime.sleep(0.01)\nr = await asyncio.gather(asyncio.sleep(0.01), double(number=2))\nr[1]"
    assert (await engine.run(code, tools=[double])).value == 4


BOUNDS = {
    "output": ("while True:\n    print('x' * 1000)", {}, "killed:output", "host"),
    "calls": ("while True:\n    await double(number=1)", {}, "killed:calls", "host"),
    "timers": (
        "import asyncio\nwhile True:\n    await asyncio.sleep(0)",
        {"ticks": 20},
        "killed:calls",
        "host",
    ),
    "time while it waits": (
        "import time\ntime.sleep(100)",
        {"wall_seconds": 0.3},
        "killed:time",
        "host",
    ),
    "processor time": ("while True:\n    pass", {"cpu_seconds": 1}, "killed:cpu", "kernel"),
    "memory": ("x = 'a'\nwhile True:\n    x = x + x", {}, "killed:memory", "language"),
    "memory at once": ("'a' * 10 ** 9", {}, "killed:memory", "language"),
    "source": ("1" * 20, {"source_bytes": 10}, "denied", "host"),
}


@pytest.mark.parametrize("bound", BOUNDS)
async def test_each_bound_ends_a_program_and_says_so(bound: str) -> None:
    """The bounds of a program are the host's, whatever interprets it."""
    code, limits, status, wall = BOUNDS[bound]
    async with MontyEngine(limits=LIMITS.replace(**limits), ahead=1) as small:
        result = await small.run(code, tools=[double])
    assert result.error is not None
    assert (result.status, result.error.wall) == (status, wall), result
    assert len(result.output) <= LIMITS.output_bytes


REFUSED_VALUES = {
    "bytes": "b'a'",
    "a nested infinity": "[{'a': float('inf')}]",
    "too deep": "x = []\nfor i in range(100):\n    x = [x]\nx",
    "very deep": "x = []\nfor i in range(20000):\n    x = [x]\nx",
    "too many digits": "10 ** 6000",
    "too long": "['a' * 1000] * 200",
    "too many": "[0] * 5000",
    "a date": "import datetime\ndatetime.date(2020, 1, 1)",
    "an object": "class A:\n    pass\nA()",
}


@pytest.mark.parametrize("value", REFUSED_VALUES)
async def test_what_json_cannot_carry_is_an_error(value: str) -> None:
    """Never a string in its place; sizes are the host's too."""
    limits = LIMITS.replace(result_bytes=100_000, values=4000)
    async with MontyEngine(limits=limits, ahead=1) as small:
        result = await small.run(REFUSED_VALUES[value])
    assert (result.status, result.value) == ("raised", None)
    assert result.error is not None


async def test_arguments_that_are_not_json_never_become_a_call(engine: MontyEngine) -> None:
    """They are an exception at the call, which the program may catch."""
    code = "n = 0\nfor bad in [b'a', {1: 2}, float('nan'), {1}, 'a' * 300000]:\n    try:\n        await echo(x=bad)\n    except TypeError:\n        n += 1\nn"
    result = await engine.run(code, tools=conformance.tools())
    assert (result.value, result.calls) == (5, ())


async def test_changing_the_tools_is_refused_and_recorded(engine: MontyEngine) -> None:
    """By whatever name it is reached, from inside a program the tools are fixed."""
    log = Log()
    code = "n = 0\nchange = remove_tools\nfor f in (change, add_tools):\n    try:\n        f(['double'])\n    except RuntimeError:\n        n += 1\n[n, await double(number=4)]"
    result = await engine.run(code, tools=[double], recorder=log)
    assert result.value == [2, 8]
    refused = [data for kind, data in log.events if kind == "sandbox.violation"]
    assert [data["rule"] for data in refused] == ["tools_are_fixed"] * 2


async def test_start_calls_and_end_are_recorded(engine: MontyEngine) -> None:
    """The log tells which engine ran what, before it ran, and how it ended."""
    log = Log()
    await engine.run("await double(number=1)", tools=[double], recorder=log, caller_id="p2")
    (first, start), (last, end) = log.events[0], log.events[-1]
    assert (first, last, log.calls) == ("program.started", "program.finished", ["double"])
    assert str(start["policy_hash"]).startswith("monty ")
    assert (start["code"], end["status"], end["value"], end["calls"]) == (
        "await double(number=1)",
        "completed",
        2,
        1,
    )


async def test_what_reaches_for_the_system_is_denied_and_recorded(engine: MontyEngine) -> None:
    """The interpreter asks its host for each file; this host has none to give."""
    log = Log()
    result = await engine.run("open('/etc/hostname').read()", recorder=log)
    assert (result.status, result.error and result.error.wall) == ("denied", "language")
    assert [kind for kind, _ in log.events] == ["program.started", "sandbox.violation", "program.finished"]


async def test_programs_share_nothing(engine: MontyEngine) -> None:
    """Each has a worker of its own: no global of one is there for the next."""
    assert (await engine.run("x = 1")).status == "completed"
    result = await engine.run("x")
    assert result.error is not None
    assert result.error.type == "NameError"


async def test_a_cancelled_run_ends_its_worker_and_its_calls(engine: MontyEngine) -> None:
    """Whoever gives a run up finds nothing of it left."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool(allowed_callers=["programmatic"])
    async def wait() -> int:
        """Never ends by itself."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    running = asyncio.create_task(engine.run("await wait()", tools=[wait]))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
    assert (await engine.run("1")).value == 1


async def test_a_worker_that_dies_while_it_waits_is_replaced(engine: MontyEngine) -> None:
    """The next program never meets a dead one."""
    await engine.run("1")
    for worker in tuple(engine._ready):
        worker.kill()
        select.select([worker._pidfd], [], [], 10)
    assert (await engine.run("1 + 1")).value == 2


async def test_many_programs_at_once_each_get_their_own_result(engine: MontyEngine) -> None:
    """More than there may be at once wait their turn."""
    results = await asyncio.gather(
        *(engine.run(f"await double(number={n})", tools=[double]) for n in range(24))
    )
    assert [result.value for result in results] == [2 * n for n in range(24)]


async def test_a_closed_engine_says_so_and_ends_what_ran() -> None:
    """Programs that still run end as cancelled; nothing starts any more."""
    closing = MontyEngine(limits=LIMITS, ahead=1)
    begun = asyncio.Event()

    @tool(allowed_callers=["programmatic"])
    async def wait() -> int:
        """Never ends by itself."""
        begun.set()
        await asyncio.Event().wait()
        return 1

    running = asyncio.create_task(closing.run("await wait()", tools=[wait]))
    await begun.wait()
    await closing.aclose()
    assert (await running).status == "cancelled"
    with pytest.raises(SandboxClosed):
        await closing.run("1")


async def test_a_level_that_cannot_be_had_runs_nothing() -> None:
    """`strict()` promises an empty root and a pid namespace, which an exec'ed worker has not."""
    engine = MontyEngine(confinement=Confinement.strict())
    with pytest.raises(ConfinementUnavailable, match="mnt, pid"):
        await engine.run("1")
    await engine.aclose()


async def test_nothing_is_left_open() -> None:
    """Descriptors of a closed engine are given back."""

    def held() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def once() -> None:
        async with MontyEngine(limits=LIMITS) as made:
            assert (await made.run("1")).value == 1

    await once()  # the package keeps some of its own from the first time on
    before = held()
    await once()
    assert held() <= before


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the hostile worker is x86-64 machine code")
async def test_a_worker_that_speaks_nonsense_is_an_error_of_the_host(tmp_path: Path) -> None:
    """A binary that is no worker of this protocol: a typed error, no hang, nothing left."""
    binary = write_binary(tmp_path)
    engine = MontyEngine(limits=LIMITS.replace(wall_seconds=0.1), ahead=0, binary=str(binary))
    with pytest.raises(SandboxBroken):
        await engine.run("1")
    await engine.aclose()


async def test_an_engine_belongs_to_its_event_loop(engine: MontyEngine) -> None:
    """Its workers' pipes are watched by one loop; another would wait for ever."""
    await engine.run("1")
    with pytest.raises(SandboxClosed, match="another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(engine.run("1")))


async def test_a_host_that_is_killed_leaves_no_worker() -> None:
    """Not even one that spins: the kernel ends it as soon as the host is gone."""
    code = (
        "import asyncio\nfrom ptc_sandbox.engines.monty import MontyEngine\n"
        "from ptc_tools.tool import tool\n"
        "async def main():\n"
        "    engine = MontyEngine(ahead=0)\n"
        "    def report() -> int:\n"
        "        (program,) = engine._running\n"
        "        print(program._worker._pid, flush=True)\n"
        "        return 1\n"
        "    await engine.run('await report()\\nwhile True:\\n    pass', tools=[report])\n"
        "asyncio.run(main())"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)  # noqa: ASYNC220
    assert host.stdout is not None
    worker = os.pidfd_open(int(await asyncio.to_thread(host.stdout.readline)))
    host.send_signal(signal.SIGKILL)
    host.wait()
    gone, _, _ = select.select([worker], [], [], 20)
    os.close(worker)
    host.stdout.close()
    assert gone
