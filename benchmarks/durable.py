"""What durable runs cost: a call's steps against a bare write and sync of the same bytes, alone and many at once.

A call has two durable steps, its admission and its outcome, with the tool in between; the peer writes the same
two texts to a file and syncs after each. `python -m benchmarks.durable [--json]`; about a minute.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
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

CALLS = 300
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
        return [*asyncio.run(_alone(folder)), *asyncio.run(_together(folder)), *asyncio.run(_paused(folder))]


async def _alone(folder: Path) -> list[Figure]:
    """One call after the other; the peer's two writes beside each, in the same moment."""
    figures = []
    for name, audited in (("a call of one run", False), ("the same, with its audit records", True)):
        texts = await _texts(folder, records=audited)
        with ExitStack() as stack:
            log = None
            if audited:
                keys = Keyring.generate()
                log = stack.enter_context(ptc.AuditLog(folder / "audit.db", keys=keys))
            store = stack.enter_context(SQLiteRunStore(log or folder / "alone.db"))
            call = await _caller(store, f"run_{name}", log)
            bare = stack.enter_context(_bare(folder / "bare.txt", texts))
            ours: list[float] = []
            peers: list[float] = []
            for number in range(CALLS):
                ours.append(await _timed(call(number)))
                peers.append(bare())
        peer = "two write+fdatasync of its steps"
        figures.append(Figure(name, median(ours), "µs", peer, median(peers), 1.5, p99=p99(ours)))
    return figures


async def _together(folder: Path) -> list[Figure]:
    """Many runs at once share their commits; the peer is what one call alone would have to sync."""
    texts = await _texts(folder)
    ours: list[float] = []
    peers: list[float] = []
    with SQLiteRunStore(folder / "many.db") as store, _bare(folder / "bare.txt", texts) as bare:
        calls = [await _caller(store, f"run_{index}", None) for index in range(AT_ONCE)]
        for number in range(CALLS // AT_ONCE):
            ours.append(await _timed(_all(calls, number)) / AT_ONCE)
            peers.extend(bare() / 2 for _ in range(4))
    name, peer = f"a call, {AT_ONCE} runs at once", "one write+fdatasync"
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
    """Asks for one call, then answers."""

    async def create(self, body: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        answered = any(item.get("type") == "function_call_output" for item in body["input"])
        arguments = json.dumps({"customer": "c1"})
        call = {"type": "function_call", "id": "f", "call_id": "c1", "name": "block_customer"}
        content = [{"type": "output_text", "text": "Blocked.", "annotations": []}]
        said = {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "phase": "final_answer",
            "content": content,
        }
        output = [said] if answered else [{**call, "arguments": arguments}]
        return {"id": "r", "object": "response", "status": "completed", "output": output, "usage": None}

    async def stream(self, body: dict[str, Any], *, timeout: float | None = None) -> Any:
        raise NotImplementedError

    async def retrieve(self, response_id: str) -> dict[str, Any]:
        raise NotImplementedError

    async def cancel(self, response_id: str) -> dict[str, Any]:
        raise NotImplementedError


_Call = Callable[[int], Coroutine[Any, Any, object]]


async def _caller(store: SQLiteRunStore, run_id: str, log: ptc.AuditLog | None) -> _Call:
    """A run that has begun, as a function that makes its n-th call."""
    settings = ptc.Runner(client=_Model(), model="m", audit=log, store=store)._settings
    durable = Durable(store, run_id, labels={})
    recorder = durable.settings(settings).recorder
    await durable.begin({"model": "m"})
    invoker, run = Invoker(Catalog([get_inventory]), recorder=recorder), RunContext(run_id)

    async def call(number: int) -> object:
        asked = Call(f"call_{number:06d}", "get_inventory", '{"sku": "sku_123"}')
        outcome = await invoker.invoke(asked, run)
        assert outcome.status == "success", outcome
        return outcome

    return call


async def _texts(folder: Path, *, records: bool = False) -> list[bytes]:
    """The two steps of a call, as the store writes them, and their audit records."""
    (folder / "texts.db").unlink(missing_ok=True)
    with SQLiteRunStore(folder / "texts.db") as store:
        await (await _caller(store, "run_texts", None))(0)
    with SQLiteRunStore(folder / "texts.db") as store:
        stored = await store.acquire("run_texts")
    kept = [step for step in stored.steps if step.kind in ("admitted", "outcome")]
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
