"""What the audit log costs: against a bare write and sync, against encoding and hashing alone, against SQLite.

Peers do the same work without the log: the same bytes are written and synced, the same records encoded with
the standard library and hashed in a bare loop. `python -m benchmarks.audit [--json]`; about two minutes, and
a gigabyte of disk for a moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.harness import Figure, interleaved, median, report
from ptc.audit.keys import Keyring
from ptc.audit.lines import Columns, Parts, draft, place
from ptc.audit.log import AuditLog
from ptc.audit.query import Filter, select
from ptc.audit.sqlite import SqliteStore
from ptc.audit.verify import verify
from ptc_tools.call import Call, Program
from ptc_tools.context import RunContext
from ptc_tools.contract import Contract
from ptc_tools.invoke import Invoker
from ptc_tools.outcome import Success
from ptc_tools.tool import tool

ROUNDS = 7
KEYS = Keyring.generate()
RUN = RunContext("run_0123456789abcdef01234567", "somebody@example", {"tenant": "acme"})
PARAMETERS = {
    "type": "object",
    "properties": {"sku": {"type": "string"}},
    "required": ["sku"],
    "additionalProperties": False,
}
CONTRACT = Contract(name="get_inventory", parameters=PARAMETERS, allowed_callers=("programmatic",))


def main() -> list[Figure]:
    with _folder() as folder:
        return [
            *_each(folder),
            *_group(folder),
            *_none(folder),
            *_verify(folder),
            *_query(folder),
        ]


@contextmanager
def _folder() -> Iterator[Path]:
    # Beside the benchmark and not in /tmp, which is memory on many machines: syncing there costs nothing.
    folder = Path(tempfile.mkdtemp(prefix=".bench-audit-", dir=Path(__file__).parent.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


async def _call(log: AuditLog, number: int) -> None:
    made = Call(f"call_{number:024d}", "get_inventory", None, Program("program_0123456789"), None, 3)
    token = await log.started(made, CONTRACT, {"sku": f"sku_{number}"}, RUN)
    await log.finished(token, Success({"sku": f"sku_{number}", "units": number}), 1234)


async def _calls(log: AuditLog, calls: int, together: int) -> float:
    """Microseconds a record, with so many callers at once."""

    async def worker(first: int) -> None:
        for number in range(first, calls, together):
            await _call(log, number)

    began = time.perf_counter()
    await asyncio.gather(*(worker(first) for first in range(together)))
    return (time.perf_counter() - began) / calls / 2 * 1e6


def _timed(folder: Path, form: str, sync: str, calls: int, together: int) -> Callable[[], float]:
    def once() -> float:
        path = folder / f"{time.monotonic_ns()}.{form}"
        with AuditLog(path, keys=KEYS, sync=sync) as log:  # type: ignore[arg-type]
            return asyncio.run(_calls(log, calls, together))

    return once


def _sample(folder: Path, calls: int) -> list[bytes]:
    """The lines of a log with so many calls, without its own."""
    path = folder / f"sample-{time.monotonic_ns()}.jsonl"
    with AuditLog(path, keys=KEYS, sync="none") as log:
        asyncio.run(_calls(log, calls, 1))
    return [line for line in path.read_bytes().splitlines() if b'"type":"tool.' in line]


def _each(folder: Path) -> list[Figure]:
    lines = _sample(folder, 200)

    def bare() -> float:
        fd = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        began = time.perf_counter()
        for line in lines:
            os.write(fd, line + b"\n")
            os.fdatasync(fd)
        spent = time.perf_counter() - began
        os.close(fd)
        return spent / len(lines) * 1e6

    got = interleaved(
        {
            "bare": bare,
            "eight": _timed(folder, "jsonl", "each", 200, 8),
            "one": _timed(folder, "jsonl", "each", 200, 1),
        },
        ROUNDS,
    )
    peer = median(got["bare"])
    name = 'sync="each", a record'
    return [
        Figure(name, median(got["eight"]), "µs", "write+fdatasync", peer, 1.3, note="8 callers at once"),
        Figure(
            name,
            median(got["one"]),
            "µs",
            "write+fdatasync",
            peer,
            note="1 caller, with both thread hand-overs",
        ),
    ]


def _encode_and_hash(lines: list[bytes]) -> Callable[[], float]:
    records = [json.loads(line) for line in lines]

    def once() -> float:
        began = time.perf_counter()
        for record in records:
            text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            hashlib.sha256(text.encode()).digest()
        return (time.perf_counter() - began) / len(records) * 1e6

    return once


def _group(folder: Path) -> list[Figure]:
    got = interleaved(
        {
            "bare": _encode_and_hash(_sample(folder, 2000)),
            "jsonl": _timed(folder, "jsonl", "group", 4000, 64),
            "db": _timed(folder, "db", "group", 4000, 64),
        },
        ROUNDS,
    )
    peer = 1e6 / median(got["bare"])
    return [
        Figure(
            f"group commit, 64 waiters, {form}",
            1e6 / median(got[form]),
            "records/s",
            "encode and hash",
            peer,
            0.6,
            at_least=True,
        )
        for form in ("jsonl", "db")
    ]


@tool(allowed_callers=["direct"])
async def nothing(sku: str) -> str:
    """Returns its argument."""
    return sku


def _none(folder: Path) -> list[Figure]:
    calls = 3000

    def invoking(recorder: AuditLog | None) -> float:
        invoker = Invoker([nothing], recorder=recorder)

        async def all_of_them() -> float:
            began = time.perf_counter()
            for number in range(calls):
                await invoker.invoke(Call(f"call_{number}", "nothing", '{"sku":"sku_123"}'), RUN)
            return (time.perf_counter() - began) / calls * 1e6

        return asyncio.run(all_of_them())

    def recorded() -> float:
        with AuditLog(folder / f"{time.monotonic_ns()}.jsonl", keys=KEYS, sync="none") as log:
            return invoking(log)

    got = interleaved(
        {
            "bare": _encode_and_hash(_sample(folder, 2000)),
            "without": lambda: invoking(None),
            "with": recorded,
        },
        ROUNDS,
    )
    added = median([a - b for a, b in zip(got["with"], got["without"], strict=True)])
    peer = 2 * median(got["bare"])
    return [Figure('added to a call, sync="none", metadata', added, "µs", "encode and hash both", peer, 2.0)]


def _verify(folder: Path) -> list[Figure]:
    path = folder / "verify.jsonl"
    with AuditLog(path, keys=KEYS, sync="none") as log:
        asyncio.run(_calls(log, 20_000, 1))

    def bare() -> float:
        began = time.perf_counter()
        count = 0
        with path.open("rb") as stream:
            for line in stream:
                json.loads(line)
                hashlib.sha256(b"\0" + line[:-1]).digest()
                count += 1
        return count / (time.perf_counter() - began)

    def ours() -> float:
        began = time.perf_counter()
        found = verify(path)
        assert found.verdict == "intact"
        return found.records / (time.perf_counter() - began)

    got = interleaved({"bare": bare, "ours": ours}, ROUNDS)
    return [
        Figure(
            "verify",
            median(got["ours"]),
            "records/s",
            "parse and hash",
            median(got["bare"]),
            0.8,
            at_least=True,
        )
    ]


def _query(folder: Path, records: int = 1_000_000) -> list[Figure]:
    path = folder / "million.db"
    _fill(path, records)
    wanted = "run_012345"

    def ours() -> float:
        began = time.perf_counter()
        found = list(select(path, Filter(run=wanted)))
        assert len(found) == 20
        return (time.perf_counter() - began) * 1e6

    def bare() -> float:
        began = time.perf_counter()
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT record FROM records WHERE run = ? ORDER BY seq", (wanted,)).fetchall()
            found = [json.loads(row[0]) for row in rows]
        assert len(found) == 20
        return (time.perf_counter() - began) * 1e6

    got = interleaved({"bare": bare, "ours": ours}, 101)
    return [
        Figure(
            f"one run of 20 records among {records:,}",
            median(got["ours"]),
            "µs",
            "indexed SQLite query",
            median(got["bare"]),
            2.0,
        )
    ]


def _fill(path: Path, records: int) -> None:
    """A database as the log would have written it, without waiting for anybody."""
    store = SqliteStore(path, durable=False)
    store.open()
    prev, digest = "0" * 64, "d0:" + "ab" * 32
    batch = []
    for seq in range(1, records + 1):
        run = f"run_{seq // 20:06d}"
        columns = Columns(
            1_700_000_000_000_000 + seq, "tool.started", run, "get_inventory", "direct", None, digest
        )
        parts = Parts(
            content=f'{{"arguments":{{"$redacted":"level","bytes":17}},"arguments_digest":"{digest}","level":"metadata"}}',
            identity=f'{{"actor":"a","call":"call_{seq}","run":"{run}"}}',
            origin='{"caller":"direct"}',
            tool='{"fingerprint":"' + "0" * 64 + '","name":"get_inventory"}',
        )
        entry = place(draft("0" * 32, columns, parts), seq, prev)
        prev = entry.leaf.hex()
        batch.append(entry)
        if len(batch) == 5000 or seq == records:
            store.append(batch, sync=False)
            batch = []
    store.close()


if __name__ == "__main__":
    report("The audit log", main)
