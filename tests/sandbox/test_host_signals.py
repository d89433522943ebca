"""A signal that tells the host to end is the host's: what it does about its programs, it decides."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HOST = Path(__file__).parent / "signalled_host.py"


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.parametrize("engine", ["sandbox", "monty"])
def test_programs_outlive_a_signal_to_the_hosts_whole_group(engine: str, signal: str) -> None:
    """Ctrl-C in a terminal and a service manager's SIGTERM reach every process of a group, not the host alone."""
    if engine == "monty" and importlib.util.find_spec("pydantic_monty") is None:
        pytest.skip("pydantic-monty is not installed")
    done = subprocess.run(
        [sys.executable, str(HOST), engine, signal],
        capture_output=True,
        text=True,
        timeout=60,
        process_group=0,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("completed 3 4", 0), done.stderr
