"""The pseudo columns of ksqlDB: there for a query that names them, and not part of *."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.catalog.model import ColumnDefinition

_PLACES: Final = {"ROWPARTITION": "partition", "ROWOFFSET": "offset"}
_TIME: Final = "ROWTIME"
# What to do where a relation has none of that name.
PSEUDO_HINTS: Final = {
    name: f"declare {column} in the stream, and name it in the views between: they have what * stands for"
    for name, column in (
        (_TIME, "ROWTIME TIMESTAMP METADATA FROM 'timestamp' VIRTUAL"),
        ("ROWPARTITION", "ROWPARTITION INT METADATA FROM 'partition' VIRTUAL"),
        ("ROWOFFSET", "ROWOFFSET BIGINT METADATA FROM 'offset' VIRTUAL"),
    )
}


def pseudo_columns(columns: Sequence[ColumnDefinition]) -> frozenset[str]:
    """The names of those that a relation has. Both places of a record mark it as one of ksqlDB's: a column that is
    called ROWTIME in a relation of another system is a column like any other."""
    places = {column.name for column in columns if column.metadata == _PLACES.get(column.name) and column.virtual}
    if len(places) != len(_PLACES):
        return frozenset()
    return frozenset(places | {column.name for column in columns if column.name == _TIME and not column.physical})
