"""A Monty worker that waits for one program: the pool's session, and our own hold on its process.

It kills and measures, and is told nothing of programs.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from pathlib import Path
from typing import Final

import pydantic_monty as monty


class Worker:
    """A process that waits for one program: its session, and our own hold on it."""

    def __init__(self, session: monty.AsyncMontySession, seed: int) -> None:
        pid = session.worker_pid
        if pid is None:
            raise RuntimeError("a session without a worker")
        self.session: Final = session
        self.seed: Final = seed
        self._pid: Final = pid
        self._pidfd = os.pidfd_open(pid)
        self._clock: Final = (~pid << 3) | 2  # the kernel's clock of that process's CPU time
        self._launched_us = 0
        self._launched_us = self.cpu_us() or 0

    @property
    def alive(self) -> bool:
        """Whether it still waits: a pidfd can be read from when its process has ended."""
        if self._pidfd < 0:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def kill(self) -> None:
        """SIGKILL by pidfd: certain, and never another process that got the number."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def cpu_us(self) -> int | None:
        """CPU time so far, without what the launcher used."""
        try:
            return time.clock_gettime_ns(self._clock) // 1000 - self._launched_us
        except OSError:
            return None

    def peak_bytes(self) -> int | None:
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return None
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    async def aclose(self) -> None:
        """Kill it and let the pool see that it is gone. Again does nothing."""
        if self._pidfd < 0:
            return
        self.kill()
        os.close(self._pidfd)
        self._pidfd = -1
        with contextlib.suppress(monty.MontyError):
            await self.session.__aexit__(None, None, None)
