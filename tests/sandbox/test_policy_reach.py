"""Nothing that a program can reach leads to a module, a frame, code, a namespace or a raw builtin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import RestrictedPython

import ptc_sandbox


def test_no_path_leads_out_of_a_programs_namespace() -> None:
    """Attacks try known paths; this walks all of them, with every module imported and objects of every kind."""
    places = [str(Path(module.__file__ or "").parents[1]) for module in (ptc_sandbox, RestrictedPython)]
    script = Path(__file__).with_name("language_walk.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-s", "-S", "-P", str(script), *places],
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "0"},
        timeout=100,
        check=True,
    )

    assert json.loads(done.stdout) == []
