"""The peer over HTTP: a Starlette app that speaks the Responses API under `/v1` and Azure's `/openai/v1`.

Routes, bodies, credentials and status codes are here; what a request means is `peer`'s concern. Faults that
need the connection are committed by a thin layer around the app.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ptc.gateway.faults import Fault, InvalidFault
from ptc.gateway.peer import Made, Peer
from ptc.gateway.rejection import Rejected
from ptc.gateway.request import new_id
from ptc.gateway.stream import encode, response_events
from ptc_tools import strict_json
from ptc_tools.call import JsonObject, JsonValue
from ptc_tools.errors import InvalidJson, PtcError

PREFIXES = ("/v1", "/openai/v1")
_FAULTS = "ptc.faults"
Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(peer: Peer) -> ASGIApp:
    """The app of this peer, which lives as long as the app's lifespan."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with peer:
            yield

    handlers = _Handlers(peer)
    routes = [Route("/healthz", handlers.health)]
    for prefix in PREFIXES:
        routes += [
            Route(prefix + path, handlers.guarded(call), methods=[m]) for path, m, call in handlers.table()
        ]
    if peer.settings.control:
        routes += [
            Route("/_peer/requests", handlers.guarded(handlers.seen), methods=["GET"]),
            Route("/_peer/faults", handlers.guarded(handlers.plan), methods=["PUT"]),
        ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _no_such_place})
    return _Faulty(app, peer)


class _Handlers:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def table(self) -> list[tuple[str, str, Endpoint]]:
        return [
            ("/responses", "POST", self.create),
            ("/responses/{id}", "GET", self.retrieve),
            ("/responses/{id}", "DELETE", self.delete),
            ("/responses/{id}/cancel", "POST", self.cancel),
            ("/responses/{id}/input_items", "GET", self.input_items),
            ("/conversations", "POST", self.create_conversation),
            ("/conversations/{id}", "GET", self.conversation),
            ("/conversations/{id}", "DELETE", self.delete_conversation),
            ("/conversations/{id}/items", "GET", self.conversation_items),
        ]

    def guarded(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint behind the check of credentials, with refusals as the service's error envelope."""

        async def guard(request: Request) -> Response:
            try:
                self._authenticate(request)
                return await endpoint(request)
            except Rejected as rejected:
                return _json(rejected.body(), rejected.status)
            except (
                PtcError
            ) as error:  # the sandbox cannot work here, say: the service's fault, not the client's
                return _json(Rejected(error.message, code=error.code, type="server_error").body(), 500)

        return guard

    def _authenticate(self, request: Request) -> None:
        expected = self.peer.settings.api_key
        if expected is None:
            return
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        given = request.headers.get("api-key") or bearer
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise Rejected("Incorrect API key provided.", status=401, code="invalid_api_key")

    async def health(self, _: Request) -> Response:
        return _json({"status": "ok"})

    async def create(self, request: Request) -> Response:
        faults: tuple[Fault, ...] = request.scope.get(_FAULTS, ())
        parsed = self.peer.read(await self._body(request))
        made = await self.peer.create(parsed, faults)
        return _stream(made) if parsed.stream else _json(made.done)

    async def retrieve(self, request: Request) -> Response:
        response = await self.peer.retrieve(request.path_params["id"])
        if request.query_params.get("stream") == "true":
            return _stream(Made({**response, "output": []}, response))
        return _json(response)

    async def delete(self, request: Request) -> Response:
        return _json(self.peer.delete(request.path_params["id"]))

    async def cancel(self, request: Request) -> Response:
        return _json(await self.peer.cancel(request.path_params["id"]))

    async def input_items(self, request: Request) -> Response:
        return _json(self.peer.input_items(request.path_params["id"]))

    async def create_conversation(self, request: Request) -> Response:
        return _json(self.peer.create_conversation(await self._body(request)))

    async def conversation(self, request: Request) -> Response:
        return _json(self.peer.conversation(request.path_params["id"]))

    async def delete_conversation(self, request: Request) -> Response:
        return _json(self.peer.delete_conversation(request.path_params["id"]))

    async def conversation_items(self, request: Request) -> Response:
        return _json(self.peer.conversation_items(request.path_params["id"]))

    async def seen(self, _: Request) -> Response:
        return _json({"requests": list(self.peer.requests)})

    async def plan(self, request: Request) -> Response:
        body = await self._body(request)
        try:
            faults = [Fault.from_json(entry) for entry in body] if isinstance(body, list) else []
        except InvalidFault as error:
            raise Rejected(error.message) from error
        self.peer.faults.replace(faults)
        return _json({"planned": len(faults)})

    async def _body(self, request: Request) -> JsonValue:
        limit = self.peer.settings.max_body_bytes
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > limit:
                raise Rejected(f"The request is larger than {limit} bytes.", status=413)
        try:
            return strict_json.loads(bytes(data)) if data else {}
        except InvalidJson as error:
            raise Rejected(
                f"We could not parse the JSON body of your request: {error.message}", code="invalid_json"
            ) from error


async def _no_such_place(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    rejected = Rejected(f"Invalid URL ({request.method} {request.url.path})", code="invalid_url")
    return _json(rejected.body(), error.status_code)


def _json(body: JsonObject, status: int = 200) -> Response:
    headers = {"x-request-id": new_id("req")}
    return Response(strict_json.dumps(body), status, headers, media_type="application/json")


def _stream(made: Made) -> Response:
    async def events() -> AsyncIterator[bytes]:
        for event in response_events(made.opened, made.done):
            yield encode(event)

    return StreamingResponse(
        events(), headers={"x-request-id": new_id("req")}, media_type="text/event-stream"
    )


class _Faulty:
    """Commits the faults that need the connection, outside of everything that would answer for them."""

    def __init__(self, app: ASGIApp, peer: Peer) -> None:
        self._app = app
        self._peer = peer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].endswith("/responses"):
            return await self._app(scope, receive, send)
        faults = {fault.kind: fault for fault in self._peer.faults.next_request()}
        scope[_FAULTS] = tuple(faults.values())
        if slow := faults.get("slow"):
            await asyncio.sleep(slow.seconds)
        if status := faults.get("status"):
            return await _failure(status)(scope, receive, send)
        if "garbage" in faults:
            return await Response("<html>bad gateway</html>", media_type="text/html")(scope, receive, send)
        if "refuse" in faults:
            return await _hang_up(send)
        if "lose" in faults:
            await self._app(scope, receive, _discard)
            return await _hang_up(send)
        if "truncate" in faults or "cut_stream" in faults:
            cut = faults.get("cut_stream")
            send = _Cut(send, after=cut.after if cut else None)
        return await self._app(scope, receive, send)


class _Cut:
    """Sends half of a body, or so many events of a stream, and nothing more.

    The server finds the answer unfinished and closes the connection, as one that dies would.
    """

    def __init__(self, send: Send, after: int | None) -> None:
        self._send = send
        self._left = after

    async def __call__(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            return await self._send(message)
        body = message.get("body", b"")
        if self._left is None:
            return await self._send({**message, "body": body[: len(body) // 2], "more_body": True})
        if self._left > 0 and body:
            self._left -= 1
            return await self._send({**message, "more_body": True})
        return None


def _failure(fault: Fault) -> JSONResponse:
    texts = {429: ("rate_limit_exceeded", "Rate limit reached."), 503: ("server_error", "Overloaded.")}
    code, message = texts.get(fault.status, ("server_error", "The server had an error."))
    kind = "rate_limit_error" if fault.status == 429 else "server_error"
    headers = {"retry-after": str(fault.retry_after)} if fault.retry_after is not None else None
    body = Rejected(message, code=code, type=kind).body()
    return JSONResponse(body, fault.status, headers)


async def _discard(_: Message) -> None:
    return None


async def _hang_up(send: Send) -> None:
    """Close the connection without a word; without a transport to close, with an answer that breaks off."""
    cycle: Any = getattr(send, "__self__", None)
    transport = getattr(cycle, "transport", None)
    if transport is not None:
        transport.abort()
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
