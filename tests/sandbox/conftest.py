"""Fixtures of the sandbox's tests, and the promise that no test leaves a process behind."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from ptc_sandbox import Limits, Sandbox

QUICK = Limits(wall_seconds=20, cpu_seconds=20)


def descendants() -> set[int]:
    """Processes that this one, or a child of its, has started and that still exist."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.add(child)
            waiting.append(child)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    """One sandbox for a module's programs: each still gets a process of its own."""
    async with Sandbox(limits=QUICK) as made:
        yield made


@pytest.fixture(autouse=True, scope="module")
def _nothing_left() -> Iterator[None]:
    before = descendants()
    yield
    left = descendants() - before
    assert not left, f"processes were left behind: {left}"
