"""`ptc exec`: runs one program file in the sandbox, with the tools it is granted, and says how it ended.

The program is not trusted, and its exit status is not its own: 0 completed, 1 raised, 3 denied, 4 killed,
5 did not end by itself (crashed, cancelled, suspended); 2 is for a command that could not be carried out.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from ptc_sandbox.limits import Limits
    from ptc_sandbox.result import ProgramCall, ProgramResult
    from ptc_tools.call import JsonObject
    from ptc_tools.record import Recorder

COMPLETED: Final = 0
RAISED: Final = 1
USAGE: Final = 2
DENIED: Final = 3
KILLED: Final = 4
UNFINISHED: Final = 5

_WALLS: Final = {
    "language": "the language wall",
    "kernel": "the kernel wall",
    "host": "the host",
}


def exec_program(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Python program, or - for standard input.")],
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", metavar="MODULE:ATTR", help="Tools to grant; may be given again."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every call, however many there are.")
    ] = False,
    time: Annotated[float | None, typer.Option("--time", help="Seconds from start to end.")] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", help="Seconds of processor time.")] = None,
    memory: Annotated[int | None, typer.Option("--memory", help="Memory, MiB.")] = None,
    output: Annotated[int | None, typer.Option("--output", help="Printed text, bytes.")] = None,
    calls: Annotated[int | None, typer.Option("--calls", help="Tool calls in all.")] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="PATH", help="Audit log to write (.jsonl or .db).")
    ] = None,
    level: Annotated[
        str, typer.Option("--audit-level", help="What the log holds: metadata, request or full.")
    ] = "metadata",
) -> None:
    """Run a program in the sandbox and print its output, value and calls.

    Use it to try a program, or tools, without a model. The program's output and value go to standard output,
    its calls and how it ended to standard error. mytools.py is looked for in the current directory too.

    Exit status: 0 completed, 1 raised, 2 could not be carried out, 3 denied by a wall, 4 killed at a limit,
    5 did not end by itself.

    \b
    Examples:
      echo '1 + 1' | ptc exec -
      ptc exec program.py --tools mytools:TOOLS
      ptc exec program.py --tools mytools:get_order --tools mytools:get_stock
      ptc exec program.py --time 5 --memory 256 --json
      ptc exec program.py --audit audit.db --audit-level full
    """
    from ptc.cli.loading import load_tools

    code = read_program(file)
    granted = load_tools(tools or ())
    limits = _limits(wall_seconds=time, cpu_seconds=cpu, memory=memory, output_bytes=output, calls=calls)
    result = run_program(code, granted, limits, audit, level)
    if as_json:
        import json

        sys.stdout.write(json.dumps(as_object(result), ensure_ascii=True) + "\n")
    else:
        _print(result, audit, everything)
        if not granted and result.error is not None and result.error.type == "NameError":
            sys.stderr.write("no tools were granted: name those of the program with --tools MODULE:ATTR\n")
    raise typer.Exit(exit_status(result.status))


def exit_status(status: str) -> int:
    """The documented exit status for a program's."""
    if status.startswith("killed:"):
        return KILLED
    return {"completed": COMPLETED, "raised": RAISED, "denied": DENIED}.get(status, UNFINISHED)


def read_program(file: str) -> str:
    """The program's text. Raises NotLoadable with what to do."""
    from ptc.cli.loading import NotLoadable

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        what = "there is no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise NotLoadable(
            f"{file}: {what}; name a Python program, or - to read it from standard input"
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotLoadable(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from None


def run_program(code: str, tools: list[Any], limits: Limits, audit: Path | None, level: str) -> ProgramResult:
    """Runs it to its end, with an audit log around it where one is asked for."""
    import asyncio

    from ptc.cli.loading import NotLoadable

    try:
        return asyncio.run(_run(code, tools, limits, audit, level))
    except (ValueError, OSError) as error:
        from ptc_tools.errors import PtcError

        if isinstance(error, PtcError):
            raise
        raise NotLoadable(str(error)) from error


async def _run(code: str, tools: list[Any], limits: Limits, audit: Path | None, level: str) -> ProgramResult:
    from contextlib import AsyncExitStack

    from ptc.audit.log import AuditLog
    from ptc_sandbox.sandbox import Sandbox

    async with AsyncExitStack() as stack:
        log: AuditLog | None = None
        if audit is not None:
            log = await stack.enter_async_context(AuditLog(audit, levels=level))  # type: ignore[arg-type]  # checked there
        sandbox = await stack.enter_async_context(Sandbox(limits=limits, ahead=1))
        return await _run_recorded(sandbox, code, tools, log)


async def _run_recorded(sandbox: Any, code: str, tools: list[Any], log: Recorder | None) -> ProgramResult:
    import uuid

    from ptc_tools.context import RunContext

    run = RunContext(run_id=f"run_{uuid.uuid4().hex}", principal=user_name())
    if log is not None:
        await log.event("run.started", {"programs": "local"}, run)
    result: ProgramResult = await sandbox.run(
        code, tools=tools, run=run, recorder=log, caller_id=f"program_{uuid.uuid4().hex}"
    )
    if log is not None:
        await log.event("run.finished", {"status": result.status, "calls": len(result.calls)}, run)
    return result


def user_name() -> str | None:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def _limits(memory: int | None, **bounds: float | None) -> Limits:
    from ptc.cli.loading import NotLoadable
    from ptc_sandbox.limits import MIB, Limits

    given: dict[str, Any] = {name: value for name, value in bounds.items() if value is not None}
    if memory is not None:
        given["memory_bytes"] = memory * MIB
    try:
        return Limits(**given)
    except ValueError as error:
        raise NotLoadable(f"a limit makes no sense: {error}") from None


def as_object(result: ProgramResult) -> JsonObject:
    """What `--json` prints."""
    from dataclasses import asdict

    return {
        "status": result.status,
        "value": result.value,
        "output": result.output,
        "error": asdict(result.error) if result.error else None,
        "calls": [_call_object(call) for call in result.calls],
        "duration_us": result.duration_us,
        "cpu_us": result.cpu_us,
        "peak_memory": result.peak_memory,
        "evidence": result.evidence,
    }


def _call_object(call: ProgramCall) -> JsonObject:
    from ptc_tools.outcome import Success, error_object

    told: JsonObject = {
        "call_id": call.call_id,
        "name": call.name,
        "namespace": call.namespace,
        "arguments": call.arguments,
        "line": call.line,
        "status": call.outcome.status if call.outcome else "unanswered",
        "duration_us": call.duration_us,
    }
    if isinstance(call.outcome, Success):
        told["result"] = call.outcome.value
    elif call.outcome is not None:
        told.update(error_object(call.outcome))
    return told


def _print(result: ProgramResult, audit: Path | None, everything: bool) -> None:
    import shlex

    from ptc.cli.console import MAX_ROWS, duration, rows_left_out, stderr, stdout, text, visible
    from ptc.cli.report import calls_table, json_text, program_rows
    from ptc_tools.command_line import ptc_command

    out = stdout()
    if result.output:
        out.print(visible(result.output), end="" if result.output.endswith("\n") else "\n", soft_wrap=True)
    if result.value is not None:
        out.print(json_text(result.value), soft_wrap=True)
    err = stderr()
    shown = result.calls if everything else result.calls[:MAX_ROWS]
    if shown:
        err.print(calls_table(program_rows(shown), title="calls"))
    if len(result.calls) > len(shown):
        how = "--all shows them, --json prints them"
        err.print(text(rows_left_out(len(result.calls), len(shown), "calls", how), "dim"))
    style = {COMPLETED: "green", RAISED: "yellow"}.get(exit_status(result.status), "bold red")
    err.print(text(f"{result.status} in {duration(result.duration_us)}", style))
    for line in explanation(result):
        err.print(text(line), soft_wrap=True)
    if audit is not None:
        path, ptc = shlex.quote(str(audit)), ptc_command()
        err.print(
            text(f"audit log: {audit}  ({ptc} audit show {path}; {ptc} audit verify {path})", "dim"),
            soft_wrap=True,
        )


def explanation(result: ProgramResult) -> list[str]:
    """Why a program did not complete, and which wall held."""
    lines: list[str] = []
    if result.error is not None:
        lines.append(str(result.error))
        if result.error.excerpt:
            lines.append(textwrap.indent(result.error.excerpt.strip("\n"), "  "))
        if result.error.wall is not None:
            lines.append(f"held by {_WALLS[result.error.wall]}")
    elif result.status.startswith("killed:"):
        lines.append(f"held by {_WALLS['kernel' if result.status == 'killed:syscall' else 'host']}")
    if result.status != "completed" and result.evidence:
        lines.append(f"evidence: {result.evidence}")
    return lines
