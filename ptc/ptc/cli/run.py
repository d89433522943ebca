"""`ptc run`: asks a model one question with tools, and asks in the terminal about calls that need an approval.

The service is that of the environment (docs/getting-started.md), or an embedded peer with a script. It only
parses, asks and prints; the run is the library's. Exit status: 0 completed, 1 ended without an answer, 2 could
not be carried out, 5 waits for a decision.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from ptc.approval import ApprovalRequest, Decision
    from ptc.audit.log import AuditLog
    from ptc.result import RunResult
    from ptc.runner import Runner
    from ptc.store.sqlite import SQLiteRunStore
    from ptc_tools.call import JsonObject

COMPLETED: Final = 0
NO_ANSWER: Final = 1
WAITING: Final = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of a run."""

    question: str | None
    recover: str | None
    tools: tuple[str, ...]
    programs: str | None
    script: str | None
    store: Path | None
    audit: Path | None
    level: str
    run_id: str | None
    approve: bool


def run_model(
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="What to ask, or - for standard input.")
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tools", metavar="MODULE:ATTR", help="Tools to offer; may be given again."),
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Ask here about each call that needs an approval.")
    ] = False,
    programs: Annotated[
        str | None, typer.Option("--programs", help="Where programs run: hosted, local or auto.")
    ] = None,
    script: Annotated[
        str | None,
        typer.Option(
            "--script", metavar="FILE:ATTR", help="Script of an embedded peer, where no service is set."
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="PATH", help="Keep the run there, so that it can be gone on with."),
    ] = None,
    recover: Annotated[
        str | None, typer.Option("--recover", metavar="RUN", help="Go on with a run of the store.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run-id", help="The run's id, if it is to have one of yours.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="PATH", help="Audit log to write (.jsonl or .db).")
    ] = None,
    level: Annotated[
        str, typer.Option("--audit-level", help="What the log holds: metadata, request or full.")
    ] = "metadata",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Ask a model a question with tools, and decide about its calls.

    Use it to try tools with a model, and to go on with a run that waits for a decision. The service is the one that
    the environment names (AZURE_OPENAI_ENDPOINT and PTC_MODEL, or OPENAI_API_KEY), or an embedded peer with
    --script. The answer goes to standard output; questions about calls and what happened go to standard error.

    Without --approve a call that needs an approval is denied; with --store the run is left waiting instead. PATH
    may be that of the audit log (.db): then a step of the run and its record are one.

    Exit status: 0 completed, 1 ended without an answer, 2 could not be carried out, 5 waits for a decision.

    \b
    Examples:
      ptc run "How many units are left?" --tools mytools:TOOLS
      ptc run "Clean up the records" --tools mytools:TOOLS --approve
      ptc run "Clean up the records" --tools mytools:TOOLS --audit a.db --store a.db
      ptc run --recover run_0af3 --tools mytools:TOOLS --audit a.db --store a.db --approve
    """
    import asyncio

    from ptc.cli.loading import NotLoadable

    if (question is None) == (recover is None):
        raise NotLoadable("give a question, or --recover RUN to go on with a run of the store")
    if recover is not None and store is None:
        raise NotLoadable("--recover goes on with a run of a store: name it with --store PATH")
    if recover is not None and store is not None and not store.exists():
        raise NotLoadable(f"--store {store}: there is no such file, so no run to go on with")
    if programs not in (None, "hosted", "local", "auto"):
        raise NotLoadable(f"--programs {programs!r}: give hosted, local or auto")
    if question == "-":
        question = sys.stdin.read()
    asked = Asked(
        question, recover, tuple(tools or ()), programs, script, store, audit, level, run_id, approve
    )
    result = asyncio.run(_run(asked))
    if as_json:
        import json

        sys.stdout.write(json.dumps(as_object(result), ensure_ascii=True) + "\n")
    else:
        _print(result, asked)
    raise typer.Exit(exit_status(result))


def exit_status(result: RunResult[Any]) -> int:
    """The documented exit status for a run's end."""
    return {"completed": COMPLETED, "paused": WAITING}.get(result.status, NO_ANSWER)


async def _run(asked: Asked) -> RunResult[Any]:
    from ptc.audit.log import AuditLog
    from ptc.connection import connect

    async with AsyncExitStack() as stack:
        log: AuditLog | None = None
        if asked.audit is not None:
            log = await stack.enter_async_context(AuditLog(asked.audit, levels=asked.level))  # type: ignore[arg-type]  # checked there
        store = _store(asked, log)
        if store is not None:
            await stack.enter_async_context(store)
        service = await stack.enter_async_context(connect(asked.script))
        runner = _runner(asked, service, log, store)
        if asked.recover is not None:
            result = await runner.recover(asked.recover)
        else:
            result = await runner.run(asked.question, run_id=asked.run_id)
        return await _decided(runner, result) if asked.approve else result


def _store(asked: Asked, log: AuditLog | None) -> SQLiteRunStore | None:
    from ptc.store.sqlite import SQLiteRunStore

    if asked.store is None:
        return None
    same = log is not None and asked.audit is not None and asked.audit.resolve() == asked.store.resolve()
    return SQLiteRunStore(log if same and log is not None else asked.store)


def _runner(asked: Asked, service: Any, log: AuditLog | None, store: SQLiteRunStore | None) -> Runner:
    from ptc.approval import PauseForApproval
    from ptc.cli.exec import user_name
    from ptc.cli.loading import load_tools
    from ptc.runner import Runner

    waits = asked.approve or store is not None
    return Runner(
        client=service.client,
        model=service.model,
        tools=load_tools(asked.tools),
        programs=asked.programs,  # type: ignore[arg-type]  # checked above
        approver=PauseForApproval() if waits else None,
        audit=log,
        store=store,
        principal=user_name(),
    )


async def _decided(runner: Runner, result: RunResult[Any]) -> RunResult[Any]:
    """Goes on for as long as somebody decides; what is left for later is not asked about twice."""
    later: set[str] = set()
    while result.status == "paused" and result.state is not None:
        decisions = _ask([request for request in result.approvals if request.binding not in later], later)
        if not decisions:
            return result
        result = await runner.resume(result.state, decisions=decisions)
    return result


def _ask(requests: list[ApprovalRequest], later: set[str]) -> dict[str, Decision]:
    # On the event loop's own thread: nothing else of the run goes on, and Ctrl-C ends it at once.
    from ptc.cli.console import stderr, text
    from ptc.cli.deciding import decide
    from ptc.cli.exec import user_name

    err = stderr()
    decisions: dict[str, Decision] = {}
    for request in requests:
        decision = decide(
            request, read=_read, show=lambda line: err.print(text(line), soft_wrap=True), by=user_name()
        )
        if decision is None:
            later.add(request.binding)
        else:
            decisions[request.call_id] = decision
    return decisions


def _read(prompt: str) -> str | None:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return None
    return line.rstrip("\r\n")


def as_object(result: RunResult[Any]) -> JsonObject:
    """What `--json` prints."""
    return {
        "status": result.status,
        "run_id": result.run_id,
        "answer": result.output_text,
        "approvals": [request.to_json() for request in result.approvals],
        "calls": [
            {
                "call_id": report.call.call_id,
                "tool": report.call.qualified_name,
                "status": report.outcome.status,
            }
            for report in result.calls
        ],
        "uncertain": [
            {"call_id": item.call.call_id, "tool": item.call.qualified_name, "resolution": item.resolution}
            for item in result.uncertain
        ],
        "requests": result.requests,
    }


def _print(result: RunResult[Any], asked: Asked) -> None:
    from ptc.cli.console import stderr, stdout, text, visible
    from ptc.cli.report import print_report

    if result.output_text:
        stdout().print(visible(result.output_text), soft_wrap=True)
    err = stderr()
    print_report(result, asked.audit, err)
    if result.status == "paused":
        for line in waiting_lines(result, asked):
            err.print(text(line), soft_wrap=True)
    elif result.status != "completed":
        err.print(text(f"the run ended as {result.status}", "bold red"))


def waiting_lines(result: RunResult[Any], asked: Asked) -> list[str]:
    """What waits, and how to go on with it."""
    from ptc_tools.command_line import ptc_command

    lines = [f"waits for a decision: {request.name} ({request.call_id})" for request in result.approvals]
    if asked.store is None:
        return [*lines, "the run was not kept: with --store PATH it can be gone on with later"]
    words = [
        ptc_command(),
        "run",
        "--recover",
        shlex.quote(result.run_id),
        "--store",
        shlex.quote(str(asked.store)),
    ]
    given = {"--audit": asked.audit, "--programs": asked.programs, "--script": asked.script}
    for option, value in (*(("--tools", tool) for tool in asked.tools), *given.items()):
        words += [] if value is None else [option, shlex.quote(str(value))]
    return [*lines, f"go on with it: {' '.join(words)} --approve"]
