"""`ptc run`: a model of the embedded peer, tools of a module, and a person at the terminal who decides."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptc
from ptc.cli.deciding import decide
from tests.ptc.cli_support import Cli

TOOLS = '''
import ptc
from pathlib import Path

@ptc.tool(effects="write", approval="always", allowed_callers=["direct", "programmatic"])
def drop(x: int) -> int:
    """Drop something."""
    with Path("dropped.txt").open("a") as file:
        file.write(f"{x}\\\\n")
    return -x

TOOLS = [drop]
'''
SCRIPT = """
from ptc.testing import ScriptedModel, call, run_code, say

def ask(request):
    if "program" in request.user_text:
        return run_code("try:\\\\n    told = await drop(x=7)\\\\nexcept ToolError as error:\\\\n    told = str(error)\\\\ntold")(request)
    return call("drop", x=1)

model = ScriptedModel(ask, lambda request: say(f"It says {request.outputs}."))
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.chdir(tmp_path)
    for name in ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_KEY", "PTC_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PTC_AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "dropping.py").write_text(TOOLS.replace("\\\\", "\\"))
    (tmp_path / "script.py").write_text(SCRIPT.replace("\\\\", "\\"))
    yield Cli(monkeypatch, capsys)
    sys.modules.pop("dropping", None)


GIVEN = ("--tools", "dropping:TOOLS", "--script", "script.py:model")


def dropped(tmp_path: Path) -> list[str]:
    path = tmp_path / "dropped.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize(
    ("typed", "ran", "says"),
    [
        ("y\n", ["1"], "-1"),
        ("maybe\nYES\n", ["1"], "-1"),
        ("n\nnot on a Friday\n", [], "not on a Friday"),
        ('c\n{"x": 5}\n', ["5"], "-5"),
        ('c\n[5]\nc\nfive\nc\n{"x": 6}\n', ["6"], "-6"),
        ('c\n{"x": "many"}\n', [], "integer"),
    ],
)
def test_a_call_is_asked_about_in_the_terminal(
    cli: Cli, tmp_path: Path, typed: str, ran: list[str], says: str
) -> None:
    """It is shown whole, and runs as it was decided."""
    told = cli("run", "drop it", *GIVEN, "--approve", stdin=typed)
    assert (told.status, dropped(tmp_path)) == (0, ran)
    assert says in told.out
    assert "drop, called by the model" in told.err
    assert '"x": 1' in told.err
    assert "[y] yes, [n] no, [c] change the arguments, [l] later? " in told.err


@pytest.mark.parametrize(("typed", "ran", "says"), [("y\n", ["7"], "-7"), ("n\n\n", [], "not approved")])
def test_a_program_is_asked_about_like_anybody(
    cli: Cli, tmp_path: Path, typed: str, ran: list[str], says: str
) -> None:
    """Its `except` sees the denial."""
    told = cli("run", "write a program", *GIVEN, "--programs", "local", "--approve", stdin=typed)
    assert (told.status, dropped(tmp_path)) == (0, ran)
    assert says in told.out
    assert "drop, called by the program " in told.err


@pytest.mark.parametrize("typed", ["", "l\n", "c\n", "n"])
@pytest.mark.parametrize("log", [(), ("--audit", "runs.db"), ("--audit", "log.jsonl")])
def test_what_is_left_for_later_waits_in_the_store(
    cli: Cli, tmp_path: Path, typed: str, log: tuple[str, ...]
) -> None:
    """The end of the input is no answer; and the command says how to go on."""
    kept = ("--store", "runs.db", *log)
    told = cli("run", "drop it", *GIVEN, *kept, "--run-id", "r 1", "--approve", stdin=typed)
    assert (told.status, told.out, dropped(tmp_path)) == (5, "", [])
    (line,) = [line for line in told.err.splitlines() if line.startswith("go on with it: ")]
    words = shlex.split(line.removeprefix("go on with it: "))
    told = cli(*words[words.index("run") :], stdin="y\n")
    assert (told.status, dropped(tmp_path)) == (0, ["1"])
    assert "-1" in told.out


def test_without_somebody_to_ask_a_call_is_denied_or_waits(cli: Cli, tmp_path: Path) -> None:
    """Never run: denied where nobody could decide later, waiting where somebody can."""
    told = cli("run", "drop it", *GIVEN)
    assert (told.status, dropped(tmp_path)) == (0, [])
    assert "not_approved" in told.out
    told = cli("run", "drop it", *GIVEN, "--store", "runs.db", "--json")
    assert (told.status, dropped(tmp_path)) == (5, [])
    waiting = json.loads(told.out)
    assert [(item["name"], item["arguments"]) for item in waiting["approvals"]] == [("drop", {"x": 1})]
    told = cli(
        "run",
        "--recover",
        waiting["run_id"],
        *GIVEN,
        "--store",
        "runs.db",
        "--approve",
        "--json",
        stdin="y\n",
    )
    assert (told.status, dropped(tmp_path)) == (0, ["1"])
    assert json.loads(told.out)["calls"] == [
        {"call_id": waiting["approvals"][0]["call_id"], "tool": "drop", "status": "success"}
    ]


@pytest.mark.parametrize(
    ("typed", "ran", "says"),
    [("h\n-1\n", [], "-1"), ("r\n", ["1"], "-1"), ("n\nask support\n", [], "ask support")],
)
def test_an_uncertain_call_is_asked_about_as_one(
    cli: Cli, tmp_path: Path, typed: str, ran: list[str], says: str
) -> None:
    """Whoever recovers a run that was cut off says what came of it; the question is another than yes or no."""
    cli("run", "drop it", *GIVEN, "--store", "runs.db", "--run-id", "r1", "--approve", stdin="y\n")
    assert dropped(tmp_path) == ["1"]
    (tmp_path / "dropped.txt").unlink()
    cut_off_after_admission(tmp_path / "runs.db")
    told = cli("run", "--recover", "r1", *GIVEN, "--store", "runs.db", "--approve", stdin=typed)
    assert (told.status, dropped(tmp_path)) == (0, ran)
    assert "[r] run it again, [h] it happened, [n] nobody knows, [l] later? " in told.err
    assert says in told.out


def cut_off_after_admission(path: Path) -> None:
    """The store, as it was when the tool had just begun."""
    db = sqlite3.connect(path)
    with db:
        (n,) = db.execute("SELECT max(n) FROM steps WHERE kind = 'admitted'").fetchone()
        db.execute("DELETE FROM steps WHERE n > ?", (n,))
        db.execute("UPDATE runs SET status = 'running', holder = NULL")
    db.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give a question"),
        (("hello", "--recover", "r1", "--store", "runs.db"), "give a question"),
        (("--recover", "r1"), "--store PATH"),
        (("hello", "--programs", "remote"), "hosted, local or auto"),
        (("hello",), "no service to connect to"),
        (("--recover", "r1", "--store", "runs.db", "--script", "script.py:model"), "no such file"),
        (("hello", "--script", "script.py:model", "--tools", "dropping:NOTHING"), "no attribute"),
        (("hello", "--script", "script.py:model", "--store", "script.py"), "run store"),
        (
            ("hello", "--script", "script.py:model", "--audit", "log.jsonl", "--store", "log.jsonl"),
            "cannot hold runs",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_one_line(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    """It says what to do, with exit status 2."""
    told = cli("run", *arguments)
    assert (told.status, told.out) == (2, "")
    assert says in told.err
    assert told.err.startswith("ptc: ")
    assert told.err.count("\n") == 1


def test_nothing_that_a_model_wrote_reaches_the_terminal_as_control(cli: Cli, tmp_path: Path) -> None:
    """Arguments are shown before anybody has said yes to them."""
    script = SCRIPT.replace("\\\\", "\\").replace("x=1)", "x=1, why='\\x1b[2J\\u202eyes')")
    (tmp_path / "script.py").write_text(script)
    tools = TOOLS.replace("\\\\", "\\").replace("x: int)", "x: int, why: str)")
    (tmp_path / "dropping.py").write_text(tools)
    told = cli("run", "drop it", *GIVEN, "--approve", stdin="n\n\x1b[31m\n")
    assert told.status == 0
    assert "drop, called by" in told.err
    assert not {"\x1b", "\u202e"} & set(told.err + told.out)


@given(st.lists(st.text(max_size=12)), st.booleans())
def test_no_typing_is_taken_for_a_yes_but_yes(lines: list[str], uncertain: bool) -> None:
    """Whatever comes in, a call is approved only by the word that the prompt names."""
    request = ptc.ApprovalRequest("c1", "drop", {"x": 1}, uncertain=uncertain)
    left = iter(lines)
    decision = decide(request, read=lambda _: next(left, None), show=lambda _: None, by="ann")
    words: Any = {"r", "run it again"} if uncertain else {"y", "yes", "c", "change the arguments"}
    if isinstance(decision, ptc.Approve):
        assert words & {line.strip().lower() for line in lines}


def test_a_tools_own_question_is_shown_with_its_call() -> None:
    """Its confirmation says in words what the arguments say as JSON."""
    request = ptc.ApprovalRequest("c1", "drop", {"x": 1}, question="Records\nDrop 1?")
    shown: list[str] = []
    assert decide(request, read=lambda prompt: "l", show=shown.append, by=None) is None
    assert "  Records" in shown
    assert "  Drop 1?" in shown
    assert ptc.ApprovalRequest.from_json(request.to_json()) == request
