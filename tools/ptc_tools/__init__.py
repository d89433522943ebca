"""What a tool is, and the one path by which a tool runs.

Nothing in here runs a model or a program; importing it is light.
"""

from ptc_tools.bounds import Bounds, SearchRange
from ptc_tools.call import Call, Caller, CallerKind, Direct, JsonObject, JsonValue, Program
from ptc_tools.catalog import Catalog
from ptc_tools.compare import Comparison, Reason, compare_schemas
from ptc_tools.context import OpenPrograms, RunContext, ToolContext
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
    ToolError,
)
from ptc_tools.extension import Extension, Manifest, Offer, offers
from ptc_tools.fingerprint import toolset_fingerprint
from ptc_tools.invoke import Invoker
from ptc_tools.lint import Finding
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
from ptc_tools.provenance import Classification, Provenance, Source, Traced, flatten, join, summarise
from ptc_tools.record import Recorder
from ptc_tools.returns import EmptyResult, PartialResult, Unavailable
from ptc_tools.secret import Secret
from ptc_tools.tool import AnyTool, Tool, define_tool, tool

__all__ = [
    "AnyTool",
    "Approver",
    "Bounds",
    "Call",
    "Caller",
    "CallerKind",
    "Cancelled",
    "Catalog",
    "Classification",
    "Comparison",
    "Contract",
    "Denied",
    "Designer",
    "Direct",
    "DuplicateTool",
    "Empty",
    "EmptyResult",
    "Extension",
    "Failure",
    "Finding",
    "GrantRegistered",
    "HostControlFlow",
    "Idempotency",
    "InvalidJson",
    "InvalidName",
    "InvalidSchema",
    "InvalidSignature",
    "Invocation",
    "Invoker",
    "JsonObject",
    "JsonValue",
    "Lock",
    "LockError",
    "Manifest",
    "Middleware",
    "Next",
    "Offer",
    "OpenPrograms",
    "Outcome",
    "Partial",
    "PartialResult",
    "Policy",
    "Program",
    "Provenance",
    "ProviderConfig",
    "PtcError",
    "Reason",
    "Reconciliation",
    "Recorder",
    "RegistrationError",
    "RequireAuthority",
    "Retry",
    "RunContext",
    "SearchRange",
    "Secret",
    "Sensitive",
    "Source",
    "Spec",
    "Success",
    "Tool",
    "ToolCallError",
    "ToolContext",
    "ToolError",
    "Traced",
    "TransportError",
    "Unavailable",
    "Uncertain",
    "compare_schemas",
    "compile_declaration",
    "define_tool",
    "error_object",
    "flatten",
    "join",
    "offers",
    "summarise",
    "tool",
    "toolset_fingerprint",
]
