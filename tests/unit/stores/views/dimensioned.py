"""Dimensions beside streams, without Spark: each batch sees a version, and so does the database of all rows."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa

from penstock.stores.views import SeenVersion
from tests.unit.stores.views.changing import Changing
from tests.unit.stores.views.finishing import STREAMS, TABLES, Finished, Row, add_rows

DIMENSION = (
    "CREATE TABLE d (k BIGINT, label STRING, n BIGINT) "
    "WITH (connector = 'file', path = 'd.csv', format = 'csv', refresh = '1 minute');"
)
_TABLE = "CREATE TABLE d (k BIGINT, label VARCHAR, n BIGINT);"
_SCHEMA = pa.schema([("k", pa.int64()), ("label", pa.string()), ("n", pa.int64())])


def random_version(rnd: random.Random) -> list[Row]:
    """Rows of a dimension: some keys more than once, some not at all, NULL among them, the same row twice."""
    keys: list[int | None] = [None, *(rnd.randrange(7) for _ in range(6))]
    rows: list[Row] = [(key, rnd.choice(["a", "b", "A", None]), rnd.randrange(3)) for key in keys]
    return rows + rows[1:2]


def seen(number: int, rows: list[Row]) -> SeenVersion:
    """A version as a batch sees it."""
    named = [dict(zip(_SCHEMA.names, row, strict=True)) for row in rows]
    return SeenVersion("d", number, lambda: pa.Table.from_pylist(named, _SCHEMA))


def use(found: Finished, number: int, rows: list[Row]) -> None:
    """From the next batch on a view sees a version."""
    found.versions = (seen(number, rows),)
    for database in (found.all, found.spark):
        database.execute("DELETE FROM d")
        add_rows(database, "d", rows)


class Dimensioned(Finished):
    """A finished view over streams that rows are added to, beside the dimension d."""

    def __init__(self, query: str, path: Path | None) -> None:
        super().__init__(query, path, STREAMS + DIMENSION, TABLES + _TABLE, TABLES + _TABLE)


class ChangingBesideDimension(Changing):
    """A finished view over streams whose rows replace each other, beside the dimension d."""

    def __init__(self, query: str, path: Path | None) -> None:
        super().__init__(query, path, versioned=False, more=DIMENSION, more_tables=_TABLE)
