"""The errors of this component, and the root that all of ours share.

Programs and tools fail as values (`ptc_tools.outcome`); these exceptions are for hosts: somebody who wrote
the application can act on them. Each has a stable `code` and says what to do.

    PtcError
     ├── RegistrationError        a tool cannot be registered as declared         (also a ValueError)
     │    ├── InvalidName         name or namespace: pattern, length, reserved
     │    ├── InvalidSchema       a schema is not one, or strict mode cannot express it
     │    ├── InvalidSignature    a function cannot become a tool as it is written
     │    ├── DuplicateTool       two tools of one (namespace, name)
     │    ├── InvalidDeferral     defer() names what is not there, or something twice, or mixes its two forms
     │    ├── InvalidSource       a source cannot be used like that: twice, overlapping, widened, exported again
     │    └── InvalidPublication  what a provider publishes is incomplete, or of a kind that cannot run here
     ├── CatalogError             the catalog of a step could not be read; no part of one was used
     │    ├── RegistryUnknown     nobody has said which client reaches the registry
     │    ├── SourceMissing       a named source is not in its registry
     │    ├── SourceRemoved       a source went away while it was read
     │    ├── VersionMismatch     a source is published in another version than the one asked for
     │    ├── SourceUnreadable    reading failed, or what came was not a catalog
     │    ├── DuplicateIdentity   two sources offer a tool of one name
     │    └── VisibilityFailed    the policy could not say what this run may see
     ├── CallRefused              a registry does not take a call; has `.executed`, which is False
     │    ├── CallNotAdmitted     the registration that the call was made for is no longer the current one
     │    ├── AdmissionConflict   … and it was replaced while the call waited for a free provider
     │    ├── CallIdentityConflict  the call id stands for another call
     │    └── RegistryOverloaded  no provider had room; the same call may be tried again
     ├── UnknownKey               a template addresses a key that the arguments do not have (also a KeyError)
     ├── InvalidJson              text that is not strict JSON                     (also a ValueError)
     ├── ToolError                for a tool to raise: words that are meant for the model
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


class InvalidDeferral(RegistrationError):
    """`defer()` was told an empty, qualified, repeated or unknown name, or both of its forms at once."""

    code = "invalid_deferral"


class InvalidSource(RegistrationError):
    """A source of tools cannot be used like that: twice, overlapping another, widened, or exported again."""

    code = "invalid_source"


class InvalidPublication(RegistrationError):
    """What a provider publishes is incomplete (schemas alone, say), or of a kind that cannot run here."""

    code = "invalid_publication"


class CatalogError(PtcError):
    """The catalog of a step could not be read. Nothing of it was used, and no request was sent."""

    code = "catalog_error"


class RegistryUnknown(CatalogError):
    """A source names a registry that no client was registered for: see `register_registry`."""

    code = "registry_unknown"


class SourceMissing(CatalogError):
    """A named source is mandatory, and its registry does not have it."""

    code = "source_missing"


class SourceRemoved(CatalogError):
    """A source was listed, and gone when it was read. Reading again gives a whole catalog."""

    code = "source_removed"


class VersionMismatch(CatalogError):
    """A source is published in another version than the consumer asked for."""

    code = "version_mismatch"


class SourceUnreadable(CatalogError):
    """Reading a source failed, or what came is no catalog. `__cause__` says why, where something was raised."""

    code = "source_unreadable"


class DuplicateIdentity(CatalogError):
    """Two sources offer tools of one name, or of one name in a program."""

    code = "duplicate_identity"


class VisibilityFailed(CatalogError):
    """The policy raised, or gave something other than true or false, when asked what the run may see."""

    code = "visibility_failed"


class CallRefused(PtcError):
    """A registry does not take a call. The tool did not run for it, whatever kind this is."""

    code = "call_refused"
    executed: ClassVar[bool] = False


class CallNotAdmitted(CallRefused):
    """The call was made for a registration that has been replaced or removed. Nothing was published."""

    code = "call_not_admitted"


class AdmissionConflict(CallRefused):
    """The registration was replaced while an admitted call waited for room, or an update named a stale one."""

    code = "admission_conflict"


class CallIdentityConflict(CallRefused):
    """The call id is that of another call: another token, tool or arguments. A new call takes a new id."""

    code = "call_identity_conflict"


class RegistryOverloaded(CallRefused):
    """No provider had room for the call, however often it was tried. It may be tried again."""

    code = "registry_overloaded"


class UnknownKey(PtcError, KeyError):
    """A template addresses a JSON key that the arguments of the call do not have, so nobody can be asked."""

    code = "unknown_key"

    def __str__(self) -> str:
        return self.message


class InvalidJson(PtcError, ValueError):
    """Not strict JSON: malformed, a duplicate key, NaN, an infinity, a lone surrogate, too deep."""

    code = "invalid_json"


class ToolError(PtcError):
    """For a tool to raise with words for the model: what is wrong, and what to do about it.

    The model, or the program's `except ToolError`, gets the message. The text of any other exception is
    withheld where the tool works with what a model must not know (docs/tools.md, Errors). Put no designer's or
    trusted value into it: those that are recognised are taken out, and no search recognises every form.
    """

    code = "tool_error"


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
