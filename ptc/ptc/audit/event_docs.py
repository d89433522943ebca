"""The table of event types as Markdown: what docs/audit.md shows is this, and a test compares them."""

from __future__ import annotations

from ptc.audit.events import TABLE


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
