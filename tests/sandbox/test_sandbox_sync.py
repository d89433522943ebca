"""The sandbox without an event loop of the application's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ptc_sandbox import Sandbox, SandboxClosed
from tests.sandbox.conftest import descendants
from tests.sandbox.granted import TOOLS


def test_run_sync_needs_no_loop() -> None:
    """The thin face for plain code: a loop of its own, in a thread, closed with the sandbox."""
    with Sandbox() as box:
        assert box.run_sync("await get(i=5)", tools=TOOLS).value == 5
        assert box.run_sync("6").value == 6


def test_many_threads_may_begin_at_once() -> None:
    """Whoever comes first starts the loop; all others use it, and closing leaves none of it."""
    threads = threading.active_count()
    with Sandbox() as box, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def run(number: int) -> object:
            barrier.wait()
            return box.run_sync(f"await get(i={number})", tools=TOOLS).value

        assert list(pool.map(run, range(8))) == list(range(8))
    assert threading.active_count() == threads
    with pytest.raises(SandboxClosed):
        box.run_sync("1")
    assert threading.active_count() == threads


def test_a_tool_on_the_sandboxs_own_loop_is_told_to_await() -> None:
    """It would wait for itself, for ever."""

    async def nested(x: int) -> int:
        """Run another program, the wrong way."""
        return int(str(box.run_sync("1").value)) + x

    with Sandbox() as box:
        error = box.run_sync("await nested(x=1)", tools=[nested]).error
    assert error is not None
    assert "use await" in error.message


_FORKING = """
import os, sys
import ptc

box = ptc.Sandbox()
assert box.run_sync("1").value == 1
pid = os.fork()
if pid == 0:
    child = box.run_sync("2").value == 2
    box.close()
    os._exit(0 if child else 1)
status = os.waitpid(pid, 0)[1]
print(status, box.run_sync("3").value)
box.close()
"""


def test_a_forked_host_has_a_sandbox_of_its_own() -> None:
    """Servers fork their workers after loading; neither process waits for, or harms, what is the other's."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _FORKING],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["0", "3"], done.stderr


def test_one_sandbox_serves_event_loops_one_after_the_other() -> None:
    """`asyncio.run` again and again, as scripts do: what belonged to the last loop is gone, nothing warns."""
    before, box, open_ = descendants(), Sandbox(), []
    for _ in range(4):
        assert asyncio.run(box.run("1 + 1")).value == 2
        open_.append(os.listdir("/proc/self/fd"))
    assert len(open_[-1]) <= len(open_[0]) + 4, "two descriptors for each child that waits, which may be more"
    asyncio.run(box.aclose())
    assert descendants() <= before


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"ahead": -1}, ValueError, "ahead"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": True}, ValueError, "concurrency"),
        ({"limits": {"calls": 3}}, TypeError, "SandboxLimits"),
        ({"confinement": "strict"}, TypeError, "Confinement.strict"),
    ],
)
def test_a_sandbox_that_could_not_work_is_not_made(options: Any, error: type[Exception], said: str) -> None:
    """Nothing that waits for ever, and no error from deep inside at the first program."""
    with pytest.raises(error, match=said):
        Sandbox(**options)


@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        (None, {}, "text"),
        (b"1", {}, "text"),
        ("1", {"tools": "get"}, "list"),
        ("1", {"tools": None}, "list"),
        ("1", {"tools": TOOLS[0]}, "list"),
        ("1", {"tools": {"get": TOOLS[0]}}, "list"),
        ("1", {"journal": {"entries": []}}, "Journal"),
        ("1", {"header": {"seed": 1}}, "JournalHeader"),
    ],
)
def test_a_wrong_argument_is_named(code: Any, options: Any, said: str) -> None:
    """By what it should have been."""
    with Sandbox() as box, pytest.raises(TypeError, match=said):
        box.run_sync(code, **options)
