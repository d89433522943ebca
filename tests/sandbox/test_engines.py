"""Every engine proves itself by the suite that ships; what it cannot keep is listed with the reason."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from ptc_sandbox import Sandbox
from ptc_sandbox.engines.conformance import CASES, Case, check, gives, prove
from ptc_sandbox.engines.engine import Engine
from ptc_sandbox.engines.monty import EXCEPTIONS, MontyEngine
from ptc_sandbox.errors import EngineUnavailable

with_monty = pytest.mark.skipif(
    importlib.util.find_spec("pydantic_monty") is None, reason="the extra `monty` is not installed"
)


async def test_our_engine_conforms() -> None:
    """No exception for our own."""
    verdicts = [verdict async for verdict in prove(lambda limits: Sandbox(limits=limits))]
    assert [(verdict.name, verdict.found) for verdict in verdicts if not verdict.ok] == []
    assert len(verdicts) == len(CASES)


@with_monty
async def test_monty_conforms_but_for_its_listed_exceptions() -> None:
    """Each exception has its reason, and none is listed that it does not need."""
    verdicts = [verdict async for verdict in prove(lambda limits: MontyEngine(limits=limits), EXCEPTIONS)]
    assert [(verdict.name, verdict.found) for verdict in verdicts if not verdict.ok] == []
    assert [verdict.name for verdict in verdicts if verdict.stale] == []
    assert {verdict.name for verdict in verdicts if not verdict.holds} == set(EXCEPTIONS)
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())


async def test_the_suite_notices_what_does_not_hold() -> None:
    """A check that cannot fail proves nothing."""
    wrong = (Case("wrong", "1", gives(2)), Case("excused", "1", gives(2)))
    async with Sandbox() as sandbox:
        verdicts = [verdict async for verdict in check(sandbox, {"excused": "on purpose"}, wrong)]
    assert [verdict.ok for verdict in verdicts] == [False, True]


async def test_a_case_that_holds_in_spite_of_its_exception_is_reported() -> None:
    """An exception that is not needed any more hides the day on which the case breaks again."""
    cases = (Case("kept", "1", gives(1)), Case("not kept", "1", gives(2)))
    async with Sandbox() as sandbox:
        verdicts = [verdict async for verdict in check(sandbox, {"kept": "once", "not kept": "still"}, cases)]
    assert [verdict.stale for verdict in verdicts] == [True, False]


async def test_an_exception_to_no_case_is_refused() -> None:
    """A misspelt name would excuse nothing and look as if it did."""
    async with Sandbox() as sandbox:
        with pytest.raises(ValueError, match="do not exist"):
            [verdict async for verdict in check(sandbox, {"filez": "on purpose"})]
    with pytest.raises(ValueError, match="do not exist"):
        [verdict async for verdict in prove(lambda limits: Sandbox(limits=limits), {"filez": "on purpose"})]


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is optional; what to do is in the message, not in a traceback."""
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(EngineUnavailable, match=r"pip install 'ptc-runner\[monty\]'"):
        MontyEngine()


def test_both_engines_are_engines() -> None:
    """The protocol is what the type checker and users see."""
    engines: list[type[Engine]] = [Sandbox, MontyEngine]
    assert all(hasattr(engine, name) for engine in engines for name in ("run", "aclose"))
