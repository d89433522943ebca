"""What the log does when the disk does not: nothing runs unrecorded, nothing half-written stays."""

import asyncio
import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc.audit import Rotation
from ptc.audit.errors import AuditCorrupt, AuditLocked, AuditUnavailable
from ptc.audit.files import SystemFiles
from ptc.audit.log import AuditLog
from ptc.audit.verification import Verification
from ptc.audit.verify import verify
from ptc_tools.outcome import Success
from tests.ptc.audit_support import FORMS, INVENTORY, RUN, call, of_type, open_log, read, record_call


class FaultyFiles(SystemFiles):
    """A disk that fails as it is told: an error number, after a part of the bytes, or a stall."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.part = 0
        self.sync_error: int | None = None
        self.truncate_error: int | None = None
        self.silent_part: int | None = None
        self.stall: threading.Event | None = None
        self.close_error: int | None = None
        self.plan: Iterator[int | None] | None = None
        """Of each write to come, the error or None; then EIO."""

    def close(self, fd: int) -> None:
        super().close(fd)
        error = self.close_error
        if error is not None:
            raise OSError(error, os.strerror(error))

    def write(self, fd: int, data: bytes) -> int:
        if self.stall is not None:
            self.stall.wait(60)
        if self.silent_part is not None:
            part, self.silent_part = self.silent_part, None
            self.error = errno.ENOSPC
            return os.write(fd, data[:part])
        error = (
            self.error if self.plan is None else next(self.plan, errno.EIO)
        )  # read once: the test's thread heals the disk in the middle of a write
        if error is not None:
            if self.part:
                os.write(fd, data[: self.part])
            raise OSError(error, os.strerror(error))
        return os.write(fd, data)

    def datasync(self, fd: int) -> None:
        error = self.sync_error
        if error is not None:
            raise OSError(error, os.strerror(error))
        super().datasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        error = self.truncate_error
        if error is not None:
            raise OSError(error, os.strerror(error))
        super().truncate(fd, size)

    def heal(self) -> None:
        self.error = self.sync_error = self.truncate_error = self.silent_part = None


async def resumed(log: AuditLog) -> None:
    """Until the log has found out that the disk works again."""
    async with asyncio.timeout(30):
        while log.blocked is not None:  # noqa: ASYNC110  the log has no event for its hosts, and needs none
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("part", [0, 20])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("sync", ["each", "group", "none"])
async def test_without_a_durable_start_there_is_no_call(
    tmp_path: Path, sync: str, number: int, part: int
) -> None:
    """A full or failing disk, with a part of the record on it or none: refused, cut back, told, resumed."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk, sync=sync) as log:
        await record_call(log, 1)
        disk.error, disk.part = number, part
        with pytest.raises(AuditUnavailable, match=errno.errorcode[number]):
            await log.started(call(2), INVENTORY, {"sku": "a"}, RUN)
        with pytest.raises(AuditUnavailable):
            await log.started(call(3), INVENTORY, {"sku": "a"}, RUN)
        disk.heal()
        await resumed(log)
        await record_call(log, 4)
    records = read(path)
    assert [r["identity"]["call"] for r in of_type(records, "tool.started")] == ["call_1", "call_4"]
    assert of_type(records, "audit.resumed")[0]["data"]["refused"] >= 2
    assert not of_type(records, "audit.recovered"), "what was half written was cut back by the log itself"
    assert verify(path).verdict == "intact"


class StrangeDisk(FaultyFiles):
    """Fails once, half way, with an error that no disk should raise."""

    def __init__(self) -> None:
        super().__init__()
        self.strange = False

    def write(self, fd: int, data: bytes) -> int:
        if self.strange:
            self.strange = False
            os.write(fd, data[:20])
            raise TypeError("a fault in the file layer itself")
        return super().write(fd, data)


async def test_what_was_half_written_is_cut_back_whatever_ended_the_write(tmp_path: Path) -> None:
    """Not only OSError ends a write: a fault of the layer below must not leave half a line in the chain."""
    path = tmp_path / "a.jsonl"
    disk = StrangeDisk()
    async with open_log(path, files=disk) as log:
        await record_call(log, 1)
        disk.strange = True
        with pytest.raises(AuditUnavailable, match="internal"):
            await log.started(call(2), INVENTORY, {"sku": "a"}, RUN)
        await resumed(log)
        await record_call(log, 3)
    assert [r["identity"]["call"] for r in of_type(read(path), "tool.started")] == ["call_1", "call_3"]
    assert verify(path).verdict == "intact"


async def test_a_short_write_that_raises_nothing_is_noticed(tmp_path: Path) -> None:
    """A disk that is nearly full writes 20 of 332 bytes and says only that."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk) as log:
        disk.silent_part = 20
        with pytest.raises(AuditUnavailable, match="ENOSPC"):
            await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
        disk.heal()
        await resumed(log)
        await record_call(log, 2)
    assert verify(path).verdict == "intact"
    assert not of_type(read(path), "audit.recovered")


async def test_a_sync_that_fails_takes_its_records_back(tmp_path: Path) -> None:
    """After a failed sync nobody knows what is on the disk: the record was refused, so it goes."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk) as log:
        disk.sync_error = errno.EIO
        with pytest.raises(AuditUnavailable, match="EIO"):
            await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
        disk.heal()
        await resumed(log)
    assert not of_type(read(path), "tool.started")
    assert verify(path).verdict == "intact"


async def test_a_torn_end_that_cannot_be_cut_is_cut_before_anything_is_added(tmp_path: Path) -> None:
    """Even the repair may fail at first; nothing is ever written behind half a record."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk) as log:
        disk.error, disk.part, disk.truncate_error = errno.EIO, 33, errno.EIO
        with pytest.raises(AuditUnavailable):
            await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
        assert not path.read_bytes().endswith(b"\n")
        disk.heal()
        await resumed(log)
        await record_call(log, 2)
    assert verify(path).verdict == "intact"


async def test_an_end_that_cannot_be_recorded_withholds_the_result(tmp_path: Path) -> None:
    """The tool ran: the log shows the call as indeterminate, and nobody is given its result."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk) as log:
        token = await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
        disk.error = errno.ENOSPC
        with pytest.raises(AuditUnavailable):
            await log.finished(token, Success(1), 5)
        disk.heal()
        await resumed(log)
    report = verify(path)
    assert report.verdict == "intact"
    assert [call["call"] for call in report.indeterminate] == ["call_1"]


async def test_a_disk_that_stalls_is_waited_for_only_so_long(tmp_path: Path) -> None:
    """A hung network disk must not hang every run: the wait is bounded, then the circuit opens."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk, wait=0.1) as log:
        disk.stall = threading.Event()
        with pytest.raises(AuditUnavailable, match="timeout"):
            await log.started(call(1), INVENTORY, {"sku": "a"}, RUN)
        with pytest.raises(AuditUnavailable, match="timeout"):
            await log.started(call(2), INVENTORY, {"sku": "a"}, RUN)
        disk.stall.set()
        await resumed(log)
        await record_call(log, 3)
    assert verify(path).verdict == "intact"
    assert "call_2" not in [r["identity"]["call"] for r in of_type(read(path), "tool.started")]


async def test_fail_open_must_be_chosen_and_counts_what_it_lost(tmp_path: Path) -> None:
    """Calls go on without a record; the log says how many, of what, and when."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk, fail="open") as log:
        disk.error = errno.ENOSPC
        for number in range(3):
            await record_call(log, number)
        disk.heal()
        await resumed(log)
        await record_call(log, 9)
    gap = of_type(read(path), "audit.gap")[0]["data"]
    assert gap["lost"] == 6
    assert gap["by_type"] == {"tool.started": 3, "tool.finished": 3}
    assert gap["from_us"] <= gap["to_us"]
    report = verify(path)
    assert report.verdict == "incomplete"
    assert "lost 6 records" in report.findings[0].what


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 300 KiB. Needs the right to mount; said to be missing where it is not there."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("needs the right to mount a tmpfs (run as root, or in a container with SYS_ADMIN)")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill_up(ballast: Path) -> None:
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)


async def run_calls(log: AuditLog, ran: list[int]) -> None:
    for number in range(1, 5000):
        token = await log.started(call(number), INVENTORY, {"sku": "a"}, RUN)
        ran.append(number)
        await log.finished(token, Success(None), 1)


@pytest.mark.parametrize("form", FORMS)
async def test_a_disk_that_is_really_full(tiny_disk: Path, form: str) -> None:
    """The whole story on a real file system: blocked and said so with the reserve, freed, resumed, intact."""
    path = tiny_disk / f"a.{form}"
    ballast = tiny_disk / "ballast"
    async with open_log(path) as log:
        await record_call(log, 0)
        fill_up(ballast)
        ran: list[int] = []
        with pytest.raises(AuditUnavailable, match="ENOSPC"):
            await run_calls(log, ran)
        ballast.unlink()
        await resumed(log)
        await record_call(log, 5000)
    records = read(path)
    assert of_type(records, "audit.blocked")
    assert of_type(records, "audit.resumed")
    started = [int(r["identity"]["call"][5:]) for r in of_type(records, "tool.started")]
    assert started[:1] + started[-1:] == [0, 5000]
    assert set(ran) <= set(started)
    assert verify(path).verdict == "intact"


async def test_a_database_that_fills_the_disk_itself_says_what_was_lost(tiny_disk: Path) -> None:
    """Its write-ahead log holds most pages many times: put into the database, they make room to go on."""
    path = tiny_disk / "a.db"
    async with open_log(path, fail="open") as log:
        for number in range(200):
            await record_call(log, number)
    records = read(path)
    kept = [record for record in records if record["type"].startswith("tool.")]
    lost = sum(record["data"]["lost"] for record in of_type(records, "audit.gap"))
    assert of_type(records, "audit.blocked")
    assert len(kept) + lost == 400
    assert records[-2]["type"] == "audit.closed"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sync", ["each", "group", "none"])
def test_killed_at_any_moment_the_log_knows_what_ran(tmp_path: Path, form: str, sync: str) -> None:
    """SIGKILL while calls are made: each tool that ran has its start in the log, and the log is whole."""
    path, effects = tmp_path / f"a.{form}", tmp_path / "effects"
    program = f"""
import asyncio, os, sys
from ptc.audit.log import AuditLog
from tests.ptc.audit_support import *
async def main():
    log = open_log(Path({str(path)!r}), sync={sync!r}, checkpoints=None)
    effects = os.open({str(effects)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    print("ready", flush=True)
    async def one(worker):
        for number in range(100000):
            token = await log.started(call(number * 10 + worker), INVENTORY, {{"sku": "a"}}, RUN)
            os.write(effects, b"%d\\n" % (number * 10 + worker))
            await log.finished(token, Success(None), 1)
    await asyncio.gather(*(one(worker) for worker in range(5)))
asyncio.run(main())
"""
    for round in range(3):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wanted = (round + 1) * 40 * (4 if sync == "none" else 1)
        while not effects.exists() or effects.read_bytes().count(b"\n") < wanted:
            assert process.poll() is None
        process.kill()
        process.wait()
        process.stdout.close()
        ran = {int(line) for line in effects.read_bytes().split()}
        open_log(path).close()
        records = read(path)
        assert ran <= {int(r["identity"]["call"][5:]) for r in of_type(records, "tool.started")}
        assert verify(path).verdict == "intact"


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_cannot_be_made_says_where_and_what_to_do(tmp_path: Path, form: str) -> None:
    """A wrong path is the first thing that goes wrong for a newcomer: one typed error that names it."""
    (tmp_path / "file").touch()
    (tmp_path / f"folder.{form}").mkdir()
    for path in (
        tmp_path / "file" / f"audit.{form}",
        tmp_path / f"folder.{form}",
        Path(f"/proc/audit.{form}"),
    ):
        with pytest.raises(AuditUnavailable, match="give it a path in a folder") as caught:
            open_log(path)
        assert str(path) in caught.value.message
        assert not caught.value.ran


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["symlink", "hard link", "deleted lock"])
def test_a_log_has_one_writer_by_whatever_name(tmp_path: Path, form: str, way: str) -> None:
    """Two writers would fork the chain, and each would be called a forger by the other's records."""
    path, other = tmp_path / f"a.{form}", tmp_path / f"b.{form}"
    with open_log(path):
        if way == "symlink":
            other.symlink_to(path)
        elif way == "hard link":
            other.hardlink_to(path)
        else:
            (tmp_path / f"a.{form}.lock").unlink()
            other = path
        with pytest.raises(AuditLocked):
            open_log(other)


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (sqlite3.SQLITE_IOERR_READ, AuditUnavailable),
        (sqlite3.SQLITE_FULL, AuditUnavailable),
        (sqlite3.SQLITE_BUSY, AuditUnavailable),
        (sqlite3.SQLITE_CORRUPT, AuditCorrupt),
    ],
)
def test_a_disk_that_fails_while_a_database_is_opened_is_no_damage_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raised: type[Exception]
) -> None:
    """Whoever reads `corrupt` gives the log up; a full disk passes."""

    def fails(*_: object) -> object:
        error = sqlite3.OperationalError("the disk speaks")
        error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE"
        raise error

    monkeypatch.setattr("ptc.audit.sqlite._tail", fails)
    with pytest.raises(raised):
        open_log(tmp_path / "a.db")


async def test_a_file_that_cannot_be_closed_in_order_leaves_no_lock_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was to be durable is: closing ends without an exception, and the next writer is let in."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk) as log:
        await record_call(log)
        disk.close_error = errno.EIO
    assert "could not be closed in order" in caplog.text
    with open_log(path):
        pass
    assert verify(path).verdict == "intact"


async def test_a_file_that_was_put_aside_and_not_closed_in_order_is_rotated_once(tmp_path: Path) -> None:
    """It has its new name: tried again, the next rotation would find that name taken, for ever."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    async with open_log(path, files=disk, rotate=Rotation(bytes=4096)) as log:
        disk.close_error = errno.EIO
        for number in range(40):
            await record_call(log, number)
        disk.close_error = None
    assert sum(name.startswith("a.0") for name in os.listdir(tmp_path)) > 2
    assert verify(path).verdict == "intact"


@pytest.mark.parametrize("said", [False, True])
async def test_losses_that_a_writer_took_with_it_are_told_when_the_log_is_opened_again(
    tmp_path: Path, said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """fail=open, and the disk fails until the end: how much ran unrecorded nobody knows, and the log must not look whole."""
    path = tmp_path / "a.jsonl"
    disk = FaultyFiles()
    log = open_log(path, files=disk, fail="open")
    await record_call(log, 1)
    disk.plan = iter([errno.EIO, None] if said else [])  # the second write says that the log is blocked
    await record_call(log, 2)
    log.close()
    assert "ends without audit.closed (EIO: 0 records were refused and 2 lost" in caplog.text
    what = "how many calls ran unrecorded is unknown" if said else "calls ran that are in no record"
    for report in (verify(path), _opened_again(path)):
        told = [finding.what for finding in report.findings] if said else report.notes
        assert any(what in text for text in told), report
    assert report.verdict == ("incomplete" if said else "intact")


def _opened_again(path: Path) -> Verification:
    with open_log(path):
        pass
    return verify(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_that_found_the_disk_full_opens_when_there_is_space(tiny_disk: Path, form: str) -> None:
    """Whoever failed to open it must not go on holding its lock."""
    path = tiny_disk / f"a.{form}"
    fill_up(tiny_disk / "ballast")
    for _ in range(2):
        with pytest.raises(AuditUnavailable):
            open_log(path)
    (tiny_disk / "ballast").unlink()
    with open_log(path) as log:
        asyncio.run(record_call(log))
    assert verify(path).verdict == "intact"
