"""The public API: what `import ptc` offers, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import ptc


def test_every_public_name_is_there_and_every_name_is_listed() -> None:
    """What type checkers see, what `__all__` says and what loads are one list."""
    stub = Path(ptc.__file__).with_suffix(".pyi")
    told = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in told for alias in node.names}
    assert seen.keys() - {"audit", "testing"} == set(ptc.__all__)
    for name in ptc.__all__:
        assert getattr(ptc, name) is getattr(import_module(str(seen[name])), name)
    assert sorted(set(ptc.__all__)) == sorted(ptc.__all__)
    assert set(dir(ptc)) >= set(ptc.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """As with every module."""
    assert not hasattr(ptc, "nobody")


def test_importing_it_loads_nothing_heavy() -> None:
    """The SDK alone takes seconds on a small machine."""
    code = (
        "import sys, ptc; ptc.Runner; ptc.tool; ptc.azure_client; "
        "print([m for m in ('openai', 'azure', 'starlette', 'rich', 'typer', 'uvicorn', 'httpx2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
