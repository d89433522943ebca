"""A transport from an HTTP client straight to an ASGI app, for answers that break off as well.

It stands in for a connection: an app that says nothing has closed it, and one that ends before its answer
does has cut it, which the client sees as a server that went away. It never opens a socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from httpx2 import AsyncBaseTransport, AsyncByteStream, ReadError, RemoteProtocolError, Request, Response
from starlette.types import ASGIApp, Message, Scope


class AppTransport(AsyncBaseTransport):
    """Each request is one run of the app, to its end; then the answer is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: Request) -> Response:
        """Raises the client's own errors for an answer that never began."""
        body = await request.aread()
        sent: list[Message] = []
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            return given.pop() if given else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(_scope(request), receive, send)
        pieces = [message["body"] for message in sent[1:] if message.get("body")]
        if not pieces and not _is_whole(sent):
            raise RemoteProtocolError("Server disconnected without sending a response.", request=request)
        stream = _Pieces(pieces, whole=_is_whole(sent), request=request)
        return Response(sent[0]["status"], headers=sent[0]["headers"], stream=stream)


class _Pieces(AsyncByteStream):
    def __init__(self, pieces: list[bytes], *, whole: bool, request: Request) -> None:
        self._pieces = pieces
        self._whole = whole
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if not self._whole:
            raise ReadError("the connection was closed within the answer", request=self._request)


def _is_whole(sent: list[Message]) -> bool:
    return len(sent) > 1 and not sent[-1].get("more_body", False)


def _scope(request: Request) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 123),
        "root_path": "",
    }
