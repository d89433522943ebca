"""The client of a registry over HTTP, for consumers (`register_registry`) and for publishers.

Asking again for a call is safe, so it does that when a connection breaks. It follows no redirect, sends its key to
its registry alone, and believes nothing that it is answered before it was read as what it must be.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, cast
from urllib.parse import SplitResult, quote, urlsplit

from ptc.errors import ConfigurationError
from ptc.registry.errors import RegistryError, RegistryForbidden, RegistryUnreachable
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import (
    AdmissionConflict,
    CallIdentityConflict,
    CallNotAdmitted,
    InvalidJson,
    InvalidPublication,
    PtcError,
    RegistryOverloaded,
    SourceMissing,
)
from ptc_tools.export import Export
from ptc_tools.registry_protocol import CallResult, ResolvedCall, ResolvedToolset, ToolsetInfo
from ptc_tools.secret import Secret

if TYPE_CHECKING:
    import httpx2

WAIT: Final = 20.0
"""Seconds for which one request waits at the registry for the end of a call."""
TRIES: Final = 4
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0
PATIENCE: Final = 60.0
"""Seconds for which a registry that may have a call is asked again, where the call has no time of its own."""
CHECK: Final = 0.02
"""Seconds that a registry may take to check one declaration."""
MAX_ANSWER: Final = 128 * 1024 * 1024
_KINDS: Final[Mapping[str, type[PtcError]]] = {
    kind.code: kind
    for kind in (
        AdmissionConflict,
        CallIdentityConflict,
        CallNotAdmitted,
        InvalidPublication,
        RegistryOverloaded,
        SourceMissing,
    )
}


class HttpRegistry:
    """`ptc.register_registry("company", HttpRegistry("https://registry.example", key=…))`.

    `key` is a consumer's or a publisher's, a text or a `ptc.Secret`. Making it does no I/O. Used as
    `async with`, it keeps its connections while the block lasts; otherwise each request has its own. A plain
    `http://` address needs `insecure=True` unless it is this machine's. `transport` is for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | Secret,
        timeout: float = 10.0,
        insecure: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        parts = _address(url)
        self._key = key if isinstance(key, Secret) else Secret(key)
        text = self._key.reveal()
        if not text.isascii() or not text.isprintable() or not text.strip():
            raise ConfigurationError(
                "this is no key of a registry: one has ASCII letters, digits and signs alone"
            )
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme == "http" and not local and not insecure and transport is None:
            raise ConfigurationError(
                f"{url!r} would send the key unencrypted: use https, or say insecure=True"
            )
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._transport = transport
        self._tls: ssl.SSLContext | None = None
        self._open: tuple[asyncio.AbstractEventLoop, httpx2.AsyncClient] | None = None

    def __repr__(self) -> str:
        return f"<HttpRegistry {self._url}>"

    async def __aenter__(self) -> Self:
        self._open = asyncio.get_running_loop(), self._client(pooled=True)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Lets go of the connections. Idempotent; further requests have their own."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened[1].aclose()

    # ptc_tools.registry_protocol.RegistryClient

    async def list_toolsets(self) -> Sequence[ToolsetInfo]:
        _, body = await self._ask("GET", "/v1/toolsets")
        listed = body.get("toolsets")
        if not isinstance(listed, list):
            raise RegistryError("the registry's list of toolsets is none")
        return [
            ToolsetInfo(_text(item, "name"), _text(item, "version"), _text(item, "token")) for item in listed
        ]

    async def resolve_toolset(self, name: str, *, known: str | None = None) -> ResolvedToolset | None:
        headers = {} if known is None else {"if-none-match": f'"{known}"'}
        try:
            status, body = await self._ask("GET", f"/v1/toolsets/{quote(name, safe='')}", headers=headers)
        except SourceMissing:
            return None
        if status == 304 and known is not None:
            return ResolvedToolset(name, known, None)
        tools = body.get("tools")
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise RegistryError(f"what the registry answers for {name!r} is no toolset")
        description = body.get("description")
        return ResolvedToolset(
            _text(body, "name"),
            _text(body, "token"),
            cast("list[JsonObject]", tools),
            _text(body, "version"),
            description if isinstance(description, str) else None,
        )

    async def call_resolved(self, call: ResolvedCall) -> CallResult:
        """See the protocol. A registry that may have the call is asked for it until the call's time is over, be it
        away for as long; one that never heard of it is given up on soon."""
        until = time.monotonic() + (PATIENCE if call.timeout is None else call.timeout)
        may_have_it, pause = False, FIRST_PAUSE
        while True:
            left = max(0.0, min(WAIT, until - time.monotonic()))
            try:
                _, body = await self._ask("POST", f"/v1/calls?wait={left:.3f}", call.to_json(), wait=left)
            except RegistryUnreachable as error:
                may_have_it = may_have_it or error.sent
                if not may_have_it or time.monotonic() + pause >= until:
                    raise
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            if body.get("status") != "pending":
                break
            may_have_it, pause = True, FIRST_PAUSE
            if call.timeout is not None and time.monotonic() >= until:
                raise RegistryUnreachable(
                    f"{call.toolset}.{call.tool} has no result yet, and the time is over"
                )
            if call.timeout is None:
                until = time.monotonic() + PATIENCE
        try:
            return CallResult.from_json(body)
        except ValueError as error:
            raise RegistryError(f"what the registry answers to a call is no result: {error}") from None

    # For publishers

    async def publish(
        self, export: Export, *, revision: str | None = None, expected_token: str | None = None
    ) -> str:
        """Registers an export in place of the toolset of that name; gives the registration's token.

        `revision`: replicas that publish the same tools under one share a registration. `expected_token`: what
        is to be replaced. Raises AdmissionConflict, InvalidPublication, RegistryForbidden.
        """
        tools: list[JsonValue] = list(export.declarations)
        body: JsonObject = {
            "version": export.version,
            "description": export.description,
            "tools": tools,
            "revision": revision,
            "expected_token": expected_token,
            "request": secrets.token_hex(16),  # the same however often a connection breaks
        }
        path = f"/v1/toolsets/{quote(export.name, safe='')}"
        # Checking a declaration takes the registry a millisecond or more, and a large toolset has many.
        _, answer = await self._ask("PUT", path, body, wait=len(tools) * CHECK)
        return _text(answer, "token")

    async def remove(self, name: str, token: str) -> None:
        """Takes a toolset away. Raises AdmissionConflict if it was replaced since."""
        await self._ask("DELETE", f"/v1/toolsets/{quote(name, safe='')}?token={quote(token, safe='')}")

    async def claim(self, name: str, token: str, claim: str, wait: float) -> JsonObject | None:
        """A call for this registration, or None; see `ptc.registry.Provider`, which is how it is used."""
        body: JsonObject = {"token": token, "claim": claim}
        status, answer = await self._ask(
            "POST", f"/v1/toolsets/{quote(name, safe='')}/claims?wait={wait:.3f}", body, wait=wait
        )
        return None if status == 204 else answer

    async def finish(self, key: str, claim: str, result: CallResult) -> None:
        """Says how a claimed call ended."""
        body: JsonObject = {"claim": claim, "result": result.to_json()}
        await self._ask("PUT", f"/v1/calls/{quote(key, safe='')}/result", body)

    # Inside

    async def _ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
    ) -> tuple[int, JsonObject]:
        """Status and body of an answer. A connection that breaks is tried again: every request may be repeated."""
        pause, sent = FIRST_PAUSE, False
        for left in reversed(range(TRIES)):
            try:
                return await self._once(method, path, body, headers or {}, wait)
            except RegistryUnreachable as error:
                error.sent = sent = sent or error.sent
                if not left:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    async def _once(
        self, method: str, path: str, body: JsonObject | None, headers: Mapping[str, str], wait: float
    ) -> tuple[int, JsonObject]:
        import httpx2

        content = None if body is None else strict_json.dumps(body).encode("utf-8", "surrogatepass")
        own: httpx2.AsyncClient | None = None
        opened = self._open
        if opened is not None and opened[0] is asyncio.get_running_loop():
            client = opened[1]
        else:  # connections belong to an event loop, and nobody says when another one ends
            client = own = self._client(pooled=False)
        try:
            async with client.stream(
                method,
                self._url + path,
                content=content,
                headers={
                    "authorization": f"Bearer {self._key.reveal()}",
                    "content-type": "application/json",
                    **headers,
                },
                timeout=httpx2.Timeout(self._timeout, read=self._timeout + wait),
            ) as response:
                return response.status_code, _answer(response.status_code, await _content(response))
        except httpx2.TransportError as error:
            unheard = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout))
            raise RegistryUnreachable(
                f"{self!r} did not answer: {type(error).__name__}", sent=not unheard
            ) from error
        finally:
            if own is not None:
                await own.aclose()

    def _client(self, *, pooled: bool) -> httpx2.AsyncClient:
        import httpx2

        if self._tls is None:
            # One for all connections: reading the system's certificates takes longer than a request.
            plain = self._url.startswith("http://")
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else ssl.create_default_context()
        options: dict[str, Any] = {"verify": self._tls}
        if self._transport is not None:
            options["transport"] = self._transport
        limits = httpx2.Limits(max_keepalive_connections=20 if pooled else 0)
        return httpx2.AsyncClient(limits=limits, follow_redirects=False, trust_env=False, **options)


async def _content(response: httpx2.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER:
            raise RegistryError(f"the registry's answer is over {MAX_ANSWER} bytes")
        parts.append(part)
    return b"".join(parts)


def _address(url: str) -> SplitResult:
    """The parts of a registry's address. Raises ConfigurationError."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, brackets that are not closed
        usable = False
    if not usable or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise ConfigurationError(f"{url!r} is no address of a registry; it is https://host[:port][/path]")
    return parts


def _answer(status: int, content: bytes) -> JsonObject:
    """The body of an answer. Raises the error that it says."""
    if status in (204, 304):
        return {}
    try:
        body = strict_json.loads(content)
    except InvalidJson:
        body = None
    if status < 300 and isinstance(body, dict):
        return body
    said = body.get("error") if isinstance(body, dict) else None
    code, message = (said.get("code"), said.get("message")) if isinstance(said, dict) else (None, None)
    text = f"the registry answered with status {status}"
    if isinstance(message, str):
        text = message
    elif body is None:
        text += " and what is no JSON of a registry: is this the address of one?"
    if isinstance(code, str) and code in _KINDS:
        raise _KINDS[code](text)
    if status in (401, 403):
        raise RegistryForbidden(text, status=status)
    if status >= 500:
        raise RegistryUnreachable(text, status=status)
    raise RegistryError(text, status=status)


def _text(body: object, name: str) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not value:
        raise RegistryError(f"the registry's answer has no {name}")
    return value
