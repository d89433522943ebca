"""What a call did, found out instead of seen, on the way that its tool's own result would take: through every layer.

For a call that was cut off with its process and does not run again. It runs no tool, asks nobody and writes no
record: the call was let in, and recorded, when it ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptc_tools.catalog import Catalog
from ptc_tools.disclosure import Told
from ptc_tools.invoke import Invoker
from ptc_tools.ledger import Attempt
from ptc_tools.middleware import Invocation, Middleware
from ptc_tools.onion import Onion
from ptc_tools.outcome import Denied, Outcome, Success, Uncertain
from ptc_tools.release import uncertain


async def through_layers(
    invocation: Invocation,
    found: Outcome,
    *,
    catalog: Catalog,
    layers: Sequence[Middleware],
    max_result_bytes: int,
) -> Outcome:
    """What the layers make of `found`, which each of them sees as the result of its `next`.

    One that refuses does not undo what was done: then the outcome is uncertain, in the layer's words.
    """
    if not layers:
        return found
    path = _Known(found, catalog, layers, max_result_bytes)
    outcome = await Onion(path, invocation, layers).invoke()
    if outcome is found or isinstance(outcome, Success | Uncertain):
        return outcome
    return uncertain(invocation, Told(outcome.message), getattr(outcome, "exception", None))


class _Known(Invoker):
    """The end of one call's way: what its tool did is known."""

    def __init__(
        self, found: Outcome, catalog: Catalog, layers: Sequence[Middleware], max_result_bytes: int
    ) -> None:
        super().__init__(catalog, middleware=layers, max_result_bytes=max_result_bytes)
        self._found = found

    async def admit(self, invocation: Invocation, attempt: int = 1) -> Attempt | Denied:
        return Attempt(invocation.tool.contract, None, 0)

    async def execute(self, invocation: Invocation, keywords: dict[str, object], attempt: int) -> Outcome:
        return self._found
