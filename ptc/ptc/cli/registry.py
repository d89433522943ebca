"""`ptc registry`: serve a registry of tools, make keys for it, provide a toolset, and look at what is there.

It only parses and prints; the registry is `ptc.registry`. A key is shown once, when it is made, and read from
the environment afterwards, so that it stands in no process list.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ptc.cli import console
from ptc.cli.loading import load
from ptc_tools.errors import PtcError

if TYPE_CHECKING:
    from ptc.registry.client import HttpRegistry

KEY: Final = "PTC_REGISTRY_KEY"
USAGE: Final = 2

app = typer.Typer(
    help=(
        "Serve a registry of tools, make keys for it, provide toolsets.\n\nUse it where tools change without their"
        " consumers: providers publish, runs read at each step.\n\n\b\nExamples:\n"
        "  ptc registry key publisher records-team --toolsets 'records*' --add-to keys.txt\n"
        "  ptc registry key consumer assistant --add-to keys.txt\n"
        "  ptc registry serve --db registry.db --keys keys.txt --port 8765\n"
        "  PTC_REGISTRY_KEY=… ptc registry provide mytools:RECORDS --url http://127.0.0.1:8765 --version 1.0.0\n"
        "  PTC_REGISTRY_KEY=… ptc registry list --url http://127.0.0.1:8765"
    ),
    no_args_is_help=True,
)

Url = Annotated[str, typer.Option("--url", metavar="URL", help="The registry's address.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="Send the key over http:// to another machine.")]


@app.command("serve")
def serve_registry(
    keys: Annotated[Path, typer.Option("--keys", help="The keys' file; see `ptc registry key`.")],
    db: Annotated[
        Path, typer.Option("--db", help="The registry's database; made if it is not there.")
    ] = Path("registry.db"),
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; put a TLS proxy before others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 for any free one.")] = 8765,
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", min=1, help="Calls of one toolset that may wait for a provider.")
    ] = 1_000,
) -> None:
    """Serve a registry until interrupted. It prints its address as the only line of standard output.

    Use it where the tools of several providers are to be found by several applications. Registrations and
    calls stand in the database and survive a restart. The file of keys is read again when it changes, so
    removing a line locks its key out.

    \b
    Example:
      ptc registry serve --db registry.db --keys keys.txt --port 8765
    """
    from ptc.registry.serving import serve

    try:
        asyncio.run(serve(db, keys, host=host, port=port, max_waiting=max_waiting, ready=_print))
    except KeyboardInterrupt:
        raise typer.Exit from None
    except PtcError as error:
        _fail(error)


@app.command("key")
def make_key(
    role: Annotated[str, typer.Argument(metavar="publisher|consumer")],
    name: Annotated[str, typer.Argument(help="Whose key it is; a toolset belongs to its publisher's name.")],
    toolsets: Annotated[
        str, typer.Option("--toolsets", help="Names or patterns, with commas between them.")
    ] = "*",
    add_to: Annotated[
        Path | None, typer.Option("--add-to", metavar="FILE", help="Add the line to this file of keys.")
    ] = None,
) -> None:
    """Make a key: it is printed once, on standard output; the file has its hash alone.

    Use it for each publisher and each consumer, so that one can be locked out by removing its line.

    \b
    Examples:
      ptc registry key publisher records-team --toolsets 'records,records-*' --add-to keys.txt
      ptc registry key consumer assistant
    """
    from ptc.registry.keys import new_key

    try:
        if role not in ("publisher", "consumer"):
            raise typer.BadParameter("a key is a publisher's or a consumer's")
        text, key = new_key(role, name, toolsets.split(","))  # type: ignore[arg-type]
        if add_to is not None:
            with os.fdopen(os.open(add_to, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
                file.write(key.line() + "\n")
        else:
            console.stderr().print(console.text(f"line for the file of keys: {key.line()}"))
    except PtcError as error:
        _fail(error)
    except OSError as error:
        console.complain(f"{add_to}: {error.strerror}")
        raise typer.Exit(USAGE) from None
    _print(text)


@app.command("provide")
def provide_toolset(
    name: Annotated[str, typer.Argument(metavar="MODULE:ATTR", help="A ptc.Toolset.")],
    url: Url,
    version: Annotated[str, typer.Option("--version", help="The version that its consumers see.")],
    revision: Annotated[
        str | None,
        typer.Option("--revision", help="The deployment: replicas that share it share a registration."),
    ] = None,
    max_concurrent: Annotated[int, typer.Option("--max-concurrent", min=1, help="Calls at once.")] = 16,
    insecure: Insecure = False,
) -> None:
    """Publish a toolset and serve its calls, until interrupted or replaced. The key is in PTC_REGISTRY_KEY.

    Use it as the process of a provider, in as many replicas as you like with one --revision. Without
    --revision each start is a new registration: calls that were chosen before it are refused.

    \b
    Example:
      PTC_REGISTRY_KEY=… ptc registry provide mytools:RECORDS --url http://127.0.0.1:8765 --version 1.4.0
    """
    from ptc.registry.provider import Provider
    from ptc_tools.toolset import Toolset

    async def run(toolset: Toolset) -> None:
        async with (
            _client(url, insecure) as registry,
            Provider(
                registry,
                toolset.export(version=version),
                revision=revision,
                max_concurrent=max_concurrent,
                on_trouble=lambda error: console.complain(error.message),
            ) as provider,
        ):
            _print(f"{toolset.name} {version} {provider.token}")
            await provider.serving()
        console.complain(
            f"{toolset.name} was replaced by another registration, and none of its calls is left"
        )

    try:
        toolset = load(name, "MODULE:ATTR")
        if not isinstance(toolset, Toolset):
            console.complain(f"{name} is {type(toolset).__name__!r}: name a ptc.Toolset")
            raise typer.Exit(USAGE)
        asyncio.run(run(toolset))
    except KeyboardInterrupt:
        raise typer.Exit from None
    except PtcError as error:
        _fail(error)


@app.command("list")
def list_toolsets(url: Url, insecure: Insecure = False) -> None:
    """List what is registered now: name, version and token. The key is in PTC_REGISTRY_KEY.

    Use it to see what a run would be offered, and whether a key works.

    \b
    Example:
      PTC_REGISTRY_KEY=… ptc registry list --url http://127.0.0.1:8765
    """

    async def run() -> None:
        async with _client(url, insecure) as registry:
            for info in await registry.list_toolsets():
                _print(f"{info.name} {info.version} {info.token}")

    try:
        asyncio.run(run())
    except PtcError as error:
        _fail(error)


def _client(url: str, insecure: bool) -> HttpRegistry:
    from ptc.errors import ConfigurationError
    from ptc.registry.client import HttpRegistry

    key = os.environ.get(KEY)
    if not key:
        raise ConfigurationError(f"set {KEY} to the key that `ptc registry key` printed")
    return HttpRegistry(url, key=key, insecure=insecure)


def _fail(error: PtcError) -> None:
    console.complain(error.message)
    raise typer.Exit(USAGE)


def _print(text: str) -> None:
    sys.stdout.write(console.visible(text) + "\n")
    sys.stdout.flush()
