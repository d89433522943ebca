"""What can go wrong with a run store; each error has a stable `code` and says what to do.

StoreError
 ├── RunUnknown         no run of that id is in the store
 ├── RunExists          a run of that id is there already
 ├── RunLeased          another process has the run; `.holder` says which
 ├── LeaseLost          this process had the run, and another one took it over
 ├── StoreUnreadable    the file is no run store, is damaged, or is newer than this library
 ├── StoreUnavailable   the store cannot write; nothing that must be recorded may run
 └── RequestUncertain   a request may have reached a conversation that the service keeps
"""

from __future__ import annotations

from ptc_tools.errors import PtcError


class StoreError(PtcError):
    """Root of the errors of run stores."""

    code = "store_error"


class RunUnknown(StoreError, KeyError):
    """No run of that id is in the store."""

    code = "run_unknown"

    def __str__(self) -> str:  # KeyError would show the repr
        return self.message


class RunExists(StoreError):
    """A new run has the id of one that the store holds: give another, or recover that one."""

    code = "run_exists"


class RunLeased(StoreError):
    """Another process drives the run: wait for it, or until its lease has run out."""

    code = "run_leased"

    def __init__(self, message: str, *, holder: str, run_id: str) -> None:
        super().__init__(message, run_id=run_id)
        self.holder = holder


class LeaseLost(StoreError):
    """Another process took the run over while this one was driving it. Nothing more may be done here."""

    code = "lease_lost"


class StoreUnreadable(StoreError):
    """The file is no run store, is damaged, or was written by a newer version."""

    code = "store_unreadable"


class StoreUnavailable(StoreError):
    """The store cannot write, so nothing that must be recorded may run: free space, or repair the disk."""

    code = "store_unavailable"


class RequestUncertain(StoreError):
    """A request went to a conversation that the service keeps, and its response is not known.

    Sending it again could add the same items twice. `Runner.recover(…, resend=True)` does it all the same.
    """

    code = "request_uncertain"
