"""`ptc exec`: what it prints, its exit status, and what it says when it cannot do what was asked."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptc.audit.reader import records
from ptc.audit.verify import verify
from tests.ptc.cli_support import Cli

TOOLS = '''
from ptc_tools.catalog import Catalog
from ptc_tools.tool import tool

@tool(allowed_callers=["programmatic"])
def double(n: int) -> int:
    """Twice n."""
    return 2 * n

@tool(allowed_callers=["programmatic"])
def fail(n: int) -> int:
    """Never works."""
    raise ValueError("\\x1b[2J[bold]no[/bold]")

def plain(n: int) -> int:
    """A function is made a tool."""
    return n

tools = [double, fail]
catalog = Catalog([double])
broken = [1]
number = 5
'''


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTC_AUDIT_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mytools.py").write_text(TOOLS)
    yield Cli(monkeypatch, capsys)
    sys.modules.pop("mytools", None)


def test_a_program_prints_its_output_its_value_and_its_calls(cli: Cli, tmp_path: Path) -> None:
    """What it printed and gave goes to standard output alone, so that it can be piped."""
    (tmp_path / "p.py").write_text("print('hello')\nx = await double(n=4)\nx + 1\n")
    ran = cli("exec", "p.py", "--tools", "mytools:tools")
    assert (ran.status, ran.out) == (0, "hello\n9\n")
    for expected in ("double", '{"n": 4}', "completed"):
        assert expected in ran.err


@pytest.mark.parametrize("name", ["tools", "catalog", "double", "plain"])
def test_tools_may_be_a_list_a_catalog_a_tool_or_a_function(cli: Cli, name: str) -> None:
    program = "await plain(n=1)" if name == "plain" else "await double(n=1)"
    assert cli("exec", "-", "--tools", f"mytools:{name}", stdin=program).status == 0


def test_json_is_one_object(cli: Cli) -> None:
    ran = cli("exec", "-", "--tools", "mytools:tools", "--json", stdin="print('a')\nawait double(n=2)")
    told = json.loads(ran.out)
    assert (told["status"], told["value"], told["output"], ran.err) == ("completed", 4, "a\n", "")
    (call,) = told["calls"]
    assert (call["name"], call["arguments"], call["result"], call["line"]) == ("double", {"n": 2}, 4, 2)


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        ("1 / 0", 1, "ZeroDivisionError: division by zero (line 1)"),
        ("def f(", 1, "SyntaxError"),
        ("open('/etc/passwd').read()", 3, "held by the language wall"),
        ("import os\nos.environ", 3, "held by the language wall"),
        ("import socket\nsocket.socket()", 3, "held by the language wall"),
        ("while True:\n    pass", 4, "held by the host"),
        ("await nothing()", 1, "NameError"),
        ("add_tools([])", 1, "RuntimeError"),
    ],
)
def test_the_exit_status_and_a_message_say_how_it_ended(
    cli: Cli, program: str, status: int, said: str
) -> None:
    """Scripts read the status, people the message: which wall held, and where."""
    ran = cli("exec", "-", "--time", "2", stdin=program)
    assert ran.status == status, ran.err
    assert said in ran.err


def test_limits_are_options(cli: Cli) -> None:
    ran = cli("exec", "-", "--output", "100", stdin="print('x' * 1000)")
    assert ran.status == 4
    assert "killed:output" in ran.err
    ran = cli(
        "exec", "-", "--tools", "mytools:tools", "--calls", "3", stdin="for i in range(9): await double(n=i)"
    )
    assert "killed:calls" in ran.err
    ran = cli("exec", "-", "--memory", "64", stdin="x = [0] * 10**8")
    assert (ran.status, "memory" in ran.err) == (4, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.py",), "there is no such file"),
        ((".",), "none.py"),
        (("-", "--tools", "mytools"), "write module:attr"),
        (("-", "--tools", "nomodule:x"), "there is no module 'nomodule'"),
        (("-", "--tools", "mytools:nothing"), "has no attribute 'nothing'; it has"),
        (("-", "--tools", "mytools:number"), "name a tool, a function, a Catalog, a Toolset or a list"),
        (("-", "--tools", "mytools:broken"), "neither a tool nor a function"),
        (("-", "--time", "-1"), "a limit makes no sense"),
        (("-", "--audit", "log.txt"), ".jsonl for JSON lines"),
        (("-", "--audit", "log.db", "--audit-level", "all"), "a level is one of"),
    ],
)
def test_what_cannot_be_carried_out_is_said_with_what_to_do(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    """Status 2 and one line; nothing was run."""
    ran = cli("exec", *arguments, stdin="1")
    assert ran.status == 2
    assert ran.err.startswith("ptc: ")
    assert ran.err.count("\n") == 1
    assert said in ran.err or arguments == (".",)


def test_a_module_that_fails_on_import_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import nothing_of_the_kind")
    ran = cli("exec", "-", "--tools", "bad:x", stdin="1")
    assert (ran.status, "importing bad failed" in ran.err) == (2, True)
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(0)")
    for command in (("exec", "-"), ("tools", "lint"), ("tools", "check"), ("tools", "lock")):
        option = ["--tools", "leaves:x"] if command[0] == "exec" else ["leaves:x"]
        ran = cli(*command, *option, stdin="1")
        assert (ran.status, "importing leaves ended by sys.exit(0)" in ran.err) == (2, True), command
    (tmp_path / "latin.py").write_bytes(b"'\xe9'")
    assert "not UTF-8" in cli("exec", "latin.py").err


def test_terminal_controls_and_markup_are_shown_and_not_followed(cli: Cli) -> None:
    """A program, its output and a tool's message are untrusted texts on the operator's terminal."""
    program = "print('\\x1b[2J\\x1b]0;pwned\\x07 [bold red]x[/] \u202e')\ntry:\n    await fail(n=1)\nexcept Exception as e:\n    print(e)"
    ran = cli("exec", "-", "--tools", "mytools:tools", stdin=program)
    everything = ran.out + ran.err
    assert "\x1b" not in everything
    assert "\u202e" not in everything
    assert "\\x1b[2J\\x1b]0;pwned\\x07 [bold red]x[/] \\u202e" in ran.out


def test_an_audit_log_is_written_around_it(cli: Cli, tmp_path: Path) -> None:
    """The run, the program and each call, whole and verifiable."""
    ran = cli("exec", "-", "--tools", "mytools:tools", "--audit", "log.jsonl", stdin="await double(n=2)")
    assert "log.jsonl" in ran.err
    path = tmp_path / "log.jsonl"
    types = [record["type"] for record in records(path)]
    assert types[1:-2] == [
        "run.started",
        "program.started",
        "tool.started",
        "tool.finished",
        "program.finished",
        "run.finished",
    ]
    assert verify(path).verdict == "intact"


def test_a_log_that_cannot_be_written_runs_nothing(cli: Cli, tmp_path: Path) -> None:
    """A path that is a folder, say: the message names it, and the program had no chance."""
    (tmp_path / "dir.jsonl").mkdir()
    ran = cli("exec", "-", "--audit", "dir.jsonl", stdin="print('ran')")
    assert (ran.status, ran.out) == (2, "")


def test_help_and_version_are_light() -> None:
    """`ptc --help` must not wait for the SDK: what a command needs is loaded by the command."""
    program = (
        "import sys\nsys.argv = ['ptc', '--help']\nfrom ptc.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        "heavy = {'openai', 'starlette', 'uvicorn', 'azure', 'cryptography'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "exec" in ran.stdout
    assert "audit" in ran.stdout


def test_the_version_is_printed(cli: Cli) -> None:
    from ptc._version import __version__

    assert cli("--version").out == f"ptc {__version__}\n"
