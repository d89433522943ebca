"""The set-up scripts say what is wrong with the interpreter that was named, and take no other in its place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIND = Path(__file__).parents[2] / ".ci" / "find-python"
pytestmark = pytest.mark.skipif(not FIND.exists(), reason="the set-up scripts are not beside the tests here")


def find(python: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHON": python, "PATH": path or os.environ["PATH"]}
    return subprocess.run(
        ["/bin/sh", str(FIND)], env=environment, capture_output=True, text=True, check=False
    )


def fake(folder: Path, body: str) -> str:
    script = folder / "a python"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_a_python_that_was_named_is_the_one_that_is_used() -> None:
    found = find(sys.executable)
    assert (found.returncode, found.stderr) == (0, "")
    assert Path(found.stdout.strip()).samefile(sys.executable)


def test_what_is_wrong_is_said_of_the_one_that_was_named(tmp_path: Path) -> None:
    """Who names an interpreter and reads about another one looks in the wrong place."""
    absent = str(tmp_path / "absent")
    old = fake(tmp_path, 'case "$2" in *version_info\\ \\<*) exit 1;; *) echo 3.10.13;; esac')
    for python, why in (
        (absent, "there is no such program"),
        (old, "it is Python 3.10.13"),
        ("/etc", "does not run"),
    ):
        found = find(python)
        assert found.returncode == 1
        assert f"PYTHON={python} cannot be used" in found.stderr
        assert why in found.stderr
        assert found.stdout == ""


def test_a_machine_without_python_is_told_how_to_get_one(tmp_path: Path) -> None:
    cat = Path("/bin/cat")
    (tmp_path / "cat").symlink_to(cat)
    found = find("", str(tmp_path))
    assert found.returncode == 1
    assert "there is no such program" in found.stderr
    assert "apt-get install python3" in found.stderr
