"""Finds processes that outlive whoever started them: this process becomes the one that inherits them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def children() -> set[int]:
    """The processes whose parent this one is."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@contextmanager
def orphans() -> Iterator[list[int]]:
    """Orphans of what runs in the context become our children: those that do not end are in the list."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    before = children()
    found: list[int] = []
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield found
    finally:
        for pid in children() - before:
            descriptor = os.pidfd_open(pid)
            try:
                if not select.select([descriptor], [], [], 5)[0]:
                    found.append(pid)
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            finally:
                os.close(descriptor)
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
