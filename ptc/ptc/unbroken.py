"""Whether all that a run wrote so far stands in its store: once something does not, nothing more is written.

It is told what goes wrong. It writes nothing, and never forgives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around a step on its way to the store. Steps have no gap: where one is not written, or nobody knows
        whether it is, no further one is, and nothing is done about those that were on their way by then."""
        try:
            yield
        except PtcError as error:
            self.ends_with(error)
            raise
        except BaseException as error:
            failed = StoreUnavailable(f"the run store failed: {type(error).__name__}: {error}")
            self.ends_with(failed)
            if isinstance(error, Exception):
                raise failed from error
            raise
        self.check()
