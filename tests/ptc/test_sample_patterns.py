"""The samples run as a user runs them: programs of their own, no account, nothing in the environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATTERNS = ["loader_tool", "gate", "argument_check", "forced_first_call"]


def run(sample: str, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a sample with nothing in its environment but what a fresh shell has."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "COLUMNS": "160", **environment}
    command = [sys.executable, "-W", "error", str(ROOT / "samples" / sample), *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100)


def blocks(name: str, language: str) -> list[str]:
    page = ROOT / "docs" / "patterns" / f"{name.replace('_', '-')}.md"
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_sample_runs_offline_and_prints_what_its_page_says(name: str, tmp_path: Path) -> None:
    """Each of them is a page of the documentation that can be run."""
    done = run(f"patterns/{name}.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [done.stdout] == blocks(name, "text")


@pytest.mark.parametrize("name", PATTERNS)
def test_the_page_of_a_pattern_shows_the_code_of_its_sample(name: str) -> None:
    """A reader must not learn from code that nobody runs."""
    sample = (ROOT / "samples" / "patterns" / f"{name}.py").read_text(encoding="utf-8")
    shown = blocks(name, "python")
    assert shown
    assert [code for code in shown if code not in sample] == []


def test_half_of_an_azure_configuration_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    """It must not fall back to the embedded peer: the user would take its answer for the model's."""
    done = run("inventory_demand.py", cwd=tmp_path, AZURE_OPENAI_ENDPOINT="https://x.openai.azure.com")
    assert done.returncode == 1
    assert "credentials_missing" in done.stderr
    assert "PTC_MODEL" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_endpoint_that_cannot_be_reached_is_a_typed_error(tmp_path: Path) -> None:
    """Port 9 of the loopback interface: nothing listens there."""
    done = run(
        "inventory_demand.py", cwd=tmp_path, OPENAI_API_KEY="sk-none", OPENAI_BASE_URL="http://127.0.0.1:9/v1"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("endpoint_unreachable: ")
    assert "Traceback" not in done.stderr
