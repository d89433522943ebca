"""The sandbox beside its peers: latency, calls, throughput, CPU, memory. `python -m benchmarks.sandbox [--json]`.

Rounds are interleaved, so that what disturbs the machine disturbs everybody; medians and p99.
"""

from __future__ import annotations

import asyncio
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks import sandbox_peers as peers
from benchmarks.harness import Figure, median, p99, report
from benchmarks.workloads import WORKLOADS
from ptc_sandbox import Limits, Sandbox
from ptc_tools.tool import AnyTool, define_tool

TRIVIAL = "1 + 1"
FIFTEEN_LINES = """\
rows = []
for number in range(5):
    rows.append({"number": number, "square": number * number})
total = 0
for row in rows:
    if row["square"] % 2:
        total += row["square"]
    else:
        total -= row["number"]
answer = await get(i=total)
names = ["even" if row["square"] % 2 == 0 else "odd" for row in rows]
counts = {}
for name in names:
    counts[name] = counts.get(name, 0) + 1
result = {"answer": answer, "counts": counts}
result
"""
MONTY_FIFTEEN = FIFTEEN_LINES.replace("await get(", "get(")
MS, US = 1e3, 1e6
Timed = Callable[[], Awaitable[float]]


def tool(name: str, function: Callable[..., object]) -> AnyTool:
    integer = {"type": "integer"}
    return define_tool(
        {
            "type": "function",
            "name": name,
            "description": name,
            "parameters": {"type": "object", "properties": {"i": integer}, "required": ["i"]},
            "allowed_callers": ["programmatic"],
            "output_schema": integer,
        },
        function,
    )


async def get(i: int) -> int:
    return i


def get_blocking(i: int) -> int:
    return i


async def slow(i: int) -> int:
    await asyncio.sleep(0.01)
    return i


TOOLS = (tool("get", get), tool("get_blocking", get_blocking), tool("slow", slow))


async def rounds(contenders: dict[str, Timed | None], count: int, pause: float = 0) -> dict[str, list[float]]:
    """Seconds of each contender, one of each a round, with a pause before each."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(count):
        for name, measure in contenders.items():
            if measure is not None:
                if pause:
                    await asyncio.sleep(pause)
                samples[name].append(await measure())
    return samples


def figure(
    name: str,
    samples: dict[str, list[float]],
    peer: str,
    scale: float,
    unit: str,
    goal: float | None = None,
    note: str = "",
) -> Figure:
    ours, theirs = samples["ours"], samples.get(peer, [])
    return Figure(
        name,
        median(ours) * scale,
        unit,
        peer,
        median(theirs) * scale if theirs else None,
        goal,
        p99=p99(ours) * scale,
        note=note,
    )


def ours(box: Sandbox, code: str) -> Timed:
    async def run() -> float:
        start = time.perf_counter()
        result = await box.run(code, tools=TOOLS)
        elapsed = time.perf_counter() - start
        assert result.ok, result.error
        return elapsed

    return run


def theirs(run: peers.Timed | None, code: str, **options: object) -> Timed | None:
    return None if run is None else lambda: run(code, **options)


async def latency(box: Sandbox) -> list[Figure]:
    """Start to result: trivial back to back and after a pause, fifteen lines with a call, a megabyte."""
    figures = []
    lookup = {"external_lookup": {"get": get_blocking}}
    async with peers.monty(fresh=False) as reused, peers.monty(fresh=True) as fresh:
        trivial: dict[str, Timed | None] = {
            "ours": ours(box, TRIVIAL),
            "monty, worker reused": theirs(reused, TRIVIAL),
            "monty, worker fresh": theirs(fresh, TRIVIAL),
            "smolagents, in process": theirs(peers.smolagents(), TRIVIAL),
        }
        back_to_back = await rounds(trivial, 200)
        paused = await rounds(trivial, 100, 0.01)
        commands: dict[str, Timed | None] = {
            "ours": ours(box, TRIVIAL),
            "python -I -S -c": theirs(peers.plain_python(), TRIVIAL),
            "bubblewrap": theirs(peers.bubblewrap(), TRIVIAL),
        }
        spawned = await rounds(commands, 15)
        for peer in list(trivial)[1:]:
            goal = 1.0 if "reused" in peer else None
            figures.append(figure("trivial program, 10 ms pause", paused, peer, MS, "ms", goal))
            figures.append(figure("trivial program, back to back", back_to_back, peer, MS, "ms", goal))
        figures += [figure("trivial program", spawned, peer, MS, "ms") for peer in list(commands)[1:]]
        fifteen = await rounds(
            {
                "ours": ours(box, FIFTEEN_LINES),
                "monty, worker reused": theirs(reused, MONTY_FIFTEEN, **lookup),
            },
            100,
            0.01,
        )
        figures.append(figure("15 lines, one call, 10 ms pause", fifteen, "monty, worker reused", MS, "ms"))
        megabyte = await rounds(
            {
                "ours": ours(box, "'x' * 1_000_000"),
                "monty, worker reused": theirs(reused, "'x' * 1_000_000"),
            },
            40,
        )
        figures.append(figure("a result of 1 MB", megabyte, "monty, worker reused", MS, "ms"))
    return figures


def bare_round_trip(count: int = 20_000) -> float:
    """Seconds of a bare one-byte round trip between two processes over a socket: the floor of any call."""
    ours_end, theirs_end = socket.socketpair()
    code = "import socket,sys\ns=socket.socket(fileno=int(sys.argv[1]))\nwhile s.recv(64): s.send(b'x')"
    echo = subprocess.Popen(
        [sys.executable, "-c", code, str(theirs_end.fileno())], pass_fds=[theirs_end.fileno()]
    )
    theirs_end.close()
    for _ in range(200):
        ours_end.send(b"x")
        ours_end.recv(64)
    start = time.perf_counter()
    for _ in range(count):
        ours_end.send(b"x")
        ours_end.recv(64)
    elapsed = (time.perf_counter() - start) / count
    ours_end.close()
    echo.wait()
    return elapsed


async def calls(box: Sandbox) -> list[Figure]:
    """A round trip through the whole of `Invoker.invoke`, and a hundred calls at once."""
    count = 500
    loops = {name: f"for i in range({count}):\n    await {name}(i=i)" for name in ("get", "get_blocking")}
    monty_loop = f"for i in range({count}):\n    get(i=i)"
    floor: list[float] = []
    async with peers.monty(fresh=False) as reused:
        lookup = {"external_lookup": {"get": get_blocking}}
        contenders: dict[str, Timed | None] = {
            "ours": ours(box, loops["get"]),
            "blocking": ours(box, loops["get_blocking"]),
            "monty's bare callback": theirs(reused, monty_loop, **lookup),
        }
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(10):
            floor.append(bare_round_trip(2000))
            for name, times in (await rounds(contenders, 1)).items():
                samples[name] += [seconds / count for seconds in times]
        samples["bare socket round trip"] = floor
        gathered = await rounds(
            {"ours": ours(box, "import asyncio\nlen(await asyncio.gather(*[get(i=i) for i in range(100)]))")},
            20,
        )
    blocking = {**samples, "ours": samples["blocking"]}
    return [
        figure("round trip of a call, async tool", samples, "bare socket round trip", US, "µs", 3.0),
        figure("round trip of a call, async tool", samples, "monty's bare callback", US, "µs", 0.3),
        figure("round trip of a call, blocking tool", blocking, "bare socket round trip", US, "µs"),
        Figure("100 calls gathered", median(gathered["ours"]) * MS, "ms", p99=p99(gathered["ours"]) * MS),
    ]


async def throughput() -> list[Figure]:
    """Programs a second at 1, 2, 8 and 64 at once; and 200 programs of ten 10 ms tools."""
    figures = []
    async with Sandbox(ahead=8, concurrency=64) as box, peers.monty(fresh=False, processes=2) as reused:

        async def rate(run: Timed, at_once: int, total: int) -> float:
            gate = asyncio.Semaphore(at_once)

            async def one() -> None:
                async with gate:
                    await run()

            start = time.perf_counter()
            await asyncio.gather(*[one() for _ in range(total)])
            return total / (time.perf_counter() - start)

        monty_run = theirs(reused, TRIVIAL)
        for at_once in (1, 2, 8, 64):
            mine = [await rate(ours(box, TRIVIAL), at_once, 150) for _ in range(3)]
            other = [await rate(monty_run, at_once, 300) for _ in range(3)] if monty_run else []
            figures.append(
                Figure(
                    f"programs a second, {at_once} at once",
                    median(mine),
                    "/s",
                    "monty, workers reused",
                    median(other) if other else None,
                    0.4 if at_once == 64 else None,
                    at_least=True,
                )
            )
    figures.append(await two_hundred())
    return figures


async def two_hundred() -> Figure:
    """200 programs at once, each with ten calls of 10 ms in turn, against the ideal."""
    code = "for i in range(10):\n    await slow(i=i)"
    async with Sandbox(ahead=8, concurrency=200) as box:
        await box.run(code, tools=TOOLS)
        start = time.perf_counter()
        results = await asyncio.gather(*[box.run(code, tools=TOOLS) for _ in range(200)])
        elapsed = time.perf_counter() - start
    cpu = median(result.cpu_us or 0 for result in results) / 1e6
    ideal = max(0.1, 200 * cpu / 2)
    return Figure("200 programs at once, ten 10 ms calls each", elapsed * MS, "ms", "ideal", ideal * MS, 1.5)


async def cpu(box: Sandbox) -> list[Figure]:
    """The eight workloads by the child's own CPU clock, beside plain CPython behind the same kernel wall."""
    figures = []
    ratios = []
    async with Sandbox(language_wall=False, ahead=1) as plain:
        for name, code in WORKLOADS.items():
            mine, bare = [], []
            for _ in range(5):
                for into, sandbox in ((mine, box), (bare, plain)):
                    result = await sandbox.run(code)
                    assert result.ok, result.error
                    into.append((result.cpu_us or 0) / 1e3)
            ratio = median(bare) / median(mine)
            ratios.append(ratio)
            figures.append(Figure(f"CPU speed: {name}", ratio, "×", "CPython", 1.0, 0.8, at_least=True))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [*figures, Figure("CPU speed: geometric mean", mean, "×", "CPython", 1.0, 0.95, at_least=True)]


def pss_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1])


async def memory() -> Figure:
    """What 64 children that wait for a program take together, shared pages counted once."""
    async with Sandbox(ahead=64) as box:
        await box.run("1")
        await box.warm_up()
        await asyncio.sleep(1)
        assert box._pool is not None
        total = sum(pss_kb(child.pid) for child in box._pool._idle) / 1024
    return Figure("64 idle children, PSS", total, "MB", "goal", 64.0, 1.0)


async def lag() -> Figure:
    """p99 of how late the host's event loop wakes, while four programs spin, against when it is idle."""

    async def p99_lag(seconds: float) -> float:
        late = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append(time.perf_counter() - start - 0.005)
        return p99(late)

    async with Sandbox(limits=Limits(wall_seconds=60)) as box:
        await box.run("1")
        idle = await p99_lag(2)
        spinning = [asyncio.create_task(box.run("while True: pass")) for _ in range(4)]
        await asyncio.sleep(0.2)
        busy = await p99_lag(2)
        for task in spinning:
            task.cancel()
        await asyncio.gather(*spinning, return_exceptions=True)
    return Figure("host loop lag, p99, programs spinning", busy * MS, "ms", "idle", idle * MS, 2.0)


async def measure() -> list[Figure]:
    async with Sandbox(ahead=4) as box:
        await box.run(FIFTEEN_LINES, tools=TOOLS)
        figures = [*await latency(box), *await calls(box), *await cpu(box)]
    return [*figures, *await throughput(), await memory(), await lag()]


def run() -> list[Figure]:
    return asyncio.run(measure())


if __name__ == "__main__":
    assert threading.active_count() == 1
    report("The sandbox beside its peers", run)
