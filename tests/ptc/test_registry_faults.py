"""A registry over HTTP whose parties fail: providers that are killed, restarts, results that nobody takes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import ptc
from ptc.registry import (
    HttpRegistry,
    Keys,
    Provider,
    RegistryError,
    RegistryStore,
    RegistryUnreachable,
    create_app,
    new_key,
)
from ptc_tools.registry_protocol import ResolvedCall

PUBLISHER, PUBLISHERS_KEY = new_key("publisher", "team")
CONSUMER, CONSUMERS_KEY = new_key("consumer", "assistant")
KEYS = Keys([PUBLISHERS_KEY, CONSUMERS_KEY])
CLAIM = "a secret of sixteen and more"
BLOB = ptc.ServerData("blob", "application", {"type": "string"})


@ptc.tool(effects="read", publication=ptc.Publication(server_data=(BLOB,)))
def lookup(key: str, context: ptc.ToolContext) -> str:
    """Look one record up."""
    if key == "large":
        context.attach("blob", "x" * 9_000_000)
    return f"record {key}"


EXPORT = ptc.Toolset("records", [lookup]).export(version="1.0.0")


def of(token: str, call_id: str = "call_1", *, key: str = "1", timeout: float = 20.0) -> ResolvedCall:
    return ResolvedCall("run_1", call_id, "records", "lookup", {"key": key}, token, timeout=timeout)


@asynccontextmanager
async def site(folder: Path, **options: Any) -> AsyncIterator[tuple[RegistryStore, Any]]:
    store = RegistryStore(folder / "registry.db", **options)
    try:
        yield store, create_app(store, KEYS)
    finally:
        await store.aclose()


def client(transport: Any, key: str = CONSUMER) -> HttpRegistry:
    return HttpRegistry("http://registry.test", key=key, transport=transport)


async def claims_and_leaves(app: Any, token: str, leaves: asyncio.Event) -> list[dict[str, Any]]:
    """A provider's request for a call, whose connection ends; what the registry sent to nobody."""
    body = [{"type": "http.request", "body": json.dumps({"token": token, "claim": CLAIM}).encode()}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/toolsets/records/claims",
        "query_string": b"wait=20",
        "headers": [(b"authorization", f"Bearer {PUBLISHER}".encode())],
    }
    await app(scope, receive, send)
    return sent


async def test_a_provider_that_dies_while_it_waits_for_a_call_takes_none_with_it(tmp_path: Path) -> None:
    """Its sibling has the next call at once: nobody waits until the call's time is over."""
    async with site(tmp_path) as (_, app):
        transport = httpx2.ASGITransport(app)
        token = await client(transport, PUBLISHER).publish(EXPORT, revision="r1")
        leaves = asyncio.Event()
        leaves.set()
        assert {m.get("status") for m in await claims_and_leaves(app, token, leaves)} & {200, 204} == set()
        async with Provider(client(transport, PUBLISHER), EXPORT, revision="r1"):
            result = await client(transport).call_resolved(of(token))
    assert result.value == "record 1"


async def test_a_call_that_came_while_its_provider_left_waits_for_another(tmp_path: Path) -> None:
    """The call was taken, and the connection broke before it was handed out."""
    async with site(tmp_path) as (store, _):
        token = await store.publish(
            "records", "1", None, [dict(one) for one in EXPORT.declarations], owner="team"
        )
        assert await store.submit("assistant", of(token)) is None
        leaving = await store.claim("records", token, CLAIM, 0.0, owner="team")
        await store.give_back(token, lambda: leaving)
        found = await store.claim("records", token, CLAIM + "2", 0.0, owner="team")
    assert leaving is not None
    assert found is not None
    assert found.key == leaving.key


async def test_a_call_that_was_handed_out_again_is_not_given_back_by_a_broken_connection(
    tmp_path: Path,
) -> None:
    """The provider asked again and has the call: it runs, and must not run elsewhere too."""
    async with site(tmp_path) as (store, _):
        token = await store.publish(
            "records", "1", None, [dict(one) for one in EXPORT.declarations], owner="team"
        )
        assert await store.submit("assistant", of(token)) is None
        broken = await store.claim("records", token, CLAIM, 0.0, owner="team")
        again = await store.claim("records", token, CLAIM, 0.0, owner="team")
        await store.give_back(token, lambda: broken)
        await store.give_back(token, lambda: again)
        elsewhere = await store.claim("records", token, CLAIM + "2", 0.0, owner="team")
    assert broken is not None
    assert again is not None
    assert elsewhere is None


async def test_a_cancelled_claim_keeps_nothing(tmp_path: Path) -> None:
    """However a request and a call meet, the call is the canceller's or another's, and never nobody's."""
    async with site(tmp_path) as (store, _):
        token = await store.publish(
            "records", "1", None, [dict(one) for one in EXPORT.declarations], owner="team"
        )
        for turns in range(12):
            claiming = asyncio.create_task(
                store.claim("records", token, f"{CLAIM} {turns}", 20.0, owner="team")
            )
            await asyncio.sleep(0)
            submitting = asyncio.create_task(store.submit("assistant", of(token, f"call_{turns}")))
            for _ in range(turns):
                await asyncio.sleep(0)
            claiming.cancel()
            taken = await asyncio.gather(claiming, return_exceptions=True)
            await submitting
            if isinstance(taken[0], asyncio.CancelledError):
                other = await store.claim("records", token, f"{CLAIM} other {turns}", 5.0, owner="team")
                assert other is not None
                assert other.call.call_id == f"call_{turns}"


async def test_a_result_that_the_registry_does_not_take_is_told_as_a_failure(tmp_path: Path) -> None:
    """Its consumer hears of it, and does not wait until the call's time is over."""
    troubles: list[str] = []
    async with site(tmp_path) as (_, app):
        transport = httpx2.ASGITransport(app)
        told = Provider(
            client(transport, PUBLISHER), EXPORT, on_trouble=lambda error: troubles.append(error.message)
        )
        async with told as provider:
            result = await client(transport).call_resolved(of(provider.token, key="large"))
    assert (result.status, result.code) == ("failure", "invalid_result")
    assert "cannot be handed over" in result.message
    assert len(troubles) == 1


class Line(httpx2.AsyncBaseTransport):
    """A way to the registry that breaks: `breaks` says how for each request, or None."""

    def __init__(
        self, app: Any, breaks: Callable[[httpx2.Request, int], Exception | None], *, after: bool = False
    ) -> None:
        self._inner = httpx2.ASGITransport(app)
        self._breaks = breaks
        self._after = after
        self.requests = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        trouble = self._breaks(request, self.requests)
        if trouble is not None:
            if self._after:
                await self._inner.handle_async_request(request)
            raise trouble
        return await self._inner.handle_async_request(request)


@pytest.fixture
def quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptc.registry.client.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("ptc.registry.client.LONGEST_PAUSE", 0.001)


@pytest.mark.usefixtures("quick_pauses")
async def test_a_call_outlives_a_restart_of_its_registry(tmp_path: Path) -> None:
    """The registry may have the call, so it is asked again for as long as the call has time."""
    async with site(tmp_path) as (_, app):

        def away(_: httpx2.Request, number: int) -> Exception | None:
            return (
                httpx2.ReadError("cut") if number == 1 else httpx2.ConnectError("no") if number < 30 else None
            )

        line = Line(app, away)
        async with Provider(client(httpx2.ASGITransport(app), PUBLISHER), EXPORT) as provider:
            result = await client(line).call_resolved(of(provider.token))
    assert result.value == "record 1"
    assert line.requests >= 30


@pytest.mark.usefixtures("quick_pauses")
async def test_a_registry_that_never_heard_of_a_call_is_given_up_on_soon(tmp_path: Path) -> None:
    """Nobody is there: waiting for all of a call's time would find out nothing."""
    async with site(tmp_path) as (_, app):
        line = Line(app, lambda request, number: httpx2.ConnectError("no"))
        with pytest.raises(RegistryUnreachable) as caught:
            await client(line).call_resolved(of("reg_1", timeout=3600.0))
    assert not caught.value.sent
    assert line.requests < 10


@pytest.mark.usefixtures("quick_pauses")
async def test_a_registry_that_stays_away_fails_the_call_when_its_time_is_over(tmp_path: Path) -> None:
    """And says that it may have taken the call."""
    async with site(tmp_path) as (_, app):
        line = Line(app, lambda request, number: httpx2.ReadError("cut"))
        with pytest.raises(RegistryUnreachable) as caught:
            await client(line).call_resolved(of("reg_1", timeout=0.05))
    assert caught.value.sent


async def test_the_clock_of_a_provider_may_go_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much time a call has left is told in seconds, so a provider an hour ahead runs it all the same."""
    async with site(tmp_path, clock=lambda: time.time() - 3600.0) as (_, app):
        transport = httpx2.ASGITransport(app)
        async with Provider(client(transport, PUBLISHER), EXPORT) as provider:
            result = await client(transport).call_resolved(of(provider.token))
    assert result.value == "record 1"


async def test_an_answer_that_is_no_json_is_told_as_such() -> None:
    """The address may be another service's."""
    page = httpx2.MockTransport(lambda _: httpx2.Response(200, html="<html>Welcome</html>"))
    with pytest.raises(RegistryError, match="no JSON of a registry"):
        await client(page).list_toolsets()


async def test_registries_may_start_at_once_on_a_new_file(tmp_path: Path) -> None:
    """Whoever comes first makes it, and the others find it made."""
    barrier = threading.Barrier(6)

    def start() -> RegistryStore:
        barrier.wait()
        return RegistryStore(tmp_path / "registry.db")

    stores = await asyncio.gather(*(asyncio.to_thread(start) for _ in range(6)))
    declarations = [dict(one) for one in EXPORT.declarations]
    token = await stores[0].publish("records", "1", None, declarations, owner="team")
    seen = [await store.toolsets() for store in stores]
    for store in stores:
        await store.aclose()
    assert [info.token for listed in seen for info in listed] == [token] * 6
