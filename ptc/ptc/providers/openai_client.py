"""The `openai` client as an endpoint: raw bytes out, raw dicts in, each request sent exactly once.

It takes any client of the SDK that the application made, async or sync (sync ones work in threads), and
anything with the same `responses.create`. It never builds the SDK's models, which lose fields (wire.md,
rules 1 and 2), never retries (rule 14), and never reads a credential.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ptc.errors import ConfigurationError, ResponseCut
from ptc.providers.bodies import decode_body, encode_body
from ptc.providers.endpoint import Endpoint
from ptc.providers.failures import as_endpoint_error
from ptc.providers.sse import SseDecoder
from ptc_tools.call import JsonObject

_HEADERS = {"Content-Type": "application/json"}


def endpoint_of(client: object) -> Endpoint:
    """The endpoint that a client stands for. Raises ConfigurationError for what is not one."""
    if isinstance(client, Endpoint):
        return client
    if callable(getattr(client, "post", None)) and callable(getattr(client, "with_options", None)):
        if inspect.iscoroutinefunction(client.post):  # type: ignore[attr-defined]
            return AsyncClientEndpoint(client)
        return SyncClientEndpoint(client)
    if callable(getattr(getattr(client, "responses", None), "create", None)):
        return LookalikeEndpoint(client)
    raise ConfigurationError(
        f"client= is a {type(client).__name__}; give an openai client: ptc.azure_client(), "
        "ptc.openai_client(), or an AsyncOpenAI or OpenAI of your own"
    )


class _ClientEndpoint(ABC):
    """A client of the SDK, used with `max_retries=0`; it stays the application's. Its kinds differ in waiting."""

    def __init__(self, client: Any) -> None:
        from httpx2 import Response  # the SDK's own transport; here so that `import ptc` stays light

        self._client = client.with_options(max_retries=0)
        self._response_type = Response

    async def create(self, body: JsonObject, *, timeout: float | None = None) -> JsonObject:
        return await self._whole(
            self._client.post, "/responses", content=encode_body(body), options=_options(timeout)
        )

    async def retrieve(self, response_id: str) -> JsonObject:
        return await self._whole(self._client.get, _path(response_id), options=_options(None))

    async def cancel(self, response_id: str) -> JsonObject:
        return await self._whole(self._client.post, f"{_path(response_id)}/cancel", options=_options(None))

    async def stream(self, body: JsonObject, *, timeout: float | None = None) -> AsyncIterator[JsonObject]:
        with _translated(streaming=True):
            response = await self._send(
                self._client.post,
                "/responses",
                cast_to=self._response_type,
                content=encode_body(body),
                options=_options(timeout),
                stream=True,
                stream_cls=self._stream_type(),
            )
            try:
                decoder = SseDecoder()
                async for piece in self._pieces(response):
                    for event in decoder.feed(piece):
                        yield event
            finally:
                await self._close(response)

    async def _whole(self, method: Callable[..., Any], path: str, **options: Any) -> JsonObject:
        with _translated():
            response = await self._send(method, path, cast_to=self._response_type, **options)
            return decode_body(response.content)

    @abstractmethod
    def _stream_type(self) -> object: ...

    @abstractmethod
    async def _send(self, method: Callable[..., Any], path: str, **options: Any) -> Any: ...

    @abstractmethod
    def _pieces(self, response: Any) -> AsyncIterator[bytes]: ...

    @abstractmethod
    async def _close(self, response: Any) -> None: ...


class AsyncClientEndpoint(_ClientEndpoint):
    """An `AsyncOpenAI` (or `AsyncAzureOpenAI`)."""

    def _stream_type(self) -> object:
        from openai import AsyncStream

        return AsyncStream[Any]

    async def _send(self, method: Callable[..., Any], path: str, **options: Any) -> Any:
        return await method(path, **options)

    def _pieces(self, response: Any) -> AsyncIterator[bytes]:
        pieces: AsyncIterator[bytes] = response.aiter_bytes()
        return pieces

    async def _close(self, response: Any) -> None:
        await response.aclose()


class SyncClientEndpoint(_ClientEndpoint):
    """An `OpenAI` (or `AzureOpenAI`): each request in a thread.

    A thread cannot be stopped: after a cancellation its request ends by the client's own timeout.
    """

    def _stream_type(self) -> object:
        from openai import Stream

        return Stream[Any]

    async def _send(self, method: Callable[..., Any], path: str, **options: Any) -> Any:
        return await asyncio.to_thread(method, path, **options)

    async def _pieces(self, response: Any) -> AsyncIterator[bytes]:
        pieces: Iterator[bytes] = response.iter_bytes()
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    async def _close(self, response: Any) -> None:
        response.close()


class LookalikeEndpoint:
    """Whatever has `responses.create(**body)`, sync or async, and gives dicts or objects with `to_dict()`."""

    def __init__(self, client: object) -> None:
        self._responses: Any = client.responses  # type: ignore[attr-defined]

    async def create(self, body: JsonObject, *, timeout: float | None = None) -> JsonObject:
        options = {} if timeout is None else {"timeout": timeout}
        return _plain(await self._call("create", **body, **options))

    async def stream(self, body: JsonObject, *, timeout: float | None = None) -> AsyncIterator[JsonObject]:
        options = {} if timeout is None else {"timeout": timeout}
        events: Any = await self._call("create", **{**body, "stream": True}, **options)
        with _translated(streaming=True):
            if hasattr(events, "__aiter__"):
                async for event in events:
                    yield _plain(event)
            else:
                iterator = iter(events)
                while (event := await asyncio.to_thread(next, iterator, None)) is not None:
                    yield _plain(event)

    async def retrieve(self, response_id: str) -> JsonObject:
        return _plain(await self._call("retrieve", response_id))

    async def cancel(self, response_id: str) -> JsonObject:
        return _plain(await self._call("cancel", response_id))

    async def _call(self, method: str, *arguments: object, **body: object) -> object:
        function = getattr(self._responses, method)
        with _translated():
            if inspect.iscoroutinefunction(function):
                return await function(*arguments, **body)
            result = await asyncio.to_thread(function, *arguments, **body)
            return await result if inspect.isawaitable(result) else result


@contextmanager
def _translated(*, streaming: bool = False) -> Iterator[None]:
    """Raises the loop's error for a client's; what is the loop's already, or nobody's, stays as it is."""
    try:
        yield
    except Exception as error:
        meant = as_endpoint_error(error, streaming=streaming)
        if meant is error:
            raise
        raise meant from error


def _plain(value: object) -> JsonObject:
    to_dict = getattr(value, "to_dict", None)
    plain = to_dict() if callable(to_dict) else value
    if not isinstance(plain, dict):
        raise ResponseCut(f"the client gave a {type(value).__name__}, not a response")
    return plain


def _path(response_id: str) -> str:
    from urllib.parse import quote

    return f"/responses/{quote(response_id, safe='')}"


def _options(timeout: float | None) -> Any:
    return {"headers": _HEADERS} if timeout is None else {"headers": _HEADERS, "timeout": timeout}
