"""`Peer`: the embedded Responses peer in a process of its own, for a test or a demo, on a loopback port.

It survives nothing: not its parent, not its context. `kill` and `restart` try what a client does when the
service goes away between two requests. `in_process` is the same peer without a process or a port.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ptc.gateway.faults import Fault
from ptc.gateway.script import Script
from ptc_tools.call import JsonObject
from ptc_tools.errors import PtcError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ptc.gateway.peer import Settings

_START_SECONDS = 60.0
_END_SECONDS = 10.0
# What a process needs to find Python and its libraries, and nothing that could be a secret.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PTC_STATE_KEY", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


class PeerError(PtcError):
    """The peer could not be started, or is not running. The text has what it said."""

    code = "peer_error"


class Peer:
    """Starts `python -m ptc.gateway` and ends it with the context.

    `script` is `"module:attr"` or `"path/to/file.py:attr"`. `port` 0 takes a free one, which stays the same
    over `restart()`; `state_dir` None takes a fresh directory that is removed at the end. Requests are kept
    for `requests()`, and `plan()` makes the peer commit faults.
    """

    def __init__(
        self,
        script: str,
        *,
        port: int = 0,
        state_dir: str | os.PathLike[str] | None = None,
        api_key: str | None = None,
        faults: Iterable[Fault] = (),
        hosted_programs: bool = True,
        tool_search: bool = True,
    ) -> None:
        self._script = script
        self._port = port
        self._api_key = api_key
        self._faults = tuple(faults)
        self._hosted_programs = hosted_programs
        self._tool_search = tool_search
        self._given_state_dir = Path(state_dir) if state_dir is not None else None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, to which Azure's clients add `/openai/v1`."""
        if self._port == 0:
            raise PeerError("the peer was not started yet; use it as a context manager")
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as `base_url`."""
        return f"{self.url}/v1"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> Self:
        """Start the peer; returns when it takes requests. Raises `PeerError`."""
        if self.pid is not None:
            return self
        process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment(),
        )
        self._process = process
        try:
            self._port = int(_announced(process).rpartition(":")[2])
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """End the process at once, as a crash would. What was in flight is lost."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def restart(self) -> Self:
        """Kill the peer if it runs, and start it again on the same port with the same state directory."""
        self.kill()
        return self.start()

    def close(self) -> None:
        """End the peer, gently if it takes that, and remove what it left."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._reap()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def requests(self) -> list[JsonObject]:
        """The bodies of the requests so far, since the peer was last started."""
        found: list[JsonObject] = self._control("GET", "requests")["requests"]
        return found

    def plan(self, *faults: Fault) -> None:
        """Commit these faults from now on, instead of any others; requests count from 1 again."""
        self._control("PUT", "faults", [fault.to_json() for fault in faults])

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "ptc.gateway", "--with-parent", "--control"]
        command += [
            "--script",
            self._script,
            "--port",
            str(self._port),
            "--state-dir",
            str(self._state_dir()),
        ]
        # A host that is killed cannot remove its directory; the peer outlives it by a moment.
        command += [] if self._given_state_dir is not None else ["--temporary"]
        command += ["--faults", json.dumps([fault.to_json() for fault in self._faults])]
        command += [] if self._hosted_programs else ["--no-programs"]
        return command if self._tool_search else [*command, "--no-tool-search"]

    def _environment(self) -> dict[str, str]:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        if self._api_key is not None:
            environment["PTC_PEER_API_KEY"] = self._api_key
        return environment

    def _state_dir(self) -> Path:
        if self._given_state_dir is not None:
            return self._given_state_dir
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="ptc-peer-")
        return Path(self._temporary.name)

    def _reap(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _control(self, method: str, path: str, body: object = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}/_peer/{path}", data, method=method)  # noqa: S310
        if self._api_key is not None:
            request.add_header("authorization", f"Bearer {self._api_key}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_START_SECONDS) as response:
                return json.load(response)
        except urllib.error.URLError as error:
            raise PeerError(f"the peer does not answer at {self.url}: {error.reason}") from error


def _announced(process: subprocess.Popen[bytes]) -> str:
    """The URL that the peer prints when it is about to take requests."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        ready = selector.select(_START_SECONDS)
    line = process.stdout.readline() if ready else b""
    if not line:
        process.kill()
        said = process.stderr.read().decode(errors="replace").strip()
        raise PeerError(f"the peer did not start: {said or 'it said nothing'}")
    return str(json.loads(line)["url"])


@asynccontextmanager
async def in_process(
    script: Script,
    *,
    settings: Settings | None = None,
    faults: Iterable[Fault] = (),
    key: bytes = b"the key of a peer that lives in a test",
) -> AsyncIterator[AsyncOpenAI]:
    """The peer without a process or a port: gives an `openai` client whose requests go straight to it.

    Faults of the connection end as they would with one: see `ptc.testing.transport`. Retries are off.
    """
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI

    from ptc.gateway.app import create_app
    from ptc.gateway.peer import Peer as EmbeddedPeer
    from ptc.testing.transport import AppTransport

    async with (
        EmbeddedPeer(script, key, settings=settings, faults=faults) as peer,
        AsyncClient(transport=AppTransport(create_app(peer))) as http,
        AsyncOpenAI(base_url="http://peer/v1", api_key="none", http_client=http, max_retries=0) as client,
    ):
        yield client
