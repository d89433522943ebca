"""Rounds of search: how many output tokens are left for the model to search, load and answer in.

An invocation is one question to the model with all the rounds in which it did nothing but search. They share
its budget, so that searching costs no more than answering may. A response with any other call, or with an
answer, ends it, and the next request has the whole budget again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptc.events import Commentary, Event, SearchRequested
from ptc.searching import FIND, LEAST_TOKENS, LOAD
from ptc.toolbox import Step
from ptc_tools import strict_json
from ptc_tools.call import JsonObject


class Rounds:
    """The budget of a run's invocations. `tokens` None bounds nothing."""

    def __init__(self, tokens: int | None) -> None:
        self._tokens = tokens
        self._left = tokens
        self.searching = False

    def add_to(self, body: JsonObject) -> None:
        """Bounds the next response."""
        if self._left is not None:
            body["max_output_tokens"] = self._left

    def exceeded(self) -> tuple[str, str] | None:
        """(limit, message) when there is nothing left for another round."""
        if self._left is None or not self.searching or self._left >= LEAST_TOKENS:
            return None
        return "max_output_tokens", (
            f"the model spent its {self._tokens} output tokens on searching for tools; raise max_output_tokens, "
            "or offer the tools that it needs from the start"
        )

    def end(self) -> None:
        """The next request is an invocation of its own."""
        self._left, self.searching = self._tokens, False

    def received(self, response: JsonObject, events: Sequence[Event], step: Step) -> None:
        """After each response."""
        self.searching = _searched_only(events, step)
        if self._left is None:
            return
        self._left = self._left - _spent(response) if self.searching else self._tokens


def _searched_only(events: Sequence[Event], step: Step) -> bool:
    if step.deferral is None:
        return False
    searched = False
    for event in events:
        pair = step.deferral.by == "pair" and getattr(event, "kind", None) == "function_call"
        if isinstance(event, SearchRequested) or (pair and _is_of_pair(event)):
            searched = True
        elif not isinstance(event, Commentary):
            return False
    return searched


def _is_of_pair(event: Event) -> bool:
    call = getattr(event, "call", None)
    return call is not None and call.namespace is None and call.name in (FIND, LOAD)


def _spent(response: JsonObject) -> int:
    """The output tokens of a response; where the service does not say, a quarter of its letters."""
    usage = response.get("usage")
    told = usage.get("output_tokens") if isinstance(usage, dict) else None
    if isinstance(told, int) and not isinstance(told, bool):
        return max(told, 0)
    return len(strict_json.dumps(response.get("output"))) // 4
