"""The errors of the audit log: each says what was wrong, what to do, and whether a tool may have run.

PtcError
 └── AuditError
      ├── AuditUnavailable     a record could not be made durable in time: the call did not run,
      │                        or, after it ran, its result is withheld (`.ran` says which)
      ├── AuditLocked          another process writes this log
      ├── AuditCorrupt         what is on disk is not a log of ours, or its end cannot be read
      ├── AuditClosed          the log was closed and is asked to record      (also a RuntimeError)
      ├── InvalidAuditConfig   a level, rule, path or size makes no sense     (also a ValueError)
      ├── AuditKeyError        a key is missing, unreadable, or open to others
      └── RecordNotFound       nothing in the log by that sequence number or run
"""

from __future__ import annotations

from ptc_tools.errors import PtcError


class AuditError(PtcError):
    """Root of what the audit log raises."""

    code = "audit_error"


class AuditUnavailable(AuditError):
    """A record did not become durable: the disk is full or failing, or it took longer than `wait`.

    `ran` is False where this stopped a call before its tool ran (trying again is safe), True where the tool
    ran and only its end could not be recorded: the log shows such a call as indeterminate.
    """

    code = "audit_unavailable"

    def __init__(self, message: str, *, ran: bool = False) -> None:
        super().__init__(message)
        self.ran = ran


class AuditLocked(AuditError):
    """Another writer holds the log. One log has one writer: give each process its own file."""

    code = "audit_locked"


class AuditCorrupt(AuditError):
    """The file is not a log of ours, or what stands at its end cannot be continued. Nothing was changed."""

    code = "audit_corrupt"


class AuditClosed(AuditError, RuntimeError):
    """The log was closed; it records nothing any more."""

    code = "audit_closed"


class InvalidAuditConfig(AuditError, ValueError):
    """A level, rule, path or size that the log cannot follow. Found when the log is made, before any run."""

    code = "invalid_audit_config"


class AuditKeyError(AuditError):
    """A key is missing, unreadable, or readable by others than its owner."""

    code = "audit_key_error"


class RecordNotFound(AuditError, LookupError):
    """The log holds nothing under that sequence number, run or call."""

    code = "record_not_found"
