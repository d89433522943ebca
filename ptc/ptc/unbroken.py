"""Whether all that a run wrote so far stands in its store: once something does not, nothing more is written.

It is told what goes wrong. It writes nothing, and never forgives.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ptc.store.errors import StoreUnavailable
from ptc_tools.errors import PtcError


class Unbroken:
    """`error`: what the next step is refused with, None while all is well."""

    def __init__(self) -> None:
        self.error: PtcError | None = None

    def check(self) -> None:
        """Raises what went wrong."""
        if self.error is not None:
            raise self.error

    def ends_with(self, error: PtcError) -> None:
        """What went wrong first is what is said."""
        self.error = self.error or error

    def writing(self) -> Self:
        """Around a step on its way to the store. Steps have no gap: where one is not written, or nobody knows
        whether it is, no further one is, and nothing is done about those that were on their way by then."""
        return self

    def __enter__(self) -> None:
        """See `writing`: a generator would take longer than all else that is done here."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.check()
        elif isinstance(error, PtcError):
            self.ends_with(error)
        else:
            failed = StoreUnavailable(f"the run store failed: {type(error).__name__}: {error}")
            self.ends_with(failed)
            if isinstance(error, Exception):
                raise failed from error
