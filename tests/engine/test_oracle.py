"""Random queries over random rows: what the engine streams is what DuckDB answers over all rows at once.

PENSTOCK_ORACLE_EXAMPLES says how many examples are run; each is a database with one view of every shape, or of every third
where there is one example only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings

import penstock
from tests.engine.answers import EPOCH, check_change_log, job
from tests.engine.random_joins import joins, windows
from tests.engine.random_queries import COLUMNS, DUCKDB_COLUMNS, Query, queries
from tests.engine.random_rows import DELAY_US, Append, Row, Workload, workloads

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

LEAST_ROWS = 12  # fewer say little, and what is tried first has none
EXAMPLES = int(os.environ.get("PENSTOCK_ORACLE_EXAMPLES", "1"))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    # An example costs seconds: a smaller one is not worth the hundreds that would be tried for it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(chosen=queries(), more=windows(), workload=workloads())
def test_streamed_is_batch(
    tmp_path_factory: pytest.TempPathFactory,
    chosen: tuple[Query, ...],
    more: tuple[Query, ...],
    workload: Workload,
) -> None:
    """ORACLE, O4, Q1, Q7, D1 to D13, E6, E11, E14, E23, G1 to G5, G7, G14, G17, G18: also what is shown in between is what
    has closed by then."""
    stream(tmp_path_factory, (*chosen, *more), workload, ("s",))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(chosen=joins(), workload=workloads(streams=2))
def test_joined_is_batch(
    tmp_path_factory: pytest.TempPathFactory, chosen: tuple[Query, ...], workload: Workload
) -> None:
    """ORACLE, O4, E24, G11, G12, G13: two streams with partitions of their own, joined in every way, NULL keys included; when
    all is drained, nothing is kept."""
    stream(tmp_path_factory, chosen, workload, ("s", "r"))


def stream(
    directories: pytest.TempPathFactory, chosen: Sequence[Query], workload: Workload, streams: Sequence[str]
) -> None:
    """Run queries over a workload, and hold them against DuckDB all the way."""
    assume(len(workload.rows()) >= LEAST_ROWS)
    every = 3 if EXAMPLES == 1 else 1
    views = {f"v{place}": query for place, query in enumerate(chosen[len(workload.rows()) % every :: every])}
    for view, query in views.items():
        note(f"{view}: {query.before}; {query.sql}")
    with penstock.connect(directories.mktemp("oracle"), parallelism=2, driver_memory="1g") as db:
        for name in streams:
            db.execute(
                f"CREATE STREAM {name} ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
                f"WITH (partitions = {workload.partitions}, idle_timeout = '1 hour')"
            )
        for view, query in views.items():
            db.execute(f"{query.before}; CREATE MATERIALIZED VIEW {view} {query.options} AS {query.sql}")
        shown: list[Append] = []
        for append in workload.appends:
            rows = [row.appended() for row in append.rows]
            db.append(streams[append.stream], rows, partition=append.partition)
            shown.append(append)
            if append.settled:
                db.settle(300)
                check(db, views, shown, workload.partitions * len(streams))
        for view in views:
            db.drain(view, 300)
        check(db, views, shown, None)
        check_dead_letters(db, views, workload)
        assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]
        for view, query in views.items():
            check_change_log(db, view, query.key)
    check_batch(directories.mktemp("batch"), chosen, workload, streams)


def check_batch(path: Path, chosen: Sequence[Query], workload: Workload, streams: Sequence[str]) -> None:
    """O4, O6: the same text as a batch query over tables of the same rows has the answer that was streamed."""
    import pyarrow as pa

    times = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("g", pa.int32()),
            ("v", pa.int64()),
            ("x", pa.float64()),
            ("ts", times),
        ]
    )
    with penstock.connect(path, parallelism=2, driver_memory="1g") as db:
        for query in chosen:
            for number, name in enumerate(streams):
                used = [row.appended() for row in used_rows(query, workload.appends, number)]
                db.register_table(name, pa.Table.from_pylist(used, schema=schema))
            db.execute(query.before)
            have = Counter(map(plain, db.sql(query.sql).rows()))
            want = Counter(map(plain, batch_answer(query, workload.appends)))
            assert have == want, f"batch: {query.sql}\nmissing {want - have}\nnot expected {have - want}"


def check(
    db: penstock.Database,
    views: dict[str, Query],
    appends: Sequence[Append],
    partitions: int | None,
    answer: Callable[[Query, Sequence[Append]], list[tuple[Any, ...]]] | None = None,
) -> None:
    """Every view is the answer over the rows so far; of windows, those that have closed. Drained, all have."""
    for view, query in views.items():
        wanted = (answer or batch_answer)(query, appends)
        if query.closes and partitions is not None:
            reached = watermark(appends, partitions)
            assert job(db, view).watermark == (None if reached is None else EPOCH + (datetime.resolution * reached)), (
                view
            )
            closed = -1 if reached is None else reached // 1000 * 1000
            if query.end is not None:
                wanted = [row for row in wanted if row[query.end] <= closed]
            elif not query.at_once:
                continue
        have = Counter(map(plain, db.sql(f"SELECT * FROM {view}").rows()))
        want = Counter(map(plain, wanted))
        assert have == want, f"{view}: {query.sql}\nmissing {want - have}\nnot expected {have - want}"


def watermark(appends: Iterable[Append], partitions: int) -> int | None:
    """How far the slowest partition of all streams has come, less the delay; None while one has no row that counts."""
    latest: dict[tuple[int, int], int] = {}
    for append in appends:
        for row in append.rows:
            if row.usable_time:
                assert row.time_us is not None
                place = (append.stream, append.partition)
                latest[place] = max(latest.get(place, 0), row.time_us)
    return min(latest.values()) - DELAY_US if len(latest) == partitions else None


def check_dead_letters(db: penstock.Database, views: dict[str, Query], workload: Workload) -> None:
    """D15, D16, DEC14: rows without a usable time are kept as dead letters of every job with windows, and of no other."""
    wanted: set[tuple[str, str, int]] = set()
    for view, query in views.items():
        if query.closes:
            of_view = reasons(workload, 1 if " r " not in query.sql and "TABLE r," not in query.sql else 2)
            wanted |= {(view, reason, n) for reason, n in of_view.items()}
    # Once, also where a job reads the stream twice.
    found = db.sql("SELECT job, reason FROM penstock.dead_letters").rows()
    counted = Counter((view, reason) for view, reason in found)
    assert {(view, reason, n) for (view, reason), n in counted.items()} == wanted


def reasons(workload: Workload, streams: int) -> Counter[str]:
    """Why rows of the first streams are bad for a job with windows, and how many are."""
    return Counter(
        "null_time" if row.time_us is None else "before_1970"
        for append in workload.appends
        for row in append.rows
        if append.stream < streams and not row.usable_time
    )


def used_rows(query: Query, appends: Iterable[Append], stream: int) -> list[Row]:
    """The rows of a stream that count for a query: with windows those that have a usable time."""
    rows = [row for append in appends if append.stream == stream for row in append.rows]
    return [row for row in rows if row.usable_time or not query.closes]


def batch_answer(query: Query, appends: Iterable[Append]) -> list[tuple[Any, ...]]:
    """What DuckDB answers over the rows as a whole."""
    import duckdb

    with duckdb.connect() as database:
        for number, table in enumerate(("given", "others")):
            database.execute(f"CREATE TABLE {table} ({DUCKDB_COLUMNS})")
            values = [row.values() for row in used_rows(query, appends, number)]
            if values:
                database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", values)
        return database.execute(query.batch).fetchall()


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Times as microseconds, fractions without their last digits, minus zero as zero."""
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - EPOCH) // datetime.resolution
    if isinstance(value, float):
        return round(value, 9) + 0.0
    return value
