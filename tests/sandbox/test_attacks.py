"""Every attack runs three ways: both walls, the language wall alone, the kernel wall alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from ptc_sandbox import Confinement, Limits, ProgramResult, Sandbox
from tests.sandbox.attacks import ATTACKS, UNKNOWN, Attack
from tests.sandbox.granted import TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = Limits(wall_seconds=1.0, cpu_seconds=10, memory_bytes=192 * 1024 * 1024, calls=200)
PATIENT = replace(LIMITS, wall_seconds=60)
"""For what must end by something else than the wall clock, which takes as long as the machine is busy."""
Walls: TypeAlias = dict[tuple[str, bool], Sandbox]
SECRETS = ("root:x:0", "PTC_TEST_SECRET", "canary-5c1d")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def walls() -> AsyncIterator[Walls]:
    options: dict[str, dict[str, Any]] = {
        "both": {},
        "language": {"confinement": Confinement.none()},
        "kernel": {"language_wall": False},
    }
    async with AsyncExitStack() as stack:
        made = {
            (name, limits is PATIENT): await stack.enter_async_context(Sandbox(limits=limits, **kept))
            for name, kept in options.items()
            for limits in (LIMITS, PATIENT)
        }
        yield made


async def run(walls: Walls, name: str, program: str, expected: str) -> ProgramResult:
    """Behind these walls. Memory is given time to run out."""
    return await walls[name, expected == "killed:memory"].run(program, tools=TOOLS)


def told(result: ProgramResult) -> str:
    """A result in the words of the data: the status, and what tells it apart from others of the same status."""
    if result.status == "denied":
        assert result.error is not None
        return f"denied:{result.error.wall}:{result.error.code}"
    if result.status == "raised":
        assert result.error is not None
        return f"raised:{result.error.type}"
    return result.status


def check(result: ProgramResult, expected: str, attack: Attack) -> None:
    assert told(result) == expected, (attack.why, result.error, result.evidence)
    if attack.value is not UNKNOWN and result.status == "completed":
        assert result.value == attack.value
    shown = json.dumps([result.value, result.output, str(result.error)])
    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.both], ids=lambda attack: attack.name)
async def test_with_both_walls(walls: Walls, attack: Attack) -> None:
    """As users run it: each attack ends as its data says, and shows nothing of the host."""
    assert attack.both
    check(await run(walls, "both", f"{attack.program}\nresult", attack.both), attack.both, attack)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.language], ids=lambda attack: attack.name)
async def test_with_the_language_wall_alone(walls: Walls, attack: Attack) -> None:
    """Kernel wall off: policy, guards, facades and the host's limits must do."""
    assert attack.language
    check(await run(walls, "language", f"{attack.program}\nresult", attack.language), attack.language, attack)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_with_the_kernel_wall_alone(walls: Walls, attack: Attack) -> None:
    """Language wall off: the same text as plain CPython gets no file, socket, process, signal or secret."""
    check(await run(walls, "kernel", attack.program, attack.kernel), attack.kernel, attack)


async def test_what_one_wall_cannot_stop_says_why() -> None:
    """An attack is left out of a wall only with a reason, or because it is raw and has no language wall."""
    for attack in ATTACKS:
        assert attack.language or attack.both is None or attack.by_nature, attack.name
