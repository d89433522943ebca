"""A host that dies takes everything with it: no fork server, no child is alive a second later."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOST = """
import asyncio, sys
from ptc_sandbox import Limits, Sandbox
async def main():
    async with Sandbox(ahead=3, limits=Limits(wall_seconds=60)) as box:
        print("ready", flush=True)
        busy = [asyncio.create_task(box.run("while True: pass")) for _ in range(2)]
        idle = [asyncio.create_task(box.run("import asyncio\\nawait asyncio.sleep(60)")) for _ in range(2)]
        while True:
            await box.run("1 + 1")
asyncio.run(main())
"""


def relatives(pid: int) -> list[int]:
    """Pidfds of every process that descends from `pid`: they tell an ended process from a number used again."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            waiting.append(child)
            try:
                found.append(os.pidfd_open(child))
            except ProcessLookupError:
                continue
    return found


def all_ended(pidfds: list[int], seconds: float) -> bool:
    """Whether all of them end within `seconds`; waits on the pidfds, never by sleeping."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    for fd in pidfds:
        poll.register(fd, select.POLLIN)
    left = set(pidfds)
    while left and (rest := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(rest * 1000):
            poll.unregister(fd)
            left.discard(fd)
    return not left


def kill_a_host(after_lines: int, delay: float) -> None:
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        for _ in range(after_lines):
            host.stdout.readline()
        select.select([], [], [], delay)
        pidfds = relatives(host.pid)
        host.send_signal(signal.SIGKILL)
        host.wait()
        try:
            assert all_ended(pidfds, 1.0)
            assert after_lines == 0 or len(pidfds) >= 5
        finally:
            for fd in pidfds:
                os.close(fd)


def test_a_host_killed_in_the_middle_leaves_nothing() -> None:
    """SIGKILL gives the host no chance to clean up; the kernel must."""
    kill_a_host(after_lines=1, delay=0.2)


@pytest.mark.soak
@pytest.mark.parametrize("step", range(40))
def test_a_host_killed_at_any_point_leaves_nothing(step: int) -> None:
    """From before the fork server is up until long after: every fifteen milliseconds."""
    kill_a_host(after_lines=0, delay=0.015 * step + 0.2)
