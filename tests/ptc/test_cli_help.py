"""The command line helps: each command says when to use it and shows an example; long tables say what they cut."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ptc.cli import app
from ptc.cli.console import MAX_ROWS
from tests.ptc.cli_support import Cli

MANY = MAX_ROWS + 50
TOOL = '''
def double(n: int) -> int:
    """Twice n."""
    return 2 * n
'''


def commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *path, name)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTC_AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "doubling.py").write_text(TOOL)
    yield Cli(monkeypatch, capsys)
    sys.modules.pop("doubling", None)


@pytest.mark.parametrize("path", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_says_when_to_use_a_command_and_shows_one(cli: Cli, path: tuple[str, ...]) -> None:
    """Options alone do not tell a newcomer what to type."""
    ran = cli(*path, "--help")
    assert ran.status == 0
    assert "Use it " in ran.out
    assert re.search(rf"Examples?:\s+.*\bptc {' '.join(path)}", ran.out)


def test_a_flood_of_calls_is_cut_and_can_be_had(cli: Cli, tmp_path: Path) -> None:
    """A thousand rows hide how the program ended."""
    (tmp_path / "p.py").write_text(f"for n in range({MANY}): await double(n=n)\n'end'")
    arguments = ("exec", "p.py", "--tools", "doubling:double", "--audit", "a.db")
    ran = cli(*arguments)
    assert ran.status == 0
    assert ran.err.count("double ") == MAX_ROWS
    assert f"50 more of {MANY} calls: --all shows them" in ran.err
    assert cli(*arguments, "--all").err.count("double ") == MANY

    run = cli("audit", "show", "a.db", "--json").out.split('"run": "')[1].partition('"')[0]
    ran = cli("audit", "show", "a.db", run)
    assert re.search(r"more of \d+ records: --all shows them, --json prints them", ran.out)
    assert cli("audit", "show", "a.db", run, "--all").out.count("tool.finished") == MANY
    assert cli("audit", "show", "a.db", run, "--json").out.count("tool.finished") == MANY
    ran = cli("audit", "query", "a.db", "--type", "tool.finished", "--limit", 5)
    assert ran.out.count("tool.finished") == 5
    assert "more than 5 records" in ran.err
