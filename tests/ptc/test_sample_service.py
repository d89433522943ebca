"""The service sample over HTTP: many clients at once, streams, and clients that go away."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ptc.audit.reader import records

ROOT = Path(__file__).parents[2]
SERVE = """
import asyncio, json, socket, sys, uvicorn
sys.path.insert(0, sys.argv[1])
from app import app
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
config = uvicorn.Config(app, log_level="warning", access_log=False)
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
asyncio.run(Server(config).serve(sockets=[listener]))
"""


class Service:
    """The sample behind uvicorn, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.audit = directory / "audit.db"
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "SERVICE_AUDIT": str(self.audit)}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SERVE, str(ROOT / "samples" / "service")],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        select.select([self.process.stdout], [], [], 60)
        said = self.process.stdout.readline()
        assert said, self.process.stderr.read().decode()
        self.url = f"http://127.0.0.1:{json.loads(said)['port']}"

    def stop(self) -> str:
        """End it as an operator does; gives what it complained of."""
        self.process.terminate()
        _, complaints = self.process.communicate(timeout=60)
        return complaints.decode()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("service"))
    try:
        yield running
    finally:
        complaints = running.stop()
    assert complaints == ""


def client(service: Service) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=200)
    return httpx2.AsyncClient(base_url=service.url, timeout=100, limits=limits)


async def events_of(response: httpx2.Response) -> list[tuple[str, Any]]:
    events: list[tuple[str, Any]] = []
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            events.append((name, json.loads(line.removeprefix("data: "))))
    return events


async def until_idle(http: httpx2.AsyncClient) -> None:
    """Until no run goes on: the service itself says so."""
    async with asyncio.timeout(60):
        while (await http.get("/healthz")).json()["running"]:
            pass


async def test_a_hundred_clients_at_once_get_their_answers(service: Service) -> None:
    """One runner and one sandbox serve them all; half of them stream."""

    async def whole(http: httpx2.AsyncClient) -> str:
        response = await http.post("/ask", json={"question": "How many units are in stock?"})
        assert response.status_code == 200, response.text
        return str(response.json()["answer"])

    async def streamed(http: httpx2.AsyncClient) -> str:
        async with http.stream("POST", "/ask/stream", json={"question": "How many?"}) as response:
            events = await events_of(response)
        assert "".join(data["delta"] for name, data in events if name == "text") == events[-1][1]["answer"]
        return str(events[-1][1]["answer"])

    async with client(service) as http:
        answers = await asyncio.gather(*(ask(http) for _ in range(50) for ask in (whole, streamed)))
        assert set(answers) == {"73 units are in stock."}
        assert len(answers) == 100
        await until_idle(http)


async def test_a_stream_tells_of_calls_without_what_is_in_them(service: Service) -> None:
    """The names and how they ended; never arguments, results or the program."""
    question = {"question": "How many?"}
    async with client(service) as http, http.stream("POST", "/ask/stream", json=question) as response:
        events = await events_of(response)
    assert [data["tool"] for name, data in events if name == "call"].count("get_stock") == 2
    assert {data["status"] for name, data in events if name == "called"} == {"success"}
    assert "await" not in json.dumps(events)


async def test_a_run_that_fails_is_told_by_its_code_alone(service: Service) -> None:
    """Whole or streamed; the error's text may name what is inside."""
    question = {"question": "Is there an outage?"}
    async with client(service) as http:
        whole = await http.post("/ask", json=question)
        async with http.stream("POST", "/ask/stream", json=question) as response:
            events = await events_of(response)
    assert (whole.status_code, whole.json()) == (502, {"error": {"code": "response_failed"}})
    assert events[-1] == ("error", {"code": "response_failed"})


async def test_a_client_that_leaves_a_stream_ends_its_run(service: Service) -> None:
    """The tool would take an hour. It is cancelled, and its audit record says so."""
    async with client(service) as http:
        async with http.stream("POST", "/ask/stream", json={"question": "Wait for a delivery"}) as response:
            async for line in response.aiter_lines():
                if "wait_for_delivery" in line:
                    break
        await until_idle(http)


async def test_a_client_that_does_not_wait_for_its_answer_ends_its_run(service: Service) -> None:
    """The same for the plain request, which is cut at the client's own time limit."""
    async with client(service) as http:
        asked = asyncio.create_task(http.post("/ask", json={"question": "Wait for a delivery"}))
        async with asyncio.timeout(60):
            while not (await http.get("/healthz")).json()["running"]:
                pass
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await until_idle(http)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"question": 1}',
        b'{"question": ["x"]}',
        b'{"question": ""}',
        b'{"query": "x"}',
        b'{"question": "\\ud800"}',
        b'{"question": "\xff"}',
        b'{"question": ' + b"[" * 20_000,
        b'{"question": "x", "more": "' + b"x" * 2_000_000 + b'"}',
    ],
    ids=lambda body: str(body[:20]),
)
async def test_a_bad_question_is_refused(service: Service, body: bytes) -> None:
    """Before anything is asked of a model."""
    async with client(service) as http:
        for path in ("/ask", "/ask/stream"):
            response = await http.post(path, content=body)
            assert (response.status_code, response.json()["error"]["code"]) == (422, "bad_question")


def test_the_audit_of_a_service_that_was_stopped_has_an_end_for_every_call(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Stopped in the middle of a read: it ends as cancelled, the record is closed, nothing complains."""
    service = Service(tmp_path_factory.mktemp("stopped"))
    try:
        with closing(httpx2.Client(base_url=service.url, timeout=60)) as http:
            with http.stream("POST", "/ask/stream", json={"question": "Wait for a delivery"}) as response:
                next(line for line in response.iter_lines() if "wait_for_delivery" in line)
            while http.get("/healthz").json()["running"]:
                pass
    finally:
        complaints = service.stop()
    assert complaints == ""
    kinds = [(record["type"], record.get("outcome", {}).get("status")) for record in records(service.audit)]
    started = [kind for kind, _ in kinds if kind == "tool.started"]
    finished = [status for kind, status in kinds if kind == "tool.finished"]
    assert len(started) == len(finished) == 2
    assert "cancelled" in finished
