"""The conformance suite for run stores: any implementation can prove itself with it.

    async def make() -> RunStore: ...                      # a fresh client of one and the same store
    await check(make)                                      # raises Nonconforming, naming the rule

It uses clients of one store, as processes would be, and needs no test framework. For the expiry of leases it sets
`lease_seconds` of some of them, and waits for that long.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ptc.store.errors import LeaseLost, RunExists, RunLeased, RunUnknown, StoreError
from ptc.store.protocol import RunStore, Step, StoredRun
from ptc_tools.call import JsonObject

Make: TypeAlias = Callable[[], Awaitable[RunStore]]
SHORT = 1.0
"""Seconds that a lease holds where its end is waited for."""
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
                raise _broken(rule.__name__, error) from error
        await a_lease_that_is_not_renewed_runs_out(await make(), await make())
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


async def a_step_follows_the_one_before_it(first: RunStore, second: RunStore) -> None:
    """Steps may be on their way when one before them is refused by the disk: a store takes none out of order."""
    run = _id()
    lease = await first.create(run, [Step(1, "start", {})], {})
    for steps in ([Step(3, "x", {})], [Step(3, "x", {}), Step(4, "x", {})], [Step(1, "again", {})]):
        await _refused(first.append(lease, steps), StoreError)
    await first.append(lease, [Step(2, "x", {})])
    await first.release(lease)
    stored = await second.acquire(run)
    _hold(
        [(step.n, step.kind) for step in stored.steps] == [(1, "start"), (2, "x")], f"it has {stored.steps}"
    )
    await second.release(stored.lease)


async def a_lease_that_is_not_renewed_runs_out(late: RunStore, other: RunStore) -> None:
    """Tried by itself, with clients of its own: it sets how long their leases hold, and closes them."""
    try:
        late.lease_seconds = other.lease_seconds = SHORT
        run = _id()
        lease = await late.create(run, [Step(1, "start", {})], {})
        began = time.monotonic()
        stored: StoredRun | None = None
        while stored is None:
            renewed = time.monotonic()
            await late.renew(lease)
            again = renewed - began < 2 * SHORT  # for longer than one lease: renewed, it holds
            stored = await _acquired(other, run, patience=0 if again else 20 * SHORT)
            held = time.monotonic() - renewed
            _hold(stored is None or held >= SHORT, f"a lease of {SHORT} s was another's after {held:.2f} s")
            _hold(again or stored is not None, f"a lease of {SHORT} s is held after {held:.2f} s")
        await _refused(late.append(lease, [Step(2, "late", {})]), LeaseLost)
        await _refused(late.renew(lease), LeaseLost)
        await late.release(lease)
        await other.append(stored.lease, [Step(2, "on time", {})], status="completed")
    except Nonconforming as error:
        raise Nonconforming(f"a_lease_that_is_not_renewed_runs_out: {error}") from error
    except StoreError as error:
        raise _broken("a_lease_that_is_not_renewed_runs_out", error) from error
    finally:
        await late.aclose()
        await other.aclose()


async def _acquired(store: RunStore, run: str, *, patience: float) -> StoredRun | None:
    """The run, or None: its lease held for as long as that."""
    until = time.monotonic() + patience
    while True:
        try:
            return await store.acquire(run)
        except RunLeased:
            if time.monotonic() >= until:
                await asyncio.sleep(SHORT / 10)
                return None
        await asyncio.sleep(SHORT / 10)


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
    a_step_follows_the_one_before_it,
)


def _id() -> str:
    return f"run_{secrets.token_hex(8)}"


def _broken(rule: str, error: StoreError) -> Nonconforming:
    return Nonconforming(f"{rule}: {type(error).__name__}: {error}")


def _hold(true: bool, otherwise: str) -> None:
    if not true:
        raise Nonconforming(otherwise)


async def _refused(step: Awaitable[object], error: type[StoreError]) -> None:
    try:
        await step
    except error:
        return
    raise Nonconforming(f"{error.__name__} was not raised")
