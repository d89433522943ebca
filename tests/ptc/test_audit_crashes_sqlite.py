"""The database form under crashes: a kill at every operation of SQLite's file layer, full and failing disks."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from ptc.audit.errors import AuditUnavailable
from ptc.audit.log import AuditLog
from ptc.audit.reader import records
from ptc.audit.verify import verify
from ptc_tools.outcome import Success
from tests.ptc.audit_support import INVENTORY, RUN, call, of_type, open_log, read, record_call
from tests.ptc.faulty_sqlite import FULL, IOERR_FSYNC, IOERR_WRITE, FaultyDisk, library
from tests.ptc.test_audit_crashes import Crashes
from tests.ptc.test_audit_failure import resumed

pytestmark = pytest.mark.skipif(
    library() is None,
    reason="SQLite is inside Python's module here: there is no library to put a layer under",
)

KILLED_AT_EACH_POINT = """
import asyncio, os, signal, sys
from ptc.audit import Checkpoints, Rotation
from tests.ptc.audit_support import *
from tests.ptc.faulty_sqlite import FaultyDisk

def die():
    os.kill(os.getpid(), signal.SIGKILL)

async def main(folder, left, part):
    rename = os.rename
    def tick():
        nonlocal left
        left -= 1
        return left < 0
    def operation(kind, path, write):
        if tick():
            if kind == "write":
                write(part)
            die()
    def renaming(old, new):
        if tick():
            die()
        rename(old, new)
        if tick():
            die()
    os.rename = renaming
    with FaultyDisk(folder) as disk:
        disk.on_operation = operation
        path = folder / "a.db"
        log = open_log(path, rotate=Rotation(bytes=4096), checkpoints=Checkpoints(records=5))
        ran = os.open(folder / "ran", os.O_WRONLY | os.O_CREAT)
        for number in range(4):
            token = await log.started(call(number), INVENTORY, {"sku": "a"}, RUN)
            os.write(ran, b"%d " % number)
            await log.finished(token, Success(None), 1)
        log.close()

first, step = int(sys.argv[2]), int(sys.argv[3])
for point in range(first, 2000, step):
    folder = Path(sys.argv[1]) / str(point)
    folder.mkdir()
    child = os.fork()
    if child == 0:
        asyncio.run(main(folder, point, (0, 7, 24, 500)[point % 4]))
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print("to the end")
        break
"""


def killed_and_checked(folder: Path, first: int, step: int) -> int:
    """Kills at each such operation, then opens and verifies; the number of kills."""
    made = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_POINT, str(folder), str(first), str(step)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout == "to the end\n", made.stderr
    for place in folder.iterdir():
        path = place / "a.db"
        before = verify(path) if path.exists() else None
        assert before is None or before.verdict != "tampered", (place.name, before)
        open_log(path).close()
        report = verify(path)
        assert report.verdict == "intact", (place.name, report.findings)
        told = (place / "ran").read_text() if (place / "ran").exists() else ""
        started = {r["identity"]["call"] for r in records(path) if r["type"] == "tool.started"}
        assert {f"call_{number}" for number in told.split()} <= started, place.name
    return len(list(folder.iterdir())) - 1


def test_killed_at_write_points_all_over_a_databases_life(tmp_path: Path) -> None:
    """Before and within writes, at syncs, truncations, deletions and renames: the soak has every single one."""
    assert killed_and_checked(tmp_path, 0, 7) > 10


@pytest.mark.soak
def test_killed_at_every_write_point_of_a_database(tmp_path: Path) -> None:
    """The same at each operation, one after the other."""
    assert killed_and_checked(tmp_path, 0, 1) > 100


@pytest.mark.parametrize(
    ("operation", "code", "name"),
    [
        ("write", FULL, "ENOSPC"),
        ("write", IOERR_WRITE, "SQLITE_IOERR_WRITE"),
        ("sync", IOERR_FSYNC, "SQLITE_IOERR_FSYNC"),
    ],
)
async def test_a_database_on_a_failing_disk_refuses_and_goes_on(
    tmp_path: Path, operation: str, code: int, name: str
) -> None:
    """No durable start, no call; what was half written is not in the log; then it resumes by itself."""
    path = tmp_path / "a.db"
    with FaultyDisk(tmp_path) as disk:
        async with open_log(path) as log:
            await record_call(log, 1)
            disk.on_operation = lambda kind, *_: code if kind == operation else None
            with pytest.raises(AuditUnavailable, match=name):
                await log.started(call(2), INVENTORY, {"sku": "a"}, RUN)
            disk.on_operation = lambda *_: None
            await resumed(log)
            await record_call(log, 3)
    found = read(path)
    assert [r["identity"]["call"] for r in of_type(found, "tool.started")] == ["call_1", "call_3"]
    assert verify(path).verdict == "intact"


async def test_an_end_that_a_database_cannot_take_withholds_the_result(tmp_path: Path) -> None:
    """The tool ran and nobody is told its result: the log shows the call as indeterminate."""
    path = tmp_path / "a.db"
    with FaultyDisk(tmp_path) as disk:
        async with open_log(path) as log:
            token = await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
            disk.on_operation = lambda kind, *_: FULL if kind == "write" else None
            with pytest.raises(AuditUnavailable):
                await log.finished(token, Success(1), 5)
            disk.on_operation = lambda *_: None
            await resumed(log)
    report = verify(path)
    assert (report.verdict, [c["call"] for c in report.indeterminate]) == ("intact", ["call_1"])


@pytest.mark.parametrize("operation", range(12))
def test_a_disk_that_fails_while_a_database_is_made_is_said_to_fail(tmp_path: Path, operation: int) -> None:
    """Typed, and nothing is left behind that the next attempt would stumble over."""
    path, left = tmp_path / "a.db", [operation]

    def fails(*_: Any) -> int | None:
        left[0] -= 1
        return IOERR_WRITE if left[0] < 0 else None

    with FaultyDisk(tmp_path) as disk:
        disk.on_operation = fails
        log: AuditLog | None = None
        with contextlib.suppress(AuditUnavailable):
            log = open_log(path)
        disk.on_operation = lambda *_: None
        if log is not None:
            log.close()
    open_log(path).close()
    assert verify(path).verdict == "intact"


class DatabaseCrashes(Crashes):
    """The same story with a database: its pages, its write-ahead log and its journal lose what was not synced."""

    name = "a.db"

    def __init__(self) -> None:
        super().__init__()
        self.disk = PoweredDisk(self.folder)
        self.disk.__enter__()

    def reopen(self) -> None:
        self.disk.left, self.disk.dead = None, False
        self.log = self.opened()

    def lose_unsynced(self, kept: float) -> None:
        self.disk.lose_unsynced(kept)

    def teardown(self) -> None:
        super().teardown()
        self.disk.__exit__()


class PoweredDisk(FaultyDisk):
    """A disk whose power goes after `left` operations, in the middle of the write that comes then."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.left: int | None = None
        self.dead = False
        self.on_operation = self._tick

    def _tick(self, kind: str, path: str, write: Callable[[int], None]) -> int | None:
        if not self.dead and self.left is not None:
            self.left -= 1
            self.dead = self.left < 0
            if self.dead:
                write(100)
        return IOERR_WRITE if self.dead else None


TestDatabaseCrashes = DatabaseCrashes.TestCase
TestDatabaseCrashes.settings = settings(
    max_examples=30, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
