"""Programmatic tool calling: a model writes a program, it calls your tools, only its result goes back.

The public API, by name. Nothing is imported before it is used: `import ptc` is light, and the parts that
need the SDK, a sandbox or a terminal load when somebody asks for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ptc._version import __version__

if TYPE_CHECKING:
    from ptc.approval import ApprovalRequest, Approve, Deny, Happened, PauseForApproval
    from ptc.audit import AuditLog
    from ptc.choice import ToolChoice
    from ptc.connection import Service, connect
    from ptc.control import FailRun, TerminateRun
    from ptc.conversation import Conversation
    from ptc.errors import (
        ConfigurationError,
        ContractChanged,
        CredentialsMissing,
        CredentialsRejected,
        DeploymentNotFound,
        EndpointError,
        EndpointTimeout,
        EndpointUnreachable,
        InvalidInput,
        InvalidOutput,
        LimitExceeded,
        LocalProtocolError,
        ProgramsUnsupported,
        RateLimited,
        ReasoningNotReplayable,
        RemoteProtocolError,
        RequestLimitExceeded,
        RequestRejected,
        ResponseCut,
        ResponseFailed,
        ResponseIncomplete,
        RunError,
        RunTerminated,
        ServerFailed,
        StateError,
        StateForged,
        StateUnreadable,
        ToolCallFailed,
        UnansweredCalls,
    )
    from ptc.events import Commentary, Finished, ProgramClosed, ProgramOpened, ProgramPaused, Refused
    from ptc.handlers import ClientTool, client_tool
    from ptc.history import trim
    from ptc.layers import only_for
    from ptc.limits import Limits
    from ptc.progress import CallFinished, CallStarted, RequestSent, RunEvent, RunFinished, RunStarted
    from ptc.providers.clients import azure_client, openai_client
    from ptc.result import CallReport, ProgramReport, RunResult, UncertainCall
    from ptc.retry import RetryPolicy
    from ptc.runner import Runner
    from ptc.state import RunState
    from ptc.store import (
        LeaseLost,
        RequestUncertain,
        RunExists,
        RunLeased,
        RunStore,
        RunUnknown,
        SQLiteRunStore,
        StoreError,
        StoreUnavailable,
        StoreUnreadable,
    )
    from ptc.stream import RunStream
    from ptc.streaming import ReasoningDelta, RefusalDelta, TextDelta
    from ptc.usage import Usage
    from ptc_sandbox import (
        CodeAct,
        Confinement,
        ConfinementUnavailable,
        Engine,
        EngineUnavailable,
        Journal,
        JournalHeader,
        MontyEngine,
        ProgramError,
        ProgramResult,
        ReplayDiverged,
        ReplayIncompatible,
        Sandbox,
        SandboxBroken,
        SandboxClosed,
        SandboxError,
        SandboxLimits,
    )
    from ptc_tools.bounds import Bounds, SearchRange
    from ptc_tools.call import Call, Direct, Program
    from ptc_tools.catalog import Catalog
    from ptc_tools.compare import Comparison, Reason, compare, compare_schemas
    from ptc_tools.context import RunContext, ToolContext
    from ptc_tools.contract import Contract
    from ptc_tools.declaration import Spec, compile_declaration
    from ptc_tools.errors import (
        DuplicateTool,
        HostControlFlow,
        InvalidJson,
        InvalidName,
        InvalidSchema,
        InvalidSignature,
        PtcError,
        RegistrationError,
        ToolCallError,
    )
    from ptc_tools.experimental import ExperimentalWarning
    from ptc_tools.extension import Extension, Manifest, Offer, offers
    from ptc_tools.fingerprint import toolset_fingerprint
    from ptc_tools.invoke import Invoker
    from ptc_tools.lint import Finding, lint
    from ptc_tools.lock import Lock, LockError
    from ptc_tools.markers import Designer, ProviderConfig, Sensitive
    from ptc_tools.middleware import Invocation, Middleware, Next, Retry
    from ptc_tools.mutation import Idempotency, Reconciliation, TransportError
    from ptc_tools.outcome import (
        Cancelled,
        Denied,
        Empty,
        Failure,
        Outcome,
        Partial,
        Success,
        Uncertain,
        error_object,
    )
    from ptc_tools.policy import Approver, GrantRegistered, Policy, RequireAuthority
    from ptc_tools.provenance import Provenance, Source, Traced, flatten, join, summarise
    from ptc_tools.record import Recorder
    from ptc_tools.returns import EmptyResult, PartialResult, Unavailable
    from ptc_tools.secret import Secret
    from ptc_tools.tool import AnyTool, Tool, define_tool, tool

_HOME = {
    "ptc.approval": ("ApprovalRequest", "Approve", "Deny", "Happened", "PauseForApproval"),
    "ptc.audit": ("AuditLog",),
    "ptc.choice": ("ToolChoice",),
    "ptc.connection": ("Service", "connect"),
    "ptc.control": ("FailRun", "TerminateRun"),
    "ptc.conversation": ("Conversation",),
    "ptc.errors": (
        "ConfigurationError",
        "ContractChanged",
        "CredentialsMissing",
        "CredentialsRejected",
        "DeploymentNotFound",
        "EndpointError",
        "EndpointTimeout",
        "EndpointUnreachable",
        "InvalidInput",
        "InvalidOutput",
        "LimitExceeded",
        "LocalProtocolError",
        "ProgramsUnsupported",
        "RateLimited",
        "ReasoningNotReplayable",
        "RemoteProtocolError",
        "RequestLimitExceeded",
        "RequestRejected",
        "ResponseCut",
        "ResponseFailed",
        "ResponseIncomplete",
        "RunError",
        "RunTerminated",
        "ServerFailed",
        "StateError",
        "StateForged",
        "StateUnreadable",
        "ToolCallFailed",
        "UnansweredCalls",
    ),
    "ptc.events": ("Commentary", "Finished", "ProgramClosed", "ProgramOpened", "ProgramPaused", "Refused"),
    "ptc.history": ("trim",),
    "ptc.handlers": ("ClientTool", "client_tool"),
    "ptc.layers": ("only_for",),
    "ptc.limits": ("Limits",),
    "ptc.progress": ("CallFinished", "CallStarted", "RequestSent", "RunEvent", "RunFinished", "RunStarted"),
    "ptc.providers.clients": ("azure_client", "openai_client"),
    "ptc.result": ("CallReport", "ProgramReport", "RunResult", "UncertainCall"),
    "ptc.retry": ("RetryPolicy",),
    "ptc.runner": ("Runner",),
    "ptc.state": ("RunState",),
    "ptc.store": (
        "LeaseLost",
        "RequestUncertain",
        "RunExists",
        "RunLeased",
        "RunStore",
        "RunUnknown",
        "SQLiteRunStore",
        "StoreError",
        "StoreUnavailable",
        "StoreUnreadable",
    ),
    "ptc.stream": ("RunStream",),
    "ptc.streaming": ("ReasoningDelta", "RefusalDelta", "TextDelta"),
    "ptc.usage": ("Usage",),
    "ptc_sandbox": (
        "CodeAct",
        "Confinement",
        "ConfinementUnavailable",
        "Engine",
        "EngineUnavailable",
        "Journal",
        "JournalHeader",
        "MontyEngine",
        "ProgramError",
        "ProgramResult",
        "ReplayDiverged",
        "ReplayIncompatible",
        "Sandbox",
        "SandboxBroken",
        "SandboxClosed",
        "SandboxError",
        "SandboxLimits",
    ),
    "ptc_tools.call": ("Call", "Direct", "Program"),
    "ptc_tools.catalog": ("Catalog",),
    "ptc_tools.context": ("RunContext", "ToolContext"),
    "ptc_tools.contract": ("Contract",),
    "ptc_tools.errors": (
        "DuplicateTool",
        "HostControlFlow",
        "InvalidJson",
        "InvalidName",
        "InvalidSchema",
        "InvalidSignature",
        "PtcError",
        "RegistrationError",
        "ToolCallError",
    ),
    "ptc_tools.experimental": ("ExperimentalWarning",),
    "ptc_tools.invoke": ("Invoker",),
    "ptc_tools.middleware": ("Invocation", "Middleware", "Next", "Retry"),
    "ptc_tools.outcome": (
        "Cancelled",
        "Denied",
        "Empty",
        "Failure",
        "Outcome",
        "Partial",
        "Success",
        "Uncertain",
        "error_object",
    ),
    "ptc_tools.policy": ("Approver", "GrantRegistered", "Policy", "RequireAuthority"),
    "ptc_tools.record": ("Recorder",),
    "ptc_tools.tool": ("AnyTool", "Tool", "define_tool", "tool"),
    "ptc_tools.bounds": ("Bounds", "SearchRange"),
    "ptc_tools.compare": ("Comparison", "Reason", "compare", "compare_schemas"),
    "ptc_tools.declaration": ("Spec", "compile_declaration"),
    "ptc_tools.extension": ("Extension", "Manifest", "Offer", "offers"),
    "ptc_tools.fingerprint": ("toolset_fingerprint",),
    "ptc_tools.lint": ("Finding", "lint"),
    "ptc_tools.lock": ("Lock", "LockError"),
    "ptc_tools.markers": ("Designer", "ProviderConfig", "Sensitive"),
    "ptc_tools.mutation": ("Idempotency", "Reconciliation", "TransportError"),
    "ptc_tools.provenance": ("Provenance", "Source", "Traced", "flatten", "join", "summarise"),
    "ptc_tools.returns": ("EmptyResult", "PartialResult", "Unavailable"),
    "ptc_tools.secret": ("Secret",),
}
"""Where each public name lives. To add one: here, in `__all__`, and in the block for type checkers above."""

_ELSEWHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AnyTool",
    "ApprovalRequest",
    "Approve",
    "Approver",
    "AuditLog",
    "Bounds",
    "Call",
    "CallFinished",
    "CallReport",
    "CallStarted",
    "Cancelled",
    "Catalog",
    "ClientTool",
    "CodeAct",
    "Commentary",
    "Comparison",
    "ConfigurationError",
    "Confinement",
    "ConfinementUnavailable",
    "Contract",
    "ContractChanged",
    "Conversation",
    "CredentialsMissing",
    "CredentialsRejected",
    "Denied",
    "Deny",
    "DeploymentNotFound",
    "Designer",
    "Direct",
    "DuplicateTool",
    "Empty",
    "EmptyResult",
    "EndpointError",
    "EndpointTimeout",
    "EndpointUnreachable",
    "Engine",
    "EngineUnavailable",
    "ExperimentalWarning",
    "Extension",
    "FailRun",
    "Failure",
    "Finding",
    "Finished",
    "GrantRegistered",
    "Happened",
    "HostControlFlow",
    "Idempotency",
    "InvalidInput",
    "InvalidJson",
    "InvalidName",
    "InvalidOutput",
    "InvalidSchema",
    "InvalidSignature",
    "Invocation",
    "Invoker",
    "Journal",
    "JournalHeader",
    "LeaseLost",
    "LimitExceeded",
    "Limits",
    "LocalProtocolError",
    "Lock",
    "LockError",
    "Manifest",
    "Middleware",
    "MontyEngine",
    "Next",
    "Offer",
    "Outcome",
    "Partial",
    "PartialResult",
    "PauseForApproval",
    "Policy",
    "Program",
    "ProgramClosed",
    "ProgramError",
    "ProgramOpened",
    "ProgramPaused",
    "ProgramReport",
    "ProgramResult",
    "ProgramsUnsupported",
    "Provenance",
    "ProviderConfig",
    "PtcError",
    "RateLimited",
    "Reason",
    "ReasoningDelta",
    "ReasoningNotReplayable",
    "Reconciliation",
    "Recorder",
    "RefusalDelta",
    "Refused",
    "RegistrationError",
    "RemoteProtocolError",
    "ReplayDiverged",
    "ReplayIncompatible",
    "RequestLimitExceeded",
    "RequestRejected",
    "RequestSent",
    "RequestUncertain",
    "RequireAuthority",
    "ResponseCut",
    "ResponseFailed",
    "ResponseIncomplete",
    "Retry",
    "RetryPolicy",
    "RunContext",
    "RunError",
    "RunEvent",
    "RunExists",
    "RunFinished",
    "RunLeased",
    "RunResult",
    "RunStarted",
    "RunState",
    "RunStore",
    "RunStream",
    "RunTerminated",
    "RunUnknown",
    "Runner",
    "SQLiteRunStore",
    "Sandbox",
    "SandboxBroken",
    "SandboxClosed",
    "SandboxError",
    "SandboxLimits",
    "SearchRange",
    "Secret",
    "Sensitive",
    "ServerFailed",
    "Service",
    "Source",
    "Spec",
    "StateError",
    "StateForged",
    "StateUnreadable",
    "StoreError",
    "StoreUnavailable",
    "StoreUnreadable",
    "Success",
    "TerminateRun",
    "TextDelta",
    "Tool",
    "ToolCallError",
    "ToolCallFailed",
    "ToolChoice",
    "ToolContext",
    "Traced",
    "TransportError",
    "UnansweredCalls",
    "Unavailable",
    "Uncertain",
    "UncertainCall",
    "Usage",
    "__version__",
    "azure_client",
    "client_tool",
    "compare",
    "compare_schemas",
    "compile_declaration",
    "connect",
    "define_tool",
    "error_object",
    "flatten",
    "join",
    "lint",
    "offers",
    "only_for",
    "openai_client",
    "summarise",
    "tool",
    "toolset_fingerprint",
    "trim",
]


def __getattr__(name: str) -> object:
    module = _ELSEWHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
