"""From a request body to a response: retries, streams and background polling, over one endpoint.

It sends the same body again or gives up, by the retry policy; it never changes a body, and it never knows
what a response means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from ptc.errors import EndpointError, RunError
from ptc.progress import RequestSent, RunEvent
from ptc.providers.endpoint import Endpoint
from ptc.retry import RetryPolicy
from ptc.streaming import StreamReader
from ptc_tools.call import JsonObject

Emit: TypeAlias = Callable[[RunEvent], None]
Sent: TypeAlias = Callable[[int], Awaitable[None]]


class Asker:
    """Asks on behalf of one run. `emit` is set when the run is streamed: then requests are streamed too."""

    def __init__(
        self, endpoint: Endpoint, retry: RetryPolicy, timeout: float | None, emit: Emit | None
    ) -> None:
        self._endpoint = endpoint
        self._retry = retry
        self._timeout = timeout
        self._emit = emit

    async def ask(self, body: JsonObject, number: int, *, only_once: bool, sent: Sent) -> JsonObject:
        """The response to a body. `sent` is awaited before each attempt. Raises EndpointError.

        `only_once`: what may have been worked on is not sent again.
        """
        attempt = 0
        while True:
            attempt += 1
            await sent(attempt)
            if self._emit is not None:
                self._emit(RequestSent(number, attempt))
            try:
                if self._emit is not None and not body.get("background"):
                    return await self._streamed(body, self._emit)
                return await self._endpoint.create(body, timeout=self._timeout)
            except EndpointError as error:
                delay = self._retry.delay(error, attempt, only_once=only_once)
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def _streamed(self, body: JsonObject, emit: Emit) -> JsonObject:
        reader = StreamReader()
        events = self._endpoint.stream({**body, "stream": True}, timeout=self._timeout)
        async with aclosing(cast("Any", events)) as stream:
            async for event in stream:
                delta = reader.feed(event)
                if delta is not None:
                    emit(delta)
                if reader.ended:
                    break
        return reader.response()

    async def poll(self, response_id: str, interval: float) -> JsonObject:
        """A background response, once more, after `interval` seconds; cancelled there too when this is."""
        attempt = 0
        try:
            await asyncio.sleep(interval)
            while True:
                attempt += 1
                try:
                    return await self._endpoint.retrieve(response_id)
                except EndpointError as error:
                    # Reading a response changes nothing, so every failure that may pass may be tried again.
                    delay = self._retry.delay(error, attempt, only_once=False)
                    if delay is None:
                        raise
                await asyncio.sleep(delay)
        except asyncio.CancelledError:
            await self._cancel(response_id)
            raise

    async def _cancel(self, response_id: str) -> None:
        try:
            await asyncio.wait_for(self._endpoint.cancel(response_id), timeout=10)
        except (RunError, TimeoutError):
            return  # the run is cancelled either way; the service ends the response by itself
