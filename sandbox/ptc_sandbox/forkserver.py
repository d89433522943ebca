"""The host's handle on one fork server: starts it clean, asks it for children, learns how each ended.

The server is started by `subprocess` with an empty environment, never forked from this process, so it can
hold no secret of the host's and no lock of a thread of its. Everything here runs on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

import RestrictedPython

from ptc_sandbox.confine import Confinement, LayerUnavailable, Resources
from ptc_sandbox.confine.cgroup import Cgroup, enter_group
from ptc_sandbox.errors import ConfinementUnavailable, SandboxBroken
from ptc_sandbox.wire import REHEARSE
from ptc_tools.call import JsonObject

_BOOT = (
    # What tells the host to end (Ctrl-C, a service manager's SIGTERM to all of a group) is for the host to act on: it
    # may let its programs finish. The server goes when the host does, and a program when it is killed.
    "import _signal, sys;"  # of the library's `signal` too much would be loaded before `install`
    "[_signal.signal(s, _signal.SIG_IGN) for s in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)];"
    "sys.path[:0] = sys.argv[2:];"
    "from ptc_sandbox.guest.guards_identity import install; install();"  # before anything else is loaded
    "from ptc_sandbox.guest.server import main; main(int(sys.argv[1]))"
)


_FDS_OF_A_CHILD = 2
_REQUESTS = 32
"""Children asked for at once; more wait here, not in the socket."""
_PATIENCE = 5.0
"""Seconds for a server to end by itself; it needs milliseconds."""
_PEAK = re.compile(rb"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a child ended: the wait status, and what it had used."""

    status: int
    cpu_us: int
    peak_bytes: int

    @property
    def signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None


class Child:
    """A confined process that waits for one program. `exited` resolves when it was reaped."""

    def __init__(self, pid: int, channel: socket.socket, pidfd: int, exited: asyncio.Future[Exit]) -> None:
        self.pid = pid
        self.channel = channel
        self.exited = exited
        self._pidfd = pidfd
        self._rehearsed = False

    def alive(self) -> bool:
        """Whether it still waits; a pidfd tells at once, before the server has reaped the process."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def rehearse(self) -> None:
        """Let a child that waits take the page faults of a first run ahead of its program.

        That halves the program's latency; it costs as much CPU as the program's start, and memory.
        """
        if not self._rehearsed:
            self._rehearsed = True
            with contextlib.suppress(OSError):
                self.channel.send(REHEARSE)

    def kill(self) -> None:
        """SIGKILL by pidfd: certain, and never another process that got the number."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _ended(self) -> Exit | None:
        return self.exited.result() if self.exited.done() and not self.exited.cancelled() else None

    def cpu_us(self) -> int | None:
        """CPU time so far, in microseconds, from the kernel's clock of that process, or in all where it has ended."""
        if (ended := self._ended()) is not None:
            return ended.cpu_us
        try:
            return time.clock_gettime_ns((~self.pid << 3) | 2) // 1000
        except OSError:
            return None

    def peak_bytes(self) -> int | None:
        """The most memory it had resident so far, as its exit says it; None where it is gone, or hidden."""
        if (ended := self._ended()) is not None:
            return ended.peak_bytes
        try:
            with open(f"/proc/{self.pid}/status", "rb") as stream:
                status = stream.read()
        except OSError:
            return None
        found = _PEAK.search(status)
        return int(found[1]) * 1024 if found else None

    def close(self, *, kill: bool = True) -> None:
        """Kill what is left and give the descriptors back."""
        if kill:
            self.kill()
        self.channel.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class ForkServer:
    """One running fork server. Made by `start`."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self._hello: asyncio.Future[list[JsonObject]] = self._loop.create_future()
        self._asking = asyncio.Semaphore(_REQUESTS)
        self.alive = True
        self.layers: list[JsonObject] = []
        self._group: Cgroup | None = None

    @classmethod
    async def start(cls, confinement: Confinement, resources: Resources) -> ForkServer:
        """Start a server and wait until it can fork. Raises ConfinementUnavailable or SandboxBroken."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        roots = [str(Path(__file__).parent.parent), str(Path(RestrictedPython.__file__).parent.parent)]
        try:
            process = subprocess.Popen(  # noqa: S603, ASYNC220 -- returns once the process is started
                [sys.executable, "-s", "-S", "-P", "-c", _BOOT, str(theirs.fileno()), *roots],
                env={"PYTHONHASHSEED": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                process_group=0,  # from its first moment on: a terminal's signals are the host's
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        server = cls(process, ours)
        try:
            server._group, in_group = enter_group(confinement, resources, process.pid)
        except LayerUnavailable as error:
            server._hello.cancel()
            await server.aclose()
            raise ConfinementUnavailable(error.layer, str(error)) from None
        config = {"confinement": confinement.to_json(), "resources": asdict(resources)}
        ours.send(json.dumps(config).encode())
        server._loop.add_reader(ours, server._on_readable)
        try:
            server.layers = [{**in_group.to_json()}, *await server._hello]
        except BaseException:
            await server.aclose()
            raise
        return server

    async def fork(self) -> Child:
        """A new child, confined or about to be. Raises SandboxBroken where the server has gone."""
        if not self.alive:
            raise SandboxBroken("the fork server has gone")
        async with self._asking:
            return await self._ask()

    async def _ask(self) -> Child:
        future: asyncio.Future[Child] = self._loop.create_future()
        self._waiting.append(future)
        try:
            self._control.send(b"fork")
        except OSError as error:
            self._waiting.pop()
            if not isinstance(error, BlockingIOError):
                self._on_gone()  # known here before the socket was read: the next one asked is another server
            raise SandboxBroken(f"the fork server does not take requests: {error}") from None
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                future.result().close()  # it came in the same moment, and nobody takes it
            raise

    def _on_readable(self) -> None:
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self._control, 1 << 16, _FDS_OF_A_CHILD)
            except BlockingIOError:
                return None
            except OSError:
                data, fds = b"", []
            if not data:
                return self._on_gone()
            self._on_message(json.loads(data), fds)

    def _on_message(self, message: JsonObject, fds: list[int]) -> None:
        match message:
            case {"child": int(pid)}:
                self._on_child(pid, fds)
            case {"exit": int(pid), "status": int(status), "cpu_us": int(cpu), "peak_kb": int(peak)}:
                exited = self._exits.pop(pid, None)
                if exited is not None and not exited.done():
                    exited.set_result(Exit(status, cpu, peak * 1024))
            case {"hello": list(layers)}:
                self._hello.set_result(layers)  # type: ignore[arg-type]
            case {"refused": [str(layer), str(reason)]}:
                self._hello.set_exception(ConfinementUnavailable(layer, reason))
            case {"unforked": str(reason)}:
                # It will not get better: its pid namespace may have lost its first process. Start anew.
                self._next_waiting(SandboxBroken(f"the fork server cannot fork: {reason}"))
                self._on_gone()

    def _on_child(self, pid: int, fds: list[int]) -> None:
        if len(fds) != _FDS_OF_A_CHILD:
            # This process has no descriptor left: the child is of no use, and goes when its channel closes.
            for fd in fds:
                os.close(fd)
            self._next_waiting(SandboxBroken("this process has no file descriptor left for another program"))
            return
        channel = socket.socket(fileno=fds[0])
        channel.setblocking(False)
        exited = self._exits[pid] = self._loop.create_future()
        child = Child(pid, channel, fds[1], exited)
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(child)
                return
        child.close()  # whoever asked for it was cancelled

    def _next_waiting(self, error: SandboxBroken) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(error)
                return

    def _on_gone(self) -> None:
        """The server ended: its children with it. Everybody who waits is told."""
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._control)
        said = self._last_words()
        error = SandboxBroken(f"the fork server ended{said}")
        if not self._hello.done():
            self._hello.set_exception(error)
        while self._waiting:
            self._next_waiting(error)
        for exited in self._exits.values():
            if not exited.done():
                exited.set_result(Exit(signal.SIGKILL, 0, 0))
        self._exits.clear()

    def _last_words(self) -> str:
        """What it wrote to its standard error before it was ready, shortened."""
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        text = (self._process.stderr.read() or b"").decode(errors="replace").strip()
        return f": {text[-1000:]}" if text else ""

    async def aclose(self) -> None:
        """End the server and all its children, and wait until none is left."""
        self._hang_up()
        await asyncio.to_thread(self._reap)

    def abandon(self, *, wait: bool) -> None:
        """The same where its event loop has ended. Without `wait` it is another process's: it goes on."""
        self.alive = False
        self._control.close()
        if wait:
            self._reap()
        elif self._process.stderr:
            self._process.returncode = 0  # not ours to wait for, nor to warn about
            self._process.stderr.close()

    def _hang_up(self) -> None:
        """Close the socket: the server kills and reaps its children, then ends."""
        if self.alive:
            self._on_gone()
        self._control.close()

    def _reap(self) -> None:
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its children die with it (PDEATHSIG)
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        if self._group is not None:
            self._group.remove()
