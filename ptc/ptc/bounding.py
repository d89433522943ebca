"""Holds a run to its limits, before each request: an error, or a last answer with what there is.

It is asked, and says no. It counts nothing itself, and bounds nothing that was spent before in another process:
limits are for what is new, so that a run that ended is told again as it ended.
"""

from __future__ import annotations

from ptc.durable import Durable
from ptc.errors import LimitExceeded, RequestLimitExceeded
from ptc.limits import Limits, Spent
from ptc.rounds import Rounds
from ptc.steps import Steps


class Bounds:
    """`limit`: the one at which the run is answering for the last time."""

    def __init__(
        self, limits: Limits, spent: Spent, *, rounds: Rounds, steps: Steps, durable: Durable | None
    ) -> None:
        self.limit: str | None = None
        self._limits = limits
        self._spent = spent
        self._rounds = rounds
        self._steps = steps
        self._durable = durable

    def check(self) -> None:
        """Raises LimitExceeded where the run may make no further request."""
        number = self._spent.requests + 1
        past = None if self._durable is None else self._durable.past
        if past is not None and past.responses.get(number):
            limit = past.sent.get(number, {}).get("limit")
            if isinstance(limit, str):
                self._answer_last(limit)
            return
        exceeded = self._spent.exceeded(self._limits) or self._rounds.exceeded()
        if exceeded is None:
            return
        limit, message = exceeded
        if self._limits.final_answer and self.limit is None:
            self._answer_last(limit)
            return
        kind = RequestLimitExceeded if limit == "max_requests" else LimitExceeded
        raise kind(message, limit=limit)

    def _answer_last(self, limit: str) -> None:
        self.limit = limit
        if self._durable is not None:
            self._durable.limit = limit
        self._rounds.end()
        self._steps.forbid_calls()
