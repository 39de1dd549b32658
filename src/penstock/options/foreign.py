"""Options and databases of other systems that this version has not: not there yet, which is not the same as unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from penstock.errors import NotYetError
from penstock.options.keys import normalise
from penstock.options.matching import NEARLY, KeyTable
from penstock.options.schemas.elsewhere import NOT_YET_DATABASES, NOT_YET_OPTIONS
from penstock.sql.statements import Option

_ADDRESS_KEYS: Final = frozenset({"url", "jdbc_url", "dsn"})
_DATABASE: Final = re.compile(r"\s*(?:jdbc:)?([a-z0-9]+):", re.IGNORECASE)


def refuse_foreign_options(unknown: Sequence[Option], connector: str, table: KeyTable) -> None:
    """CLAUSE_NOT_YET where every key that the connector does not know is a known one of another system."""
    # One that is nearly ours is ours with a slip of the pen.
    hints = [None if table.suggest(option.key, NEARLY) else _hint(option.key, connector) for option in unknown]
    if not hints or hints[0] is None or None in hints:
        return
    raise NotYetError(
        "CLAUSE_NOT_YET",
        f"option {unknown[0].key} of connector '{connector}' is not there yet",
        hint=hints[0],
        span=unknown[0].key_span,
    )


def refuse_foreign_database(options: Sequence[Option], connector: str) -> None:
    """CONNECTOR_NOT_YET for a JDBC address of another database; the address itself may hold a password."""
    if connector != "postgres":
        return
    for option in options:
        found = _DATABASE.match(option.value.reveal()) if normalise(option.key) in _ADDRESS_KEYS else None
        database = NOT_YET_DATABASES.get(found[1].lower()) if found else None
        if database is not None:
            raise NotYetError(
                "CONNECTOR_NOT_YET",
                f"{database} is not there yet; the database that can be read and written is PostgreSQL",
                hint="give the address of a PostgreSQL database, or read the changes from Kafka "
                "with format = 'debezium-json'",
                span=option.value_span,
            )


def _hint(key: str, connector: str) -> str | None:
    wanted = normalise(key)
    for table in (NOT_YET_OPTIONS.get(connector, {}), NOT_YET_OPTIONS[""]):
        for beginning, hint in table.items():
            start = normalise(beginning)
            if wanted == start or (start.endswith("_") and wanted.startswith(start)):
                return hint
    return None
