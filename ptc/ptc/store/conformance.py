"""The conformance suite for run stores: any implementation can prove itself with it.

    async def make() -> RunStore: ...                      # a fresh client of one and the same store
    await check(make)                                      # raises Nonconforming, naming the rule

It uses two clients of one store, as two processes would be, and needs no test framework.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ptc.store.errors import LeaseLost, RunExists, RunLeased, RunUnknown, StoreError
from ptc.store.protocol import RunStore, Step
from ptc_tools.call import JsonObject

Make: TypeAlias = Callable[[], Awaitable[RunStore]]
ODD: JsonObject = {
    "text": "é\u2028\U0001f600 \x00",
    "big": 9007199254740993,
    "deep": [[[{}]]],
    "none": None,
    "tiny": 1e-300,
}


class Nonconforming(AssertionError):
    """A rule that the store breaks."""


async def check(make: Make) -> None:
    """Runs every rule against clients that `make` gives. The store may hold other runs."""
    first, second = await make(), await make()
    try:
        for rule in RULES:
            try:
                await rule(first, second)
            except StoreError as error:
                raise Nonconforming(f"{rule.__name__}: {type(error).__name__}: {error}") from error
        await closing_lets_runs_go(await make(), second)
    finally:
        await first.aclose()
        await second.aclose()


async def steps_come_back_as_they_went_in(first: RunStore, second: RunStore) -> None:
    run = _id()
    lease = await first.create(run, [Step(1, "start", dict(ODD))], {"a": "é"})
    await first.append(lease, [Step(2, "x", {"n": 2}), Step(3, "y", {})])
    await first.release(lease)
    stored = await second.acquire(run)
    want = (Step(1, "start", dict(ODD)), Step(2, "x", {"n": 2}), Step(3, "y", {}))
    _hold(stored.steps == want, f"the steps are {stored.steps}")
    _hold(stored.status == "running", f"the status is {stored.status}")
    await second.release(stored.lease)


async def a_run_has_one_holder(first: RunStore, second: RunStore) -> None:
    run = _id()
    lease = await first.create(run, [], {})
    await _refused(second.acquire(run), RunLeased)
    await _refused(second.create(run, [], {}), RunExists)
    await first.release(lease)
    won = await asyncio.gather(first.acquire(run), second.acquire(run), return_exceptions=True)
    losers = [one for one in won if isinstance(one, RunLeased)]
    _hold(len(losers) == 1, f"two took the run at once: {won}")


async def a_late_holder_adds_nothing(first: RunStore, second: RunStore) -> None:
    run = _id()
    old = await first.create(run, [Step(1, "start", {})], {})
    await first.release(old)
    new = await second.acquire(run)
    await _refused(first.append(old, [Step(2, "late", {})]), LeaseLost)
    await _refused(first.renew(old), LeaseLost)
    await first.release(old)
    await second.append(new.lease, [Step(2, "on time", {})], status="paused")
    again = await first.acquire(run)
    _hold([step.kind for step in again.steps] == ["start", "on time"], f"the steps are {again.steps}")
    _hold(again.status == "paused" and again.lease.epoch > new.lease.epoch > old.epoch, "epochs do not rise")
    await first.release(again.lease)


async def an_end_lets_the_run_go(first: RunStore, second: RunStore) -> None:
    run = _id()
    lease = await first.create(run, [], {"team": "x"})
    await first.append(lease, [Step(1, "end", {})], status="completed")
    (info,) = [info for info in await second.runs(status="completed") if info.run_id == run]
    _hold((info.held, dict(info.labels)) == (False, {"team": "x"}), f"the run is told as {info}")
    _hold(run not in {info.run_id for info in await second.runs(status="paused")}, "a wrong status is listed")
    stored = await second.acquire(run)
    _hold(stored.status == "completed", "the status before is not told")
    await second.release(stored.lease)


async def what_is_not_there_is_said(first: RunStore, second: RunStore) -> None:
    await _refused(first.acquire(_id()), RunUnknown)


async def many_at_once_lose_nothing(first: RunStore, second: RunStore) -> None:
    runs = [_id() for _ in range(20)]

    async def one(store: RunStore, run: str) -> None:
        lease = await store.create(run, [], {})
        for n in range(1, 6):
            await store.append(lease, [Step(n, "x", {"n": n})])
        await store.append(lease, [], status="completed")

    await asyncio.gather(*(one((first, second)[i % 2], run) for i, run in enumerate(runs)))
    for run in runs:
        stored = await first.acquire(run)
        _hold([step.n for step in stored.steps] == [1, 2, 3, 4, 5], f"{run} has {stored.steps}")
        await first.release(stored.lease)


async def closing_lets_runs_go(closing: RunStore, other: RunStore) -> None:
    """Tried last, and by itself: it closes its first client."""
    run = _id()
    try:
        await closing.create(run, [Step(1, "start", {})], {})
    finally:
        await closing.aclose()
    try:
        stored = await other.acquire(run)
    except RunLeased as error:
        raise Nonconforming(
            f"closing_lets_runs_go: a run is held by a store that was closed: {error}"
        ) from error
    _hold([step.n for step in stored.steps] == [1], f"the steps are {stored.steps}")
    await other.release(stored.lease)


RULES: tuple[Callable[[RunStore, RunStore], Awaitable[None]], ...] = (
    steps_come_back_as_they_went_in,
    a_run_has_one_holder,
    a_late_holder_adds_nothing,
    an_end_lets_the_run_go,
    what_is_not_there_is_said,
    many_at_once_lose_nothing,
)


def _id() -> str:
    return f"run_{secrets.token_hex(8)}"


def _hold(true: bool, otherwise: str) -> None:
    if not true:
        raise Nonconforming(otherwise)


async def _refused(step: Awaitable[object], error: type[StoreError]) -> None:
    try:
        await step
    except error:
        return
    raise Nonconforming(f"{error.__name__} was not raised")
