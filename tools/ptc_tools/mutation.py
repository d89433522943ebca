"""What a tool that changes something must say: which commitment it makes, and how a doubt is settled.

Idempotency is a promise of the service behind the tool. That two calls have equal arguments proves nothing
(a customer may order the same thing twice), so a hash of arguments is refused as evidence.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ptc_tools.call import JsonObject
from ptc_tools.errors import PtcError, RegistrationError
from ptc_tools.frozen import FrozenObject
from ptc_tools.names import is_qualified_name
from ptc_tools.schema import shorten
from ptc_tools.strict_json import dumps

IdempotencySource: TypeAlias = Literal["service", "operation_id", "protocol"]
MUTATING = ("write", "destructive")
_OF_THE_CALL = ("$call_id", "$idempotency_key")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Why a second call with the same intent has no second effect.

    `service`: the operation is idempotent by its nature (setting a value, deleting by id). `operation_id`:
    the caller names the operation in `parameter`. `protocol`: the tool hands `ctx.idempotency_key` on, which
    is the same for every attempt of one call. Raises `RegistrationError` for any other evidence.
    """

    source: IdempotencySource
    parameter: str | None = None

    def __post_init__(self) -> None:
        if self.source not in get_args(IdempotencySource):
            raise RegistrationError(
                f"idempotency {self.source!r} is no evidence: it comes from the service, an operation id or "
                "the protocol (equal arguments may be two intents)"
            )
        if (self.source == "operation_id") != (self.parameter is not None):
            raise RegistrationError(
                "idempotency by operation_id, and only that, names the parameter that has it"
            )

    def operation(self, arguments: JsonObject) -> str | None:
        """What a second call must have in common with this one to be the same; None if nothing makes it that.

        A call that leaves its operation id out, or gives null or an empty text, names no operation.
        """
        if self.parameter is None:
            return self.source
        value = arguments.get(self.parameter)
        return None if value is None or value == "" else dumps(value)


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The read that tells whether a mutation happened.

    `tool` is its qualified name; `arguments` maps its parameters to those of the mutation, or to
    `$idempotency_key` or `$call_id`. When a run is recovered, the read's result says what became of the change:
    an empty result or `{"happened": false}`, or `{"happened": true, "result": …}` (docs/durable.md).
    """

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (isinstance(self.tool, str) and is_qualified_name(self.tool)):
            raise RegistrationError(
                f"reconciliation: {shorten(repr(self.tool), 100)} is no tool's name; write name, or namespace.name"
            )
        if not isinstance(self.arguments, Mapping):
            raise RegistrationError("reconciliation: arguments maps the read's parameters to the mutation's")
        object.__setattr__(self, "arguments", FrozenObject(self.arguments))
        for name, source in self.arguments.items():
            if not isinstance(source, str) or (source.startswith("$") and source not in _OF_THE_CALL):
                raise RegistrationError(
                    f"reconciliation: {name!r} comes from a parameter, {' or '.join(_OF_THE_CALL)}, not {source!r}"
                )

    def check(self, parameters: JsonObject, what: str) -> None:
        """Raises `RegistrationError` for a source that the mutation with these parameters does not have."""
        declared = parameters.get("properties")
        for source in self.arguments.values():
            if source not in _OF_THE_CALL and not (isinstance(declared, dict) and source in declared):
                raise RegistrationError(
                    f"{what}: reconciliation names {source!r}, which is no parameter of it"
                )

    def request(self, arguments: JsonObject, *, call_id: str, idempotency_key: str) -> JsonObject:
        """What to call, with the values of this call: `{"tool", "arguments"}`."""
        known: JsonObject = {**arguments, "$call_id": call_id, "$idempotency_key": idempotency_key}
        return {
            "tool": self.tool,
            "arguments": {name: known[source] for name, source in self.arguments.items() if source in known},
        }


class TransportError(PtcError):
    """For a tool to raise when a request may or may not have reached its service.

    Errors of the system's and of well-known clients (httpx, aiohttp, requests, database drivers) count as one.
    """

    code = "transport_error"


_TRANSPORT = (
    TransportError,
    ConnectionError,
    TimeoutError,
    EOFError,
    asyncio.IncompleteReadError,
    ssl.SSLError,
)

# What clients call a broken or late connection where no error of the system's is behind it, such as a server
# that closes after it has read the request: (package, class), so that nothing has to be imported to ask.
_OF_CLIENTS = frozenset(
    {
        ("httpx", "TransportError"), ("httpx2", "TransportError"), ("http", "HTTPException"),
        *((name, kind) for name in ("httpcore", "httpcore2")
          for kind in ("NetworkError", "ProtocolError", "ProxyError", "TimeoutException")),
        ("aiohttp", "ClientConnectionError"), ("aiohttp", "ClientPayloadError"),
        ("urllib3", "ProtocolError"), ("urllib3", "TimeoutError"), ("h2", "ProtocolError"),
        ("anyio", "BrokenResourceError"), ("anyio", "ClosedResourceError"), ("anyio", "EndOfStream"),
        ("websockets", "ConnectionClosed"), ("openai", "APIConnectionError"), ("anthropic", "APIConnectionError"),
        ("botocore", "HTTPClientError"), ("botocore", "ConnectionError"),
        ("redis", "ConnectionError"), ("redis", "TimeoutError"), ("pymongo", "ConnectionFailure"),
        ("psycopg", "OperationalError"), ("psycopg2", "OperationalError"), ("pymysql", "OperationalError"),
        ("asyncpg", "PostgresConnectionError"),
    }
)  # fmt: skip


def is_transport_error(error: BaseException) -> bool:
    """Whether the connection to a service broke, so that what it did is not known.

    HTTP clients raise classes of their own from the system's errors; the chain of causes is looked at, and
    an `OSError` that a library defines is one of the network (requests, aiohttp), not of a file. A client that
    is not known here needs a `TransportError` around its errors.
    """
    seen: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        current = queue.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, _TRANSPORT) or any(map(_is_of_a_client, type(current).__mro__)):
            return True
        if isinstance(current, OSError) and type(current).__module__ != "builtins":
            return True
        if isinstance(current, BaseExceptionGroup):
            queue.extend(current.exceptions)
        queue += [current.__cause__, current.__context__]
    return False


def _is_of_a_client(kind: type) -> bool:
    return (kind.__module__.partition(".")[0], kind.__name__) in _OF_CLIENTS
