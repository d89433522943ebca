"""The fork server: started clean by the host, it loads what programs may use and forks confined children.

It is told by the host, on one socket, how many children to fork, and hands over for each a channel and a
pidfd; it says how each child ended, from its wait status. It never sees a program, holds no secret, and
ends when the host does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import warnings
from typing import Any

from ptc_sandbox.confine import (
    Confinement,
    LayerUnavailable,
    Resources,
    enter_namespaces,
    kernel,
    leave_namespaces,
    prepare,
)
from ptc_sandbox.confine.child import Prepared
from ptc_sandbox.guest import builtins, child, warm
from ptc_sandbox.guest.channel import Channel
from ptc_sandbox.guest.stage import Stage

_REHEARSALS = 10
"""Times the rehearsal is run before any child exists: CPython specialises code after a few runs."""

_FDS = struct.Struct("=2i")
_RIGHTS = (socket.SOL_SOCKET, socket.SCM_RIGHTS)

CHANNEL_FD = 3
"""The one descriptor that a child has."""


def main(control_fd: int) -> None:
    """Serve until the host closes the socket. The first message says what to enforce."""
    warnings.simplefilter("ignore")
    _reserve_channel_fd()
    control = socket.socket(fileno=control_fd)
    config = json.loads(control.recv(1 << 16))
    confinement = Confinement.from_json(config["confinement"])
    resources = Resources(**config["resources"])
    try:
        reports = enter_namespaces(confinement)
        builtins.prepare()
        warm.load()
        for _ in range(_REHEARSALS):
            warm.rehearse()
        os.environ.clear()
        sys.argv.clear()
        sys.path.clear()
        gc.collect()
        prepared = prepare(confinement, resources)
        prepared.aim(CHANNEL_FD)
        # Here once, not in each child: nothing of it depends on the program.
        stage = Stage(Channel(CHANNEL_FD))
    except LayerUnavailable as error:
        control.send(json.dumps({"refused": [error.report.layer, str(error)]}).encode())
        return
    gc.freeze()
    layers = [report.to_json() for report in [*reports, *prepared.reports]]
    control.send(json.dumps({"hello": layers}).encode())
    _quiet()
    prepared.settle()
    try:
        Server(control, prepared, stage).run()
    finally:
        leave_namespaces()


def _reserve_channel_fd() -> None:
    """Keep the number free of anything that a child still needs when its channel takes it."""
    while (fd := os.open(os.devnull, os.O_RDONLY)) < CHANNEL_FD:
        pass
    if fd > CHANNEL_FD:
        os.close(fd)


def _quiet() -> None:
    """Nothing of this process goes to the host's terminal or into a pipe that nobody reads."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


class Server:
    """Forks and reaps. One poll loop, no thread."""

    def __init__(self, control: socket.socket, prepared: Prepared, stage: Stage) -> None:
        self._control = control
        self._prepared = prepared
        self._stage = stage
        self._children: dict[int, int] = {}  # pidfd → pid
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        # The control socket may outlive the host in a process that the host has forked.
        self._host = os.pidfd_open(os.getppid())
        self._poll.register(self._host, select.POLLIN)

    def run(self) -> None:
        """Until the host hangs up; then nothing of ours is left, not even an unreaped child."""
        try:
            while True:
                for fd, _ in self._poll.poll():
                    if fd == self._host:
                        return
                    if fd != self._control.fileno():
                        self._reap(fd)
                    elif not self._serve():
                        return
        except BrokenPipeError:
            return  # the host went while we told it something
        finally:
            self._kill_all()

    def _serve(self) -> bool:
        message = self._control.recv(1 << 12)  # there is only one request: a child
        if not message:
            return False
        self._fork()
        return True

    def _fork(self) -> None:
        # Few functions, and descriptors instead of sockets: what this touches between two forks is copied, and the
        # copy from before stays with the child.
        try:
            host_end, child_end = kernel.socket_pair()
            try:
                pid = kernel.fork()
            except OSError:
                os.close(host_end)
                os.close(child_end)
                raise
        except OSError as error:
            self._say({"unforked": str(error)})
            return
        if pid == 0:
            self._become_child(child_end)
        os.close(child_end)
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)
        self._control.sendmsg((b'{"child":%d}' % pid,), ((*_RIGHTS, _FDS.pack(host_end, pidfd)),))
        os.close(host_end)

    def _become_child(self, fd: int) -> None:
        """In the child: only the channel stays open, at a fixed number."""
        try:
            if fd != CHANNEL_FD:
                os.dup2(fd, CHANNEL_FD)
            child.serve(self._stage, self._prepared, warm.rehearse)
        finally:
            os._exit(1)

    def _reap(self, pidfd: int) -> None:
        pid = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        self._say(
            {
                "exit": pid,
                "status": status,
                "cpu_us": round((usage.ru_utime + usage.ru_stime) * 1e6),
                "peak_kb": usage.ru_maxrss,
            }
        )

    def _say(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())

    def _kill_all(self) -> None:
        for pidfd in self._children:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        for pid in self._children.values():
            os.waitpid(pid, 0)
