"""`ptc audit view` and `serve`: runs as pages for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptc.cli.audit_options import Anchors, Keys, Log, TrustedKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptc.audit.verification import Verification


def view(
    log: Log,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run id.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write; a new file.")],
    key: TrustedKeys = None,
    anchor: Anchors = None,
    keys: Keys = None,
) -> None:
    """Write one run as a self-contained page.

    Use it to send a run to somebody who has only a browser.

    \b
    Example:
      ptc audit view audit.db run_4f0c… -o run.html
    """
    from ptc.audit.errors import RecordNotFound
    from ptc.audit.query import Filter, select
    from ptc.audit.view.model import run_view
    from ptc.audit.view.page import run_page
    from ptc.cli.audit_options import create
    from ptc_tools.command_line import ptc_command

    found = list(select(log, Filter(run=run)))
    if not found:
        raise RecordNotFound(
            f"{log} has no record of the run {run!r}; `{ptc_command()} audit show {log}` lists the runs"
        )
    page = run_page(run_view(run, found), _check(log, key, anchor, keys)())
    with create(output) as stream:
        stream.write(page)
    typer.echo(f"wrote {output}")


def serve(
    log: Log,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 0,
    key: TrustedKeys = None,
    anchor: Anchors = None,
    keys: Keys = None,
) -> None:
    """Show the log in a browser: on this machine alone, at the address it prints.

    Use it to browse many runs. End it with Ctrl-C.

    \b
    Examples:
      ptc audit serve audit.db
      ptc audit serve audit.db --port 8080
    """
    import secrets
    import socket

    import uvicorn

    from ptc.audit.errors import InvalidAuditConfig
    from ptc.audit.reader import files_of
    from ptc.audit.view.server import site

    files_of(log)
    token = secrets.token_urlsafe(24)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # before the address is printed: whoever reads it may ask at once
    except OSError as error:
        listener.close()
        raise InvalidAuditConfig(
            f"port {port} cannot be used ({error.strerror}): choose another with --port"
        ) from None
    typer.echo(f"http://127.0.0.1:{listener.getsockname()[1]}/?token={token}")
    app = site(log, token, _check(log, key, anchor, keys))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False))
    with listener:
        server.run(sockets=[listener])


def _check(
    log: Path, key: list[str] | None, anchor: list[Path] | None, keys: Path | None
) -> Callable[[], Verification]:
    from ptc.audit.verify import verify
    from ptc.cli.audit_options import read_anchors, verifier_for

    trusted = None if key else verifier_for(keys)
    return lambda: verify(log, verifier_keys=key or (), verifier_for=trusted, anchors=read_anchors(anchor))
