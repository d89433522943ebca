"""The peers of the sandbox's benchmark, each as a function of a program; missing ones are None.

pydantic-monty (a worker process reused, and one for each program), smolagents' in-process interpreter, a
bare `python -I -S -c`, and the same under bubblewrap.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Timed = Callable[[str], Awaitable[float]]
"""Runs a program and says how long it took, seconds."""


@asynccontextmanager
async def monty(*, fresh: bool, processes: int = 1) -> AsyncIterator[Timed | None]:
    """pydantic-monty; `fresh` gives each program a new worker, as our sandbox gives it a new process."""
    if importlib.util.find_spec("pydantic_monty") is None:
        yield None
        return
    import pydantic_monty

    pool = pydantic_monty.AsyncMonty(
        min_processes=processes, max_processes=processes, max_checkouts_per_worker=1 if fresh else None
    )
    async with pool:

        async def run(code: str, **options: Any) -> float:
            start = time.perf_counter()
            async with pool.checkout() as session:
                await session.feed_run(code, **options)
            return time.perf_counter() - start

        yield run


def smolagents() -> Timed | None:
    """The interpreter of smolagents, in this process: no isolation at all."""
    if importlib.util.find_spec("smolagents") is None:
        return None
    from smolagents.local_python_executor import LocalPythonExecutor

    async def run(code: str) -> float:
        executor = LocalPythonExecutor([])
        executor.send_tools({})
        start = time.perf_counter()
        executor(code)
        return time.perf_counter() - start

    return run


def command(*argv: str) -> Timed | None:
    """A program as the last argument of a command."""
    if shutil.which(argv[0]) is None:
        return None

    async def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([*argv, code], check=True, capture_output=True)  # noqa: ASYNC221 -- nothing else runs
        return time.perf_counter() - start

    return run


def plain_python() -> Timed | None:
    return command(sys.executable, "-I", "-S", "-c")


def bubblewrap() -> Timed | None:
    return command(
        "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", sys.executable, "-I", "-S", "-c"
    )
