"""The first layout: objects with what they are built on, the versions of secret files, and settings."""

from __future__ import annotations

import sqlite3
from typing import Final

# Positions are never used twice, so they tell the order of creation for good. Names are unique as written; the rule
# for names that differ only in case is the catalog's. What an object needs is checked when the transaction commits,
# because one transaction may drop and create in any order.
_STATEMENTS: Final = (
    """
    CREATE TABLE objects (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        space TEXT NOT NULL CHECK (space IN ('relation', 'function', 'secret')),
        name TEXT NOT NULL,
        quoted INTEGER NOT NULL CHECK (quoted IN (0, 1)),
        kind TEXT NOT NULL,
        temporary INTEGER NOT NULL CHECK (temporary IN (0, 1)),
        text TEXT NOT NULL,
        settings TEXT NOT NULL,
        created_at TEXT NOT NULL,
        changed_at TEXT NOT NULL,
        UNIQUE (space, name)
    ) STRICT
    """,
    """
    CREATE TABLE dependencies (
        object INTEGER NOT NULL REFERENCES objects (position) ON DELETE CASCADE,
        needs INTEGER NOT NULL REFERENCES objects (position) DEFERRABLE INITIALLY DEFERRED,
        PRIMARY KEY (object, needs),
        CHECK (object <> needs)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX dependencies_by_need ON dependencies (needs)",
    """
    CREATE TABLE secret_values (
        name TEXT PRIMARY KEY,
        object INTEGER NOT NULL REFERENCES objects (position) ON DELETE CASCADE,
        version INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX secret_values_by_object ON secret_values (object)",
    "CREATE TABLE secret_versions (last INTEGER NOT NULL) STRICT",
    "INSERT INTO secret_versions (last) VALUES (0)",
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
)


def upgrade(connection: sqlite3.Connection) -> None:
    """Make the tables; the caller holds the transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)
