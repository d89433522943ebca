"""`ptc audit serve`: the runs of one log in a browser, on the loopback interface, behind a token.

It only reads. Every answer carries the pages' content security policy; a request without the token, or for
another host name (DNS rebinding), gets nothing.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ptc.audit.query import Filter, RunSummary, runs, select
from ptc.audit.reader import files_of
from ptc.audit.verification import Verification
from ptc.audit.view.document import message_page, policy
from ptc.audit.view.listing import runs_page
from ptc.audit.view.model import run_view
from ptc.audit.view.page import run_page

COOKIE: Final = "ptc_audit"
_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_MOST: Final = 500
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class _Site:
    def __init__(self, log: Path, token: str, check: Callable[[], Verification]) -> None:
        self._log = log
        self._token = token
        self._check = check
        self._checked: tuple[object, Verification] | None = None

    def verification(self) -> Verification:
        """Of the log as it is now; done again only when a file of it has changed."""
        state = [(file, (status := file.stat()).st_size, status.st_mtime_ns) for file in files_of(self._log)]
        if self._checked is None or self._checked[0] != state:
            self._checked = (state, self._check())
        return self._checked[1]

    def admits(self, request: Request) -> bool:
        given = request.cookies.get(COOKIE, "")
        return hmac.compare_digest(given.encode(), self._token.encode())

    def home(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None and hmac.compare_digest(token.encode(), self._token.encode()):
            # The token leaves the address bar at once, and so the history and any referrer.
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        if not self.admits(request):
            return _refused()
        chosen = {name: value for name, value in request.query_params.items() if value}
        every = runs(self._log)
        found = [run for run in reversed(every) if self._fits(run, chosen)][:_MOST]
        return HTMLResponse(runs_page(self._log.name, found, len(every), chosen, self.verification()))

    def run(self, request: Request) -> Response:
        if not self.admits(request):
            return _refused()
        name = request.path_params["run"]
        found = list(select(self._log, Filter(run=name)))
        if not found:
            return HTMLResponse(message_page("No such run", f"The log has no run {name}."), status_code=404)
        return HTMLResponse(run_page(run_view(name, found), self.verification(), home="/"))

    def _fits(self, run: RunSummary, chosen: dict[str, str]) -> bool:
        if "run" in chosen and chosen["run"] not in run.run:
            return False
        if "actor" in chosen and chosen["actor"] != run.actor:
            return False
        if "status" in chosen and chosen["status"] != run.status:
            return False
        if "denied" in chosen and not run.denied:
            return False
        return "tool" not in chosen or chosen["tool"] in run.tools


def _refused() -> Response:
    message = "Open the address that `ptc audit serve` printed: it carries the token."
    return HTMLResponse(message_page("Not without the token", message), status_code=403)


class _Guard:
    """Around every answer: the host name must be this machine's, and the headers close what can be closed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        name = host.rpartition(":")[0] if ":" in host.removesuffix("]") else host

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS | {"Content-Security-Policy": policy()})
            await send(message)

        app = self._app if name in _LOCAL else Response(status_code=421)
        await app(scope, receive, guarded)


def site(log: Path, token: str, check: Callable[[], Verification]) -> Starlette:
    """The application. `check` verifies the log."""
    pages = _Site(log, token, check)
    return Starlette(
        routes=[Route("/", pages.home), Route("/run/{run:path}", pages.run)], middleware=[Middleware(_Guard)]
    )
