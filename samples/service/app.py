"""A web service with a runner in it: one runner and one sandbox for all requests, answers whole or streamed.

    uvicorn --app-dir samples/service app:app          needs no account: see inventory_demand.py
    curl -N localhost:8000/ask/stream -d '{"question": "How many units are left?"}'

The lifespan owns what is expensive; a request owns its run alone. When a client goes away, its run is
cancelled: the tool that is running is told, its audit record is closed, and nothing goes on without a reader.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import ptc

SCRIPT = Path(__file__).with_name("script.py")
AUDIT = os.environ.get("SERVICE_AUDIT", "audit-service.db")
MAX_QUESTION = 4_000
T = TypeVar("T")


@dataclass
class Stock:
    sku: str
    units: int


@ptc.tool(allowed_callers=["programmatic"])
async def get_stock(sku: str) -> Stock:
    """The units of a SKU in stock."""
    await anyio.sleep(0.01)  # a database, say
    return Stock(sku, {"a": 40, "b": 33}.get(sku, 0))


@ptc.tool(allowed_callers=["programmatic"])
async def wait_for_delivery(sku: str) -> Stock:
    """Wait until a delivery of a SKU has come."""
    await anyio.sleep(3600)
    return Stock(sku, 100)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with (
        ptc.connect(script=f"{SCRIPT}:model") as service,
        ptc.Sandbox() as sandbox,
        ptc.AuditLog(AUDIT) as audit,
    ):
        app.state.runner = ptc.Runner(
            client=service.client,
            model=service.model,
            tools=[get_stock, wait_for_delivery],
            programs="local",
            sandbox=sandbox,
            audit=audit,
        )
        app.state.running = 0
        yield


@contextmanager
def counted(request: Request) -> Iterator[ptc.Runner]:
    """The runner, for one run, which is counted while it goes on."""
    request.app.state.running += 1
    try:
        yield request.app.state.runner
    finally:
        request.app.state.running -= 1


async def ask(request: Request) -> Response:
    """The answer, when it is there."""
    question = await read_question(request)
    with counted(request) as runner:
        result = await while_connected(request, runner.run(question))
    if result is None:
        return Response(status_code=499)
    calls = [report.call.qualified_name for report in result.calls]
    return JSONResponse({"answer": result.output_text, "run_id": result.run_id, "calls": calls})


async def ask_stream(request: Request) -> Response:
    """What happens on the way, and then the answer, as server-sent events."""
    question = await read_question(request)

    async def events() -> AsyncIterator[str]:
        with counted(request) as runner:
            # Leaving this block ends the run, and a client that goes away makes us leave it.
            async with runner.stream(question) as run:
                try:
                    async for event in run:
                        if (told := tell(event)) is not None:
                            yield f"event: {told[0]}\ndata: {json.dumps(told[1])}\n\n"
                except ptc.PtcError as error:
                    yield f"event: error\ndata: {json.dumps({'code': error.code})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


def tell(event: ptc.RunEvent) -> tuple[str, object] | None:
    """What a client is told of an event: never arguments, results or code, which may not be for it."""
    match event:
        case ptc.TextDelta(phase="final_answer" | None):
            return "text", {"delta": event.text}
        case ptc.CallStarted():
            return "call", {"tool": event.call.qualified_name}
        case ptc.CallFinished():
            return "called", {"tool": event.report.call.qualified_name, "status": event.report.outcome.status}
        case ptc.RunFinished():
            return "answer", {"answer": event.result.output_text, "run_id": event.result.run_id}
    return None


async def read_question(request: Request) -> str:
    try:
        question = json.loads(await request.body())["question"]
    except (ValueError, KeyError, TypeError):
        question = None
    if not isinstance(question, str) or not 0 < len(question) <= MAX_QUESTION:
        raise BadQuestion
    return question


class BadQuestion(Exception):
    """The body is not `{"question": "…"}`."""


async def while_connected(request: Request, work: Awaitable[T]) -> T | None:
    """The result of `work`, or None: it is cancelled when the client goes away."""
    result: T | None = None
    failed: ptc.PtcError | None = None

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            result = await work
        except ptc.PtcError as error:  # kept out of the group, which would wrap it
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return result


async def bad_question(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": {"code": "bad_question", "message": str(BadQuestion.__doc__)}}, 422)


async def failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, ptc.PtcError)
    return JSONResponse({"error": {"code": error.code}}, 502)  # the text may name what is inside


async def health(request: Request) -> Response:
    return JSONResponse({"status": "ok", "running": request.app.state.running})


app = Starlette(
    routes=[
        Route("/ask", ask, methods=["POST"]),
        Route("/ask/stream", ask_stream, methods=["POST"]),
        Route("/healthz", health),
    ],
    lifespan=lifespan,
    exception_handlers={BadQuestion: bad_question, ptc.PtcError: failed},
)
