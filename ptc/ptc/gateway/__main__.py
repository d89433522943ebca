"""`python -m ptc.gateway --script module:attr`: the peer on a loopback port, announced on standard output.

It serves the loopback interface alone and takes no code from clients other than the programs that its own
script writes. With `--with-parent` it ends when its standard input does, so that none is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import os
import shutil
import socket
import sys
from pathlib import Path

import uvicorn

from ptc.gateway.app import create_app
from ptc.gateway.faults import Fault
from ptc.gateway.peer import Peer, Settings
from ptc.gateway.script import Script
from ptc.gateway.seal import load_key
from ptc_tools.errors import PtcError

API_KEY_VARIABLE = "PTC_PEER_API_KEY"


class BadScript(PtcError):
    """The script named on the command line cannot be loaded. The text says why."""

    code = "bad_script"


def load_script(name: str) -> Script:
    """The script of `module:attr` or `path/to/file.py:attr`; raises `BadScript`."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise BadScript(f"--script {name!r}: write module:attr, or path/to/file.py:attr")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location("ptc_peer_script", Path(place).resolve())
            if spec is None or spec.loader is None:
                raise ImportError(f"cannot load {place}")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        script: Script = getattr(module, attribute)
    except (ImportError, OSError, SyntaxError, AttributeError) as error:
        raise BadScript(f"--script {name!r}: {error}") from error
    if not hasattr(script, "next_turn"):
        raise BadScript(f"--script {name!r} is a {type(script).__name__}, not a script (see ScriptedModel)")
    return script


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        peer = Peer(
            load_script(options.script),
            load_key(options.state_dir),
            settings=Settings(
                api_key=os.environ.pop(API_KEY_VARIABLE, None),
                programs=not options.no_programs,
                tool_search=not options.no_tool_search,
                control=options.control,
            ),
            faults=[Fault.from_json(entry) for entry in json.loads(options.faults)],
        )
        listener = _listen(options.port)
    except PtcError as error:
        print(error.message, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}", file=sys.stderr)
        return 3
    with listener:
        ended_by_parent = asyncio.run(_serve(peer, listener, with_parent=options.with_parent))
    if options.temporary and ended_by_parent:
        shutil.rmtree(options.state_dir, ignore_errors=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ptc.gateway", description=__doc__)
    parser.add_argument("--script", required=True, help="module:attr or path/to/file.py:attr")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) for any free one")
    parser.add_argument("--state-dir", type=Path, default=Path(".ptc"), help="where the key of the state is")
    parser.add_argument("--faults", default="[]", help="a JSON array of faults to commit")
    parser.add_argument("--control", action="store_true", help="serve /_peer, for tests")
    parser.add_argument("--no-programs", action="store_true", help="a deployment without hosted programs")
    parser.add_argument("--no-tool-search", action="store_true", help="a deployment without tool search")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    parser.add_argument(
        "--temporary", action="store_true", help="remove the state directory, too, when standard input ends"
    )
    return parser


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


async def _serve(peer: Peer, listener: socket.socket, *, with_parent: bool) -> bool:
    """Until somebody ends it. Whether that was the end of standard input."""
    ended_by_parent = False

    def on_stdin() -> None:
        nonlocal ended_by_parent
        if not os.read(sys.stdin.fileno(), 4096):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            ended_by_parent = server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(create_app(peer), log_level="critical", access_log=False, timeout_graceful_shutdown=2)
    )
    if with_parent:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), on_stdin)
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
    await server.serve(sockets=[listener])
    return ended_by_parent


if __name__ == "__main__":
    sys.exit(main())
