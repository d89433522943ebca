"""What durable runs cost: a call's steps against a bare write and sync of the same bytes, alone and many at once.

The peer appends the steps of a call (admission and outcome) to a file beside the store's and syncs once, between
our calls. The cost of durability is the whole call less the same call without a store, each time.
`python -m benchmarks.durable [--json]`; about a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ptc
from benchmarks.harness import Figure, median, p99, report
from ptc.audit.keys import Keyring
from ptc.durable import Durable
from ptc.store.sqlite import SQLiteRunStore
from ptc_tools.call import Call
from ptc_tools.catalog import Catalog
from ptc_tools.context import RunContext
from ptc_tools.invoke import Invoker
from ptc_tools.tool import tool

CALLS = 1_000
SETTLING = 600
ROUND = 10
AT_ONCE = 16
PAUSED = 1_000


@tool(effects="read")
async def get_inventory(sku: str) -> int:
    """Units of a SKU in stock."""
    return 73


@tool(effects="write", approval="always")
async def block_customer(customer: str) -> str:
    """Block one customer."""
    return "blocked"


def main() -> list[Figure]:
    with _folder() as folder:
        parts = (_alone, _audited, _together, _paused)
        return [figure for part in parts for figure in asyncio.run(part(folder))]


async def _alone(folder: Path) -> list[Figure]:
    """Call and peer in turn, and then ten of each: a peer that runs in a row keeps caches that no caller has."""
    return [*await _in_turn(folder, 1), *(await _in_turn(folder, ROUND))[:1]]


async def _in_turn(folder: Path, in_a_row: int) -> list[Figure]:
    ours: list[float] = []
    costs: list[float] = []
    peers: list[float] = []
    plain, run = Invoker(Catalog([get_inventory])), RunContext("run_plain")
    texts = b"".join(await _texts(folder))
    path = folder / f"alone-{in_a_row}.db"
    with SQLiteRunStore(path) as store, _bare(folder / "bare.txt", [texts]) as bare:
        call = await _caller(store, "run_alone", None)
        await _settle_in(call)
        for number in range(CALLS):
            undurable = await _timed(plain.invoke(_call(number), run))
            ours.append(await _timed(call(number)))
            costs.append(ours[-1] - undurable)
            if number % in_a_row == in_a_row - 1:
                peers.extend(bare() for _ in range(in_a_row))
    peer = "one write+fdatasync of its steps"
    name, goal = "durability of a call of one run", 1.5 if in_a_row == 1 else None
    if in_a_row > 1:
        name, peer = f"{name}, {in_a_row} in a row", f"{peer}, {in_a_row} in a row"
    return [
        Figure(name, median(costs), "µs", peer, median(peers), goal, p99=p99(costs)),
        Figure("the whole call", median(ours), "µs", peer, median(peers), p99=p99(ours)),
    ]


async def _audited(folder: Path) -> list[Figure]:
    """With its audit records, an outcome is durable before anybody sees it: two syncs, and the peer's two."""
    ours: list[float] = []
    peers: list[float] = []
    texts = await _texts(folder, records=True)
    with (
        ptc.AuditLog(folder / "audit.db", keys=Keyring.generate()) as log,
        SQLiteRunStore(log) as store,
        _bare(folder / "bare.txt", texts) as bare,
    ):
        call = await _caller(store, "run_audited", log)
        await _settle_in(call)
        for number in range(CALLS):
            ours.append(await _timed(call(number)))
            peers.append(bare())
    peer = "two write+fdatasync of its steps and records"
    return [
        Figure(
            "the whole call, with its audit records", median(ours), "µs", peer, median(peers), p99=p99(ours)
        )
    ]


async def _together(folder: Path) -> list[Figure]:
    """Many runs at once share their commits; the peer is what one call alone would have to sync."""
    texts = b"".join(await _texts(folder))
    ours: list[float] = []
    peers: list[float] = []
    with SQLiteRunStore(folder / "many.db") as store, _bare(folder / "bare.txt", [texts]) as bare:
        calls = [await _caller(store, f"run_{index}", None) for index in range(AT_ONCE)]
        await _settle_in(calls[0])
        for number in range(CALLS // AT_ONCE):
            ours.append(await _timed(_all(calls, number)) / AT_ONCE)
            peers.extend(bare() for _ in range(4))
    name, peer = f"the whole call, {AT_ONCE} runs at once", "one write+fdatasync of its steps"
    return [Figure(name, median(ours), "µs", peer, median(peers), 1.5, p99=p99(ours))]


async def _paused(folder: Path) -> list[Figure]:
    """Runs that wait for an approval, each recovered with its decision by a process that never saw them."""
    path = folder / "paused.db"

    def runner(store: SQLiteRunStore) -> ptc.Runner:
        approver = ptc.PauseForApproval()
        return ptc.Runner(client=_Model(), model="m", tools=[block_customer], approver=approver, store=store)

    gate = asyncio.Semaphore(32)

    async def one(step: Coroutine[Any, Any, ptc.RunResult[Any]], status: str) -> None:
        async with gate:
            result = await step
        assert result.status == status, result.status

    with SQLiteRunStore(path) as store:
        begin = runner(store)
        await asyncio.gather(
            *(one(begin.run("block c1", run_id=f"run_{n}"), "paused") for n in range(PAUSED))
        )
    with SQLiteRunStore(path) as store:
        waiting = await store.runs(status="paused")
        assert len(waiting) == PAUSED
        resume = runner(store)
        decisions = {"c1": ptc.Approve()}
        began = time.perf_counter()
        await asyncio.gather(
            *(one(resume.recover(info.run_id, decisions=decisions), "completed") for info in waiting)
        )
        seconds = time.perf_counter() - began
        assert len(await store.runs(status="completed")) == PAUSED
    return [Figure(f"{PAUSED:,} paused runs resumed", seconds, "s", note="32 at once, to their answers")]


class _Model:
    """Asks for one call, then answers; and keeps what it said."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, Any]] = {}

    async def create(self, body: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        answered = any(item.get("type") == "function_call_output" for item in body["input"])
        response_id = f"r{len(self._said)}"
        self._said[response_id] = response = {
            "id": response_id,
            "object": "response",
            "status": "completed",
            "output": [_ANSWER] if answered else [_CALL],
            "usage": None,
        }
        return response

    async def stream(
        self, body: dict[str, Any], *, timeout: float | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        response = await self.create(body)
        for index, item in enumerate(response["output"]):
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.completed", "response": response}

    async def retrieve(self, response_id: str) -> dict[str, Any]:
        return self._said[response_id]

    async def cancel(self, response_id: str) -> dict[str, Any]:
        return self._said[response_id]


_CALL = {
    "type": "function_call",
    "id": "f",
    "call_id": "c1",
    "name": "block_customer",
    "arguments": json.dumps({"customer": "c1"}),
}
_ANSWER = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Blocked.", "annotations": []}],
}

_Call = Callable[[int], Coroutine[Any, Any, object]]


async def _caller(store: SQLiteRunStore, run_id: str, log: ptc.AuditLog | None) -> _Call:
    """A run that has begun, as a function that makes its n-th call."""
    settings = ptc.Runner(client=_Model(), model="m", audit=log, store=store)._settings
    durable = Durable(store, run_id, labels={})
    recorder = durable.settings(settings).recorder
    await durable.begin({"model": "m"})
    invoker, run = Invoker(Catalog([get_inventory]), recorder=recorder), RunContext(run_id)

    async def call(number: int) -> object:
        outcome = await invoker.invoke(_call(number), run)
        assert outcome.status == "success", outcome
        return outcome

    return call


def _call(number: int) -> Call:
    return Call(f"call_{number:06d}", "get_inventory", '{"sku": "sku_123"}')


async def _settle_in(call: _Call) -> None:
    """Until the WAL has been written through once, as that of a store is for nearly all of its life."""
    for number in range(SETTLING):
        await call(-number - 1)


async def _texts(folder: Path, *, records: bool = False) -> list[bytes]:
    """The two steps of a call, as the store writes them, and their audit records."""
    (folder / "texts.db").unlink(missing_ok=True)
    with SQLiteRunStore(folder / "texts.db") as store:
        call = await _caller(store, "run_texts", None)
        for number in range(2):
            await call(number)
    with SQLiteRunStore(folder / "texts.db") as store:
        stored = await store.acquire("run_texts")
    kept = [step for step in stored.steps if step.kind in ("admitted", "outcome")][:2]
    texts = [json.dumps(step.data).encode() for step in kept]
    if not records:
        return texts
    (folder / "texts-audit.db").unlink(missing_ok=True)
    with (
        ptc.AuditLog(folder / "texts-audit.db", keys=Keyring.generate()) as log,
        SQLiteRunStore(log) as store,
    ):
        await (await _caller(store, "run_texts", log))(0)
    db = sqlite3.connect(folder / "texts-audit.db")
    kinds = "SELECT record FROM records WHERE type IN ('tool.started', 'tool.finished') ORDER BY seq"
    lines = [line.encode() for (line,) in db.execute(kinds)]
    db.close()
    return [text + line for text, line in zip(texts, lines, strict=True)]


async def _all(calls: list[_Call], number: int) -> None:
    await asyncio.gather(*(call(number) for call in calls))


async def _timed(step: Coroutine[Any, Any, object]) -> float:
    began = time.perf_counter_ns()
    await step
    return (time.perf_counter_ns() - began) / 1000


@contextmanager
def _bare(path: Path, texts: list[bytes]) -> Iterator[Callable[[], float]]:
    """Writes and syncs each text; microseconds for all of them."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write() -> float:
        began = time.perf_counter_ns()
        for text in texts:
            os.write(fd, text)
            os.fdatasync(fd)
        return (time.perf_counter_ns() - began) / 1000

    try:
        yield write
    finally:
        os.close(fd)


@contextmanager
def _folder() -> Iterator[Path]:
    """Beside the benchmarks, since /tmp may be memory, where a sync costs nothing."""
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path(__file__).parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    report("Durable runs", main)
