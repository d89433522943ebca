"""Claims in a registry's file: which provider has a call, as a right to answer it that stands in the call's row.

A claim is a secret of the provider's, kept behind the mark of the request that handed the call out: a request whose
provider went meanwhile gives back what it took itself, and nothing that was handed out again since.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass
from typing import Final

from ptc_tools.registry_protocol import ResolvedCall

_MARK: Final = 16
"""Characters of a mark; the secret follows the one after it."""
OF_CLAIM: Final = f"substr(claim, {_MARK + 2}) = ?"
WAITING: Final = "state = 'published' AND claim IS NULL"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A call that a provider has taken on: `claim` is its right to say how it ended.

    `seconds`: what was left of the call's time. `held` is what `give_back` is told; None where an earlier request
    of the same claim had taken the call.
    """

    key: str
    consumer: str
    claim: str
    call: ResolvedCall
    seconds: float
    held: str | None = None


def take(db: sqlite3.Connection, token: str, claim: str, now: float) -> Claimed | None:
    """The call that this claim has already, or else the oldest that waits for the registration; None for none."""
    columns = "SELECT n, key, consumer, call, until FROM calls WHERE token = ?"
    had = db.execute(f"{columns} AND {OF_CLAIM} AND state = 'published'", (token, claim)).fetchone()
    row = (
        had
        or db.execute(f"{columns} AND {WAITING} AND until > ? ORDER BY n LIMIT 1", (token, now)).fetchone()
    )
    if row is None:
        return None
    number, key, consumer, call, until = row
    held = f"{secrets.token_hex(_MARK // 2)}:{claim}"
    db.execute("UPDATE calls SET claim = ? WHERE n = ?", (held, number))
    return Claimed(
        key, consumer, claim, ResolvedCall.from_json(json.loads(call)), until - now, None if had else held
    )


def give_back(db: sqlite3.Connection, token: str, held: str) -> bool:
    """The call waits again, unless it was handed out once more or ended; whether it does."""
    changed = db.execute(
        "UPDATE calls SET claim = NULL WHERE token = ? AND claim = ? AND state = 'published'", (token, held)
    )
    return changed.rowcount > 0
