"""`ptc audit` on odd options and on logs that hold no proof: one line that says what is wrong, never a traceback."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ptc.audit import Checkpoints, Rotation
from ptc.audit.keys import Keyring
from tests.ptc.audit_rewriting import rechain, rewrite
from tests.ptc.audit_support import FORMS, fill, open_log, raw_lines, read, record_call
from tests.ptc.cli_support import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTC_AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Cli(monkeypatch, capsys)


def log_at(path: Path, **options: Any) -> Path:
    asyncio.run(fill(path, 12, keys=Keyring.open(path.with_name("keys.json"), create=True), **options))
    return path


@pytest.mark.parametrize(
    "time", ["99999999999999d", "²d", "9" * 400 + "s", "9999-12-31T23:59-14:00x", "d", ""]
)
def test_a_time_that_is_none_is_said_to_be_none(cli: Cli, tmp_path: Path, time: str) -> None:
    path = log_at(tmp_path / "a.db")
    for option in ("--since", "--until"):
        ran = cli("audit", "query", path, option, time)
        assert (ran.status, len(ran.err.splitlines())) == (2, 1), ran
        assert "is no time" in ran.err


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_text_is_in_no_log(cli: Cli, tmp_path: Path, form: str) -> None:
    """A shell passes any bytes on."""
    path = log_at(tmp_path / f"a.{form}")
    odd = b"run\xff".decode("utf-8", "surrogateescape")
    assert "no record of the run" in cli("audit", "show", path, odd).err
    for option in ("--run", "--tool", "--status", "--type"):
        ran = cli("audit", "query", path, option, odd)
        assert (ran.status, ran.out.strip()) == (0, "no record fits"), ran


def test_a_number_of_records_has_an_end(cli: Cli, tmp_path: Path) -> None:
    path = log_at(tmp_path / "a.db")
    for command in (("tail", path, "-n"), ("query", path, "--limit")):
        ran = cli("audit", *command, "9" * 30)
        assert (ran.status, "Traceback" in ran.err) == (2, False)


@pytest.mark.parametrize("start", [None, {}, [], "5", 1.5, True])
def test_a_start_that_is_no_number_is_no_record(cli: Cli, tmp_path: Path, start: Any) -> None:
    path = log_at(tmp_path / "a.jsonl")
    records = read(path)
    next(record for record in records if record["type"] == "tool.finished")["start"] = start
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = cli("audit", "view", path, "run_1", "-o", tmp_path / "page.html")
    assert (ran.status, "no record of ours" in ran.err) == (2, True), ran


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("changed", [3, 20])
def test_nothing_is_proven_by_a_checkpoint_that_saw_other_records(
    cli: Cli, tmp_path: Path, form: str, changed: int
) -> None:
    """A proof that does not hold must not be handed out as one."""
    path = log_at(tmp_path / f"a.{form}", checkpoints=Checkpoints(records=8))
    lines = raw_lines(path)
    record = json.loads(lines[changed])
    rewrite(
        path, rechain([*lines[:changed], json.dumps({**record, "at": 5}).encode(), *lines[changed + 1 :]])
    )
    ran = cli("audit", "prove", path, "4")
    assert (ran.status, ran.out) == (2, "")
    assert "are not those that checkpoint" in ran.err


@pytest.mark.parametrize("form", FORMS)
def test_a_proof_needs_the_first_files(cli: Cli, tmp_path: Path, form: str) -> None:
    """Without them a record's number is not its place, and no path to the root can be made."""
    path = log_at(tmp_path / f"a.{form}", rotate=Rotation(bytes=4096))
    assert json.loads(cli("audit", "prove", path, "12").out)["seq"] == 12
    min(tmp_path.glob(f"a.0*.{form}")).unlink()
    for number in ("1", "12", "99999"):
        ran = cli("audit", "prove", path, number)
        assert (ran.status, "put the files before it back" in ran.err) == (2, True), ran


@pytest.mark.parametrize("form", FORMS)
def test_that_no_checkpoint_covers_a_record_is_said_as_it_is(cli: Cli, tmp_path: Path, form: str) -> None:
    """Of a closed log no later checkpoint comes; of an open one it does."""
    path = log_at(tmp_path / f"a.{form}")
    assert "the last checkpoint itself" in cli("audit", "prove", path, len(raw_lines(path))).err
    with open_log(path, keys=Keyring.open(tmp_path / "keys.json")) as log:
        asyncio.run(record_call(log, 99))
        assert "the next one does" in cli("audit", "prove", path, len(raw_lines(path))).err


@pytest.mark.parametrize("form", FORMS)
def test_a_keyring_that_cannot_tell_says_so(cli: Cli, tmp_path: Path, form: str) -> None:
    """With another key no digest fits: that is no sign that the value is not there."""
    path = log_at(tmp_path / f"a.{form}")
    Keyring.open(tmp_path / "other.json", create=True)
    arguments = '{"sku":"sku_1"}'
    assert cli("audit", "hash", arguments, "--log", path).status == 0
    ran = cli("audit", "hash", arguments, "--log", path, "--keys", tmp_path / "other.json")
    assert (ran.status, "does not have that digest key" in ran.err) == (2, True), ran
    ran = cli("audit", "hash", "nowhere", "--log", path)
    assert (ran.status, "no digest in the log is of this value" in ran.err) == (0, True), ran
