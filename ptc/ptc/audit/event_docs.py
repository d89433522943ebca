"""The table of event types as Markdown: what docs/audit.md shows is this, and a test compares them.

`python -m ptc.audit.event_docs docs/audit.md` writes it there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from ptc.audit.events import TABLE

BEGIN: Final = "<!-- events -->\n"
END: Final = "<!-- /events -->"


def events_markdown() -> str:
    """A heading line and a table of fields for each type."""
    parts: list[str] = []
    for event in TABLE:
        parts.append(f"**`{event.name}`**: {event.when}.\n")
        if event.fields:
            parts.append("| field | from | says |\n|---|---|---|")
            parts.extend(f"| `{field.name}` | {field.exposure} | {field.says} |" for field in event.fields)
            parts.append("")
    return "\n".join(parts)


def rewrite(page: Path) -> None:
    """Puts the table between the two marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}{events_markdown()}{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
