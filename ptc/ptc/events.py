"""What a conversation says about a response: values that a driver acts on and a stream passes on.

Plain frozen values. They hold the raw items they speak of, so that nothing is lost on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ptc_tools.call import Call, JsonObject


@dataclass(frozen=True, slots=True)
class CallRequested:
    """The client is to run this call and answer it. `item` is the wire item, `kind` its type.

    `whole` is False when the response or the item was cut short: the call is answered, never run.
    """

    kind: str
    call: Call
    item: JsonObject
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A remote MCP server's call waits for a yes or no; answered by `mcp_approval_response`."""

    kind: str
    call: Call
    item: JsonObject
    whole: bool = True


@dataclass(frozen=True, slots=True)
class SearchRequested:
    """The model searches the application's tools (tool search in client mode)."""

    kind: str
    call: Call
    item: JsonObject
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ProgramOpened:
    """A hosted program started; calls may name `call_id` as their caller from here on."""

    call_id: str
    code: str
    item: JsonObject


@dataclass(frozen=True, slots=True)
class ProgramPaused:
    """A hosted program waits for the outputs of these calls."""

    call_id: str
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramClosed:
    """A hosted program ended; `status` is `completed` or `incomplete`."""

    call_id: str
    result: str
    status: str
    item: JsonObject


@dataclass(frozen=True, slots=True)
class Commentary:
    """The model said something on the way; not part of the answer."""

    text: str
    item: JsonObject


@dataclass(frozen=True, slots=True)
class Finished:
    """The model gave its answer. `incomplete_reason` is set when the service cut what followed it."""

    text: str
    incomplete_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The model refused; `text` is what else it said."""

    refusal: str
    text: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The response was cut short without a final answer."""

    reason: str | None
    partial_text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The response failed or was cancelled by the service."""

    status: str
    code: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Continues:
    """Neither calls nor an answer: the same conversation is sent again (wire.md, rule 8)."""


@dataclass(frozen=True, slots=True)
class StillRunning:
    """A background response that is not done; ask for `response_id` again."""

    response_id: str
    status: str


PendingCall: TypeAlias = CallRequested | ApprovalRequested | SearchRequested
"""What must be answered with exactly one output item."""

Event: TypeAlias = (
    CallRequested
    | ApprovalRequested
    | SearchRequested
    | ProgramOpened
    | ProgramPaused
    | ProgramClosed
    | Commentary
    | Finished
    | Refused
    | Incomplete
    | Failed
    | Continues
    | StillRunning
)
