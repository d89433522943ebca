"""The sandbox without an event loop of the application's."""

from __future__ import annotations

from ptc_sandbox import Sandbox
from tests.sandbox.granted import TOOLS


def test_run_sync_needs_no_loop() -> None:
    """The thin face for plain code: a loop of its own, in a thread, closed with the sandbox."""
    with Sandbox() as box:
        assert box.run_sync("await get(i=5)", tools=TOOLS).value == 5
        assert box.run_sync("6").value == 6
