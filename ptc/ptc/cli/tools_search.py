"""`ptc tools search`: tries a question against a catalog, as a model would ask, before any model does.

It imports the operator's own modules, reads the sources that they name (a registry too, where the module
registers its client) and calls no tool. Exit status: 0 something was found, 1 nothing was, 2 it could not be asked.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer

from ptc.cli import console
from ptc.cli.loading import load
from ptc_tools.errors import PtcError

if TYPE_CHECKING:
    from ptc_tools.search import Document, Hit, HybridIndex, ToolIndex
    from ptc_tools.sources import StepCatalog

NOTHING: Final = 1
USAGE: Final = 2
_SAID: Final = 100
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n")


def search_tools(
    query: Annotated[str, typer.Argument(help="What the tool should do, in a few words.")],
    catalog: Annotated[
        list[str],
        typer.Option(
            "--catalog",
            metavar="MODULE:ATTR",
            help="A tool, a Catalog, a Toolset, `ptc.use(…)`, a Registry, or a list of them. May be repeated.",
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Tools to show at most.")] = 5,
    search: Annotated[
        str, typer.Option("--search", metavar="HOW", help="`lexical`, or `hybrid`: by meaning as well.")
    ] = "lexical",
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="Where hybrid search keeps what it encoded.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of lines.")
    ] = False,
) -> None:
    """The tools that a question finds, best first, with the scores they got. Exits 1 if none does.

    Use it to see what a model would be given for the words that it may use, and to improve descriptions until
    the right tool stands first. Deferred tools are marked; what a policy hides from a run is shown here.

    \b
    Examples:
      ptc tools search "refund an order" --catalog mytools:TOOLS
      ptc tools search "wer hat das bestellt" --catalog mytools:SOURCES --search hybrid --vectors vectors.db
    """
    if search not in ("lexical", "hybrid"):
        console.complain(f"--search {search!r}: say lexical or hybrid")
        raise typer.Exit(USAGE)
    how = cast("Literal['lexical', 'hybrid']", search)
    try:
        step = _read(catalog)
        index = _index(step, how, vectors)
        hits = index.view().search(query, limit)
    except PtcError as error:
        console.complain(str(error))
        raise typer.Exit(USAGE) from None
    found = [(hit, document) for hit in hits if (document := index.document(hit.key)) is not None]
    if as_json:
        _print_json(found, step, len(index))
    else:
        _print_lines(found, step, len(index))
    raise typer.Exit(0 if found else NOTHING)


def _read(names: list[str]) -> StepCatalog:
    """What the names load, read once as a step would. Raises PtcError."""
    from ptc.cli.loading import NotLoadable
    from ptc_tools.catalog import Catalog
    from ptc_tools.sources import Sources

    items: list[object] = []
    for name in names:
        value = load(name, "--catalog")
        if isinstance(value, Sources):
            if len(names) > 1:
                raise NotLoadable(f"--catalog {name!r} is a whole of sources: name it alone")
            return asyncio.run(value.read())
        items.extend(value if isinstance(value, (Catalog, list, tuple)) else [value])
    try:
        return asyncio.run(Sources(items).read())  # type: ignore[arg-type]
    except TypeError as error:
        raise NotLoadable(f"--catalog {', '.join(names)}: {error}") from None


def _index(
    step: StepCatalog, how: Literal["lexical", "hybrid"], vectors: Path | None
) -> ToolIndex | HybridIndex:
    from ptc.finding import document_of
    from ptc_tools.search import HybridIndex, ToolIndex, Vectors

    documents = [document_of(tool, step.catalog.namespaces) for tool in step.catalog]
    if how == "lexical":
        return ToolIndex(documents)
    return HybridIndex(documents, vectors=Vectors(vectors))


def _print_lines(found: list[tuple[Hit, Document]], step: StepCatalog, size: int) -> None:
    for hit, document in found:
        waits = " (deferred)" if hit.key in step.deferred else ""
        said = _SENTENCE.split(document.description.strip(), maxsplit=1)[0]
        sys.stdout.write(
            console.visible(f"{hit.score:6.2f}  {hit.key}{waits}  {console.one_line(said, _SAID)}") + "\n"
        )
    if not found:
        sys.stdout.write(f"none of {size} tools\n")


def _print_json(found: list[tuple[Hit, Document]], step: StepCatalog, size: int) -> None:
    document = {
        "searched": size,
        "tools": [
            {
                "tool": hit.key,
                "score": hit.score,
                "deferred": hit.key in step.deferred,
                "description": each.description,
            }
            for hit, each in found
        ],
    }
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
