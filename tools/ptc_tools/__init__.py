"""What a tool is, and the one path by which a tool runs.

Nothing in here runs a model or a program; importing it is light.
"""

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
from ptc_tools.invoke import Invoker
from ptc_tools.middleware import Invocation, Middleware, Next
from ptc_tools.outcome import Cancelled, Denied, Failure, Outcome, Success, error_object
from ptc_tools.policy import Approver, GrantRegistered, Policy
from ptc_tools.record import Recorder
from ptc_tools.tool import AnyTool, Tool, define_tool, tool

__all__ = [
    "AnyTool",
    "Approver",
    "Call",
    "Caller",
    "CallerKind",
    "Cancelled",
    "Catalog",
    "Contract",
    "Denied",
    "Direct",
    "DuplicateTool",
    "Failure",
    "GrantRegistered",
    "HostControlFlow",
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
    "Policy",
    "Program",
    "PtcError",
    "Recorder",
    "RegistrationError",
    "RunContext",
    "Success",
    "Tool",
    "ToolCallError",
    "ToolContext",
    "define_tool",
    "error_object",
    "tool",
]
