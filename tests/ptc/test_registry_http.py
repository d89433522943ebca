"""A registry over HTTP: the rules of every registry, its keys, its store across restarts, and its providers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
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
    RegistryForbidden,
    RegistryStore,
    RegistryUnreachable,
    create_app,
    new_key,
)
from ptc_tools.registry_protocol import ResolvedCall

PUBLISHER, PUBLISHERS_KEY = new_key("publisher", "team")
OTHER, OTHERS_KEY = new_key("publisher", "other")
NARROW, NARROWS_KEY = new_key("publisher", "narrow", ["billing-*"])
CONSUMER, CONSUMERS_KEY = new_key("consumer", "assistant")
SECOND, SECONDS_KEY = new_key("consumer", "second", ["records"])
KEYS_OF_SITE = [PUBLISHERS_KEY, OTHERS_KEY, NARROWS_KEY, CONSUMERS_KEY, SECONDS_KEY]
KEYS = Keys(KEYS_OF_SITE)
RUN = ptc.RunContext("run_1", labels={"team": "red", "secret": "of the run"})


class Site:
    """A registry behind its app, and clients of it; no socket in between."""

    def __init__(self, store: RegistryStore) -> None:
        self.store = store
        self.transport = httpx2.ASGITransport(create_app(store, KEYS))

    def client(self, key: str = CONSUMER) -> HttpRegistry:
        return HttpRegistry("http://registry.test", key=key, transport=self.transport)

    @property
    def publisher(self) -> HttpRegistry:
        return self.client(PUBLISHER)

    async def raw(
        self, method: str, path: str, key: str | None = CONSUMER, **options: Any
    ) -> httpx2.Response:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        headers |= options.pop("headers", {})
        async with httpx2.AsyncClient(transport=self.transport, base_url="http://registry.test") as client:
            return await client.request(method, path, headers=headers, **options)


@asynccontextmanager
async def site(folder: Path, **options: Any) -> AsyncIterator[Site]:
    store = RegistryStore(folder / "registry.db", **options)
    try:
        yield Site(store)
    finally:
        await store.aclose()


class Records:
    """A toolset whose tool counts its runs, and waits while it is told to."""

    def __init__(self) -> None:
        self.ran = 0
        self.labels: list[dict[str, str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()
        self.toolset = ptc.Toolset("records", [self._lookup()], description="The records.")

    def _lookup(self) -> ptc.AnyTool:
        card = ptc.ServerData("card", "user", {"type": "object"})

        async def lookup(key: str, context: ptc.ToolContext) -> str:
            """Look one record up."""
            self.ran += 1
            self.labels.append(dict(context.labels))
            self.began.set()
            await self.go.wait()
            if key == "none":
                raise ptc.ToolError("there is no such record")
            context.attach("card", {"key": key})
            return f"record {key}"

        publication = ptc.Publication(required_labels=("team",), server_data=(card,))
        return ptc.tool(lookup, effects="read", publication=publication)

    def export(self, version: str = "1.0.0") -> ptc.Export:
        return self.toolset.export(version=version)


def of(token: str, call_id: str = "call_1", **changes: Any) -> ResolvedCall:
    labels = {"team": "red"}
    call = ResolvedCall(
        "run_1", call_id, "records", "lookup", {"key": "1"}, token, labels=labels, timeout=20.0
    )
    return replace(call, **changes)


async def reading(client: ptc.RegistryClient, **options: Any) -> ptc.StepCatalog:
    registries = ptc.Registries()
    registries.register("company", client, **options)
    sources = ptc.Sources([ptc.Registry("company")], registries=registries)
    return await sources.read(RUN.labels)


async def test_a_run_reads_and_calls_what_a_provider_serves(tmp_path: Path) -> None:
    """From the model's call to the provider's tool and back: result, label, server data."""
    records, got = Records(), []
    async with site(tmp_path) as here, Provider(here.publisher, records.export()):
        step = await reading(here.client(), on_server_data=got.append)
        call = ptc.Call("call_1", "lookup", {"key": "7"}, namespace="records")
        assert await ptc.Invoker(step.catalog).invoke(call, RUN) == ptc.Success("record 7")
        assert step.catalog.namespaces == {"records": "The records."}
    assert records.labels == [{"team": "red"}]
    assert [(item.kind, item.data) for item in got] == [("card", {"key": "7"})]


async def test_a_providers_failure_is_a_failure_of_the_call(tmp_path: Path) -> None:
    """With its words."""
    records = Records()
    async with site(tmp_path) as here, Provider(here.publisher, records.export()):
        step = await reading(here.client())
        call = ptc.Call("call_1", "lookup", {"key": "none"}, namespace="records")
        outcome = await ptc.Invoker(step.catalog).invoke(call, RUN)
    assert isinstance(outcome, ptc.Failure)
    assert "there is no such record" in outcome.message


async def test_many_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    """Through one registry, one provider, and two consumers with the same run and call ids."""
    records = Records()
    async with site(tmp_path) as here, Provider(here.publisher, records.export()) as provider:
        clients = [here.client(), here.client(SECOND)]
        calls = [
            (client, of(provider.token, f"call_{number}", arguments={"key": f"{number}-{which}"}))
            for number in range(20)
            for which, client in enumerate(clients)
        ]
        results = await asyncio.gather(*(client.call_resolved(call) for client, call in calls))
    assert [result.value for result in results] == [f"record {call.arguments['key']}" for _, call in calls]
    assert records.ran == 40


# Admission


async def test_the_token_is_checked_before_anything_is_published(tmp_path: Path) -> None:
    """Replaced, by an identical schema too: call_not_admitted, for good, and nobody runs it."""
    records = Records()
    async with site(tmp_path) as here:
        old = await here.publisher.publish(records.export())
        async with Provider(here.publisher, records.export()) as provider:
            assert provider.token != old
            for _ in range(2):
                with pytest.raises(ptc.CallNotAdmitted, match="did not run"):
                    await here.client().call_resolved(of(old))
    assert records.ran == 0


async def test_a_published_call_keeps_its_assignment_and_its_result(tmp_path: Path) -> None:
    """It runs at the provider of its registration although that was replaced meanwhile, once."""
    records, other = Records(), Records()
    records.go.clear()
    async with site(tmp_path) as here, Provider(here.publisher, records.export()) as provider:
        running = asyncio.create_task(here.client().call_resolved(of(provider.token)))
        await records.began.wait()
        async with Provider(here.publisher, other.export("2.0.0")):
            again = asyncio.create_task(here.client().call_resolved(of(provider.token)))
            records.go.set()
            assert (await running).value == "record 1"
            assert await again == await running
            await provider.serving()  # it hears that it was replaced
            assert await here.client().call_resolved(of(provider.token)) == await running
    assert (records.ran, other.ran) == (1, 0)


async def test_a_call_that_waited_for_a_replaced_provider_is_still_served_by_it(tmp_path: Path) -> None:
    """It was published before the replacement; the old provider takes what waits for it, then ends."""
    records = Records()
    async with site(tmp_path) as here:
        token = await here.publisher.publish(records.export(), revision="a")
        assert await here.store.submit("assistant", of(token)) is None
        await here.publisher.publish(records.export("2.0.0"))
        claim = "a secret of sixteen and more"
        taken = await here.publisher.claim("records", token, claim, 0.0)
        assert taken is not None
        await here.publisher.finish(str(taken["key"]), claim, ptc.CallResult("success", "late"))
        assert (await here.client().call_resolved(of(token))).value == "late"
        with pytest.raises(ptc.AdmissionConflict):
            await here.publisher.claim("records", token, claim + "2", 0.0)


async def test_a_further_attempt_has_the_result_of_the_call_after_a_replacement(tmp_path: Path) -> None:
    """A consumer that was killed during a call asks anew when it is back: it is told how that call ended."""
    records = Records()
    async with site(tmp_path) as here, Provider(here.publisher, records.export()) as first:
        records.go.clear()
        running = asyncio.create_task(here.client().call_resolved(of(first.token)))
        await records.began.wait()
        async with Provider(here.publisher, records.export()) as second:
            waiting = asyncio.create_task(here.client().call_resolved(of(first.token, attempt=2)))
            records.go.set()
            result = await running
            assert await waiting == result
            for token in (first.token, second.token):
                assert await here.client().call_resolved(of(token, attempt=3)) == result
            with pytest.raises(ptc.CallIdentityConflict):
                await here.client().call_resolved(of(second.token))
            with pytest.raises(ptc.CallIdentityConflict):
                await here.client().call_resolved(of(second.token, attempt=4, arguments={"key": "2"}))
    assert records.ran == 1


async def test_a_call_that_its_provider_took_to_its_grave_runs_again_for_a_further_attempt(
    tmp_path: Path,
) -> None:
    """Once its time is over; until then it may still end, and who asks waits for that."""
    now = [1_000.0]
    async with site(tmp_path, clock=lambda: now[0]) as here:
        token = await here.publisher.publish(Records().export())
        assert await here.store.submit("assistant", of(token)) is None
        assert await here.publisher.claim("records", token, "a secret of sixteen", 0.0) is not None
        assert await here.store.submit("assistant", of(token, attempt=2)) is None
        assert await here.publisher.claim("records", token, "another of sixteen", 0.0) is None
        now[0] += 30.0
        assert await here.store.submit("assistant", of(token)) is None
        assert await here.publisher.claim("records", token, "another of sixteen", 0.0) is None
        assert await here.store.submit("assistant", of(token, attempt=2)) is None
        taken = await here.publisher.claim("records", token, "another of sixteen", 0.0)
        assert taken is not None
        assert ResolvedCall.from_json(taken["call"]).attempt == 2


async def test_a_publishers_key_takes_and_answers_the_calls_of_its_toolsets_alone(tmp_path: Path) -> None:
    """Also where both keys have one name, and the narrower one was told the token and the claim."""
    narrow, narrows_key = new_key("publisher", "team", ["billing"])
    async with site(tmp_path) as here:
        here.transport = httpx2.ASGITransport(create_app(here.store, Keys([*KEYS_OF_SITE, narrows_key])))
        token = await here.publisher.publish(Records().export(), revision="deploy-1")
        assert await here.store.submit("assistant", of(token)) is None
        claim = "a secret of sixteen"
        for name in ("records", "billing"):
            with pytest.raises(RegistryForbidden) as refused:
                await here.client(narrow).claim(name, token, claim, 0.0)
            assert refused.value.status == 403
        taken = await here.publisher.claim("records", token, claim, 0.0)
        assert taken is not None
        key = str(taken["key"])
        for other in (narrow, OTHER):
            with pytest.raises(RegistryForbidden) as refused:
                await here.client(other).finish(key, claim, ptc.CallResult("success", "forged"))
            assert refused.value.status == 403
        await here.publisher.finish(key, claim, ptc.CallResult("success", "record 1"))
        assert (await here.client().call_resolved(of(token))).value == "record 1"


@pytest.mark.parametrize("revision", [None, "deploy-2"])
async def test_publishing_may_be_repeated_when_the_answer_was_lost(
    tmp_path: Path, revision: str | None
) -> None:
    """It did what it was asked: it must not report a conflict with itself, nor register twice."""
    lost = 0

    class Lossy(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            nonlocal lost
            response = await here.transport.handle_async_request(request)
            if lost:
                lost -= 1
                raise httpx2.ReadError("the connection broke after the request was carried out")
            return response

    async with site(tmp_path) as here:
        publisher = HttpRegistry("http://registry.test", key=PUBLISHER, transport=Lossy())
        first = await publisher.publish(Records().export())
        lost = 2
        token = await publisher.publish(Records().export(), revision=revision, expected_token=first)
        assert [info.token for info in await publisher.list_toolsets()] == [token]
        assert token != first
        with pytest.raises(ptc.AdmissionConflict):
            await publisher.publish(Records().export("2.0.0"), revision=revision, expected_token=first)
        other = await publisher.publish(Records().export())
        assert other != token
        assert other != await publisher.publish(Records().export())


async def test_a_client_that_leaves_in_the_middle_of_a_request_is_no_error(tmp_path: Path) -> None:
    """A provider that dies is no reason for a traceback in the registry's log."""

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async with site(tmp_path) as here:
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/toolsets/records/claims",
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {PUBLISHER}".encode())],
        }
        await create_app(here.store, KEYS)(scope, receive, send)
    assert said[0]["status"] == 400


async def test_a_wrong_key_is_told_that_it_is_wrong(tmp_path: Path) -> None:
    """Not that one is missing."""
    async with site(tmp_path) as here:
        with pytest.raises(RegistryForbidden, match="this key is wrong"):
            await here.client("ptcreg_nobody").list_toolsets()
        missing = await here.raw("GET", "/v1/toolsets", None)
        assert "give a key" in missing.json()["error"]["message"]


async def test_the_same_call_id_with_another_token_is_refused(tmp_path: Path) -> None:
    """The id stands for one call."""
    records = Records()
    async with site(tmp_path) as here:
        async with Provider(here.publisher, records.export()) as provider:
            await here.client().call_resolved(of(provider.token))
        new = await here.publisher.publish(records.export())
        for other in (of(new), of(provider.token, arguments={"key": "2"}), of(provider.token, labels={})):
            with pytest.raises(ptc.CallIdentityConflict):
                await here.client().call_resolved(other)
    assert records.ran == 1


async def test_an_overload_retry_keeps_the_token_and_a_replaced_one_is_a_conflict(tmp_path: Path) -> None:
    """One call may wait; the second is told to come again, and does so for its own registration."""
    records = Records()
    async with site(tmp_path, max_waiting=1) as here:
        token = await here.publisher.publish(records.export(), revision="a")
        assert await here.store.submit("assistant", of(token, "call_1")) is None
        for call_id in ("call_2", "call_3"):
            with pytest.raises(ptc.RegistryOverloaded):
                await here.client().call_resolved(of(token, call_id))
        async with Provider(here.publisher, records.export(), revision="a") as provider:
            assert provider.token == token
            assert (await here.client().call_resolved(of(token, "call_1"))).value == "record 1"
            assert (await here.client().call_resolved(of(token, "call_2"))).value == "record 1"
        await here.publisher.publish(records.export("2.0.0"))
        with pytest.raises(ptc.AdmissionConflict):
            await here.client().call_resolved(of(token, "call_3"))
    assert records.ran == 2


async def test_a_call_whose_time_is_over_is_not_handed_out(tmp_path: Path) -> None:
    """Its consumer has given it up, so nobody runs it any more."""
    now = [1_000.0]
    records = Records()
    async with site(tmp_path, clock=lambda: now[0]) as here:
        token = await here.publisher.publish(records.export())
        assert await here.store.submit("assistant", of(token, timeout=5.0)) is None
        now[0] += 6
        assert await here.publisher.claim("records", token, "a secret of sixteen", 0.0) is None
        result = await here.client().call_resolved(of(token, timeout=5.0))
        assert (result.status, result.message) == (
            "denied",
            "no provider took the call in time; it did not run",
        )
    assert records.ran == 0


async def test_ended_calls_are_forgotten_after_a_while(tmp_path: Path) -> None:
    """The file does not grow for ever."""
    now = [1_000.0]
    records = Records()
    async with site(tmp_path, clock=lambda: now[0], keep_calls=100.0) as here:
        token = await here.publisher.publish(records.export())
        await here.store.submit("assistant", of(token))
        now[0] += 200
    async with site(tmp_path, clock=lambda: now[0], keep_calls=100.0) as here:
        await here.store.submit("assistant", of(token, "call_2"))
        taken = await here.publisher.claim("records", token, "a secret of sixteen", 0.0)
        assert taken is not None
        assert taken["call"] == of(token, "call_2").to_json()
        with pytest.raises(ptc.CallIdentityConflict):
            await here.store.submit("assistant", of(token, "call_2", arguments={"key": "2"}))
        await here.store.submit(
            "assistant", of(token, arguments={"key": "2"})
        )  # the old one is not known any more


async def test_a_provider_is_told_whose_call_it_is(tmp_path: Path) -> None:
    """By the name of the consumer's key, which the consumer does not choose."""

    @ptc.tool(effects="read")
    def whose(context: ptc.ToolContext) -> str:
        """Say whose call it is."""
        return str(context.principal)

    toolset = ptc.Toolset("records", [whose])
    async with site(tmp_path) as here, Provider(here.publisher, toolset.export(version="1")) as provider:
        call = of(provider.token, tool="whose", arguments={}, labels={})
        assert (await here.client().call_resolved(call)).value == "assistant"
        assert (await here.client(SECOND).call_resolved(call)).value == "second"


async def test_keys_that_cannot_be_read_let_nobody_in_and_name_no_file(tmp_path: Path) -> None:
    """A slip while the registry runs must not open it, nor tell where it is."""
    path = tmp_path / "keys.txt"
    path.write_text(CONSUMERS_KEY.line())
    store = RegistryStore(tmp_path / "registry.db")
    transport = httpx2.ASGITransport(create_app(store, Keys.read(path)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://registry.test") as client:
        headers = {"authorization": f"Bearer {CONSUMER}"}
        assert (await client.get("/v1/toolsets", headers=headers)).status_code == 200
        path.write_text("anybody")
        refused = await client.get("/v1/toolsets", headers=headers)
    assert refused.status_code == 503
    assert "keys.txt" not in refused.text
    await store.aclose()
    assert path.exists()


async def test_a_claim_whose_answer_was_lost_is_given_again(tmp_path: Path) -> None:
    """The same claim, the same call; another claim does not get it."""
    records = Records()
    async with site(tmp_path) as here:
        token = await here.publisher.publish(records.export())
        assert await here.store.submit("assistant", of(token)) is None
        claim = "a secret of sixteen and more"
        first = await here.publisher.claim("records", token, claim, 0.0)
        again = await here.publisher.claim("records", token, claim, 0.0)
        assert first is not None
        assert again is not None
        assert (again["key"], again["call"]) == (first["key"], first["call"])
        assert await here.publisher.claim("records", token, claim + "2", 0.0) is None
        with pytest.raises(ptc.AdmissionConflict):
            await here.publisher.finish(str(first["key"]), claim + "2", ptc.CallResult("success", "x"))
        await here.publisher.finish(str(first["key"]), claim, ptc.CallResult("success", "x"))
        await here.publisher.finish(str(first["key"]), claim, ptc.CallResult("success", "y"))  # said already
        assert (await here.client().call_resolved(of(token))).value == "x"


async def test_a_result_is_not_lost_while_the_registry_is_away(tmp_path: Path) -> None:
    """What ran is told when it can be: nobody runs it a second time."""
    records = Records()
    records.go.clear()
    troubles: list[str] = []
    away = False

    class Line(httpx2.AsyncBaseTransport):
        def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
            self.inner, self.refused = inner, 0

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if away and request.method == "PUT" and self.refused < 5:
                self.refused += 1
                raise httpx2.ConnectError("no route")
            return await self.inner.handle_async_request(request)

    async with site(tmp_path) as here:
        line = Line(here.transport)
        publisher = HttpRegistry("http://registry.test", key=PUBLISHER, transport=line)
        told = lambda error: troubles.append(error.code)  # noqa: E731
        async with Provider(publisher, records.export(), on_trouble=told) as provider:
            running = asyncio.create_task(here.client().call_resolved(of(provider.token)))
            await records.began.wait()
            away = True
            records.go.set()
            assert (await running).value == "record 1"
    assert line.refused == 5
    assert troubles == ["registry_unreachable"]
    assert records.ran == 1


async def test_registrations_and_calls_survive_a_restart(tmp_path: Path) -> None:
    """They stand in the file: what was refused stays refused, what ended keeps its result."""
    records = Records()
    async with site(tmp_path) as here:
        old = await here.publisher.publish(records.export(), revision="a")
        async with Provider(here.publisher, records.export(), revision="b") as provider:
            result = await here.client().call_resolved(of(provider.token))
        with pytest.raises(ptc.CallNotAdmitted):
            await here.client().call_resolved(of(old, "call_2"))
    async with site(tmp_path) as here:
        assert await here.client().call_resolved(of(provider.token)) == result
        with pytest.raises(ptc.CallNotAdmitted):
            await here.client().call_resolved(of(old, "call_2"))
        with pytest.raises(ptc.AdmissionConflict, match="new revision"):
            await here.publisher.publish(records.export(), revision="a")
        (info,) = await here.client().list_toolsets()
        assert (info.name, info.version, info.token) == ("records", "1.0.0", provider.token)


async def test_an_unchanged_registration_is_not_sent_again(tmp_path: Path) -> None:
    """The token is its ETag."""
    records = Records()
    async with site(tmp_path) as here:
        token = await here.publisher.publish(records.export())
        again = await here.client().resolve_toolset("records", known=token)
        assert again is not None
        assert again.tools is None
        raw = await here.raw("GET", "/v1/toolsets/records", headers={"if-none-match": f'"{token}"'})
        assert (raw.status_code, raw.content) == (304, b"")
        fresh = await here.client().resolve_toolset("records", known="reg_other")
        assert fresh is not None
        assert fresh.tools == list(records.export().declarations)
        assert await here.client().resolve_toolset("billing") is None


# Keys


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        ("GET", "/v1/toolsets", None, 401),
        ("GET", "/v1/toolsets", "ptcreg_guess", 401),
        ("GET", "/v1/toolsets/records", SECOND, 200),
        ("GET", "/v1/toolsets/records", NARROW, 403),
        ("PUT", "/v1/toolsets/records", None, 401),
        ("PUT", "/v1/toolsets/records", CONSUMER, 403),
        ("PUT", "/v1/toolsets/records", NARROW, 403),
        ("PUT", "/v1/toolsets/records", OTHER, 403),
        ("DELETE", "/v1/toolsets/records?token=x", CONSUMER, 403),
        ("DELETE", "/v1/toolsets/records?token=x", OTHER, 403),
        ("POST", "/v1/toolsets/records/claims", CONSUMER, 403),
        ("POST", "/v1/toolsets/records/claims", OTHER, 403),
        ("POST", "/v1/calls", None, 401),
        ("POST", "/v1/calls", PUBLISHER, 403),
        ("PUT", "/v1/calls/abc/result", CONSUMER, 403),
        ("GET", "/v1/nothing", CONSUMER, 404),
        ("PATCH", "/v1/calls", CONSUMER, 405),
        ("GET", "/healthz", None, 200),
    ],
)
async def test_each_door_opens_to_its_own_keys_alone(
    tmp_path: Path, method: str, path: str, key: str | None, status: int
) -> None:
    """Publishing and serving are a publisher's, of its own toolsets; reading and calling a consumer's."""
    records = Records()
    async with site(tmp_path) as here:
        token = await here.publisher.publish(records.export())
        body: dict[str, object] = {"token": token, "claim": "a secret of sixteen"}
        if path == "/v1/toolsets/records" and method == "PUT":
            body = {"version": "1", "tools": list(records.export().declarations)}
        response = await here.raw(method, path, key, json=body)
        assert response.status_code == status
        if status >= 400:
            assert set(response.json()["error"]) == {"code", "message"}
            assert "ptcreg_" not in response.text
        assert [info.token for info in await here.client().list_toolsets()] == [token]


async def test_a_name_stays_its_first_publishers_also_when_it_is_removed(tmp_path: Path) -> None:
    """Nobody else takes over the consumers of a toolset."""
    records = Records()
    async with site(tmp_path) as here:
        token = await here.publisher.publish(records.export())
        with pytest.raises(RegistryForbidden):
            await here.client(OTHER).publish(records.export())
        await here.publisher.remove("records", token)
        with pytest.raises(RegistryForbidden):
            await here.client(OTHER).publish(records.export())
        await here.publisher.publish(records.export())


async def test_a_consumer_sees_and_calls_what_its_key_is_for(tmp_path: Path) -> None:
    """The rest of the registry is not there for it."""
    records = Records()
    async with site(tmp_path) as here:
        await here.publisher.publish(records.export())
        await here.publisher.publish(ptc.Toolset("billing", [plain]).export(version="1"))
        assert [info.name for info in await here.client(SECOND).list_toolsets()] == ["records"]
        with pytest.raises(RegistryForbidden):
            await here.client(SECOND).resolve_toolset("billing")
        with pytest.raises(RegistryForbidden):
            await here.client(SECOND).call_resolved(of("reg_1", toolset="billing"))


@ptc.tool(effects="read")
def plain(x: int) -> int:
    """Do nothing much."""
    return x


async def test_one_consumer_never_gets_the_result_of_another(tmp_path: Path) -> None:
    """The ids of its runs are its own."""
    records = Records()
    async with site(tmp_path) as here, Provider(here.publisher, records.export()) as provider:
        await here.client().call_resolved(of(provider.token))
        assert records.ran == 1
        await here.client(SECOND).call_resolved(of(provider.token))
        assert records.ran == 2


# What is no request


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"no json", 422),
        (b"[]", 422),
        (b'{"run_id": "r"}', 422),
        (b'{"a": 1, "a": 2}', 422),
        (b'{"a": NaN}', 422),
        (b'"' + b"x" * (8 * 1024 * 1024) + b'"', 413),
    ],
)
async def test_a_body_that_is_no_call_is_refused(tmp_path: Path, content: bytes, status: int) -> None:
    """Strict JSON, the exact shape, and not too much of it."""
    async with site(tmp_path) as here:
        response = await here.raw("POST", "/v1/calls", content=content)
        assert response.status_code == status


@pytest.mark.parametrize(
    "change",
    [
        {"tools": [{"name": "lookup", "parameters": {"type": "object"}}]},
        {"tools": "lookup"},
        {"tools": [3]},
        {"version": ""},
        {"version": 3},
        {"description": 3},
        {},
    ],
)
async def test_only_complete_publications_are_registered(tmp_path: Path, change: dict[str, object]) -> None:
    """Schemas alone are refused at the door, with what is missing."""
    declarations = json.loads(json.dumps(list(Records().export().declarations)))
    body = {"version": "1", "tools": declarations, **change}
    if not change:
        body["tools"][0]["namespace"] = "billing"
    async with site(tmp_path) as here:
        response = await here.raw("PUT", "/v1/toolsets/records", PUBLISHER, json=body)
        assert response.status_code == 422
        assert await here.client().list_toolsets() == []


async def test_a_registry_that_is_gone_is_a_transport_error(tmp_path: Path) -> None:
    """So a mutation through it is uncertain, and a read of the catalog fails the step."""
    attempts = []

    class Dead(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            attempts.append(request.url.path)
            raise httpx2.ConnectError("no route")

    client = HttpRegistry("http://registry.test", key=CONSUMER, transport=Dead())
    with pytest.raises(RegistryUnreachable) as raised:
        await client.call_resolved(of("reg_1"))
    assert isinstance(raised.value, ptc.TransportError)
    assert attempts == ["/v1/calls"] * 4
    with pytest.raises(ptc.SourceUnreadable):
        await reading(client)


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"[]", b"{}", b'{"toolsets": 3}', b'{"toolsets": [{}]}', b'{"toolsets": ["records"]}'],
)
async def test_an_answer_that_is_none_fails_the_step(content: bytes) -> None:
    """A proxy's page is no catalog."""

    class Strange(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, content=content)

    client = HttpRegistry("http://registry.test", key=CONSUMER, transport=Strange())
    with pytest.raises(ptc.SourceUnreadable):
        await reading(client)


async def test_a_redirect_is_not_followed() -> None:
    """The key goes to its registry alone."""
    asked = []

    class Elsewhere(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            asked.append(str(request.url))
            return httpx2.Response(302, headers={"location": "http://evil.test/v1/toolsets"})

    client = HttpRegistry("http://registry.test", key=CONSUMER, transport=Elsewhere())
    with pytest.raises(RegistryError):
        await client.list_toolsets()
    assert asked == ["http://registry.test/v1/toolsets"]


@pytest.mark.parametrize(
    "url",
    [
        "registry.test",
        "ftp://registry.test",
        "https://",
        "https://x.test?key=1",
        "",
        "https://x.test:port",
        "https://x.test:99999",
        "https://[::1",
        "https://x.test/a b",
        "https://x.test/\n",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ptc.ConfigurationError):
        HttpRegistry(url, key=CONSUMER)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "two\nlines", "null\0"])
def test_a_text_that_cannot_be_a_key_is_refused(key: str) -> None:
    """It would go into a header, where it fails late or says more than a key."""
    with pytest.raises(ptc.ConfigurationError, match="no key"):
        HttpRegistry("https://registry.example", key=key)


def test_a_key_is_not_sent_unencrypted_to_another_machine_unless_it_is_said() -> None:
    """This machine's own address is fine."""
    with pytest.raises(ptc.ConfigurationError, match="unencrypted"):
        HttpRegistry("http://registry.example", key=CONSUMER)
    for url, insecure in (
        ("https://registry.example", False),
        ("http://127.0.0.1:1", False),
        ("http://x.test", True),
    ):
        client = HttpRegistry(url, key=CONSUMER, insecure=insecure)
        assert CONSUMER not in repr(client)


# Keys' file


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Removing a line locks its key out."""
    path = tmp_path / "keys.txt"
    path.write_text(f"# who may\n\n{PUBLISHERS_KEY.line()}\n{CONSUMERS_KEY.line()}\n")
    keys = Keys.read(path)
    assert keys.of(PUBLISHER, "publisher") == PUBLISHERS_KEY
    assert keys.of(PUBLISHER, "consumer") is None
    path.write_text(CONSUMERS_KEY.line())
    assert keys.of(PUBLISHER) is None
    assert keys.of(CONSUMER) == CONSUMERS_KEY


@pytest.mark.parametrize(
    "line",
    [
        "publisher",
        f"admin x sha256:{'0' * 64}",
        "publisher x y",
        f"publisher x {'0' * 64}",
        f"publisher x/y sha256:{'0' * 64}",
        f"publisher x sha256:{'0' * 64} a b",
        f"publisher x sha256:{'0' * 64} a;b",
    ],
)
def test_a_line_that_is_no_key_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    """A slip must not lock everybody out, or in, unseen."""
    path = tmp_path / "keys.txt"
    path.write_text(f"{CONSUMERS_KEY.line()}\n{line}\n")
    with pytest.raises(ptc.ConfigurationError, match=r"keys\.txt:2"):
        Keys.read(path)


def test_the_file_holds_no_key(tmp_path: Path) -> None:
    """Its hash is enough to know it by."""
    assert PUBLISHER not in PUBLISHERS_KEY.line()
    assert PUBLISHERS_KEY.covers("records")
    assert NARROWS_KEY.covers("billing-eu")
    assert not NARROWS_KEY.covers("billing")


async def test_a_store_refuses_what_is_no_registry(tmp_path: Path) -> None:
    """Another application's file is not written to."""
    path = tmp_path / "other.db"
    path.write_bytes(b"no database at all, but long enough to look at twice" * 100)
    with pytest.raises(ptc.PtcError) as raised:
        RegistryStore(path)
    assert raised.value.code == "registry_store_unreadable"
    assert path.read_bytes().startswith(b"no database")
    async with site(tmp_path) as here:
        assert (here.store.path.stat().st_mode & 0o777) == 0o600


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_a_file_that_was_open_to_others_is_kept_to_its_owner(tmp_path: Path) -> None:
    """It holds arguments and results."""
    (tmp_path / "registry.db").touch(mode=0o644)
    (tmp_path / "registry.db").chmod(0o644)
    async with site(tmp_path) as here:
        await here.publisher.publish(Records().export())
        modes = modes_in(tmp_path)
    assert modes == dict.fromkeys(("registry.db", "registry.db-wal", "registry.db-shm"), 0o600)


@pytest.mark.parametrize("place", ["folder", "file/registry.db", "nul\0"])
async def test_a_place_that_cannot_hold_a_registry_is_said_so(tmp_path: Path, place: str) -> None:
    """A typed error, and no traceback of the file system's."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ptc.PtcError, match="the registry cannot be kept at") as raised:
        RegistryStore(tmp_path / place)
    assert raised.value.code == "registry_store_unreadable"
