"""What the host holds even when a child is not one of ours any more, and when the host itself is in trouble."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import subprocess
import sys
from typing import Any

import pytest

from ptc_sandbox import (
    CallRequested,
    Confinement,
    Ended,
    Journal,
    JournalHeader,
    Limits,
    Sandbox,
    SandboxBroken,
    SandboxClosed,
    code_tool,
)
from ptc_sandbox.journal import CallMade
from ptc_tools.call import Call
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Success
from ptc_tools.tool import AnyTool
from tests.sandbox.conftest import QUICK, descendants
from tests.sandbox.granted import INTEGER, TOOLS, programmatic
from tests.sandbox.test_host_death import all_ended

WRITE = "import os, struct\ndef send(b):\n    os.write(3, struct.pack('<I', len(b)) + b)\n"


def forging(frames: str) -> str:
    """A program that has taken over its process and writes frames of its own."""
    return WRITE + frames


class Log:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.denied_calls: list[tuple[str, str]] = []

    async def started(self, *_: Any) -> object:
        return None

    async def finished(self, *_: Any) -> None:
        return None

    async def denied(self, call: Call, contract: object, outcome: Any, run: RunContext) -> None:
        self.denied_calls.append((call.name, outcome.code))

    async def event(self, *_: Any) -> None:
        return None


def dangerous(ran: list[int]) -> AnyTool:
    async def delete_all(i: int) -> int:
        ran.append(i)
        return i

    return programmatic("delete_all", {"i": INTEGER}, delete_all, INTEGER)


@pytest.mark.parametrize("repeat", range(5))
async def test_a_tool_that_the_program_was_not_granted_never_runs(repeat: int) -> None:
    """Host wall: the path may know more tools than the program was granted; a forged name is not even asked for."""
    ran: list[int] = []
    log = Log()
    path = Invoker([*TOOLS, dangerous(ran)], recorder=log)
    run = RunContext("r")
    code = forging('send(b\'["call",1,"delete_all",{"i":1},1,null]\')\nwhile True: pass')
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        result = await box.run(code, tools=TOOLS, run=run, invoke=path.invoke, recorder=log, caller_id="p")
    assert (result.status, result.error and result.error.wall) == ("denied", "host")
    assert ran == []
    assert log.denied_calls == [("delete_all", "unknown_tool")]
    assert result.calls == ()


async def test_the_code_tool_does_not_lend_the_models_tools_to_its_program() -> None:
    """Host wall: what is in the run's catalog but not in the code tool's set stays out of reach."""
    ran: list[int] = []
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        catalog = Catalog([code_tool(box, TOOLS), *TOOLS, dangerous(ran)])
        code = forging('send(b\'["call",1,"delete_all",{"i":1},1,null]\')\nwhile True: pass')
        outcome = await Invoker(catalog).invoke(
            Call("c", "run_program", json.dumps({"code": code})), RunContext("r")
        )
    assert isinstance(outcome, Success)
    assert ran == []


async def test_a_journal_cannot_bring_a_tool_that_was_not_granted() -> None:
    """Host wall: a recorded call of a name that is not granted now is refused as a live one is."""
    ran: list[int] = []
    path = Invoker([*TOOLS, dangerous(ran)])
    code = forging('send(b\'["call",1,"delete_all",{"i":1},1,null]\')\nwhile True: pass')
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        first = await box.run(code, tools=TOOLS, invoke=path.invoke)
        forged = Journal(first.journal.header, (CallMade(1, None, "delete_all", {"i": 1}, 1),))
        again = await box.run(code, tools=TOOLS, journal=forged, invoke=path.invoke)
    assert again.status == "denied"
    assert ran == []


async def test_calls_that_are_given_up_at_once_do_not_use_up_their_places() -> None:
    """An honest program that gives up more calls than may be in flight can go on calling."""
    code = (
        "import asyncio\nfor i in range(100):\n    t = asyncio.create_task(get(i=i))\n    await asyncio.sleep(0)\n"
        "    t.cancel()\nfor i in range(100):\n    try:\n        await asyncio.wait_for(get(i=i), 1e-9)\n"
        "    except TimeoutError:\n        pass\nawait get(i=7)"
    )
    async with Sandbox(limits=QUICK.replace(calls_in_flight=4)) as box:
        result = await box.run(code, tools=TOOLS)
    assert (result.status, result.value) == ("completed", 7), result.error


@pytest.mark.parametrize("first", ["await asyncio.sleep(0.01)", "time.sleep(0.01)"])
async def test_a_program_that_sleeps_first_replays(first: str) -> None:
    """The first entry of a journal may be a tick."""
    code = f"import asyncio, time\n{first}\na = await get(i=1)\n{first}\n[a, time.time()]"
    async with Sandbox(limits=QUICK) as box:
        whole = await box.run(code, tools=TOOLS)
        again = await box.run(code, tools=TOOLS, journal=whole.journal)
    assert whole.ok, whole.error
    assert again.value == whole.value


async def test_timers_without_end_are_bounded() -> None:
    """Each timer costs the host a journal entry."""
    async with Sandbox(limits=QUICK.replace(ticks=50)) as box:
        result = await box.run("import asyncio\nwhile True:\n    await asyncio.sleep(1e-7)")
        execution = await box.start(
            "import asyncio\nwhile True:\n    await asyncio.sleep(1)", clock="virtual"
        )
        ended = await execution.next_event()
    assert result.status == "killed:calls"
    assert "timers" in str(result.error)
    assert isinstance(ended, Ended)
    assert ended.result.status == "killed:calls"


async def test_events_that_nobody_takes_do_not_pile_up() -> None:
    """A flood from a child ends it, also where nobody looks at the execution."""
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        execution = await box.start(forging("while True: send(b'[\"blocked\",1,[],null]')"), tools=TOOLS)
        result = await execution.ended
        assert len(execution._events) < 10
    assert result.status == "killed:protocol"


async def test_answers_that_are_not_read_are_bounded() -> None:
    """A child that calls and never reads ends, before the host holds hundreds of megabytes for it."""
    text = "x" * 8_000_000

    async def big(i: int) -> str:
        return text

    code = forging(
        'for n in range(1, 60):\n    send(b\'["call",%d,"big",{"i":1},1,null]\' % n)\nwhile True: pass'
    )
    tool = programmatic("big", {"i": INTEGER}, big, {"type": "string"})
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        path = Invoker([tool], max_result_bytes=16_000_000)
        result = await box.run(code, tools=[tool], invoke=path.invoke)
    assert result.status == "killed:protocol"
    assert "unread" in str(result.error)


async def test_closing_while_the_server_starts_leaves_nothing() -> None:
    """The run is told, and no process is left."""
    before = descendants()
    box = Sandbox()
    running = asyncio.create_task(box.run("1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await box.aclose()
    with pytest.raises(SandboxClosed):
        await running
    assert descendants() == before


async def test_a_host_without_descriptors_fails_in_words_and_recovers() -> None:
    """Programs that cannot be given a channel raise SandboxBroken, not hang; later ones run."""
    async with Sandbox(ahead=1, limits=QUICK) as box:
        await box.run("1")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = []
        gc.collect()  # what other tests left for the collector must not free descriptors in the middle
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            results = await asyncio.gather(*[box.run("1") for _ in range(8)], return_exceptions=True)
        finally:
            for fd in held:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert {type(result) for result in results} <= {SandboxBroken, type(await box.run("1"))}
        assert any(isinstance(result, SandboxBroken) for result in results)
        assert (await box.run("1 + 1")).value == 2


async def test_a_server_that_cannot_fork_any_more_is_replaced() -> None:
    """The pid namespace's first process may be killed for want of memory; the next program gets a new server."""
    async with Sandbox(ahead=1, limits=QUICK, confinement=Confinement.standard()) as box:
        await box.run("1")
        assert box._pool is not None
        assert box._pool._server is not None
        idle = {child.pid for child in box._pool._idle}
        children = descendants() - {box._pool._server._process.pid} - idle
        for (
            pid
        ) in children:  # the keeper is the server's only other child, but for one that was just used and ends
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        results = []
        for _ in range(4):
            try:
                results.append((await box.run("1 + 1")).value)
            except SandboxBroken:
                results.append(None)
        assert results[-1] == 2


async def test_more_programs_than_the_socket_holds_requests_for_wait() -> None:
    """A server that is slow is waited for; nobody is turned away for a full socket."""
    async with Sandbox(ahead=0, concurrency=400, limits=QUICK) as box:
        await box.run("1")
        assert box._pool is not None
        assert box._pool._server is not None
        server = box._pool._server._process
        server.send_signal(signal.SIGSTOP)
        waiting = [asyncio.create_task(box.run(f"{n}")) for n in range(300)]
        await asyncio.sleep(0)
        server.send_signal(signal.SIGCONT)
        results = await asyncio.gather(*waiting)
    assert [result.value for result in results] == list(range(300))


async def test_a_waiting_child_that_died_is_not_given_to_a_program() -> None:
    """The program never ran there: it gets another child, not a crash."""
    async with Sandbox(ahead=2, limits=QUICK) as box:
        await box.warm_up()
        assert box._pool is not None
        for child in tuple(box._pool._idle):
            os.kill(child.pid, signal.SIGKILL)
            await child.exited
        assert [(await box.run("1 + 1")).value for _ in range(3)] == [2, 2, 2]


async def test_children_that_rehearsed_and_children_that_did_not_compute_the_same() -> None:
    """Whether there was time before a program must not be seen in it."""
    code = (
        "class A:\n    pass\nobjects = [object() for _ in range(5)]\n"
        "[[id(o) for o in objects], [hash(A()) for _ in range(3)], [repr(o) for o in {*'abcdefg'}],"
        " list({A(): n for n in range(5)}.values()), list({A() for _ in range(3)} and {'x', 'y', 'z'})]"
    )
    header = JournalHeader.new(seed=1, epoch_us=1)
    values = []
    for ahead in (0, 2):
        async with Sandbox(ahead=ahead, limits=QUICK) as box:
            for _ in range(3):
                result = await box.run(code, header=header)
                assert result.ok, result.error
                values.append(json.dumps(result.value))
                await asyncio.sleep(0.05)
    assert len(set(values)) == 1


HOST = """
import asyncio, os, sys
from ptc_sandbox import Sandbox
async def main():
    box = Sandbox(ahead=1)
    await box.run("1")
    busy = asyncio.create_task(box.run("while True: pass"))
    await asyncio.sleep(0.2)
    worker = os.fork()
    if worker == 0:
        import signal
        signal.pause()
    print(worker, flush=True)
    await busy
asyncio.run(main())
"""


def test_a_worker_that_the_host_forked_does_not_keep_programs_alive() -> None:
    """The worker holds the control socket; the server watches the host itself."""
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", HOST], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        worker = int(host.stdout.readline())
        pidfds = [os.pidfd_open(pid) for pid in descendants() if pid not in (host.pid, worker)]
        host.send_signal(signal.SIGKILL)
        host.wait()
        try:
            assert pidfds
            assert all_ended(pidfds, 1.0)
        finally:
            os.kill(worker, signal.SIGKILL)
            for fd in pidfds:
                os.close(fd)


async def test_pending_calls_name_tools_that_were_granted() -> None:
    """What a driver of `start` is handed are granted tools only; a forged name ends the program."""
    code = forging(
        'send(b\'["call",1,"get",{"i":1},1,null]\')\nsend(b\'["call",2,"rm",{},1,null]\')\nwhile True: pass'
    )
    names: list[str] = []
    async with Sandbox(language_wall=False, limits=QUICK) as box:
        execution = await box.start(code, tools=TOOLS)
        while not isinstance(event := await execution.next_event(), Ended):
            if isinstance(event, CallRequested):
                names.append(event.name)
    assert names == ["get"]
    assert event.result.status == "denied"


async def test_the_limits_are_numbers() -> None:
    """A limit that is not one would be no limit."""
    for wrong in (
        {"calls": True},
        {"result_bytes": 1.5},
        {"calls": 0},
        {"memory_bytes": 10**30},
        {"depth": "64"},
    ):
        with pytest.raises(ValueError, match=r"Limits\."):
            Limits(**wrong)  # type: ignore[arg-type]


async def test_a_raised_permission_error_is_no_denial() -> None:
    """A program cannot make its own end look like a wall's work."""
    async with Sandbox(limits=QUICK) as box:
        result = await box.run("raise PermissionError(1, 'x')")
    assert result.status == "raised"
