"""The service behind the sample's tools: customer records in SQLite, each tenant's apart from the others'.

It keeps an operation log of its own, and that is where idempotency comes from: an operation id that it has
seen changes nothing a second time. `shipments` can be switched off, as a system that is down.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ptc_tools import ToolError

SCHEMA = """
CREATE TABLE customers (
    tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, email TEXT NOT NULL, phone TEXT,
    status TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (tenant, id)
);
CREATE TABLE operations (
    tenant TEXT NOT NULL, id TEXT NOT NULL, customer TEXT NOT NULL, status TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
"""


class NotFound(ToolError):
    """There is no such record for this tenant."""


@dataclass
class Store:
    """One database file. `cut_after_commit` is for tests: the next update loses its connection too late."""

    path: Path
    shipments_available: bool = True
    cut_after_commit: list[bool] = field(default_factory=list)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=10)
        connection.row_factory = sqlite3.Row
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def create(self, tenant: str, customers: list[tuple[str, str, str, str | None]]) -> None:
        """Fill an empty file with customers of one tenant: (id, name, email, phone)."""
        with self._connection() as connection:
            connection.executescript(SCHEMA)
        with self._connection() as connection:
            connection.executemany(
                "INSERT INTO customers VALUES (?, ?, ?, ?, ?, 'active', 1)",
                [(tenant, *customer) for customer in customers],
            )

    def search(self, tenant: str, text: str, after: str, limit: int) -> list[sqlite3.Row]:
        """Customers whose name holds `text`, by id, those after an id; at most `limit`."""
        with self._connection() as connection:
            rows: list[sqlite3.Row] = connection.execute(
                "SELECT id, name, status FROM customers "
                "WHERE tenant = ? AND id > ? AND instr(lower(name), lower(?)) > 0 ORDER BY id LIMIT ?",
                (tenant, after, text, limit),
            ).fetchall()
        return rows

    def get(self, tenant: str, customer: str) -> sqlite3.Row:
        """One customer. Raises NotFound."""
        with self._connection() as connection:
            rows: list[sqlite3.Row] = connection.execute(
                "SELECT * FROM customers WHERE tenant = ? AND id = ?", (tenant, customer)
            ).fetchall()
        if not rows:
            raise NotFound(f"no customer has the id {customer}")
        return rows[0]

    def set_status(self, tenant: str, operation: str, customer: str, status: str) -> int:
        """Set a status, once for each operation id; the version afterwards.

        Raises NotFound, and ToolError for an operation id that belongs to another change.
        """
        with self._connection() as connection:
            seen = connection.execute(
                "SELECT customer, status FROM operations WHERE tenant = ? AND id = ?", (tenant, operation)
            ).fetchone()
            if seen is not None and tuple(seen) != (customer, status):
                raise ToolError(f"{operation} was used for another change; take a new operation id")
            if seen is None:
                changed = connection.execute(
                    "UPDATE customers SET status = ?, version = version + 1 WHERE tenant = ? AND id = ?",
                    (status, tenant, customer),
                )
                if changed.rowcount == 0:
                    raise NotFound(f"no customer has the id {customer}")
                connection.execute(
                    "INSERT INTO operations VALUES (?, ?, ?, ?)", (tenant, operation, customer, status)
                )
        if self.cut_after_commit and self.cut_after_commit.pop():
            raise ConnectionResetError("the connection to the record service was reset")
        return int(self.get(tenant, customer)["version"])

    def operation(self, tenant: str, operation: str) -> sqlite3.Row | None:
        """What an operation did, or None if it never happened."""
        with self._connection() as connection:
            rows: list[sqlite3.Row] = connection.execute(
                "SELECT customer, status FROM operations WHERE tenant = ? AND id = ?", (tenant, operation)
            ).fetchall()
        return rows[0] if rows else None
