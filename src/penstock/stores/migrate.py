"""Brings a catalog database to the layout this version knows, one numbered step at a time."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from penstock.errors import CatalogError, InternalError
from penstock.frozen import frozen
from penstock.stores import migrations
from penstock.stores.private_files import RESTORE

_MODULE: Final = re.compile(r"v(\d{4})_\w+")
_SCHEMA_VERSION: Final = "schema_version"


@frozen
class Migration:
    """One step; it runs inside a transaction that also records its number."""

    number: int
    upgrade: Callable[[sqlite3.Connection], None]


def known_migrations() -> tuple[Migration, ...]:
    """The steps of this version, in order and without a gap."""
    found: list[Migration] = []
    for module in pkgutil.iter_modules(migrations.__path__):
        match = _MODULE.fullmatch(module.name)
        if match:
            code = importlib.import_module(f"{migrations.__name__}.{module.name}")
            found.append(Migration(int(match[1]), code.upgrade))
    found.sort(key=lambda step: step.number)
    if [step.number for step in found] != list(range(1, len(found) + 1)):
        raise InternalError("the catalog migrations are not numbered without a gap")
    return tuple(found)


def migrate(
    connection: sqlite3.Connection, versions: Mapping[str, str], steps: Sequence[Migration] | None = None
) -> int:
    """Run the steps that are missing, note `versions` of our software, and give the version of the layout.

    Each step is one transaction: a crash leaves the database before it or behind it.
    """
    steps = known_migrations() if steps is None else steps
    newest = steps[-1].number if steps else 0
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            current = _prepare(connection)
            if current > newest:
                raise _too_new(connection, current, newest)
            if current < newest:
                steps[current].upgrade(connection)
                _write(connection, {_SCHEMA_VERSION: str(current + 1)})
            else:
                _write(connection, versions)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        if current == newest:
            return current


def read_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """What the database says about itself."""
    return dict(connection.execute("SELECT key, value FROM meta"))


def _prepare(connection: sqlite3.Connection) -> int:
    """The version of the layout, 0 for an empty database; a database of another program is refused."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and "meta" not in tables:
        raise CatalogError(
            "STATE_PATH_UNUSABLE",
            "catalog.db is a database of another program",
            hint="choose another state_path, or move the file away",
        )
    if not tables:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID")
        _write(connection, {_SCHEMA_VERSION: "0"})
    version = read_meta(connection).get(_SCHEMA_VERSION)
    if version is None or not re.fullmatch("[0-9]{1,9}", version, re.ASCII):
        raise CatalogError(
            "STATE_PATH_UNUSABLE",
            "catalog.db is damaged or not a Penstock catalog: it does not say which layout it has",
            hint=RESTORE,
        )
    return int(version)


def _write(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value "
        "WHERE value <> excluded.value",
        values.items(),
    )


def _too_new(connection: sqlite3.Connection, current: int, newest: int) -> CatalogError:
    by = read_meta(connection).get("penstock_version", "unknown")
    return CatalogError(
        "STATE_PATH_UNUSABLE",
        f"catalog.db has layout {current}, written by penstock {by}; this version knows layouts up to {newest}",
        hint="install that version or a newer one, or choose another state_path",
    )
