"""How middleware (or a tool) ends a run on purpose. Raise one of these; `except Exception` lets them by.

The call's own audit record is closed first, every call of the batch is answered, and then the run ends.
"""

from __future__ import annotations

from ptc_tools.errors import HostControlFlow, PtcError
from ptc_tools.outcome import Outcome


class TerminateRun(HostControlFlow):
    """End the run after this batch: the siblings finish, no further request is made.

    `outcome` is what the call is answered with; without one it counts as cancelled. `output_text` becomes
    the run's answer; the result's status is `terminated`.
    """

    def __init__(self, output_text: str = "", *, outcome: Outcome | None = None) -> None:
        if not isinstance(output_text, str) or not isinstance(outcome, Outcome | None):
            raise TypeError(
                "TerminateRun takes the run's answer as a text, and an outcome such as ptc.Success(…)"
            )
        super().__init__(output_text)
        self.output_text = output_text
        self.outcome = outcome


class FailRun(HostControlFlow):
    """Fail the run now: the siblings are cancelled and answered so, and the run raises RunTerminated."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolFailed(HostControlFlow):
    """Ends the local program whose call failed, where the application asked for an exception; the run then
    raises `error`. Siblings are ended with the program. So does a program that cannot go on from its journal.
    """

    def __init__(self, error: PtcError) -> None:
        super().__init__(error.message)
        self.error = error
