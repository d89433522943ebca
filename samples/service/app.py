"""A web service with a runner in it: one runner and one sandbox for all requests, answers whole or streamed.

A run whose call needs an approval waits in the store, also while the service is not there; /approvals asks.
It is for those who may decide: put your sign-in before it, and say who it was in `by=`.

    uvicorn --app-dir samples/service app:app          needs no account: see inventory_demand.py
    curl -N localhost:8000/ask/stream -d '{"question": "How many units are left?"}'
    curl localhost:8000/ask -d '{"question": "Please order 5 units."}'      and then look at localhost:8000/approvals

The lifespan owns what is expensive; a request owns its run alone. When a client goes away, its run is
cancelled: the tool that is running is told, its audit record is closed, and nothing goes on without a reader.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

import ptc

SCRIPT = Path(__file__).with_name("script.py")
AUDIT = os.environ.get("SERVICE_AUDIT", "audit-service.db")
HOSTS = os.environ.get("SERVICE_HOSTS", "localhost,127.0.0.1").split(",")
"""Names that this service goes by. A page elsewhere that points its own name at us is refused."""
MAX_QUESTION = 4_000
MAX_BODY = 32_000
MAX_FORM = 8_000
T = TypeVar("T")


@dataclass
class Stock:
    sku: str
    units: int


@ptc.tool(effects="read", allowed_callers=["programmatic"])
async def get_stock(sku: str) -> Stock:
    """The units of a SKU in stock."""
    await anyio.sleep(0.01)  # a database, say
    return Stock(sku, {"a": 40, "b": 33}.get(sku, 0))


@ptc.tool(effects="read", allowed_callers=["programmatic"])
async def wait_for_delivery(sku: str) -> Stock:
    """Wait until a delivery of a SKU has come."""
    await anyio.sleep(3600)
    return Stock(sku, 100)


@ptc.tool(effects="write", approval="always", allowed_callers=["programmatic"])
async def order_delivery(sku: str, units: int, note: str = "") -> str:
    """Order units of a SKU. Somebody has to approve it."""
    return f"ordered {units} of {sku}"


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with (
        ptc.connect(script=f"{SCRIPT}:model") as service,
        ptc.Sandbox() as sandbox,
        ptc.AuditLog(AUDIT) as audit,
        ptc.SQLiteRunStore(audit) as store,
        anyio.create_task_group() as group,
    ):
        app.state.runner = ptc.Runner(
            client=service.client,
            model=service.model,
            tools=[get_stock, wait_for_delivery, order_delivery],
            programs="local",
            sandbox=sandbox,
            audit=audit,
            store=store,
            approver=ptc.PauseForApproval(),
        )
        app.state.running = 0
        app.state.desk = Desk()
        app.state.store = store
        for info in await store.runs(status="paused"):  # they waited while the service was not there
            await go_on(app, info.run_id)
        for info in await store.runs(status="running"):  # cut off with it; who asked looks at /runs/ID
            group.start_soon(go_on, app, info.run_id)
        yield
        await store.aclose()  # nothing is kept from here on: what still goes on the next service goes on with
        group.cancel_scope.cancel()


async def go_on(app: Starlette, run_id: str) -> None:
    """With a run that nobody waits for. One that cannot go on here, with these tools, lies in the store as it was."""
    app.state.running += 1
    try:
        app.state.desk.take(await app.state.runner.recover(run_id))
    except ptc.PtcError as error:
        logging.getLogger("service").info("run %s does not go on: %s", run_id, error.code)
    finally:
        app.state.running -= 1


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
    request.app.state.desk.take(result)
    if result.status == "paused":
        return JSONResponse({"status": "waiting", "run_id": result.run_id, "approvals": "/approvals"}, 202)
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
                        if isinstance(event, ptc.RunFinished):
                            request.app.state.desk.take(event.result)
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
        case ptc.RunFinished() if event.result.status == "paused":
            return "waiting", {"run_id": event.result.run_id, "approvals": "/approvals"}
        case ptc.RunFinished():
            return "answer", {"answer": event.result.output_text, "run_id": event.result.run_id}
    return None


async def read_question(request: Request) -> str:
    body = await read_body(request, MAX_BODY)
    try:
        question = json.loads(body)["question"]
        question.encode()  # half of a surrogate pair is no text
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        question = None
    if not isinstance(question, str) or not 0 < len(question) <= MAX_QUESTION:
        raise BadQuestion
    return question


async def read_body(request: Request, most: int) -> bytes:
    """A body of at most so many bytes; nothing of a longer one, of which no more is read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return b""
    return body


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


class Desk:
    """The calls that wait for somebody, by run, and the answers that somebody looked up."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[ptc.ApprovalRequest, ...]] = {}
        self.answers: dict[str, str] = {}
        self._secret = secrets.token_bytes(32)

    def take(self, result: ptc.RunResult[object]) -> None:
        self.waiting.pop(result.run_id, None)
        if result.status == "paused":
            self.waiting[result.run_id] = result.approvals

    def find(self, run_id: str, call_id: str) -> ptc.ApprovalRequest | None:
        asked = self.waiting.get(run_id, ())
        return next((request for request in asked if request.call_id == call_id), None)

    def token(self, visitor: str, run_id: str, request: ptc.ApprovalRequest) -> str:
        """What a form must carry: it is for one visitor of our page, and for the call just as it was shown."""
        bound = json.dumps([visitor, run_id, request.binding]).encode()
        return hmac.new(self._secret, bound, hashlib.sha256).hexdigest()


async def approvals(request: Request) -> Response:
    """The page: every call that waits, whole, with a form."""
    desk: Desk = request.app.state.desk
    visitor = request.cookies.get("visitor") or secrets.token_urlsafe(24)
    rows = [row(desk, visitor, run_id, asked) for run_id, one in desk.waiting.items() for asked in one]
    body = "".join(rows) or "<p>Nothing waits for a decision.</p>"
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>Approvals</title><style>{STYLE}</style>"
    response = HTMLResponse(f"{page}<main><h1>Approvals</h1>{body}</main></html>", headers=PAGE_HEADERS)
    response.set_cookie("visitor", visitor, path="/approvals", httponly=True, samesite="strict")
    return response


def row(desk: Desk, visitor: str, run_id: str, asked: ptc.ApprovalRequest) -> str:
    """One call. What a model wrote is text: escaped, and in ASCII, so that no control hides a part of it."""
    arguments = escape(json.dumps(asked.arguments, indent=2))
    caller = "a program" if isinstance(asked.caller, ptc.Program) else "the model"
    hidden = {"run": run_id, "call": asked.call_id, "token": desk.token(visitor, run_id, asked)}
    fields = "".join(
        f'<input type=hidden name="{name}" value="{escape(text)}">' for name, text in hidden.items()
    )
    return (
        f"<article><h2>{escape(ascii(asked.name)[1:-1])}</h2><p>Called by {caller}: {escape(asked.reason)}.</p>"
        f"<pre>{arguments}</pre><form method=post action=/approvals>{fields}"
        "<label>Reason, if you deny it <input name=reason maxlength=500></label>"
        "<button name=decision value=approve>Approve</button> <button name=decision value=deny>Deny</button>"
        "</form></article>"
    )


async def decide(request: Request) -> Response:
    """One decision, from our own page; the run goes on with it."""
    desk: Desk = request.app.state.desk
    form = await read_form(request)
    run_id, call_id = form.get("run", ""), form.get("call", "")
    asked = desk.find(run_id, call_id)
    if asked is None:
        return HTMLResponse("<p>That call waits no more.", 409, headers=PAGE_HEADERS)
    origin = request.headers.get("origin")
    ours = origin is None or origin == f"{request.url.scheme}://{request.headers.get('host')}"
    token = desk.token(request.cookies.get("visitor", ""), run_id, asked)
    if not ours or not hmac.compare_digest(form.get("token", "").encode(), token.encode()):
        return HTMLResponse("<p>That did not come from our page as it is now.", 403, headers=PAGE_HEADERS)
    decisions: dict[str, ptc.Decision] = {
        "approve": ptc.Approve(by="approvals page"),
        "deny": ptc.Deny(form.get("reason") or "the call was not approved", by="approvals page"),
    }
    decision = decisions.get(form.get("decision", ""))
    if decision is None:
        return HTMLResponse("<p>Approve it or deny it.", 422, headers=PAGE_HEADERS)
    try:
        with counted(request) as runner:
            result = await runner.recover(run_id, decisions={call_id: decision})
    except ptc.RunLeased:
        return HTMLResponse("<p>Somebody has just decided about that run.", 409, headers=PAGE_HEADERS)
    desk.take(result)  # the answer is in the store; yours goes to whoever asked, by mail, say
    return RedirectResponse("/approvals", 303)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a small form; empty where it is none."""
    body = await read_body(request, MAX_FORM)
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        return {}
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


async def answer(request: Request) -> Response:
    """What came of a run that had to wait, or was cut off: also of one that an earlier service ended."""
    desk: Desk = request.app.state.desk
    run_id = request.path_params["run_id"]
    if run_id not in desk.waiting and run_id not in desk.answers:
        infos = [info for info in await request.app.state.store.runs() if info.run_id == run_id]
        if not infos:
            return JSONResponse({"error": {"code": "run_unknown"}}, 404)
        if infos[0].status != "completed":
            return JSONResponse({"status": infos[0].status, "run_id": run_id})
        result = await request.app.state.runner.recover(run_id)  # it tells its answer, and runs nothing
        desk.answers[run_id] = result.output_text
    if run_id in desk.waiting:
        return JSONResponse({"status": "waiting", "run_id": run_id})
    return JSONResponse({"status": "answered", "run_id": run_id, "answer": desk.answers[run_id]})


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;background:#f6f6f4;color:#1a1a1a;margin:0}"
    "main{max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "article{background:#fff;border:1px solid #d8d8d4;border-radius:6px;padding:1rem 1.25rem;margin:1rem 0}"
    "h2{margin:0;font-size:1.1rem}pre{background:#f0f0ee;padding:.75rem;overflow-x:auto;white-space:pre-wrap}"
    "input:not([type=hidden]){display:block;width:100%;box-sizing:border-box;margin:.25rem 0 .75rem;padding:.4rem}"
    "button{padding:.4rem 1.2rem;font:inherit}"
)


def _hash_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


PAGE_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_hash_of(STYLE)}'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}


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
        Route("/approvals", approvals, methods=["GET"]),
        Route("/approvals", decide, methods=["POST"]),
        Route("/runs/{run_id}", answer),
        Route("/healthz", health),
    ],
    middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
    lifespan=lifespan,
    exception_handlers={BadQuestion: bad_question, ptc.PtcError: failed},
)
