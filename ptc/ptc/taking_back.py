"""Takes back what a failed attempt of a call changed in the tools of its run.

It is the run's innermost layer but for the approvals: it sees each attempt's own outcome, which a layer
further out may retry or replace. It changes no outcome.
"""

from __future__ import annotations

import asyncio

from ptc.exposure import ATTEMPT, LiveExposure
from ptc_tools.middleware import Invocation, Next
from ptc_tools.outcome import Outcome, Success


class TakeBack:
    """Middleware of one run."""

    def __init__(self, exposure: LiveExposure) -> None:
        self._exposure = exposure

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        before = ATTEMPT.set(object())
        try:
            outcome = await next(invocation)
            if not isinstance(outcome, Success):
                self._exposure.take_back(invocation.call)
        except (
            asyncio.CancelledError
        ):  # given up, by a layer that had its answer from another attempt perhaps
            self._exposure.take_back(invocation.call)
            raise
        finally:
            ATTEMPT.reset(before)
        return outcome
