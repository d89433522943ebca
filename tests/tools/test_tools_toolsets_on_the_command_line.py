"""`ptc tools` and `--tools` take toolsets and uses of them, as they stand in an application."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptc.cli import app

TOOLS = """
import ptc

@ptc.tool(effects="read", allowed_callers=["programmatic"])
def double(n: int) -> int:
    "Double a number."
    return 2 * n

MATHS = ptc.Toolset("maths", [double], description="Numbers.")
USED = [ptc.use(MATHS).defer("double")]
REGISTRY = ptc.Registry("company")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import sys

    (tmp_path / "toolsets_here.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "toolsets_here", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["toolsets_here:MATHS", "toolsets_here:USED"])
def test_a_toolset_is_pinned_under_its_qualified_names_and_description(folder: Path, name: str) -> None:
    """A pin covers what the model is told of the namespace as well."""
    ran = CliRunner().invoke(app, ["tools", "lock", name])
    assert ran.exit_code == 0, ran.output
    text = (folder / "tools.lock").read_text()
    assert "maths.double" in json.dumps(json.loads(text))
    assert CliRunner().invoke(app, ["tools", "check", name]).exit_code == 0


def test_a_program_calls_the_tools_of_a_toolset(folder: Path) -> None:
    """By their names in programs."""
    (folder / "p.py").write_text("await maths_double(n=21)")
    ran = CliRunner().invoke(app, ["exec", "p.py", "--tools", "toolsets_here:MATHS"])
    assert ran.exit_code == 0, ran.output
    assert "42" in ran.output


def test_a_registry_has_no_tools_before_a_run(folder: Path) -> None:
    """The message says what can be named."""
    ran = CliRunner().invoke(app, ["tools", "lint", "toolsets_here:REGISTRY"])
    assert ran.exit_code == 2
    assert "a Toolset or a list" in ran.output
