"""Where a run store may be kept, who may read it, and what it says of a place that will not do."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ptc
from ptc.store import Step, StoreUnavailable, StoreUnreadable


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def modes(directory: Path) -> set[int]:
    return {stat.S_IMODE(os.stat(path).st_mode) for path in files(directory)}


@pytest.mark.parametrize("made", [None, 0o644, 0o666, 0o600])
@pytest.mark.parametrize("with_log", [False, True])
async def test_a_store_is_for_its_owner_alone_whoever_made_its_file(
    tmp_path: Path, made: int | None, with_log: bool
) -> None:
    """It holds what tools were told and said; SQLite's own files beside it hold the same."""
    path = tmp_path / "runs.db"
    if made is not None:
        path.touch()
        path.chmod(made)
    log = ptc.AuditLog(path) if with_log else None
    async with ptc.SQLiteRunStore(log or path) as store:
        await store.create("r1", [Step(1, "start", {})], {})
        assert modes(tmp_path) == {0o600}
    if log is not None:
        await log.aclose()


async def test_files_that_a_store_left_open_to_others_are_closed(tmp_path: Path) -> None:
    """A store that was killed leaves its log of writes, which is opened again with it."""
    path = tmp_path / "runs.db"
    program = (
        "import asyncio, os, ptc, sys\n"
        "async def main():\n"
        "    store = ptc.SQLiteRunStore(sys.argv[1])\n"
        "    await store.create('r1', [], {})\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(path)], check=False)
    left = files(tmp_path)
    assert len(left) == 3
    for file in left:
        file.chmod(0o664)
    async with ptc.SQLiteRunStore(path) as store:
        assert modes(tmp_path) == {0o600}
        assert (await store.acquire("r1")).lease.epoch == 2


@pytest.mark.parametrize("name", ["", "file/runs.db", ".", "/proc/x/runs.db", "a\x00b", "/dev/null"])
def test_a_place_that_will_not_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """One typed error, whatever the system calls it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="cannot be kept at"):
        ptc.SQLiteRunStore(name)


@pytest.mark.parametrize("wrong", [5, None, object()])
def test_what_is_neither_path_nor_log_is_refused(wrong: Any) -> None:
    """Before anything is written."""
    with pytest.raises(ptc.ConfigurationError, match=r"a path or a ptc\.AuditLog"):
        ptc.SQLiteRunStore(wrong)


@pytest.mark.parametrize("lease", [0, -1, "x", None, True, float("nan"), float("inf")])
def test_a_lease_is_a_number_of_seconds(tmp_path: Path, lease: Any) -> None:
    """One that never runs out would keep a run from everybody for good."""
    with pytest.raises(ptc.ConfigurationError, match="seconds"):
        ptc.SQLiteRunStore(tmp_path / "runs.db", lease=lease)
    assert not (tmp_path / "runs.db").exists()


async def test_a_store_in_a_logs_file_says_to_open_the_log(tmp_path: Path) -> None:
    """The log writes there as well, so that it has to be asked."""
    path = tmp_path / "a.db"
    async with ptc.AuditLog(path) as log, ptc.SQLiteRunStore(log) as store:
        await store.create("r1", [], {})
    with pytest.raises(StoreUnreadable, match=f"add --audit {path}"):
        ptc.SQLiteRunStore(path)


def test_a_store_that_does_not_say_its_version_is_damaged(tmp_path: Path) -> None:
    """Its tables may be of any."""
    path = tmp_path / "runs.db"
    ptc.SQLiteRunStore(path).close()
    db = sqlite3.connect(path)
    with db:
        db.execute("DELETE FROM run_store")
    db.close()
    with pytest.raises(StoreUnreadable, match="damaged"):
        ptc.SQLiteRunStore(path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--store", "file/runs.db", "question"], "cannot be kept at"),
        (["--store", ".", "question"], "cannot be kept at"),
        (["--store", "typo.db", "--recover", "r1"], "no such file"),
        (["--store", "log.db", "--recover", "r1"], "add --audit log.db"),
    ],
)
def test_the_command_line_says_it_in_a_line(tmp_path: Path, options: list[str], says: str) -> None:
    """No traceback, exit status 2, and nothing is left where there was nothing."""
    (tmp_path / "file").touch()
    ptc.AuditLog(tmp_path / "log.db").close()
    before = sorted(path.name for path in tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "ptc", "run", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    words = " ".join(done.stderr.split())
    assert says in words
    assert "Traceback" not in words
    assert sorted(path.name for path in tmp_path.iterdir()) == before
