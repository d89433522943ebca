"""The page about tools runs as it is printed."""

import re
from pathlib import Path

from ptc_tools.names import RESERVED

PAGE = (Path(__file__).parent.parent.parent / "docs" / "tools.md").read_text()


def test_every_example_of_the_page_runs() -> None:
    """One after the other in one module, as a reader would paste them."""
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 5
    names: dict[str, object] = {"__name__": "page"}
    for number, example in enumerate(examples):
        exec(compile(example, f"docs/tools.md example {number}", "exec"), names)


def test_what_it_says_of_reserved_names_is_so() -> None:
    """Prose goes stale where nobody looks."""
    for name in (
        "tool_search",
        "shell",
        "mcp",
        "python",
        "functions",
        "multi_tool_use",
        "add_tools",
        "remove_tools",
    ):
        assert name in RESERVED
        assert f"`{name}`" in PAGE
