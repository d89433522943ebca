"""A registry over HTTP: a Starlette app around a store and its keys.

    GET    /v1/toolsets                    what is registered now
    GET    /v1/toolsets/{name}             one toolset and its token; ETag and If-None-Match are the token
    PUT    /v1/toolsets/{name}             register it                       (publisher)
    DELETE /v1/toolsets/{name}?token=      take it away                      (publisher)
    POST   /v1/toolsets/{name}/claims      take on a call of it, or wait     (publisher)
    POST   /v1/calls                       run a call for one registration, or wait for it    (consumer)
    PUT    /v1/calls/{key}/result          say how a claimed call ended      (publisher)

It decides who may do what, and leaves what happens then to the store. What it answers holds no key and no path
of this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ptc.errors import ConfigurationError
from ptc.registry.claims import Claimed
from ptc.registry.errors import RegistryError, RegistryForbidden
from ptc.registry.keys import Key, Keys, Role
from ptc.registry.store import RegistryStore
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import (
    CallRefused,
    InvalidJson,
    PtcError,
    RegistrationError,
    RegistryOverloaded,
    SourceMissing,
)
from ptc_tools.export import read_declarations
from ptc_tools.names import check_namespace
from ptc_tools.registry_protocol import CallResult, ResolvedCall

MAX_WAIT: Final = 30.0
MAX_CALL_BYTES: Final = 8 * 1024 * 1024
"""A result of 4 MiB, which is what the one path releases at most, and what stands around it."""
MAX_TOOLSET_BYTES: Final = 64 * 1024 * 1024
Endpoint = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


def create_app(store: RegistryStore, keys: Keys) -> Starlette:
    """The app. It closes the store when its lifespan ends."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await store.aclose()

    handlers = _Handlers(store, keys)
    return Starlette(
        routes=[
            Route("/healthz", handlers.health),
            Route("/v1/toolsets", guarded(handlers.toolsets), methods=["GET"]),
            Route("/v1/toolsets/{name}", guarded(handlers.resolve), methods=["GET"]),
            Route("/v1/toolsets/{name}", guarded(handlers.publish), methods=["PUT"]),
            Route("/v1/toolsets/{name}", guarded(handlers.remove), methods=["DELETE"]),
            Route("/v1/toolsets/{name}/claims", guarded(handlers.claim), methods=["POST"]),
            Route("/v1/calls", guarded(handlers.call), methods=["POST"]),
            Route("/v1/calls/{key}/result", guarded(handlers.finish), methods=["PUT"]),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _no_such_place},
    )


def guarded(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with refusals as `{"error": {"code", "message"}}`."""

    async def guard(request: Request) -> Response:
        try:
            return await endpoint(request)
        except PtcError as error:
            return _error(_status(error), error.code, error.message)
        except ClientDisconnect:  # it went in the middle of what it asked: there is nobody to tell
            return Response(status_code=400)

    return guard


class _Handlers:
    def __init__(self, store: RegistryStore, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    # Reading

    async def toolsets(self, request: Request) -> Response:
        key = self._key(request, "consumer", "publisher")
        listed = [info for info in await self._store.toolsets() if key.covers(info.name)]
        return _json(
            {
                "toolsets": [
                    {"name": info.name, "version": info.version, "token": info.token} for info in listed
                ]
            }
        )

    async def resolve(self, request: Request) -> Response:
        name = request.path_params["name"]
        self._key(request, "consumer", "publisher", toolset=name)
        known = (request.headers.get("if-none-match") or "").strip('"')
        found = await self._store.resolve(name, known=known or None)
        if found is None:
            raise SourceMissing(f"there is no toolset {name!r}")
        headers = {"etag": f'"{found.token}"', "cache-control": "no-store"}
        if found.tools is None:
            return Response(status_code=304, headers=headers)
        body: JsonObject = {
            "name": found.name,
            "version": found.version,
            "description": found.description,
            "token": found.token,
            "tools": cast("JsonValue", found.tools),
        }
        return await asyncio.to_thread(_json, body, headers=headers)

    # Publishing

    async def publish(self, request: Request) -> Response:
        name = request.path_params["name"]
        key = self._key(request, "publisher", toolset=name)
        check_namespace(name)
        # Beside the loop, which others' calls wait for: thousands of declarations take seconds.
        body = await asyncio.to_thread(_parsed, await _bytes(request, MAX_TOOLSET_BYTES))
        version, tools = _field(body, "version", str), _field(body, "tools", list)
        if not version:
            raise _invalid("a toolset has a version")
        await asyncio.to_thread(read_declarations, name, tools)
        token = await self._store.publish(
            name,
            version,
            _optional(body, "description"),
            cast("list[JsonObject]", tools),
            owner=key.name,
            revision=_optional(body, "revision"),
            expected_token=_optional(body, "expected_token"),
            request=_request_id(body),
        )
        return _json({"token": token})

    async def remove(self, request: Request) -> Response:
        name = request.path_params["name"]
        key = self._key(request, "publisher", toolset=name)
        await self._store.remove(name, request.query_params.get("token", ""), owner=key.name)
        return Response(status_code=204)

    async def claim(self, request: Request) -> Response:
        name = request.path_params["name"]
        key = self._key(request, "publisher", toolset=name)
        body = await _body(request, MAX_CALL_BYTES)
        token, claim = _field(body, "token", str), _field(body, "claim", str)
        if not 16 <= len(claim) <= 128:
            raise _invalid("a claim is a secret of 16 to 128 characters")
        found = await self._claimed(
            request, token, self._store.claim(name, token, claim, _wait(request), owner=key.name)
        )
        if found is None:
            return Response(status_code=204)
        call = found.call.to_json()
        return _json({"key": found.key, "consumer": found.consumer, "call": call, "seconds": found.seconds})

    async def finish(self, request: Request) -> Response:
        key = self._key(request, "publisher")
        body = await _body(request, MAX_CALL_BYTES)
        claim = _field(body, "claim", str)
        await self._store.finish(
            request.path_params["key"],
            claim,
            _read(CallResult.from_json, body.get("result")),
            owner=key.name,
            covers=key.covers,
        )
        return Response(status_code=204)

    async def _claimed(
        self, request: Request, token: str, claiming: Coroutine[Any, Any, Claimed | None]
    ) -> Claimed | None:
        """What is claimed, unless the provider goes while it waits: then no call stays with it. The body was read."""

        async def leaving() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        working, left = asyncio.ensure_future(claiming), asyncio.ensure_future(leaving())
        told = False
        try:
            await asyncio.wait({working, left}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                raise ClientDisconnect
            told = True
            return working.result()
        finally:
            for task in (working, left):
                task.cancel()
            await asyncio.gather(working, left, return_exceptions=True)
            if not told and not working.cancelled() and working.exception() is None:  # it came all the same
                await self._store.give_back(token, working.result)

    # Calling

    async def call(self, request: Request) -> Response:
        key = self._key(request, "consumer")
        call = _read(ResolvedCall.from_json, await _body(request, MAX_CALL_BYTES))
        if not key.covers(call.toolset):
            raise RegistryForbidden(f"this key is not for the toolset {call.toolset[:64]!r}", status=403)
        result = await self._store.submit(key.name, call)
        if result is None:
            result = await self._store.wait(key.name, call.key, _wait(request))
        if result is None:
            return _json({"status": "pending"}, status=202)
        return _json(result.to_json())

    def _key(self, request: Request, *roles: Role, toolset: str | None = None) -> Key:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        text = text.strip()
        found = None
        try:
            for role in roles if scheme.lower() == "bearer" and text else ():
                found = found or self._keys.of(text, role)
            known = found is None and bool(text) and self._keys.of(text) is not None
        except ConfigurationError:  # its words name a file of this machine
            raise RegistryError("the registry's keys cannot be read now", status=503) from None
        if found is None:
            said = "give a key: Authorization: Bearer …"
            if known:
                said = f"this key is no {' or '.join(roles)}'s"
            elif scheme.lower() == "bearer" and text:
                said = "this key is wrong: the registry does not know it, or does not any more"
            raise RegistryForbidden(said, status=403 if known else 401)
        if toolset is not None and not found.covers(toolset):
            raise RegistryForbidden(f"this key is not for the toolset {toolset[:64]!r}", status=403)
        return found


async def _body(request: Request, limit: int) -> JsonObject:
    """The JSON object of a request's body. Raises RegistryError for another, or one that is too large."""
    return _parsed(await _bytes(request, limit))


async def _bytes(request: Request, limit: int) -> bytes:
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise RegistryError(f"the body is over {limit} bytes", status=413)
        parts.append(chunk)
    return b"".join(parts)


def _parsed(text: bytes) -> JsonObject:
    try:
        body = strict_json.loads(text)
    except InvalidJson as error:
        raise _invalid(f"the body is not strict JSON: {error}") from None
    if not isinstance(body, dict):
        raise _invalid("the body must be a JSON object")
    return body


def _field(body: JsonObject, name: str, kind: type[T]) -> T:
    value = body.get(name)
    if not isinstance(value, kind):
        raise _invalid(f"{name} is missing, or of another type")
    return value


def _optional(body: JsonObject, name: str) -> str | None:
    return None if body.get(name) is None else _field(body, name, str)


def _request_id(body: JsonObject) -> str | None:
    text = _optional(body, "request")
    if text is not None and not 16 <= len(text) <= 128:
        raise _invalid("a request's id is a fresh secret of 16 to 128 characters")
    return text


def _read(read: Callable[[object], T], value: object) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise _invalid(str(error)) from None


def _wait(request: Request) -> float:
    try:
        seconds = float(request.query_params.get("wait", "0"))
    except ValueError:
        raise _invalid("wait is a number of seconds") from None
    return min(seconds, MAX_WAIT) if seconds > 0 else 0.0


def _invalid(message: str) -> RegistryError:
    return RegistryError(message, status=422)


def _status(error: PtcError) -> int:
    if isinstance(error, RegistryError):
        return error.status or 500
    if isinstance(error, SourceMissing):
        return 404
    if isinstance(error, RegistryOverloaded):
        return 503
    if isinstance(error, CallRefused):
        return 409
    return 422 if isinstance(error, RegistrationError) else 500


def _json(body: JsonObject, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(
        strict_json.dumps(body).encode("utf-8", "surrogatepass"),
        status,
        headers,
        media_type="application/json",
    )


def _error(status: int, code: str, message: str) -> Response:
    return _json({"error": {"code": code, "message": message}}, status=status)


async def _no_such_place(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(
        error.status_code, "not_found" if error.status_code == 404 else "http_error", str(error.detail)
    )
