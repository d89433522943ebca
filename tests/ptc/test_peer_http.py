"""The peer over HTTP, in its own process: life and death, credentials, streams, what it stores, faults."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from ptc.testing import Fault, Peer, PeerError

SCRIPTS = Path(__file__).with_name("peer_scripts.py")
LOOKUP: dict[str, Any] = {
    "type": "function",
    "name": "lookup",
    "parameters": {
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": ["key"],
        "additionalProperties": False,
    },
    "strict": True,
}


def script(name: str) -> str:
    return f"{SCRIPTS}:{name}"


@pytest.fixture(scope="module")
def hello() -> Iterator[Peer]:
    with Peer(script("hello")) as peer:
        yield peer


@pytest.fixture(scope="module")
def thinking() -> Iterator[Peer]:
    with Peer(script("thinking")) as peer:
        yield peer


def client(peer: Peer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=peer.base_url, api_key="any", max_retries=0, **options)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- life and death -------------------------------------------------------------------------------------


def test_the_peer_ends_with_its_context_and_leaves_no_process() -> None:
    """A test kit that leaves processes behind ruins the next test."""
    with Peer(script("hello")) as peer:
        pid = peer.pid
        assert pid is not None
        assert alive(pid)
    assert peer.pid is None
    assert not alive(pid)


def test_the_port_stays_the_same_over_a_restart() -> None:
    """A client that holds the address goes on with it."""
    with Peer(script("hello")) as peer:
        url, pid = peer.base_url, peer.pid
        peer.restart()
        assert (peer.base_url, peer.pid != pid) == (url, True)
        with client(peer) as sdk:
            assert sdk.responses.create(model="m", input="hi").output_text == "Hello."


def test_a_killed_peer_refuses_connections() -> None:
    """What a client sees while the service is away."""
    with Peer(script("hello")) as peer:
        peer.kill()
        with client(peer) as sdk, pytest.raises(openai.APIConnectionError):
            sdk.responses.create(model="m", input="hi")


def test_the_peer_dies_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed cannot clean up; its peer must not outlive it, and takes its directory along."""
    code = (
        "import os, sys\nfrom ptc.testing import Peer\n"
        f"peer = Peer({script('hello')!r}).start()\nprint(peer.pid, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    pid = int(said.stdout)
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        pass
    else:
        with open(descriptor):
            assert select.select([descriptor], [], [], 30)[0]
    assert not alive(pid)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py:model", "nowhere.py"),
        (f"{SCRIPTS}:nothing", "nothing"),
        (f"{SCRIPTS}:BOTH", "not a script"),
        ("no_colon", "module:attr"),
    ],
)
def test_a_script_that_cannot_be_loaded_is_an_error_with_its_reason(name: str, words: str) -> None:
    """The reason comes from the other process, and must arrive."""
    peer = Peer(name)
    with pytest.raises(PeerError, match=words):
        peer.start()
    peer.close()
    assert peer.pid is None


def test_a_port_that_is_taken_is_an_error() -> None:
    """Never another port in silence: the address was promised."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        peer = Peer(script("hello"), port=taken.getsockname()[1])
        with pytest.raises(PeerError, match="cannot listen"):
            peer.start()
        peer.close()


# --- requests -------------------------------------------------------------------------------------------


def test_azures_path_and_header_are_served(hello: Peer) -> None:
    """Azure's v1 API is the same wire below another path."""
    response = httpx2.post(
        f"{hello.url}/openai/v1/responses", json={"model": "m", "input": "hi"}, headers={"api-key": "k"}
    )
    assert response.json()["output"][0]["content"][0]["text"] == "Hello."


def test_a_key_is_asked_for_where_one_is_set() -> None:
    """The port of the loopback interface is open to every user of the machine."""
    with Peer(script("hello"), api_key="the right key") as peer:
        with client(peer) as sdk, pytest.raises(openai.AuthenticationError):
            sdk.responses.create(model="m", input="hi")
        with openai.OpenAI(base_url=peer.base_url, api_key="the right key") as sdk:
            assert sdk.responses.create(model="m", input="hi").output_text == "Hello."
        assert len(peer.requests()) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b'{"model":"m","input":"hi","input":"ho"}',
        b'{"model":"m","input":NaN}',
        b"\xff",
        b"[" * 100,
    ],
)
def test_a_body_that_is_not_strict_json_is_refused(hello: Peer, body: bytes) -> None:
    """Two readers of one body must not see two things."""
    response = httpx2.post(f"{hello.base_url}/responses", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_a_refusal_has_the_services_envelope(hello: Peer) -> None:
    """The SDK reads message, type, param and code from it."""
    with client(hello) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model="m", input="hi", extra_body={"surprise": 1})
    assert (caught.value.param, caught.value.code) == ("surprise", "unknown_parameter")


def test_a_place_that_is_not_there_is_a_404_in_the_envelope(hello: Peer) -> None:
    """A wrong base URL is the most usual mistake of all."""
    response = httpx2.post(f"{hello.url}/responses", json={"model": "m", "input": "hi"})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "invalid_url")
    assert httpx2.get(f"{hello.base_url}/responses").status_code == 405


def test_every_answer_has_an_id_to_ask_about(hello: Peer) -> None:
    """The SDK shows it as `_request_id`."""
    with client(hello) as sdk:
        assert str(sdk.responses.create(model="m", input="hi")._request_id).startswith("req_")


def test_a_stream_ends_in_the_response_that_the_plain_request_gets(thinking: Peer) -> None:
    """The same items either way, and the events in the order of the API (rule 17)."""
    with client(thinking) as sdk:
        events = [
            event.to_dict()
            for event in sdk.responses.create(model="m", input="hi", tools=[LOOKUP], stream=True)
        ]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done: Any = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    final: Any = events[-1]
    assert final["response"]["output"] == done
    assert [item["type"] for item in done] == ["reasoning", "function_call"]
    arguments = "".join(
        str(event["delta"]) for event in events if event["type"] == "response.function_call_arguments.delta"
    )
    assert arguments == done[1]["arguments"] == '{"key":"k"}'


def test_a_conversation_goes_on_by_its_history_alone(thinking: Peer) -> None:
    """Stateless: the same peer, or another with the same key, tells the turn from the items."""
    with client(thinking) as sdk:
        items: list[Any] = [{"role": "user", "content": "hi"}]
        texts: list[str] = []
        for _ in range(3):
            response = sdk.responses.create(
                model="m",
                input=items,
                tools=[LOOKUP],  # type: ignore[list-item]
                store=False,
                include=["reasoning.encrypted_content"],
            )
            output: list[Any] = [item.to_dict() for item in response.output]
            items += output
            texts.append(response.output_text)
            items += [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "v"}
                for item in output
                if item["type"] == "function_call"
            ]
            thinking.restart()
    assert texts == ["", "Nearly.", "Done."]


# --- what is stored -------------------------------------------------------------------------------------


def test_a_response_goes_on_from_a_stored_one(thinking: Peer) -> None:
    """`previous_response_id` and only the new outputs: reasoning stays where it is, with the service."""
    with client(thinking) as sdk:
        first = sdk.responses.create(model="m", input="hi", tools=[LOOKUP])
        call: Any = first.output[1]
        outputs: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "v"}]
        second = sdk.responses.create(model="m", input=outputs, previous_response_id=first.id, tools=[LOOKUP])
        third = sdk.responses.create(model="m", input=[], previous_response_id=second.id, tools=[LOOKUP])
        assert (second.output_text, third.output_text) == ("Nearly.", "Done.")
        assert sdk.responses.retrieve(first.id).to_dict() == first.to_dict()
        assert [item.to_dict()["type"] for item in sdk.responses.input_items.list(second.id)] == [
            "function_call_output"
        ]


def test_a_response_does_not_go_on_without_its_outputs(thinking: Peer) -> None:
    """The rules hold for stored history as for any."""
    with client(thinking) as sdk:
        first = sdk.responses.create(model="m", input="hi", tools=[LOOKUP])
        with pytest.raises(openai.BadRequestError, match="No tool output found"):
            sdk.responses.create(model="m", input="and?", previous_response_id=first.id, tools=[LOOKUP])


def test_a_response_that_is_not_stored_cannot_be_gone_on_from(hello: Peer) -> None:
    """Neither with store=False, nor one of before a restart."""
    with client(hello) as sdk:
        response = sdk.responses.create(model="m", input="hi", store=False)
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(model="m", input="hi", previous_response_id=response.id)
        assert caught.value.code == "previous_response_not_found"
        with pytest.raises(openai.NotFoundError):
            sdk.responses.retrieve(response.id)


def test_a_conversation_holds_what_was_said(hello: Peer) -> None:
    """Its items are before those of each request, and it grows with each response."""
    with client(hello) as sdk:
        conversation = sdk.conversations.create()
        texts = [
            sdk.responses.create(model="m", input="hi", conversation=conversation.id).output_text
            for _ in range(3)
        ]
        assert texts == ["Hello.", "Turn 1.", "Turn 2."]
        assert len(list(sdk.conversations.items.list(conversation.id))) == 6
        sdk.conversations.delete(conversation.id)
        with pytest.raises(openai.NotFoundError):
            sdk.responses.create(model="m", input="hi", conversation=conversation.id)


def test_a_background_response_is_polled(hello: Peer) -> None:
    """It is queued at first, and ends as the plain one does."""
    with client(hello) as sdk:
        response = sdk.responses.create(model="m", input="hi", background=True)
        while response.status in ("queued", "in_progress"):
            response = sdk.responses.retrieve(response.id)
        assert (response.status, response.output_text) == ("completed", "Hello.")
        assert sdk.responses.cancel(response.id).status == "completed"
        sdk.responses.delete(response.id)
        with pytest.raises(openai.NotFoundError):
            sdk.responses.retrieve(response.id)


# --- faults ---------------------------------------------------------------------------------------------


def test_faults_strike_the_requests_they_were_planned_for(hello: Peer) -> None:
    """Once, and then the peer is well again."""
    hello.plan(Fault("status", request=2, status=429, retry_after=0.5))
    with client(hello) as sdk:
        assert sdk.responses.create(model="m", input="hi").output_text == "Hello."
        with pytest.raises(openai.RateLimitError) as caught:
            sdk.responses.create(model="m", input="hi")
        assert caught.value.response.headers["retry-after"] == "0.5"
        assert sdk.responses.create(model="m", input="hi").output_text == "Hello."


@pytest.mark.parametrize("kind", ["refuse", "lose", "truncate"])
def test_a_connection_that_breaks_is_seen_as_one(hello: Peer, kind: Any) -> None:
    """Not as an answer, and not as a status: the client cannot know what happened."""
    hello.plan(Fault(kind))
    with pytest.raises(httpx2.TransportError):
        httpx2.post(f"{hello.base_url}/responses", json={"model": "m", "input": "hi"})


def test_a_stream_that_is_cut_has_no_end(hello: Peer) -> None:
    """The events so far arrive, and then the connection breaks."""
    hello.plan(Fault("cut_stream", after=4))
    seen: list[str] = []
    with client(hello) as sdk:
        stream = sdk.responses.create(model="m", input="hi", stream=True)
        with pytest.raises((openai.APIError, httpx2.TransportError)):
            seen.extend(event.type for event in stream)
    assert len(seen) == 4
    assert "response.completed" not in seen


def test_an_answer_that_is_not_json_is_given(hello: Peer) -> None:
    """What a proxy in between answers on a bad day."""
    hello.plan(Fault("garbage"))
    response = httpx2.post(f"{hello.base_url}/responses", json={"model": "m", "input": "hi"})
    assert (response.status_code, response.text[:6]) == (200, "<html>")


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("drop_item", ["reasoning"]),
        ("duplicate_item", ["reasoning", "function_call", "function_call"]),
        ("reorder_items", ["function_call", "reasoning"]),
    ],
)
def test_output_items_are_disturbed(thinking: Peer, kind: Any, types: list[str]) -> None:
    """What a client must notice before it runs anything."""
    thinking.plan(Fault(kind))
    with client(thinking) as sdk:
        response = sdk.responses.create(model="m", input="hi", tools=[LOOKUP])
    assert [item.type for item in response.output] == types


async def test_many_requests_at_once_are_served(hello: Peer) -> None:
    """One peer serves a test suite's worth of runs."""
    async with openai.AsyncOpenAI(base_url=hello.base_url, api_key="any", max_retries=0) as sdk:
        responses = await asyncio.gather(*(sdk.responses.create(model="m", input="hi") for _ in range(40)))
    assert {response.output_text for response in responses} == {"Hello."}
    assert len({response.id for response in responses}) == 40
