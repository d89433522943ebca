"""The errors of this component, and the root that all of ours share.

Programs and tools fail as values (`ptc_tools.outcome`); these exceptions are for hosts: somebody who wrote
the application can act on them. Each has a stable `code` and says what to do.

    PtcError
     ├── RegistrationError        a tool cannot be registered as declared         (also a ValueError)
     │    ├── InvalidName         name or namespace: pattern, length, reserved
     │    ├── InvalidSchema       a schema is not one, or strict mode cannot express it
     │    ├── InvalidSignature    a function cannot become a tool as it is written
     │    └── DuplicateTool       two tools of one (namespace, name)
     ├── InvalidJson              text that is not strict JSON                     (also a ValueError)
     └── ToolCallError            `on_tool_error="raise"`: a call did not succeed; has `.outcome`

    HostControlFlow               a BaseException: the host wants out (to suspend a run, say); not an error
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ptc_tools.call import Call
    from ptc_tools.outcome import Outcome


class PtcError(Exception):
    """Root of every exception this project raises on purpose.

    `code` is stable and machine-readable; `run_id` and `call_id` are attached on the way up, where known.
    """

    code: ClassVar[str] = "ptc_error"

    def __init__(self, message: str, *, run_id: str | None = None, call_id: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.run_id = run_id
        self.call_id = call_id


class RegistrationError(PtcError, ValueError):
    """A tool cannot be registered as it is declared: the host's mistake, found before any run."""

    code = "registration_error"


class InvalidName(RegistrationError):
    """A tool's name or namespace breaks the API's pattern, is too long, or is reserved."""

    code = "invalid_name"


class InvalidSchema(RegistrationError):
    """A schema is not valid JSON Schema, or says something that strict mode cannot express."""

    code = "invalid_schema"


class InvalidSignature(RegistrationError):
    """A function cannot become a tool as written: an untyped, positional-only or variadic parameter, say."""

    code = "invalid_signature"


class DuplicateTool(RegistrationError):
    """Two tools of the same (namespace, name), or two whose names in a program would be the same."""

    code = "duplicate_tool"


class InvalidJson(PtcError, ValueError):
    """Not strict JSON: malformed, a duplicate key, NaN, an infinity, a lone surrogate, too deep."""

    code = "invalid_json"


class ToolCallError(PtcError):
    """A call did not succeed, and `on_tool_error="raise"` was chosen. `outcome` says how it ended."""

    code = "tool_call_error"

    def __init__(self, message: str, *, call: Call, outcome: Outcome, run_id: str | None = None) -> None:
        super().__init__(message, run_id=run_id, call_id=call.call_id)
        self.call = call
        self.outcome = outcome


class HostControlFlow(BaseException):
    """Raised by an approver, a middleware or a tool to leave a run on purpose: to suspend it, for example.

    It passes through `Invoker.invoke` once the call's record is closed, and `except Exception` lets it by.
    `outcome` is what the call is answered with, if the one who leaves says so; `waits` means that the call
    is not over: it will be asked again.
    """

    waits: ClassVar[bool] = False
    outcome: Outcome | None = None
