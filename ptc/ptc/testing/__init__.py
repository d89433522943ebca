"""The test kit, for users too: a scripted model, the strict Responses peer, and faults.

`ScriptedModel` and the words of a script are here; `Peer` starts the peer in a process of its own. Nothing
is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptc.gateway.faults import Fault
    from ptc.gateway.peer import Settings
    from ptc.gateway.script import ModelRequest
    from ptc.testing.audit import AuditCapture, Captured, capture_audit
    from ptc.testing.cassette import Cassette, CassetteError, CassetteMismatch
    from ptc.testing.peer import Peer, PeerError, in_process
    from ptc.testing.scripted import (
        Part,
        ScriptedModel,
        call,
        commentary,
        custom_call,
        failed,
        incomplete,
        item,
        program,
        reason,
        refuse,
        run_code,
        say,
        search,
    )

__all__ = [
    "AuditCapture",
    "Captured",
    "Cassette",
    "CassetteError",
    "CassetteMismatch",
    "Fault",
    "ModelRequest",
    "Part",
    "Peer",
    "PeerError",
    "ScriptedModel",
    "Settings",
    "call",
    "capture_audit",
    "commentary",
    "custom_call",
    "failed",
    "in_process",
    "incomplete",
    "item",
    "program",
    "reason",
    "refuse",
    "run_code",
    "say",
    "search",
]

_ELSEWHERE = {
    "AuditCapture": "ptc.testing.audit",
    "Captured": "ptc.testing.audit",
    "capture_audit": "ptc.testing.audit",
    "Cassette": "ptc.testing.cassette",
    "CassetteError": "ptc.testing.cassette",
    "CassetteMismatch": "ptc.testing.cassette",
    "Fault": "ptc.gateway.faults",
    "ModelRequest": "ptc.gateway.script",
    "Settings": "ptc.gateway.peer",
    "Peer": "ptc.testing.peer",
    "PeerError": "ptc.testing.peer",
    "in_process": "ptc.testing.peer",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_ELSEWHERE.get(name, "ptc.testing.scripted")), name)
    globals()[name] = value
    return value
