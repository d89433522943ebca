"""Steps as rows of a SQLite run store: what is bound, what comes back, and how a lone run adds them.

It decides nothing about the order of commits, and never writes a step that does not follow the one before it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from pydantic_core import to_json

from ptc.store.errors import LeaseLost, StoreUnavailable, StoreUnreadable
from ptc.store.protocol import Lease, Step
from ptc.store.schema import add_all, add_next
from ptc_tools.call import JsonObject

IN_ONE: Final = 64
"""Steps that are added by one statement, which is a transaction of its own."""

_add_all = lru_cache(maxsize=IN_ONE)(add_all)
_add_next = lru_cache(maxsize=IN_ONE)(add_next)


def rows_of(run_id: str, steps: Sequence[Step]) -> list[tuple[object, ...]]:
    now = now_us()
    _check_order(steps)
    return [(step.n, now, step.kind, text_of(step.data), run_id) for step in steps]


def _check_order(steps: Sequence[Step]) -> None:
    """Among themselves; that they follow what is there the file sees to. Raises StoreUnavailable."""
    follows = None
    for step in steps:
        if follows is not None and step.n != follows:
            raise StoreUnavailable(f"a step does not follow the one before it: {[step.n for step in steps]}")
        follows = step.n + 1


def appending(
    lease: Lease, steps: Sequence[Step], keys: list[int] | None = None
) -> Callable[[sqlite3.Connection], None]:
    """By one statement, which adds all steps where the lease holds, and none where it does not.

    `keys` is given the run's own id.
    """
    now = now_us()
    _check_order(steps)
    values: list[object] = []
    for step in steps:
        values += (step.n, now, step.kind, text_of(step.data))
    values += (lease.run_id, lease.epoch, lease.holder)

    def append(db: sqlite3.Connection) -> None:
        _add(db, lease, len(steps), _add_all, values)
        if keys is not None:
            keys.extend(db.execute("SELECT id FROM runs WHERE run = ?", (lease.run_id,)).fetchone())

    return append


def following(lease: Lease, key: int, steps: Sequence[Step]) -> Callable[[sqlite3.Connection], None]:
    """The same where the step before the first is known to be there."""
    now = now_us()
    _check_order(steps)
    epoch, holder = lease.epoch, lease.holder
    values: list[object] = []
    for step in steps:
        n = step.n
        values += (n, n, now, step.kind, text_of(step.data), key, epoch, holder)

    return lambda db: _add(db, lease, len(steps), _add_next, values)


def _add(
    db: sqlite3.Connection, lease: Lease, count: int, statement: Callable[[int], str], values: list[object]
) -> None:
    """All of so many steps, or LeaseLost."""
    if db.execute(statement(count), values).rowcount != count:
        raise lost(lease)


def text_of(data: object) -> str:
    """JSON that `json_of` gives back as it was, also half of a surrogate pair, which a model's text may hold."""
    try:
        text = to_json(data).decode()  # several times as quick as json, which decides what it cannot write
    except ValueError:
        text = ""
    if text and "NaN" not in text and "Infinity" not in text:
        return text
    try:
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreUnavailable(f"a step cannot be kept: {error}") from None


def json_of(text: str, run_id: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreUnreadable(f"a step of run {run_id!r} is damaged: {error}", run_id=run_id) from None
    if not isinstance(value, dict):
        raise StoreUnreadable(f"a step of run {run_id!r} is damaged", run_id=run_id)
    return value


def lost(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"another process has taken over the run {lease.run_id!r}; nothing more is done here",
        run_id=lease.run_id,
    )


def now_us() -> int:
    return time.time_ns() // 1000
