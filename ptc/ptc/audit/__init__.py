"""The audit log (`AuditLog`), what it may hold (`Levels`, `Redaction`), its keys, and how it is checked.

Names are loaded when they are first used: importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptc.audit.anchors import Anchor, CallbackAnchor, FileAnchor, LogAnchor
    from ptc.audit.errors import (
        AuditClosed,
        AuditCorrupt,
        AuditError,
        AuditKeyError,
        AuditLocked,
        AuditUnavailable,
        InvalidAuditConfig,
        RecordNotFound,
    )
    from ptc.audit.keeper import Checkpoints, Rotation
    from ptc.audit.keys import Keyring
    from ptc.audit.log import AuditLog
    from ptc.audit.otel import TracedRecorder
    from ptc.audit.policy import Level, Levels, Rule
    from ptc.audit.redact import Detector, Redaction, Sensitive

_HOME = {
    "anchors": ("Anchor", "CallbackAnchor", "FileAnchor", "LogAnchor"),
    "errors": (
        "AuditClosed",
        "AuditCorrupt",
        "AuditError",
        "AuditKeyError",
        "AuditLocked",
        "AuditUnavailable",
        "InvalidAuditConfig",
        "RecordNotFound",
    ),
    "keeper": ("Checkpoints", "Rotation"),
    "keys": ("Keyring",),
    "log": ("AuditLog",),
    "otel": ("TracedRecorder",),
    "policy": ("Level", "Levels", "Rule"),
    "redact": ("Detector", "Redaction", "Sensitive"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Anchor",
    "AuditClosed",
    "AuditCorrupt",
    "AuditError",
    "AuditKeyError",
    "AuditLocked",
    "AuditLog",
    "AuditUnavailable",
    "CallbackAnchor",
    "Checkpoints",
    "Detector",
    "FileAnchor",
    "InvalidAuditConfig",
    "Keyring",
    "Level",
    "Levels",
    "LogAnchor",
    "RecordNotFound",
    "Redaction",
    "Rotation",
    "Rule",
    "Sensitive",
    "TracedRecorder",
]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
