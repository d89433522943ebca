"""The report of a run: what happened, for people, with nothing in it that acts."""

import io
from typing import Any

from rich.console import Console

from ptc.cli.report import print_report
from ptc.result import CallReport, ProgramReport, RunResult
from ptc.usage import Usage
from ptc_tools.call import Call, Program
from ptc_tools.command_line import ptc_command
from ptc_tools.outcome import Denied, Success

HOSTILE = "\x1b]0;pwned\x07[link=file:///etc/passwd]x[/link]\u202e"


def report(calls: list[CallReport], programs: list[ProgramReport]) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=150, markup=False, emoji=False, highlight=False)
    result: RunResult[Any] = RunResult("run_9", "11", (), tuple(calls), tuple(programs), Usage(), 2)
    print_report(result, "my-audit.db", console)
    return stream.getvalue()


def made(call_id: str, name: str, outcome: Any, arguments: Any = '{"sku": "a"}') -> CallReport:
    return CallReport(Call(call_id, name, arguments, Program("prog_1"), None, 2), outcome, 1, 1500, 1)


def test_it_shows_the_program_its_calls_and_where_the_log_is() -> None:
    """The caller, the arguments, the outcome and the time of each call; the commands to look further."""
    said = report(
        [
            made("c1", "get_inventory", Success({"units": 73})),
            made("c2", "rm", Denied("unknown_tool", "no such tool")),
        ],
        [
            ProgramReport(
                "prog_1", "a = await get_inventory(sku='a')\nb = 2", "python", '{"left": 11}', "completed"
            )
        ],
    )
    for expected in (
        "prog_1",
        "await get_inventory(sku='a')",
        '{"left": 11}',
        "get_inventory",
        "program prog_1",
        '{"sku": "a"}',
        '{"units": 73}',
        "1.5 ms",
        "denied (unknown_tool): no such tool",
        "my-audit.db",
        f"{ptc_command()} audit show my-audit.db run_9",
        f"{ptc_command()} audit verify my-audit.db",
    ):
        assert expected in said, expected


def test_nothing_that_a_model_wrote_reaches_the_terminal_as_more_than_text() -> None:
    """Escapes, markup and bidirectional controls in code, names, arguments, results and messages."""
    said = report(
        [
            made(HOSTILE, HOSTILE, Success(HOSTILE), HOSTILE),
            made("c", "t", Denied("unknown_tool", HOSTILE), {HOSTILE: HOSTILE}),
        ],
        [ProgramReport(HOSTILE, f"x = '{HOSTILE}'\n", "python", HOSTILE, HOSTILE)],
    )
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\u202e" not in said
    assert "[link=file" in said


def test_a_program_is_not_shown_twice() -> None:
    """The code tool's argument is the program that stands above."""
    call = CallReport(Call("prog_1", "run_program", {"code": "secret_marker = 1"}), Success(1), 1, 1, 1)
    said = report([call], [ProgramReport("prog_1", "secret_marker = 1", "python", "1", "completed")])
    assert said.count("secret_marker") == 1


def test_a_run_without_calls_says_so() -> None:
    assert "no tool was called" in report([], [])
