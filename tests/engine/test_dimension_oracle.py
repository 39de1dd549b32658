"""Random queries over a stream and a dimension that changes in the middle: each row is joined with the version it saw.

PENSTOCK_ORACLE_EXAMPLES says how many examples are run; each is a database with one view of every shape.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

import penstock
from tests.engine.answers import check_change_log
from tests.engine.random_dimensions import DIMENSION_COLUMNS, DimensionRow, Versions, lookups, versions
from tests.engine.random_queries import COLUMNS, DUCKDB_COLUMNS, Query
from tests.engine.random_rows import Append, Workload, workloads
from tests.engine.test_oracle import LEAST_ROWS, check, check_dead_letters

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

EXAMPLES = int(os.environ.get("PENSTOCK_ORACLE_EXAMPLES", "1"))
MORE = 10
STREAMS = ("s", "r")


@st.composite
def changing(draw: st.DrawFn) -> tuple[Workload, Versions]:
    workload = draw(workloads(streams=2))
    return workload, draw(versions(len(workload.appends)))


def run(directories: pytest.TempPathFactory, chosen: Sequence[Query], workload: Workload, changes: Versions) -> None:
    assume(len(workload.rows()) >= LEAST_ROWS)
    views = {f"v{place}": query for place, query in enumerate(chosen)}
    for view, query in views.items():
        note(f"{view}: {query.before}; {query.sql}")

    versions_of = {id(append): changes.at(place) for place, append in enumerate(workload.appends)}

    def answer(query: Query, appends: Sequence[Append]) -> list[tuple[Any, ...]]:
        return batch_answer(query, [(append, versions_of[id(append)]) for append in appends], changes)

    def check_all(shown: Sequence[Append], *, drained: bool = False) -> None:
        """Time is that of the streams that a view reads."""
        both = {view: query for view, query in views.items() if " r " in query.sql}
        one = {view: query for view, query in views.items() if view not in both}
        for chosen, streams in ((one, 1), (both, 2)):
            read = [append for append in shown if append.stream < streams]
            check(db, chosen, read, None if drained else workload.partitions * streams, answer)

    with penstock.connect(directories.mktemp("dimensions"), parallelism=2, driver_memory="1g") as db:
        if changes.asked:
            db._engine.dimensions.join_methods.lookup_rows = 1  # one row is many here
        db.register_dimension("dim", table(changes.rows[0]))
        for name in STREAMS:
            db.execute(
                f"CREATE STREAM {name} ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
                f"WITH (partitions = {workload.partitions}, idle_timeout = '1 hour')"
            )
        for view, query in views.items():
            db.execute(f"{query.before}; CREATE MATERIALIZED VIEW {view} AS {query.sql}")
        shown: list[Append] = []
        for place, append in enumerate(workload.appends):
            if place and place in changes.starts:
                db.settle(120)  # the rows before it are joined before it comes
                check_all(shown)
                db.update_dimension("dim", table(changes.rows[changes.at(place)]))
            rows = [row.appended() for row in append.rows]
            db.append(STREAMS[append.stream], rows, partition=append.partition)
            shown.append(append)
        db.settle(120)
        check_all(shown)
        for view in views:
            db.drain(view, 120)
        check_all(shown, drained=True)
        check_dead_letters(db, views, workload)
        assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]
        for view, query in views.items():
            check_change_log(db, view, query.key)


def table(rows: Sequence[DimensionRow]) -> pa.Table:
    types = {"k": pa.string(), "g": pa.int32(), "w": pa.int64(), "name": pa.string()}
    return pa.table(
        {name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(types.items())}
    )


def batch_answer(query: Query, appends: Sequence[tuple[Append, int]], changes: Versions) -> list[tuple[Any, ...]]:
    """What DuckDB answers over the rows as a whole, each with the version it saw."""
    import duckdb

    with duckdb.connect() as database:
        for number, name in enumerate(("given", "others")):
            database.execute(f"CREATE TABLE {name} ({DUCKDB_COLUMNS}, ver INTEGER)")
            values = [
                (*row.values(), version)
                for append, version in appends
                if append.stream == number
                for row in append.rows
                if row.usable_time or not query.closes
            ]
            if values:
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        database.execute(f"CREATE TABLE dim ({DIMENSION_COLUMNS})")
        known = [(number, *row) for number, rows in enumerate(changes.rows) for row in rows]
        if known:
            database.executemany("INSERT INTO dim VALUES (?, ?, ?, ?, ?)", known)
        return database.execute(query.batch).fetchall()


def oracle(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a test with so many examples."""

    def made(test: Callable[..., None]) -> Callable[..., None]:
        chosen = settings(
            max_examples=examples,
            deadline=None,
            print_blob=True,
            # An example costs seconds: a smaller one is not worth the hundreds that would be tried for it.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        return chosen(given(chosen=lookups(), changing=changing())(test))

    return made


@oracle(EXAMPLES)
def test_each_row_sees_its_version(
    tmp_path_factory: pytest.TempPathFactory, chosen: tuple[Query, ...], changing: tuple[Workload, Versions]
) -> None:
    """ORACLE, G10, G11, L7, L13, L18, Q1: joins, subqueries, windows, sums and pairs of streams beside a dimension that is
    replaced between two appends; what was joined before keeps the version before."""
    run(tmp_path_factory, chosen, *changing)


@pytest.mark.soak
@oracle(MORE)
def test_many_rows_see_their_versions(
    tmp_path_factory: pytest.TempPathFactory, chosen: tuple[Query, ...], changing: tuple[Workload, Versions]
) -> None:
    run(tmp_path_factory, chosen, *changing)
