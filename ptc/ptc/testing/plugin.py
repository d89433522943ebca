"""The pytest plugin: `pytest_plugins = ["ptc.testing.plugin"]` in a `conftest.py` gives three fixtures.

`scripted_model` makes a script, `ptc_runner` a runner whose model plays it in an embedded peer inside the
test's process, and `capture_audit` holds what was recorded. They need pytest and pytest-asyncio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest
import pytest_asyncio

from ptc.testing.audit import AuditCapture
from ptc.testing.peer import in_process
from ptc.testing.scripted import ScriptedModel

if TYPE_CHECKING:
    from ptc.gateway.faults import Fault
    from ptc.gateway.peer import Settings
    from ptc.gateway.script import Script
    from ptc.runner import Runner


class MakeRunner(Protocol):
    """What the fixture `ptc_runner` gives."""

    async def __call__(
        self,
        script: Script,
        *,
        faults: Iterable[Fault] = (),
        settings: Settings | None = None,
        **options: Any,
    ) -> Runner:
        """A runner whose model plays `script`; `options` are those of `ptc.Runner`.

        `faults` and `settings` are those of the peer (`ptc.testing.Fault`, `ptc.testing.Settings`). It
        records into the fixture `capture_audit` unless `audit` says otherwise.
        """


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """`scripted_model(turn, turn, …)`: see `ptc.testing.ScriptedModel`."""
    return ScriptedModel


@pytest.fixture
def capture_audit() -> Iterator[AuditCapture]:
    """An audit recorder that keeps its records in a list. At the end every call that began must have ended."""
    audit = AuditCapture()
    yield audit
    assert audit.unfinished == [], "calls were started and never finished"


@pytest_asyncio.fixture
async def ptc_runner(capture_audit: AuditCapture) -> AsyncIterator[MakeRunner]:
    """`runner = await ptc_runner(script, tools=[…])`. Peers, sandboxes and clients are closed at the end."""
    async with AsyncExitStack() as stack:

        async def make(
            script: Script,
            *,
            faults: Iterable[Fault] = (),
            settings: Settings | None = None,
            **options: Any,
        ) -> Runner:
            from ptc.runner import Runner

            peer = in_process(script, faults=faults, settings=settings)
            client = await stack.enter_async_context(peer)
            return Runner(**{"client": client, "model": "scripted", "audit": capture_audit, **options})

        yield make
