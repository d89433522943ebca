"""What messages call our command line: something that can be typed where they are read."""

import sys
from pathlib import Path

import pytest

from ptc_tools.command_line import ptc_command


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that runs, with our script in it, that is not on the PATH."""
    folder = tmp_path / "a venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "ptc"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    return folder


def test_a_command_that_is_not_on_the_path_is_named_by_its_path(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newcomer has an environment that is not activated; what is copied must run, spaces and all."""
    monkeypatch.chdir(tmp_path)
    assert ptc_command() == "'a venv/bin/ptc'"
    monkeypatch.chdir(venv.parent)
    assert ptc_command() == "bin/ptc"
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert ptc_command() == f"'{venv / 'ptc'}'"


def test_on_the_path_it_is_called_by_its_name(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(venv))
    assert ptc_command() == "ptc"


def test_another_ptc_on_the_path_is_not_ours(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "usr"
    other.mkdir()
    (other / "ptc").write_text("#!/bin/sh\n")
    (other / "ptc").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    monkeypatch.chdir(venv)
    assert ptc_command() == "./ptc"


def test_without_a_script_the_module_is_named(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (venv / "ptc").unlink()
    monkeypatch.chdir("/")
    assert ptc_command() == f"'{venv / 'python'}' -m ptc"
