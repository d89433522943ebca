"""`ptc tools`: lint the tools of an application, pin their contracts, check that none grew, and search them.

It imports the operator's own modules to read contracts; it never calls a tool. Exit status: 0 nothing to
report, 1 findings or a tool that outgrew its pin, 2 a command that could not be carried out.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ptc.cli import console
from ptc.cli.loading import load, load_tools
from ptc.cli.tools_search import search_tools
from ptc_tools.errors import PtcError

if TYPE_CHECKING:
    from ptc_tools.contract import Contract
    from ptc_tools.lock import Change

REPORTED: Final = 1
USAGE: Final = 2
LOCK_FILE: Final = "tools.lock"

app = typer.Typer(
    help=(
        "Lint tools, pin their contracts, check the pins, search them.\n\nUse it in CI, so that no tool grows"
        " unseen: it reads contracts and calls no tool.\n\n\b\nExamples:\n"
        "  ptc tools lint mytools:TOOLS\n  ptc tools lock mytools:TOOLS\n  ptc tools check mytools:TOOLS\n"
        '  ptc tools search "refund an order" --catalog mytools:TOOLS'
    ),
    no_args_is_help=True,
)

app.command("search")(search_tools)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE:ATTR…", help="A tool, a function, a Catalog, a Toolset or a list of them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of lines.")]
LockPath = Annotated[Path, typer.Option("--lock", help="The lock file.", show_default=True)]


@app.command("lint")
def lint_tools(names: Names, as_json: AsJson = False) -> None:
    """Advice about tools: each finding says why it matters and shows a fix. Exits 1 if there is any.

    Use it before a model gets the tools.

    \b
    Examples:
      ptc tools lint mytools:TOOLS
      ptc tools lint mytools:get_order billing.tools:CATALOG --json
    """
    from ptc_tools.lint import lint

    findings = lint(_contracts(names))
    if as_json:
        _print_json({"findings": [finding.to_json() for finding in findings]})
    else:
        for finding in findings:
            _line(f"{finding.tool} {finding.path}: {finding.message} [{finding.rule}]")
            _line(f"    why: {finding.why}")
            _line(f"    fix: {finding.fix}")
        _line(f"{len(findings)} finding{'' if len(findings) == 1 else 's'}")
    raise typer.Exit(REPORTED if findings else 0)


@app.command("lock")
def lock_tools(
    names: Names,
    lock: LockPath = Path(LOCK_FILE),
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="TOOL", help="Move or drop the pin of this tool although it grew or is gone."
        ),
    ] = None,
) -> None:
    """Pin the tools' contracts. A tool that grew since it was pinned, or is gone, must be accepted by name.

    Use it when you have reviewed the tools, and commit the file that it writes.

    \b
    Examples:
      ptc tools lock mytools:TOOLS
      ptc tools lock mytools:TOOLS --accept get_order
    """
    from ptc_tools.lock import Lock

    contracts = _contracts(names)
    try:
        before = Lock.read(lock) if lock.exists() else Lock({})
        renewed = before.renewed(contracts, _namespaces(names), accept=accept or ())
    except PtcError as error:
        console.complain(str(error))
        raise typer.Exit(REPORTED) from None
    _write(lock, renewed.dumps())
    _line(f"{len(renewed.pins)} tools pinned in {lock}")


@app.command("check")
def check_tools(names: Names, lock: LockPath = Path(LOCK_FILE), as_json: AsJson = False) -> None:
    """Compare the tools with their pins. Exits 1 if one got wider, changed incompatibly, or is gone.

    Use it in CI, beside the tests.

    \b
    Example:
      ptc tools check mytools:TOOLS
    """
    from ptc_tools.lock import Lock

    contracts = _contracts(names)
    try:
        changes = Lock.read(lock).check(contracts, _namespaces(names))
    except PtcError as error:
        console.complain(str(error))
        raise typer.Exit(USAGE) from None
    broken = [change for change in changes if change.breaks]
    if as_json:
        _print_json({"ok": not broken, "changes": [_as_json(change) for change in changes]})
    else:
        for change in changes:
            _line(f"{change.tool}: {change.state}")
            for reason in change.reasons:
                _line(f"    {reason}")
        _line("pins broken: " + ", ".join(change.tool for change in broken) if broken else "pins hold")
    raise typer.Exit(REPORTED if broken else 0)


def _contracts(names: list[str]) -> list[Contract]:
    """The contracts of what the names load; a tool need not be configured for that. Exits 2 with a message."""
    from ptc_tools.errors import DuplicateTool
    from ptc_tools.tool import Tool, tool

    try:
        loaded = load_tools(names)
        contracts = [(item if isinstance(item, Tool) else tool(item)).contract for item in loaded]
        for name, count in Counter(contract.qualified_name for contract in contracts).items():
            if count > 1:
                raise DuplicateTool(f"two tools are called {name!r}; pins are by name")
        return contracts
    except PtcError as error:
        console.complain(str(error))
        raise typer.Exit(USAGE) from None


def _namespaces(names: list[str]) -> dict[str, str]:
    """What the catalogs among them tell a model about their namespaces. They could be loaded already."""
    from ptc_tools.catalog import Catalog
    from ptc_tools.toolset import Toolset, Use

    found: dict[str, str] = {}
    for name in names:
        value = load(name, "--tools")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            source = one.source if isinstance(one, Use) else one
            if isinstance(source, Toolset):
                found[source.name] = source.description or f"Tools of {source.name}."
            elif isinstance(source, Catalog):
                found.update(source.namespaces)
    return found


def _as_json(change: Change) -> dict[str, object]:
    return {
        "tool": change.tool,
        "state": change.state,
        "breaks": change.breaks,
        "reasons": [
            {"path": reason.path, "verdict": reason.verdict, "change": reason.change}
            for reason in change.reasons
        ],
    }


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a lock file that is half written would pin half of the tools."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        console.complain(f"cannot write {path}: {error.strerror}")
        raise typer.Exit(USAGE) from None


def _print_json(document: object) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _line(text: str) -> None:
    sys.stdout.write(console.visible(text) + "\n")
