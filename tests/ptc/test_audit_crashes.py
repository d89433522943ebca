"""Under any crash, what the log says ran is what ran: a state machine, and a kill at every write point."""

import asyncio
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ptc.audit import Checkpoints, Rotation
from ptc.audit.errors import AuditUnavailable
from ptc.audit.files import SystemFiles
from ptc.audit.log import AuditLog
from ptc.audit.reader import records
from ptc.audit.records import Started
from ptc.audit.verify import verify
from ptc_tools.outcome import Denied, Success
from tests.ptc.audit_support import INVENTORY, RUN, call, open_log


class CrashingFiles(SystemFiles):
    """A disk that loses power after `left` operations; what was not synced may be lost, from the end."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.dead = False
        self.synced = 0

    def _tick(self) -> bool:
        """Whether this very operation is the one during which the power goes."""
        if self.dead:
            raise OSError(errno.EIO, "the power is gone")
        if self.left is None:
            return False
        self.left -= 1
        self.dead = self.left < 0
        return self.dead

    def open(self, path: Path, *, durable: bool = False) -> int:
        self._tick()
        fd = super().open(path, durable=durable)
        self.synced = os.fstat(fd).st_size
        return fd

    def write(self, fd: int, data: bytes) -> int:
        if self._tick():
            os.write(fd, data[: len(data) * 2 // 3])
            raise OSError(errno.EIO, "the power went")
        return super().write(fd, data)

    def datasync(self, fd: int) -> None:
        if self._tick():
            raise OSError(errno.EIO, "the power went")
        super().datasync(fd)
        self.synced = os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        if self._tick():
            raise OSError(errno.EIO, "the power went")
        super().truncate(fd, size)
        self.synced = min(self.synced, size)

    def rename(self, old: Path, new: Path) -> None:
        if self._tick():
            raise OSError(errno.EIO, "the power went")
        super().rename(old, new)


class Crashes(RuleBasedStateMachine):
    """Calls are started, run and finished; the power goes at any operation; the log is opened again.

    How records fall into groups is a matter of timing, so no rule draws by what happened before.
    """

    name = "a.jsonl"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / self.name
        self.ran: set[str] = set()
        self.released: set[str] = set()
        self.refused: set[str] = set()
        self.open_calls: dict[str, Started] = {}
        self.number = 0
        self.log: AuditLog | None = None
        self.disk: Any = None

    @initialize()
    def begin(self) -> None:
        self.reopen()

    def reopen(self) -> None:
        self.disk = CrashingFiles()
        self.log = self.opened(files=self.disk)

    def opened(self, **options: Any) -> AuditLog:
        return open_log(self.path, rotate=Rotation(bytes=8192), checkpoints=Checkpoints(records=7), **options)

    @rule(together=st.integers(1, 4))
    def start(self, together: int) -> None:
        names = [f"call_{self.number + n}" for n in range(together)]
        self.number += together

        async def all_of_them() -> list[object]:
            return await asyncio.gather(*(self._start(name) for name in names), return_exceptions=True)

        for name, token in zip(names, asyncio.run(all_of_them()), strict=True):
            if isinstance(token, Started):
                self.ran.add(name)
                self.open_calls[name] = token
            else:
                assert isinstance(token, AuditUnavailable)
                self.refused.add(name)

    async def _start(self, name: str) -> object:
        assert self.log is not None
        return await self.log.started(call(int(name[5:])), INVENTORY, {"sku": "a"}, RUN)

    @rule(which=st.integers(0, 1000))
    def finish(self, which: int) -> None:
        if not self.open_calls:
            return
        name = sorted(self.open_calls)[which % len(self.open_calls)]
        token = self.open_calls.pop(name)
        assert self.log is not None
        try:
            asyncio.run(self.log.finished(token, Success(1), 1))
            self.released.add(name)
        except AuditUnavailable:
            pass

    @rule()
    def deny(self) -> None:
        assert self.log is not None
        with contextlib.suppress(AuditUnavailable):
            asyncio.run(self.log.denied(call(10**9), None, Denied("unknown_tool", "no"), RUN))

    @rule(operations=st.integers(0, 8))
    def power_will_go(self, operations: int) -> None:
        self.disk.left = operations

    @rule(kept=st.floats(0, 1))
    def crash(self, kept: float) -> None:
        assert self.log is not None
        self.disk.dead = True
        self.log.close()
        self.open_calls.clear()
        self.lose_unsynced(kept)
        report = verify(self.path)
        assert report.verdict != "tampered", "what a crash leaves behind is no forgery"
        self.reopen()

    def lose_unsynced(self, kept: float) -> None:
        if self.path.exists():
            size = self.path.stat().st_size
            if size > self.disk.synced:
                os.truncate(self.path, self.disk.synced + int((size - self.disk.synced) * kept))

    @invariant()
    def the_log_says_what_ran(self) -> None:
        if self.log is None or self.disk.left is not None or self.disk.dead:
            return
        report = verify(self.path)
        assert not [finding for finding in report.findings if finding.kind == "tampered"]
        found = list(records(self.path))
        started = {r["identity"]["call"] for r in found if r["type"] == "tool.started"}
        finished = {r["identity"]["call"] for r in found if r["type"] == "tool.finished"}
        unknown = {str(entry["call"]) for entry in report.indeterminate}
        assert self.ran <= started
        assert self.released <= finished
        assert started - self.ran <= unknown, "a call that did not run is at most indeterminate"
        assert finished <= self.ran

    def teardown(self) -> None:
        if self.log is not None:
            self.log.close()
        shutil.rmtree(self.folder)


TestCrashes = Crashes.TestCase
TestCrashes.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)

KILLED_AT_EACH_POINT = """
import asyncio, os, signal, sys
from ptc.audit.files import SystemFiles
from ptc.audit import Rotation, Checkpoints
from tests.ptc.audit_support import *

class Killing(SystemFiles):
    def __init__(self, left, part):
        self.left, self.part = left, part
    def tick(self):
        self.left -= 1
        return self.left < 0
    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)
    def write(self, fd, data):
        if self.tick():
            os.write(fd, data[: int(len(data) * self.part)])
            self.die()
        return super().write(fd, data)
    def datasync(self, fd):
        if self.tick():
            self.die()
        super().datasync(fd)
        if self.tick():
            self.die()
    def rename(self, old, new):
        if self.tick():
            self.die()
        super().rename(old, new)
        if self.tick():
            self.die()
    def open(self, path, *, durable=False):
        fd = super().open(path, durable=durable)
        if self.tick():
            self.die()
        return fd

async def main(folder, files):
    path = folder / "a.jsonl"
    log = open_log(path, files=files, rotate=Rotation(bytes=4096), checkpoints=Checkpoints(records=5))
    ran = os.open(folder / "ran", os.O_WRONLY | os.O_CREAT)
    for number in range(4):
        token = await log.started(call(number), INVENTORY, {"sku": "a"}, RUN)
        os.write(ran, b"%d " % number)
        await log.finished(token, Success(None), 1)
    log.close()

for point in range(300):
    ends = []
    for part in (0.0, 0.6):
        folder = Path(sys.argv[1]) / f"{point}-{part}"
        folder.mkdir()
        child = os.fork()
        if child == 0:
            asyncio.run(main(folder, Killing(point, part)))
            os._exit(0)
        ends.append(os.waitpid(child, 0)[1])
    if not any(ends):
        print("to the end")
        break
"""


def test_killed_at_every_write_point_in_turn(tmp_path: Path) -> None:
    """Before, within and after each write, sync, rename and open of a log that rotates and checkpoints."""
    made = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_POINT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout == "to the end\n", made.stderr
    assert len(list(tmp_path.iterdir())) > 40
    for folder in tmp_path.iterdir():
        path = folder / "a.jsonl"
        open_log(path).close()
        report = verify(path)
        assert report.verdict == "intact", (folder.name, report.findings)
        ran = (
            {int(word) for word in (folder / "ran").read_text().split()}
            if (folder / "ran").exists()
            else set()
        )
        started = {int(r["identity"]["call"][5:]) for r in records(path) if r["type"] == "tool.started"}
        assert ran <= started, folder.name
