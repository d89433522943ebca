"""The page on catalogs runs as it is printed, and says no more errors than there are."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import ptc
from ptc_tools.admission import TABLE

PAGE = (Path(__file__).parents[2] / "docs" / "catalogs.md").read_text(encoding="utf-8")


def test_every_example_of_the_page_runs() -> None:
    """One after the other in one module, as a reader would paste them; each may await."""
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 5
    body = textwrap.indent("\n".join(examples), "    ")
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(f"async def page():\n{body}\n    return bank", "docs/catalogs.md", "exec"), names)
    try:
        bank = asyncio.run(names["page"]())
    finally:
        ptc.unregister_registry("company")
    assert [declaration["approval"] for declaration in bank.declarations] == ["always"]


def test_the_codes_that_the_page_names_are_codes() -> None:
    """Prose goes stale where nobody looks."""
    refusals = [ptc.CallNotAdmitted, ptc.AdmissionConflict, ptc.CallIdentityConflict, ptc.RegistryOverloaded]
    for kind in refusals:
        assert f"`{kind.code}`" in PAGE
    assert set(TABLE.values()) == {"publish", "attach", "reject", "refuse", "conflict"}
