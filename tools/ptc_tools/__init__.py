"""What a tool is, and the one path by which a tool runs.

Nothing in here runs a model or a program; importing it is light.
"""

from ptc_tools.bounds import Bounds, SearchRange
from ptc_tools.call import Call, Caller, CallerKind, Direct, JsonObject, JsonValue, Program
from ptc_tools.catalog import Catalog
from ptc_tools.context import OpenPrograms, RunContext, ToolContext
from ptc_tools.contract import Contract
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
from ptc_tools.fingerprint import toolset_fingerprint
from ptc_tools.invoke import Invoker
from ptc_tools.markers import Designer, ProviderConfig, Sensitive
from ptc_tools.middleware import Invocation, Middleware, Next
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
from ptc_tools.policy import Approver, GrantRegistered, Policy
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
    "Contract",
    "Denied",
    "Designer",
    "Direct",
    "DuplicateTool",
    "Empty",
    "EmptyResult",
    "Failure",
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
    "Middleware",
    "Next",
    "OpenPrograms",
    "Outcome",
    "Partial",
    "PartialResult",
    "Policy",
    "Program",
    "Provenance",
    "ProviderConfig",
    "PtcError",
    "Reconciliation",
    "Recorder",
    "RegistrationError",
    "RunContext",
    "SearchRange",
    "Secret",
    "Sensitive",
    "Source",
    "Success",
    "Tool",
    "ToolCallError",
    "ToolContext",
    "Traced",
    "TransportError",
    "Unavailable",
    "Uncertain",
    "define_tool",
    "error_object",
    "flatten",
    "join",
    "summarise",
    "tool",
    "toolset_fingerprint",
]
