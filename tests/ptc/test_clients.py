"""Clients and endpoints: what is made from the environment, what goes over the wire, what errors mean."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptc
from ptc.providers.endpoint import Endpoint
from ptc.providers.failures import of_status
from ptc.providers.openai_client import decode_body, encode_body, endpoint_of
from ptc.providers.sse import SseDecoder
from tests.ptc.loop_fakes import FakeEndpoint, answer, client_of, events_of, function_call, response

NO_RETRY = ptc.RetryPolicy(attempts=1)


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# Making clients


async def test_an_azure_client_speaks_the_v1_api_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token goes out as a bearer, and to that endpoint alone."""
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=response(answer()))

    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
    async with ptc.azure_client(token_provider=lambda: "entra-token", http_client=http) as client:
        await ptc.Runner(client=client, model="my-deployment").run("go")
    (request,) = seen
    assert str(request.url) == "https://mine.openai.azure.com/openai/v1/responses"
    assert request.headers["authorization"] == "Bearer entra-token"
    assert json.loads(request.content)["model"] == "my-deployment"


@pytest.mark.parametrize(
    "given",
    [
        "https://x.openai.azure.com",
        "https://x.openai.azure.com/openai/v1/",
        "https://x.openai.azure.com/openai",
    ],
)
async def test_an_azure_endpoint_may_be_written_in_any_usual_way(given: str) -> None:
    """Portals show it with and without the path."""
    async with ptc.azure_client(given, api_key="k") as client:
        assert str(client.base_url) == "https://x.openai.azure.com/openai/v1/"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: ptc.azure_client(), "set AZURE_OPENAI_ENDPOINT"),
        (lambda: ptc.azure_client("mine"), "is not an address"),
        (lambda: ptc.azure_client("http://mine.openai.azure.com", api_key="k"), "must be https"),
        (lambda: ptc.azure_client("https://m", api_key="k", token_provider=lambda: "t"), "not both"),
        (lambda: ptc.openai_client(), "set OPENAI_API_KEY"),
    ],
)
def test_missing_credentials_say_what_to_set(make: Callable[[], object], what: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ptc.CredentialsMissing, match=what):
        make()


async def test_entra_without_a_sign_in_is_a_typed_error() -> None:
    """The library's own exception says much and not what to do."""
    from azure.core.exceptions import ClientAuthenticationError

    def no_token() -> str:
        raise ClientAuthenticationError("DefaultAzureCredential failed\nlong list")

    async with ptc.azure_client("https://x.openai.azure.com", token_provider=no_token) as client:
        with pytest.raises(ptc.CredentialsRejected, match="az login"):
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")


def _raises(error: BaseException) -> Callable[[], str]:
    def provider() -> str:
        raise error

    return provider


async def _gives_nothing() -> Any:
    return None


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (_raises(RuntimeError("boom \ud800\x1b[31m")), "failed: RuntimeError: boom"),
        (_raises(ValueError()), "failed: ValueError; nothing was sent"),
        (_raises(ConnectionResetError(104, "reset")), "failed: ConnectionResetError"),
        (_raises(TimeoutError("slow")), "failed: TimeoutError"),
        (lambda: None, "gave no token but a NoneType"),
        (lambda: b"token", "gave no token but a bytes"),
        (_gives_nothing, "gave no token but a NoneType"),
        (lambda: "", "no header can carry"),
        (lambda: "a token\r\nx-other: 1", "no header can carry"),
        (lambda: "t\ud800", "no header can carry"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_token_provider_that_fails_is_told_as_one(provider: Any, said: str, streamed: bool) -> None:
    """Not as a connection that broke in the middle: nothing was sent, so it is safe to run again. The words can be
    printed, whatever the provider said."""
    async with ptc.azure_client("https://x.openai.azure.com", token_provider=provider) as client:
        runner = ptc.Runner(client=client, model="m", retry=NO_RETRY)
        with pytest.raises(ptc.CredentialsRejected) as caught:
            await (runner.stream("go").finish() if streamed else runner.run("go"))
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert caught.value.safe_to_retry


async def test_what_a_service_says_of_a_failure_can_be_printed() -> None:
    """No terminal obeys it, and no half of a surrogate pair makes the error itself fail."""
    body = b'{"error": {"message": "no \\ud800 \\u001b[31m\\nway", "code": "x"}}'
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(400, content=body)))
    async with ptc.openai_client("k", http_client=http) as client:
        with pytest.raises(ptc.RequestRejected, match="no") as caught:
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")
    assert str(caught.value).isprintable()
    failed = response(status="failed", error={"code": "x", "message": "no \ud800 \x1b[31m"})
    with pytest.raises(ptc.ResponseFailed) as ended:
        await ptc.Runner(client=FakeEndpoint(failed), model="m").run("go")
    assert str(ended.value).isprintable()


async def test_an_openai_client_takes_its_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or from its argument."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    async with ptc.openai_client() as client:
        assert client.api_key == "sk-env"


# Endpoints


@pytest.mark.parametrize("streamed", [False, True])
def test_a_sync_client_of_the_application_is_accepted(streamed: bool) -> None:
    """It works in threads; the loop stays free."""
    bodies: list[Any] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        done = response(function_call()) if len(bodies) == 1 else response(answer("sync"))
        return sse(done) if bodies[-1].get("stream") else httpx2.Response(200, json=done)

    @ptc.tool
    def echo(x: int) -> int:
        """Give x back."""
        return x

    async def run(client: openai.OpenAI) -> Any:
        runner = ptc.Runner(client=client, model="m", tools=[echo])
        return await (runner.stream("go").finish() if streamed else runner.run("go"))

    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    with openai.OpenAI(api_key="k", base_url="http://fake/v1", http_client=http) as client:
        result = asyncio.run(run(client))
    assert result.output_text == "sync"
    assert len(bodies) == 2


def sse(done: dict[str, Any]) -> httpx2.Response:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events_of(done))
    return httpx2.Response(200, content=text.encode(), headers={"content-type": "text/event-stream"})


async def test_an_async_client_streams() -> None:
    """The events are read from the bytes, not from the SDK's models."""
    async with client_of(lambda request: sse(response(answer("streamed")))) as client:
        result = await ptc.Runner(client=client, model="m").stream("go").finish()
    assert result.output_text == "streamed"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("as_objects", [False, True])
async def test_what_looks_like_a_client_is_one(is_async: bool, as_objects: bool) -> None:
    """Whatever has `responses.create` is enough for a test or a proxy."""
    from openai.types.responses import Response

    def give(**body: Any) -> Any:
        assert body["model"] == "m"
        done = response(answer("fake")) | {"created_at": 1, "model": "m", "tools": [], "tool_choice": "auto"}
        return Response.construct(**done) if as_objects else done

    async def give_later(**body: Any) -> Any:
        return give(**body)

    class Responses:
        create = staticmethod(give_later if is_async else give)

    class Client:
        responses = Responses()

    assert (await ptc.Runner(client=Client(), model="m").run("go")).output_text == "fake"


def test_an_endpoint_is_used_as_it_is() -> None:
    """The seam is public."""
    endpoint = FakeEndpoint()
    assert isinstance(endpoint, Endpoint)
    assert endpoint_of(endpoint) is endpoint


async def test_background_responses_are_fetched_and_cancelled_by_id() -> None:
    """With the id quoted: it comes from outside."""
    seen: list[tuple[str, str]] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.method, request.url.raw_path.decode()))
        return httpx2.Response(200, json=response(answer()))

    async with client_of(handler) as client:
        endpoint = endpoint_of(client)
        await endpoint.retrieve("resp_1")
        await endpoint.cancel("../x")
    assert seen == [("GET", "/v1/responses/resp_1"), ("POST", "/v1/responses/..%2Fx/cancel")]


# Errors


@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (400, ptc.RequestRejected, "never"),
        (401, ptc.CredentialsRejected, "never"),
        (403, ptc.CredentialsRejected, "never"),
        (404, ptc.DeploymentNotFound, "never"),
        (408, ptc.EndpointTimeout, "ambiguous"),
        (409, ptc.RequestRejected, "never"),
        (409, ptc.ConversationLocked, "safe"),
        (422, ptc.RequestRejected, "never"),
        (429, ptc.RateLimited, "safe"),
        (500, ptc.ServerFailed, "ambiguous"),
        (503, ptc.ServerFailed, "ambiguous"),
    ],
)
async def test_each_status_is_a_typed_error(status: int, kind: type[ptc.EndpointError], retry: str) -> None:
    """With the service's own words and code."""
    locked = "conversation_locked" if kind is ptc.ConversationLocked else "because"
    body = {"error": {"message": "said so", "code": locked}}
    async with client_of(lambda request: httpx2.Response(status, json=body)) as client:
        with pytest.raises(kind, match="said so") as error:
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")
    raised = error.value
    assert (type(raised), raised.status, raised.error_code, raised.retry) == (kind, status, locked, retry)


@pytest.mark.parametrize(
    ("message", "unsupported"),
    [
        ("Tool type 'programmatic_tool_calling' is not supported with this model.", True),
        ("Invalid value: 'programmatic_tool_calling'. Supported values are: 'function'.", True),
        ("Unknown parameter: 'tools[0].allowed_callers'.", True),
        ("Hosted tool 'programmatic_tool_calling' is not supported with m.", True),
        ("Unsupported tool type: programmatic_tool_calling", True),
        ("This model does not support programmatic tool calling.", True),
        ("'programmatic_tool_calling' is not one of ['function', 'custom'] - 'tools.2.type'", True),
        ("Duplicate tool programmatic_tool_calling.", False),
        ("Invalid value: 'allowed_callers' is not allowed on tools[2] (web_search).", False),
        (
            "Invalid value: 'program'. Supported values are: 'direct' and 'programmatic' (allowed_callers).",
            False,
        ),
        ("Tool 'f' can be called by programs only, which needs the 'programmatic_tool_calling' tool.", False),
        ("Invalid value: 'x'. Supported values are: 'function', 'programmatic_tool_calling'.", False),
        ("Unknown parameter: 'foo'.", False),
    ],
)
def test_a_deployment_without_programs_is_recognised(message: str, unsupported: bool) -> None:
    """The error says what to try instead."""
    error = of_status(400, {"message": message})
    assert isinstance(error, ptc.ProgramsUnsupported) is unsupported
    assert ('programs="local"' in str(error)) is unsupported


async def test_a_service_that_is_not_there_is_unreachable() -> None:
    """A refused connection is safe to try again, and the message names the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{address}/v1") as client:
            with pytest.raises(ptc.EndpointUnreachable, match=address) as error:
                await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")
    assert error.value.safe_to_retry


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectError("refused"), ptc.EndpointUnreachable),
        (httpx2.ConnectTimeout("slow"), ptc.EndpointUnreachable),
        (httpx2.ReadTimeout("slow"), ptc.EndpointTimeout),
        (httpx2.ReadError("reset"), ptc.ResponseCut),
        (httpx2.RemoteProtocolError("eof"), ptc.ResponseCut),
    ],
)
async def test_transport_failures_are_told_apart(raised: Exception, kind: type[Exception]) -> None:
    """Whether the service may have worked on the request decides about a retry."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raise raised

    async with client_of(handler) as client:
        with pytest.raises(ptc.EndpointError) as error:
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")
    assert type(error.value) is kind


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b"[1]", b'{"output": [', b""])
async def test_an_answer_that_is_not_one_is_cut(body: bytes) -> None:
    """A proxy's page is no response."""
    async with client_of(lambda request: httpx2.Response(200, content=body)) as client:
        with pytest.raises(ptc.ResponseCut):
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")


async def test_the_wait_that_the_service_asks_for_is_in_the_error() -> None:
    """In seconds, whichever header it used."""
    for headers, seconds in (
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "x"}, None),
    ):
        async with client_of(lambda request, h=headers: httpx2.Response(429, json={}, headers=h)) as client:
            with pytest.raises(ptc.RateLimited) as error:
                await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")
        assert error.value.retry_after == seconds


async def test_an_error_within_a_stream_is_typed_too() -> None:
    """The status was 200 when it began."""
    event = {"type": "error", "code": "server_error", "message": "it broke"}
    content = f"event: error\ndata: {json.dumps(event)}\n\n".encode()
    async with client_of(lambda request: httpx2.Response(200, content=content)) as client:
        with pytest.raises(ptc.ServerFailed, match="it broke"):
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).stream("go").finish()


# Bytes


def test_a_lone_surrogate_goes_back_as_it_came() -> None:
    """A truncated emoji in the model's text must not end the conversation."""
    received = decode_body(b'{"text": "half \\ud83d"}')
    assert decode_body(encode_body(received)) == received


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(st.dictionaries(TEXT, TEXT | st.integers(), max_size=3), max_size=5), st.data())
def test_server_sent_events_are_read_whatever_the_pieces(events: list[Any], data: st.DataObject) -> None:
    """Line ends of all three kinds, split anywhere, comments and [DONE] passed over."""
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    lines: list[bytes] = []
    for event in events:
        lines += [b": comment", b"event: x", b"data: " + json.dumps(event).encode(), b""]
    stream = end.join([*lines, b"data: [DONE]", b"", b""])
    decoder, found = SseDecoder(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += decoder.feed(stream[:size])
        stream = stream[size:]
    assert found == events


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: 1\n\n"])
def test_an_event_that_is_not_an_object_cuts_the_stream(data: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(ptc.ResponseCut):
        SseDecoder().feed(data)


@pytest.mark.parametrize(("index", "falls_back"), [(0, True), (1, False)])
async def test_a_field_on_the_wrong_tool_is_the_requests_fault(index: int, falls_back: bool) -> None:
    """A web search has no callers anywhere; that says nothing about programs, and `auto` hides no mistake."""

    @ptc.tool(allowed_callers=["direct", "programmatic"])
    def echo(x: int) -> int:
        """Say it back."""
        return x

    def serve(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if "allowed_callers" not in body["tools"][0]:
            message = {"type": "message", "role": "assistant", "content": "done", "status": "completed"}
            return httpx2.Response(200, json={"id": "r", "status": "completed", "output": [message]})
        said = f"Unknown parameter: 'tools[{index}].allowed_callers'."
        return httpx2.Response(400, json={"error": {"message": said}})

    search: dict[str, Any] = {"type": "web_search", "allowed_callers": ["direct"]}
    async with client_of(serve) as client:
        run = ptc.Runner(client=client, model="m", tools=[echo, search], programs="auto").run("go")
        if falls_back:
            assert (await run).output_text == "done"
            return
        with pytest.raises(ptc.RequestRejected, match="allowed_callers") as error:
            await run
    assert not isinstance(error.value, ptc.ProgramsUnsupported)


ODD_BODIES = [
    b'{"type": "x", "v": NaN}',
    b'{"type": "x", "v": 1e999}',
    b'{"type": "x", "v": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"type": "x", "v": ' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"type": "x", "v": 1, "v": 2}',
    b'{"type": "x", "v": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("odd", ODD_BODIES, ids=["nan", "infinity", "deepest", "deep", "twice", "long"])
async def test_a_response_that_could_not_be_replayed_runs_nothing(odd: bytes, streamed: bool) -> None:
    """It would be found at the next request only, after its tools have run."""
    ran: list[int] = []

    @ptc.tool
    def echo(x: int) -> int:
        """Say it back."""
        ran.append(x)
        return x

    called = b'{"type":"function_call","call_id":"c1","name":"echo","arguments":"{\\"x\\":1}"}'
    body = b'{"id":"r","status":"completed","output":[' + odd + b"," + called + b"]}"
    if streamed:
        event = b'{"type":"response.completed","response":' + body + b"}"
        body = b"event: response.completed\ndata: " + event + b"\n\n"
    async with client_of(lambda request: httpx2.Response(200, content=body)) as client:
        runner = ptc.Runner(client=client, model="m", tools=[echo], retry=NO_RETRY)
        with pytest.raises((ptc.RemoteProtocolError, ptc.ResponseCut)):
            await (runner.stream("go").finish() if streamed else runner.run("go"))
    assert ran == []


@pytest.mark.parametrize("odd", [float("nan"), object(), {1: 2}])
async def test_an_input_that_is_not_json_is_refused_before_anything_is_sent(odd: Any) -> None:
    """By a typed error that says so."""
    async with client_of(lambda request: httpx2.Response(500)) as client:
        with pytest.raises(ptc.InvalidInput):
            await ptc.Runner(client=client, model="m").run([{"role": "user", "content": "x", "odd": odd}])


async def test_an_address_that_is_none_is_named() -> None:
    """`OPENAI_BASE_URL=nonsense` is a typing error, and the message shows it."""
    async with openai.AsyncOpenAI(api_key="k", base_url="nonsense") as client:
        with pytest.raises(ptc.EndpointUnreachable, match=r"nonsense.*no address"):
            await ptc.Runner(client=client, model="m", retry=NO_RETRY).run("go")


def test_signing_in_prints_nothing_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of the identity logs pages of attempts; the one error that says what to do is enough."""
    ptc.azure_client("https://x.openai.azure.com")
    handlers = logging.getLogger("azure.identity").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
