"""The seam between the loop and a service: raw request bodies in, raw responses and stream events out.

An implementation sends what it is given, once: it never retries, never changes a body, and raises
`ptc.errors.EndpointError` (with `retry` set) for everything that goes wrong on the way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from ptc_tools.call import JsonObject


@runtime_checkable
class Endpoint(Protocol):
    """One service and deployment. `timeout` is in seconds; None leaves it to the client."""

    async def create(self, body: JsonObject, *, timeout: float | None = None) -> JsonObject:
        """POST /responses, whole."""

    def stream(self, body: JsonObject, *, timeout: float | None = None) -> AsyncIterator[JsonObject]:
        """POST /responses with `stream`: the events, decoded, in order. Closing the iterator ends it."""

    async def retrieve(self, response_id: str) -> JsonObject:
        """GET /responses/{id}, for background responses."""

    async def cancel(self, response_id: str) -> JsonObject:
        """POST /responses/{id}/cancel, for background responses."""
