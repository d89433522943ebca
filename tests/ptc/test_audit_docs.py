"""The documentation of the audit log says what the code does."""

from pathlib import Path

import pytest

from ptc.audit.event_docs import events_markdown
from ptc.audit.events import TABLE

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not beside the tests here")


def test_the_table_of_event_types_is_the_one_in_the_code() -> None:
    """Each type is documented field by field, from one source."""
    text = (DOCS / "audit.md").read_text("utf-8")
    shown = text.partition("<!-- events -->\n")[2].partition("<!-- /events -->")[0]
    assert shown == events_markdown(), "python -m ptc.audit.event_docs docs/audit.md writes the table"


def test_every_event_type_and_field_says_something() -> None:
    names = [event.name for event in TABLE]
    assert len(set(names)) == len(names)
    for event in TABLE:
        assert event.when
        assert all(field.says for field in event.fields), event.name


def test_every_command_is_documented() -> None:
    """A command that is not in docs/cli.md does not exist for a reader."""
    from ptc.cli import audit

    text = (DOCS / "cli.md").read_text("utf-8")
    for command in audit.app.registered_commands:
        name = command.name or (command.callback.__name__ if command.callback else "")
        assert f"`{name}" in text, name
