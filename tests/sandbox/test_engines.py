"""Every engine proves itself by the suite that ships; what it cannot keep is listed with the reason."""

from __future__ import annotations

from ptc_sandbox import Limits, Sandbox
from ptc_sandbox.engines.conformance import CASES, Case, check, gives


async def test_our_engine_conforms() -> None:
    """No exception for our own."""
    async with Sandbox(limits=Limits(wall_seconds=1.5, calls=100)) as sandbox:
        verdicts = [verdict async for verdict in check(sandbox)]
    assert [(verdict.name, verdict.found) for verdict in verdicts if not verdict.ok] == []
    assert len(verdicts) == len(CASES)


async def test_the_suite_notices_what_does_not_hold() -> None:
    """A check that cannot fail proves nothing."""
    wrong = (Case("wrong", "1", gives(2)), Case("excused", "1", gives(2)))
    async with Sandbox() as sandbox:
        verdicts = [verdict async for verdict in check(sandbox, {"excused": "on purpose"}, wrong)]
    assert [verdict.ok for verdict in verdicts] == [False, True]
