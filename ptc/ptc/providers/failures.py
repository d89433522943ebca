"""What a client's exceptions mean to the loop: one typed error for each, with what to do next.

It reads exceptions by the SDK's own classes where the SDK is loaded, and else by their fields. It never
includes a header, a key or a request body in a message.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ptc.errors import (
    ConversationLocked,
    CredentialsRejected,
    DeploymentNotFound,
    EndpointError,
    EndpointTimeout,
    EndpointUnreachable,
    ProgramsUnsupported,
    PtcError,
    RateLimited,
    RequestRejected,
    ResponseCut,
    ServerFailed,
    ToolSearchUnsupported,
)
from ptc_tools.call import JsonValue
from ptc_tools.schema import printable

_BEFORE_SENDING = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "PoolTimeout",
        "UnsupportedProtocol",
        "ConnectionRefusedError",
        "gaierror",
    }
)
"""Failures of a transport, by class name, that happen before a byte of the request is sent."""

_PROGRAMS = r"['\"`]?programmatic[_ ]tool[_ ]calling['\"`]?"
_SEARCH = r"['\"`]?tool[_ ]search['\"`]?"
_FIELD = re.compile(r"unknown parameter: ['\"`]?tools\[(?P<index>\d+)\]\.(allowed_callers|output_schema)\b")
_DEFERRED = re.compile(r"unknown parameter: ['\"`]?tools\[\d+\](\.tools\[\d+\])?\.defer_loading\b")


def _not_known(tool: str) -> tuple[re.Pattern[str], ...]:
    """How services say that they do not know a tool of this type."""
    return (
        re.compile(
            rf"{tool}( tool| type)* (is|are) (not|un)[ -]?(supported|available|enabled|allowed|known)"
        ),
        re.compile(
            rf"(invalid|unknown|unsupported|unrecognized) (hosted )?(tool )?(type|value|tool):? {tool}"
        ),
        re.compile(rf"(does not|doesn't|cannot|can't) (support|use|run) (the )?(hosted )?(tool )?{tool}"),
        re.compile(rf"{tool} is not (one of|a valid|a known)"),
    )


_NO_PROGRAMS = (*_not_known(_PROGRAMS), _FIELD)
"""Refusals of the tool's type itself, or of fields that every service with programs has on functions."""
_NO_SEARCH = (*_not_known(_SEARCH), _DEFERRED)

_WITH_CALLERS = frozenset(
    {"function", "custom", "namespace", "mcp", "code_interpreter", "shell", "apply_patch"}
)


def as_endpoint_error(error: Exception, *, streaming: bool = False) -> Exception:
    """The loop's error for what a client raised; what is not the service's or the network's stays itself."""
    ours = next((cause for cause in _chain(error) if isinstance(cause, PtcError)), None)
    if isinstance(ours, Exception):
        return ours  # the SDK wraps what its transport raises: a cassette that was asked something else, say
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return of_status(status, _body(error), retry_after=_retry_after(error))
    names = {cls.__name__ for cause in _chain(error) for cls in type(cause).__mro__}
    if names & _BEFORE_SENDING:
        return EndpointUnreachable(
            f"no connection to {_address(error)}: check the address, and that the service is running"
        )
    if "APITimeoutError" in names or "TimeoutException" in names or isinstance(error, TimeoutError):
        return EndpointTimeout(
            "the service did not answer in time; whether it worked on the request is unknown"
        )
    if "APIConnectionError" in names or "TransportError" in names or isinstance(error, OSError):
        return ResponseCut(
            "the connection broke while the answer was "
            + ("streaming" if streaming else "awaited")
            + "; whether the service finished it is unknown"
        )
    if is_of_azure(error):
        return no_token(error)
    openai = sys.modules.get("openai")
    if openai is not None and isinstance(error, openai.OpenAIError):
        return EndpointError(f"the client failed: {type(error).__name__}: {words_of(error, 300)}")
    return error


def is_of_azure(error: Exception) -> bool:
    """Whether the library that signs in with Microsoft Entra ID says this."""
    return any(type(cause).__module__.startswith("azure.") for cause in _chain(error))


def no_token(error: Exception) -> CredentialsRejected:
    """What to do about a sign-in that failed."""
    return CredentialsRejected(
        "Microsoft Entra ID gave no token: sign in (`az login`), or give a managed identity, or pass "
        f"api_key= to azure_client(); it says: {words_of(next(iter(str(error).splitlines()), None), 300)}"
    )


def of_status(status: int, body: Mapping[str, object], *, retry_after: float | None = None) -> EndpointError:
    """The error for an HTTP status and the `error` object of its body."""
    text = words_of(body.get("message"))
    code = body.get("code")
    word = str(code) if code is not None else None
    said = f"the service says: {text}"
    common: dict[str, Any] = {"status": status, "error_code": word, "retry_after": retry_after}
    if status == 401 or status == 403:
        return CredentialsRejected(f"the credentials were refused (HTTP {status}); {said}", **common)
    if status == 404:
        return DeploymentNotFound(
            f"not found (HTTP 404): check the model or deployment name; {said}", **common
        )
    if status == 429:
        return RateLimited(f"too many requests (HTTP 429); wait, or ask for more quota; {said}", **common)
    if status == 409 and _is_locked(body):
        return ConversationLocked(
            f"another request is working in the conversation (HTTP 409): run one at a time in it; {said}",
            **common,
        )
    if status == 408:
        return EndpointTimeout(f"the service gave up waiting (HTTP 408); {said}", **common)
    if status >= 500:
        return ServerFailed(f"the service failed (HTTP {status}); {said}", **common)
    if status in (400, 422) and is_about_programs(body):
        return ProgramsUnsupported(
            'this model or deployment does not run programs; try programs="local", which runs them in the '
            f'sandbox here, programs="auto", or a model that supports programmatic tool calling; {said}',
            **common,
        )
    if status in (400, 422) and is_about_search(body):
        return ToolSearchUnsupported(
            "this model or deployment has no tool search, and its deferred tools are not sent instead; use a "
            'model that has it, programs="local" (whose search needs nothing of the service), or fewer tools '
            f"without search=; {said}",
            **common,
        )
    return RequestRejected(f"the service refused the request (HTTP {status}); {said}", **common)


def _is_locked(body: Mapping[str, object]) -> bool:
    """Whether the service did nothing, since another request was at work in the same conversation."""
    text = str(body.get("message")).lower()
    return body.get("code") == "conversation_locked" or "operating on this conversation" in text


def is_about_programs(body: Mapping[str, object]) -> bool:
    """Whether a refusal says that the hosted tool's type, or a field that came with it, is not known there.

    A refusal that only speaks of programs (a tool that cannot have callers, a tool that is missing) is about
    the request, and stays one.
    """
    return _matches(body, _NO_PROGRAMS)


def is_about_search(body: Mapping[str, object]) -> bool:
    """Whether a refusal says that tool search, or a field that comes with it, is not known there.

    No service takes it for a `tool_choice`, so what is said of that is about the request.
    """
    of_choice = str(body.get("param") or "").startswith("tool_choice")
    return not of_choice and _matches(body, _NO_SEARCH)


def _matches(body: Mapping[str, object], patterns: Iterable[re.Pattern[str]]) -> bool:
    text = " ".join(str(body.get("message") or "").lower().split())
    return any(pattern.search(text) for pattern in patterns)


def is_misplaced_field(error: EndpointError, tools: JsonValue) -> bool:
    """Whether an unknown field stood on a tool that never has it, so that nothing is said of programs."""
    found = _FIELD.search(str(error).lower())
    if found is None or not isinstance(tools, list) or int(found["index"]) >= len(tools):
        return False
    tool = tools[int(found["index"])]
    return isinstance(tool, dict) and tool.get("type") not in _WITH_CALLERS


def is_lost_chain(error: EndpointError) -> bool:
    """Whether the service lost the response that the request wanted to go on from."""
    if error.error_code == "previous_response_not_found":
        return True
    text = str(error).lower()
    return error.status in (400, 404) and "previous response" in text and "not found" in text


def words_of(told: object, limit: int = 2_000) -> str:
    """What a service or a library says of a failure, for people: one line, and nothing that only a terminal reads,
    or that cannot be written at all (half of a surrogate pair)."""
    text = "no message" if told is None or told == "" else str(told)
    return printable(" ".join(text[: 2 * limit].split()))[:limit]


def _body(error: Exception) -> Mapping[str, object]:
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error")
        return inner if isinstance(inner, Mapping) else body
    return {"message": getattr(error, "message", None) or str(error)}


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        try:
            seconds = float(value) * scale
        except (TypeError, ValueError):
            continue
        if 0 <= seconds < math.inf:
            return seconds
    return _until(headers.get("retry-after"))


def _until(date: object) -> float | None:
    """Seconds until an HTTP date, the other form of `retry-after`; none for one that is past."""
    try:
        moment = parsedate_to_datetime(str(date))
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 10 and current not in chain:
        chain.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain


def _address(error: BaseException) -> str:
    for cause in _chain(error):
        request = getattr(cause, "__dict__", {}).get("request") or getattr(cause, "_request", None)
        url = getattr(request, "url", None)
        if url is None:
            continue
        if not url.scheme or not url.host:
            return f"{str(url)[:200]!r}, which is no address: it has to begin with https:// or http://"
        return f"{url.scheme}://{url.host}" + (f":{url.port}" if url.port else "")
    return "the endpoint"
