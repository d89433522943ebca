"""The code of docs/search.md runs as it stands there, and its tables say what the weights are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptc_tools.search import Weights

PAGE = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(2))
def test_an_example_of_the_page_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example that does not run teaches the wrong thing."""
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(examples) == 2
    names: dict[str, object] = {}
    exec(compile(examples[number], f"docs/search.md example {number}", "exec"), names)


@pytest.mark.parametrize("field", ["name", "namespace", "title", "description", "parameters"])
def test_the_page_has_the_weights_of_the_code(field: str) -> None:
    """A figure in prose goes stale in silence."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {field} |")]
    assert float(row.rstrip(" |").rpartition("|")[2]) == getattr(Weights(), field)
