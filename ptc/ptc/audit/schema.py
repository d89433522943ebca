"""The tables of a log that is a database: made by the writer, and compared by the verifier."""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x50544341
_STATEMENTS: Final = (
    """CREATE TABLE records (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL, run TEXT, tool TEXT, caller TEXT,
    status TEXT, arguments TEXT, record TEXT NOT NULL
) STRICT""",
    "CREATE INDEX records_run ON records (run, seq) WHERE run IS NOT NULL",
    "CREATE INDEX records_checkpoint ON records (seq) WHERE type = 'audit.checkpoint'",
)
SCHEMA: Final = ";\n".join(_STATEMENTS) + ";\n"
STATEMENTS: Final = frozenset(_STATEMENTS)
"""What `sqlite_master` says of the table of records; a run store may keep tables of its own beside it."""
