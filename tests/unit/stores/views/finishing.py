"""Finished views without Spark: DuckDB runs the core of a query over each batch, and the whole query as the oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import sqlglot

from penstock.plan.job_plan import BATCH_VIEW, JobPlan, plan_job
from penstock.stores.views import ViewStore
from penstock.stores.views.model import BatchCommit, SeenVersion, ViewSpec
from penstock.types import SqlType
from tests.unit.plan.analysis import planned
from tests.updating_queries import for_duckdb

if TYPE_CHECKING:
    import pyarrow as pa

STREAMS = """
CREATE STREAM l (k BIGINT, id BIGINT, v BIGINT, s STRING);
CREATE STREAM r (k BIGINT, id BIGINT, w BIGINT, s STRING);
CREATE STREAM u (k INT, x DOUBLE);
"""
TABLES = """
CREATE TABLE l (k BIGINT, id BIGINT, v BIGINT, s VARCHAR);
CREATE TABLE r (k BIGINT, id BIGINT, w BIGINT, s VARCHAR);
CREATE TABLE u (k INTEGER, x DOUBLE);
"""
# As in Spark: NULL is the smallest value.
NULLS = "SET default_null_order = 'nulls_first_on_asc_last_on_desc'"
VIEW = "answered"
Row = tuple[Any, ...]


def job_of(query: str, streams: str = STREAMS) -> JobPlan:
    """The job of a view over the streams."""
    return plan_job(planned(f"{streams} CREATE MATERIALIZED VIEW {VIEW} AS {query};"))


def random_batch(rnd: random.Random, ids: int) -> dict[str, list[Row]]:
    """Rows with NULLs, duplicates and ties; some batches leave a stream out."""

    def some(limit: int) -> int | None:
        return None if rnd.random() < 0.12 else rnd.randrange(limit)

    def letter() -> str | None:
        return None if rnd.random() < 0.1 else rnd.choice("abcAB")

    left: list[Row] = [(some(7), ids + place, some(5), letter()) for place in range(rnd.randrange(9))]
    right: list[Row] = [(some(7), ids + place, some(5), letter()) for place in range(rnd.randrange(7))]
    other: list[Row] = [(some(7), rnd.choice([None, 0.5, 1.5, -2.0])) for _ in range(rnd.randrange(4))]
    return {"l": left + left[:1], "r": right + right[:1], "u": other}


class BrokenOffError(Exception):
    """A commit that did not come to its end."""


class Finished:
    """A finished view beside a database that holds all rows so far."""

    def __init__(
        self, query: str, path: Path | None, streams: str = STREAMS, tables: str = TABLES, given: str = TABLES
    ) -> None:
        """`tables` hold all rows so far, `given` those of a batch."""
        self.job = job_of(query, streams)
        assert self.job.finish is not None, self.job.how
        self.path = path
        self.oracle = for_duckdb(query)
        self.all = duckdb.connect()
        self.all.execute(NULLS)
        self.all.execute(tables)
        self.spark = duckdb.connect()  # stands in for Spark
        self.spark.execute(given)
        for scan in self.job.scans:
            self.spark.execute(f'CREATE VIEW "{scan.view}" AS FROM {scan.relation}')
        for dimension in self.job.dimensions:
            if not dimension.kept:
                self.spark.execute(f'CREATE VIEW "{dimension.view}" AS FROM {dimension.relation}')
        self.spec = self._spec()
        self.store = ViewStore.open(path)
        self.store.create_view(self.spec)
        self.fold: Counter[str] = Counter()
        self.seq = 0
        self.versions: tuple[SeenVersion, ...] = ()  # of dimensions, that the next batch sees
        self.taken_out = 0  # rows of large batches

    def _spec(self) -> ViewSpec:
        columns = tuple((column.name, _known(column.type)) for column in self.job.columns)
        finish = self.job.finish
        assert finish is not None
        return ViewSpec(VIEW, columns, "finish", self.job.key, finish=finish.with_types({}))

    def reopen(self) -> None:
        self.store.close()
        self.store = ViewStore.open(self.path)
        self.store.create_view(self.spec)

    def core(self, batch: Mapping[str, list[Row]], *, large: bool = False) -> pa.Table:
        """What Spark hands over for a batch; of a large one it may take out what the store would not keep."""
        for name in ("l", "r", "u"):
            self.spark.execute(f"DELETE FROM {name}")
            add_rows(self.spark, name, batch.get(name, []))
        rows = self.spark.sql(_duckdb(self.job.core)).to_arrow_table()
        if not large or self.job.batch is None:
            return rows
        self.spark.register(BATCH_VIEW, rows)
        left = self.spark.sql(_duckdb(self.job.batch)).to_arrow_table()
        self.taken_out += rows.num_rows - left.num_rows
        return left

    def commit(self, number: int, batch: Mapping[str, list[Row]], fails_at: str | None = None) -> None:
        """Commit a batch; `fails_at`: at that failpoint the commit breaks off."""

        def reached(point: str) -> None:
            if point == fails_at:
                raise BrokenOffError(point)

        rows = self.core(batch, large=number % 3 != 0)
        seen = self.versions
        self.store.commit(BatchCommit("job", number, f"hash {number}", view=VIEW, rows=rows, versions=seen), at=reached)

    def add(self, number: int, batch: dict[str, list[Row]]) -> None:
        self.remember(batch)
        self.commit(number, batch)

    def remember(self, batch: dict[str, list[Row]]) -> None:
        """What the oracle knows of."""
        for name, rows in batch.items():
            add_rows(self.all, name, rows)

    def follow(self) -> None:
        """Fold the changes since the last time, which must fit each other."""
        for change in self.store.changes(VIEW, self.seq):
            if change.before is not None:
                self.fold[row_text(change.before.values())] -= 1
                assert self.fold[row_text(change.before.values())] >= 0, f"{change} takes back what is not there"
            if change.row is not None:
                self.fold[row_text(change.row.values())] += 1
            assert change.before != change.row, f"{change} changes nothing"
            self.seq = change.seq

    def view(self) -> Counter[str]:
        return Counter(row_text(row) for row in _rows(self.store.read(f"SELECT * FROM {VIEW}").table))

    def answer(self) -> Counter[str]:
        return Counter(row_text(row) for row in _rows(self.all.sql(self.oracle).to_arrow_table()))


def add_rows(database: duckdb.DuckDBPyConnection, name: str, rows: list[Row]) -> None:
    """Insert rows into a table, in one statement."""
    if rows:
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
        database.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in rows for value in row])


def _duckdb(text: str) -> str:
    return sqlglot.transpile(text, read="spark", write="duckdb")[0]


def _known(kind: SqlType | None) -> SqlType:
    assert kind is not None
    return kind


def _rows(table: pa.Table) -> list[Any]:
    return [row.values() for row in table.to_pylist()]


def row_text(values: Any) -> str:
    """A row by its values: DuckDB's sums are decimals without a fraction."""
    plain = (int(value) if isinstance(value, Decimal) else value for value in values)
    return repr([round(value, 9) if isinstance(value, float) else value for value in plain])
