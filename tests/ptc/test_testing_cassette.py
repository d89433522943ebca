"""Cassettes: what is kept, what is not, and that a replay is the run that was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import ptc
from ptc.gateway.app import create_app
from ptc.gateway.peer import Peer
from ptc.testing import Cassette, CassetteError, CassetteMismatch, ScriptedModel, call, say
from ptc.testing.cleaning import Cleaner

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzb21lb25lIn0.c2lnbmF0dXJl"
KEY = "sk-proj-0123456789abcdefghij"
MODEL = ScriptedModel(call("lookup", key=KEY), say(f"The key is {KEY}."))
LOOKUP: Any = {"type": "function", "name": "lookup", "parameters": {"type": "object"}, "strict": False}


async def ask(tape: Cassette, question: str = "hi", *, stream: bool = False) -> list[str]:
    """One run of two requests; gives the text of both answers."""
    texts: list[str] = []
    items: list[Any] = [{"role": "user", "content": question}]
    async with openai.AsyncOpenAI(
        base_url="http://peer/v1", api_key=TOKEN, http_client=tape.http_client(), max_retries=0
    ) as client:
        for _ in range(2):
            response = await client.responses.create(
                model="m", input=items, tools=[LOOKUP], store=False, safety_identifier="ada@example.com"
            )
            for item in response.output:
                items.append(item.to_dict())
                if item.type == "function_call":
                    items.append({"type": "function_call_output", "call_id": item.call_id, "output": "v"})
            texts.append(response.output_text)
        if stream:
            events = await client.responses.create(model="m", input=question, tools=[LOOKUP], stream=True)
            texts += [event.type async for event in events]
    return texts


async def recorded(path: Path, **options: Any) -> list[str]:
    async with Peer(MODEL, b"key") as peer:
        transport = httpx2.ASGITransport(app=create_app(peer))
        async with Cassette.record(path, transport=transport) as tape:
            return await ask(tape, **options)


async def test_a_replay_gives_what_was_recorded(tmp_path: Path) -> None:
    """Offline, with no peer at all, streams included."""
    path = tmp_path / "run.json"
    live = await recorded(path, stream=True)
    async with Cassette.replay(path) as tape:
        assert await ask(tape, stream=True) == [text.replace(KEY, "REDACTED") for text in live]
        assert tape.left == 0


async def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    """Neither the credential of the client, nor one in a text, nor who asked; and nobody else may read it."""
    path = tmp_path / "run.json"
    await recorded(path, stream=True)
    text = path.read_text()
    for secret in (TOKEN, KEY, "ada@example.com", "http://peer", "x-stainless"):
        assert secret not in text
    assert path.stat().st_mode & 0o077 == 0


async def test_another_request_than_the_recorded_one_is_an_error_that_says_where(tmp_path: Path) -> None:
    """A test that plays another run must fail, and not pass by chance."""
    path = tmp_path / "run.json"
    await recorded(path)
    async with Cassette.replay(path) as tape:
        with pytest.raises((CassetteMismatch, openai.APIConnectionError)) as caught:
            await ask(tape, "another question")
        cause = caught.value if isinstance(caught.value, CassetteMismatch) else caught.value.__cause__
        assert isinstance(cause, CassetteMismatch)
        assert cause.path == "$.body.input[0].content"


ODD = {"method": "POST", "url": "/v1/responses", "body": {}, "status": "200", "headers": {}, "answer": 3}


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{}",
        json.dumps({"version": 99, "exchanges": []}),
        json.dumps({"version": 1, "exchanges": [ODD]}),
        json.dumps({"version": 1, "exchanges": [{**ODD, "status": 200, "answer": "", "headers": 1}]}),
    ],
)
def test_a_file_that_is_no_cassette_is_an_error(tmp_path: Path, content: str | None) -> None:
    """Missing, empty, of another kind, of another version, or with what none has recorded."""
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CassetteError):
        Cassette.replay(path)


async def test_a_run_that_is_not_the_recorded_one_is_told_where_it_differs(tmp_path: Path) -> None:
    """Not as a broken connection, which would be tried again and say nothing."""
    path = tmp_path / "run.json"

    async def run(tape: Cassette, question: str) -> str:
        async with openai.AsyncOpenAI(
            base_url="http://peer/v1", api_key="k", http_client=tape.http_client()
        ) as client:
            return (await ptc.Runner(client=client, model="m").run(question)).output_text

    async with Peer(ScriptedModel(say("Hello.")), b"key") as peer:
        transport = httpx2.ASGITransport(app=create_app(peer))
        async with Cassette.record(path, transport=transport) as tape:
            assert await run(tape, "hi") == "Hello."
    async with Cassette.replay(path) as tape:
        with pytest.raises(CassetteMismatch, match=r"differ at \$\.body\.input\[0\]\.content"):
            await run(tape, "ho")
        assert await run(tape, "hi") == "Hello."


async def test_a_text_that_utf_8_cannot_write_is_kept_as_it_came(tmp_path: Path) -> None:
    """Half of a surrogate pair is legal JSON, and models send it."""
    path = tmp_path / "run.json"
    answer = httpx2.Response(200, content=b'{"text": "a\\ud83d", "more": "\xc3\xa4"}')
    said = b'{"input": "b\\udc00"}'
    async with Cassette.record(path, transport=httpx2.MockTransport(lambda _: answer)) as tape:
        live = await tape.http_client().post("http://peer/v1/responses", content=said)
    async with Cassette.replay(path) as tape:
        replayed = await tape.http_client().post("http://peer/v1/responses", content=said)
    assert replayed.json() == live.json() == {"text": "a\ud83d", "more": "ä"}


@pytest.mark.parametrize(
    "secret",
    [
        {"metadata": {"password": "hunter2"}},
        {"metadata": {"otp": 123456}},
        {"input": "my key is AKIAIOSFODNN7EXAMPLE"},
        {"input": "password: hunter2hunter2"},
        {"input": "ann@example.com pays with 4111 1111 1111 1111"},
        {"input": [{"type": "function_call", "arguments": '{"password": "hunter2", "x": 1}'}]},
    ],
    ids=str,
)
def test_what_the_audit_record_would_redact_is_not_kept(secret: Any) -> None:
    """By name or by shape; cleaning twice changes nothing more, or a replay would not match."""
    cleaner = Cleaner(lambda text: text)
    cleaned = cleaner.value(secret)
    shown = json.dumps(cleaned)
    hidden = ("hunter2", "123456", "AKIAIOSFODNN7EXAMPLE", "ann@", "4111")
    assert not any(part in shown for part in hidden)
    assert cleaner.value(cleaned) == cleaned


AWS = "AKIAIOSFODNN7EXAMPLE"
ACCOUNT = "AccountKey=abcdefghijklmnopqrstuvwx0123456789=="


@pytest.mark.parametrize("secret", [KEY, AWS, TOKEN, ACCOUNT])
async def test_a_secret_that_is_streamed_in_pieces_is_not_kept(tmp_path: Path, secret: str) -> None:
    """Each delta may hold a part that looks like nothing; what a client makes of a replay has none of it."""

    @ptc.tool
    def lookup(key: str) -> str:
        """Look a key up."""
        return key

    said = f"The key is {secret}, keep it."
    path = tmp_path / "run.json"
    script = ScriptedModel(call("lookup", key=secret), say(said))
    async with Peer(script, b"key") as peer:
        transport = httpx2.ASGITransport(app=create_app(peer))
        async with Cassette.record(path, transport=transport) as tape:
            await streamed(tape, lookup)
    kept = json.loads(path.read_text())["exchanges"]
    told = [
        json.loads(line.removeprefix("data: "))
        for exchange in kept
        for line in exchange["answer"].split("\n")
        if line.startswith("data: {")
    ]
    deltas = "".join(str(event["delta"]) for event in told if "delta" in event)
    assert secret not in path.read_text()
    assert secret[:8] not in path.read_text().replace("AccountKey", "")
    assert secret[4:] not in deltas
    async with Cassette.replay(path) as tape:
        text, result = await streamed(tape, lookup)
        assert text == result.output_text
        assert (text.startswith("The key is "), text.endswith(", keep it.")) == (True, True)


async def streamed(tape: Cassette, *tools: Any) -> tuple[str, Any]:
    """The deltas of a run's answer, and its result."""
    text = ""
    async with openai.AsyncOpenAI(
        base_url="http://peer/v1", api_key="any", http_client=tape.http_client(), max_retries=0
    ) as client:
        runner = ptc.Runner(client=client, model="m", tools=tools)
        async with runner.stream("Look it up.") as events:
            async for event in events:
                text += event.text if isinstance(event, ptc.TextDelta) else ""
    return text, events.result


def test_events_without_a_secret_are_kept_as_they_came() -> None:
    """Pieces that are nothing stay pieces, of each text for itself."""
    events = [
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": "AKIA"},
        {
            "type": "response.output_text.delta",
            "item_id": "m2",
            "output_index": 1,
            "delta": "IOSFODNN7EXAMPLE",
        },
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "delta": " is a prefix"},
    ]
    text = "\n\n".join(f"data: {json.dumps(event)}" for event in events) + "\n\ndata: [DONE]\n\n"
    assert Cleaner(lambda text: text).events(text) == text


async def test_a_cassette_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """As an error of ours, which names the file."""
    with pytest.raises(CassetteError, match="nowhere"):
        async with Cassette.record(tmp_path / "nowhere" / "run.json"):
            pass


def test_cleaning_keeps_what_is_no_secret_and_the_form_of_the_rest() -> None:
    """The arguments of a call stay JSON that fits its schema; counted tokens are no secret."""
    plain = {
        "usage": {"input_tokens": 12},
        "id": "resp_0123456789abcdef",
        "text": "the secret of life",
        "n": None,
    }
    cleaner = Cleaner(lambda text: text)
    assert cleaner.value(plain) == plain
    arguments = cleaner.text('{"password": "hunter2", "otp": 123456, "x": [1, {"y": "z"}]}')
    assert json.loads(arguments) == {"password": "REDACTED", "otp": 0, "x": [1, {"y": "z"}]}
