"""Holds the calls of local programs to the run's choice of tools, as a batch's own calls are held to it.

It is told the choice and the step of each batch. It decides nothing about a call of the model or of a hosted
program: those are refused before the one path is asked.
"""

from __future__ import annotations

from ptc.choice import ToolChoice
from ptc.toolbox import Step
from ptc_tools.call import Program
from ptc_tools.middleware import Invocation, Next
from ptc_tools.outcome import Denied, Outcome


class ChosenInPrograms:
    """Middleware of one run."""

    def __init__(self) -> None:
        self._held: tuple[ToolChoice, Step] | None = None

    def holds(self, choice: ToolChoice, step: Step) -> None:
        """For the programs of the batch that comes."""
        self._held = choice, step

    async def __call__(self, invocation: Invocation, next: Next, /) -> Outcome:
        if self._held is not None and isinstance(invocation.caller, Program):
            choice, step = self._held
            refusal = choice.refusal_in_program(invocation.call, step) if step.programs == "local" else None
            if refusal is not None:
                return Denied("not_admitted", refusal)
        return await next(invocation)
