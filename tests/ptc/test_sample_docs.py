"""The code of the documentation runs as it stands there."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import ptc

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, section: str) -> list[str]:
    """The Python blocks of one section of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    part = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```python\n(.*?)```", part, re.S)


def run(code: str, names: dict[str, Any]) -> None:
    """Run a block with top-level await, as the pages have it."""
    body = textwrap.indent(code, "    ")
    exec(f"async def block(names):\n    globals().update(names)\n{body}\n    names.update(locals())", names)
    asyncio.run(names["block"](names))


def test_getting_started_runs_from_its_tool_to_its_unit_test() -> None:
    """Sections 2 to 4: a tool, a program in the sandbox, and a run with a scripted model."""
    names: dict[str, Any] = {"ptc": ptc}
    exec(blocks("getting-started.md", "2. Your own tools")[0], names)
    run(blocks("getting-started.md", "3. Try a program without a model")[0], names)
    assert names["result"].value == 1250
    run(blocks("getting-started.md", "4. A run, with a scripted model")[0], names)
    assert names["result"].output_text == "The order is 12.5."


def test_the_script_of_the_page_on_the_peer_is_one() -> None:
    """The two turns of the first example."""
    names: dict[str, Any] = {}
    exec(blocks("peer.md", "Scripts")[0], names)
    assert len(names["model"].turns) == 2


def test_the_run_that_searches_runs_as_the_page_has_it() -> None:
    """The first example of the page on tool search."""
    names: dict[str, Any] = {}
    run(blocks("tool-search.md", "A run that searches")[0], names)
    assert names["result"].output_text == "record of c-1"
    assert [report.call.name for report in names["result"].calls] == ["tool_search_call", "lookup"]


def test_every_link_between_our_pages_leads_somewhere() -> None:
    """A page that was renamed must not be missed by its readers."""
    root = DOCS.parent
    pages = [*root.glob("*.md"), *DOCS.rglob("*.md"), *root.glob("samples/*.md")]
    links = [
        (page.relative_to(root), link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert links
    assert [(page, link) for page, link in links if not (root / page.parent / link).exists()] == []
