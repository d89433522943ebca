"""What a consumer and a registry say to each other: values, and the client that carries them.

A registry has one current registration of each toolset, known by its token, and takes calls for exactly that.
Nothing here does any I/O, and nothing names an address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args

from ptc_tools.call import CallerKind, JsonObject, JsonValue
from ptc_tools.strict_json import canonical

if TYPE_CHECKING:
    from ptc_tools.context import ToolContext
    from ptc_tools.contract import Contract


MAX_ID: Final = 1_024
MAX_ATTEMPT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ToolsetInfo:
    """What a registry lists of a toolset. With a `token`, who knows that registration need not resolve it."""

    name: str
    version: str | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedToolset:
    """A toolset as it is registered now, and the token of that registration.

    `tools` are publications in JSON, see `ptc_tools.export`; None where the reader knows them by the token.
    The token is new with every registration: a call that was made for one is never given to another,
    whatever their schemas.
    """

    name: str
    token: str
    tools: Sequence[JsonObject] | None
    version: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """One call of a registry's tool, bound to the registration that the model chose it from.

    `tool` is the local name; `caller` the kind of caller; `labels` those of the run that the tool requires,
    no others. `timeout` (seconds) is how long the consumer waits. All attempts are the same call: `attempt`
    tells a registry that the consumer would have it run again, should it have come to nothing.
    """

    run_id: str
    call_id: str
    toolset: str
    tool: str
    arguments: JsonObject
    token: str
    caller: CallerKind = "direct"
    labels: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 1
    timeout: float | None = None

    @property
    def key(self) -> str:
        """What a registry knows the call by: the run's and the call's id. Further attempts are the same call."""
        identity: list[JsonValue] = [self.run_id, self.call_id]
        return hashlib.sha256(canonical(identity)).hexdigest()

    @property
    def digest(self) -> str:
        """Of all that may not change under one key, but the token: that is compared by itself."""
        identity: list[JsonValue] = [
            self.toolset,
            self.tool,
            self.arguments,
            self.caller,
            dict(self.labels),
        ]
        return hashlib.sha256(canonical(identity)).hexdigest()

    def to_json(self) -> JsonObject:
        """As it goes over a wire. `from_json` is the inverse."""
        return {
            "run_id": self.run_id,
            "call_id": self.call_id,
            "toolset": self.toolset,
            "tool": self.tool,
            "arguments": self.arguments,
            "token": self.token,
            "caller": self.caller,
            "labels": dict(self.labels),
            "attempt": self.attempt,
            "timeout": self.timeout,
        }

    @classmethod
    def from_json(cls, data: object) -> ResolvedCall:
        """Raises ValueError for what is no call."""
        shape: dict[str, type | tuple[type, ...]] = {
            "run_id": str,
            "call_id": str,
            "toolset": str,
            "tool": str,
            "arguments": dict,
            "token": str,
            "caller": str,
            "labels": dict,
            "attempt": int,
            "timeout": (int, float, type(None)),
        }
        if not isinstance(data, dict) or set(data) != set(shape):
            raise ValueError(f"a call has exactly {', '.join(shape)}")
        for name, kind in shape.items():
            if not isinstance(data[name], kind) or isinstance(data[name], bool):
                raise ValueError(f"a call's {name} is of another type")
        if data["caller"] not in get_args(CallerKind) or not 1 <= data["attempt"] <= MAX_ATTEMPT:
            raise ValueError("a call's caller or attempt is none")
        for name in ("run_id", "call_id", "toolset", "tool", "token"):
            if not 1 <= len(data[name]) <= MAX_ID:
                raise ValueError(f"a call's {name} is a text of 1 to {MAX_ID} characters")
        if not all(isinstance(value, str) for value in data["labels"].values()):
            raise ValueError("a call's labels are texts")
        return cls(**data)


ResultStatus: TypeAlias = Literal["success", "empty", "partial", "denied", "failure", "uncertain", "admitted"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended at its provider. `value` is the result, or for `status` denied, failure and uncertain None.

    `code` and `message` say what went wrong. `server_data` pairs declared kinds with data. `admitted`: an
    agent's call, which runs at the consumer.
    """

    status: ResultStatus
    value: JsonValue = None
    code: str | None = None
    message: str = ""
    server_data: tuple[tuple[str, JsonValue], ...] = ()

    def to_json(self) -> JsonObject:
        """As it goes over a wire. `from_json` is the inverse."""
        return {
            "status": self.status,
            "value": self.value,
            "code": self.code,
            "message": self.message,
            "server_data": [[kind, data] for kind, data in self.server_data],
        }

    @classmethod
    def from_json(cls, data: object) -> CallResult:
        """Raises ValueError for what is no result."""
        if not isinstance(data, dict) or set(data) != {"status", "value", "code", "message", "server_data"}:
            raise ValueError("a result has exactly status, value, code, message, server_data")
        items = data["server_data"]
        if (
            data["status"] not in get_args(ResultStatus)
            or not isinstance(data["code"], str | None)
            or not isinstance(data["message"], str)
            or not isinstance(items, list)
            or not all(
                isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items
            )
        ):
            raise ValueError("a part of a result is of another type")
        pairs = tuple((str(item[0]), item[1]) for item in items)
        return cls(data["status"], data["value"], data["code"], data["message"], pairs)


class RegistryClient(Protocol):
    """How a consumer reaches a registry: many runs at once, each from its own event loop.

    What a method raises beyond what it says makes the step, or the call, fail; a `TransportError` says that
    the connection broke.
    """

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        """All that are registered now."""

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        """The toolset as it is registered now, in one read; None if there is none of this name.

        `known`: a token whose tools the reader has; if it is still current, `tools` may be None.
        """

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        """Runs a call for exactly its registration, and gives how it ended.

        The token is checked before the call is published: see the table in `ptc_tools.admission`. Asking again
        for the same call gives the same result. Raises CallNotAdmitted, AdmissionConflict,
        CallIdentityConflict, and RegistryOverloaded, after which the same call may be made again.
        """


@dataclass(frozen=True, slots=True)
class ServerItem:
    """Data that a registry's tool gave beside its result: for `audience`, never for the model."""

    kind: str
    audience: str
    data: JsonValue
    registry: str
    toolset: str
    tool: str
    run_id: str
    call_id: str


ServerDataHandler: TypeAlias = Callable[[ServerItem], Awaitable[None] | None]
Executor: TypeAlias = "Callable[[str, JsonObject, Contract, ToolContext], Awaitable[JsonValue]]"
"""Runs an agent's call here: told its configuration, its arguments, the contract that it was accepted with, and
the call's context. What it gives is held to the contract's result."""
