"""The errors of the sandbox. How a program ended is a value (`ptc_sandbox.result`), never one of these.

PtcError
 └── SandboxError
      ├── ConfinementUnavailable    this machine cannot enforce what was asked for; nothing was run
      ├── SandboxClosed             the sandbox was closed; make a new one
      ├── SandboxBroken             no fork server can be kept alive; running again may help
      ├── EngineUnavailable         another engine was asked for, and its package is not installed
      ├── ProtocolViolation         a child spoke the wire wrongly (becomes `killed:protocol`)
      └── JournalError
           ├── ReplayDiverged       the program does not do again what the journal says it did
           ├── ReplayIncompatible   the journal was made by something that differs from this
           └── JournalForged        a sealed journal was changed, or sealed with another key
"""

from __future__ import annotations

from ptc_tools.command_line import ptc_command
from ptc_tools.errors import PtcError


class SandboxError(PtcError):
    """Root of the sandbox's errors. `survives` says what is still usable: "sandbox" or "nothing"."""

    code = "sandbox_error"
    survives = "sandbox"


class ConfinementUnavailable(SandboxError):
    """A layer of the confinement cannot be enforced here. Nothing was run. `layer` names it."""

    code = "confinement_unavailable"
    survives = "nothing"

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(
            f"this machine cannot enforce the layer {layer!r}: {reason}. `{ptc_command()} doctor` shows every"
            " layer; choose a weaker level by name (say Sandbox(confinement=Confinement.minimal())) only if you"
            " accept what it leaves open"
        )
        self.layer = layer
        self.reason = reason


class SandboxClosed(SandboxError):
    """The sandbox was closed, or its event loop has gone."""

    code = "sandbox_closed"
    survives = "nothing"


class SandboxBroken(SandboxError):
    """The fork server cannot be started or kept alive. No program was harmed; running again is safe."""

    code = "sandbox_broken"
    survives = "nothing"


class EngineUnavailable(SandboxError):
    """An engine other than our own needs a package that is not installed. The message says how to install it."""

    code = "engine_unavailable"
    survives = "nothing"


class ProtocolViolation(SandboxError):
    """A child sent what the wire does not allow. The host kills it; the sandbox is unharmed."""

    code = "protocol_violation"


class JournalError(SandboxError):
    """A journal cannot be used."""

    code = "journal_error"


class ReplayDiverged(JournalError):
    """The program did something else than the journal says. `number` is the first call that differs."""

    code = "replay_diverged"

    def __init__(self, message: str, *, number: int | None = None) -> None:
        super().__init__(message)
        self.number = number


class ReplayIncompatible(JournalError):
    """The journal's header does not fit: Python minor version, architecture, policy, stubs or program differ."""

    code = "replay_incompatible"

    def __init__(self, field: str, recorded: object, here: object) -> None:
        super().__init__(
            f"the journal was made with {field} {recorded!r}, here it is {here!r}: replay it where that fits"
        )
        self.field = field


class JournalForged(JournalError):
    """A sealed journal does not carry the seal of this key."""

    code = "journal_forged"
