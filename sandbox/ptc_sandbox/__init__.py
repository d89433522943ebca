"""Where an untrusted program runs: a fresh confined process for each, and a host that decides every call.

Importing this package loads nothing: the guest side is imported by processes that must not load the host's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the fork server imports this package before it may load typing
if TYPE_CHECKING:
    from ptc_sandbox.codeact import CodeAct, code_tool
    from ptc_sandbox.confine import Confinement
    from ptc_sandbox.engines.engine import Engine
    from ptc_sandbox.engines.monty import MontyEngine
    from ptc_sandbox.errors import (
        ConfinementUnavailable,
        EngineUnavailable,
        JournalError,
        JournalForged,
        ReplayDiverged,
        ReplayIncompatible,
        SandboxBroken,
        SandboxClosed,
        SandboxError,
    )
    from ptc_sandbox.events import Blocked, CallCancelled, CallForged, CallRequested, Ended
    from ptc_sandbox.execution import Execution
    from ptc_sandbox.journal import Journal, JournalHeader
    from ptc_sandbox.limits import Limits, SandboxLimits
    from ptc_sandbox.result import ProgramCall, ProgramError, ProgramResult
    from ptc_sandbox.sandbox import Sandbox
    from ptc_sandbox.stubs import ToolStub

_HOMES = {
    "codeact": ("CodeAct", "code_tool"),
    "confine": ("Confinement",),
    "engines.engine": ("Engine",),
    "engines.monty": ("MontyEngine",),
    "errors": (
        "ConfinementUnavailable",
        "EngineUnavailable",
        "JournalError",
        "JournalForged",
        "ReplayDiverged",
        "ReplayIncompatible",
        "SandboxBroken",
        "SandboxClosed",
        "SandboxError",
    ),
    "events": ("Blocked", "CallCancelled", "CallForged", "CallRequested", "Ended"),
    "execution": ("Execution",),
    "journal": ("Journal", "JournalHeader"),
    "limits": ("Limits", "SandboxLimits"),
    "result": ("ProgramCall", "ProgramError", "ProgramResult"),
    "sandbox": ("Sandbox",),
    "stubs": ("ToolStub",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Blocked",
    "CallCancelled",
    "CallForged",
    "CallRequested",
    "CodeAct",
    "Confinement",
    "ConfinementUnavailable",
    "Ended",
    "Engine",
    "EngineUnavailable",
    "Execution",
    "Journal",
    "JournalError",
    "JournalForged",
    "JournalHeader",
    "Limits",
    "MontyEngine",
    "ProgramCall",
    "ProgramError",
    "ProgramResult",
    "ReplayDiverged",
    "ReplayIncompatible",
    "Sandbox",
    "SandboxBroken",
    "SandboxClosed",
    "SandboxError",
    "SandboxLimits",
    "ToolStub",
    "code_tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
