"""Joins of windowed aggregates, answered by the view store when the windows close: the rows that DuckDB gives over the
windows that are closed, and the rows, late rows and open windows of Spark's own join."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import duckdb
import pytest

import penstock
from penstock.failpoints import enabled
from tests.engine.answers import at, check_change_log, in_order, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SEED: Final = 5
STREAMS: Final = """
    CREATE STREAM sales (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
    WITH (partitions = 1, idle_timeout = '1 hour');
    CREATE STREAM visits (k STRING, x DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
    WITH (partitions = 1, idle_timeout = '{idle}');
"""
WINDOW: Final = "TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
SOLD: Final = (
    "(SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS total FROM "
    f"{WINDOW.format('sales')} GROUP BY k, window_start, window_end)"
)
SEEN: Final = (
    "(SELECT k, window_start, window_end, COUNT(x) AS m, MAX(x) AS most, AVG(x) AS mean FROM "
    f"{WINDOW.format('visits')} WHERE x IS NULL OR x >= 0 GROUP BY k, window_start, window_end HAVING COUNT(*) < 5)"
)
EVERY: Final = f"(SELECT window_start, COUNT(*) AS n FROM {WINDOW.format('visits')} GROUP BY window_start, window_end)"
ON: Final = "a.window_start = b.window_start AND a.window_end = b.window_end"
QUERIES: Final = {
    "pairs": f"SELECT a.window_start AS s, a.k, n, total, m, most, mean FROM {SOLD} AS a JOIN {SEEN} AS b ON a.k = b.k AND {ON}",
    "every": f"SELECT COALESCE(a.window_end, b.window_end) AS e, a.k, b.k AS other, n + 1 AS more, m FROM {SOLD} AS a "
    f"FULL JOIN {SEEN} AS b ON a.k = b.k AND {ON}",
    "unseen": f"SELECT a.window_start AS s, a.k, n FROM {SOLD} AS a LEFT JOIN {SEEN} AS b ON a.k = b.k AND {ON} "
    "WHERE b.k IS NULL",
    "alone": f"SELECT a.window_start AS s, a.k FROM {SOLD} AS a ANTI JOIN {SEEN} AS b ON a.k = b.k AND {ON}",
    "three": f"SELECT s, k, other, c.n AS visits FROM (SELECT a.window_start AS s, a.k, b.k AS other, b.window_start "
    f"FROM {SOLD} AS a JOIN {SOLD} AS b ON {ON} AND a.n < b.n) AS j JOIN {EVERY} AS c ON j.window_start = c.window_start",
}
HOP: Final = """
    SELECT a.window_start AS s, a.k, a.n, b.n AS m
    FROM (SELECT k, window_start, window_end, COUNT(*) AS n
          FROM HOP(TABLE sales, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND) GROUP BY k, window_start, window_end) AS a
    LEFT JOIN (SELECT k, window_start, window_end, COUNT(*) AS n
          FROM HOP(TABLE visits, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND) GROUP BY k, window_start, window_end) AS b
    ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end
"""
BESIDE_SPARK: Final = {"every": QUERIES["every"], "hopping": HOP}

Row = dict[str, Any]


class Oracle:
    """What is in the streams, in DuckDB; each row with its offset, by which late ones are left out."""

    def __init__(self) -> None:
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'")
        self.duck.execute("CREATE TABLE sales (o BIGINT, k VARCHAR, v BIGINT, ts TIMESTAMPTZ)")
        self.duck.execute("CREATE TABLE visits (o BIGINT, k VARCHAR, x DOUBLE, ts TIMESTAMPTZ)")
        self.counts = Counter[str]()

    def add(self, stream: str, rows: Iterable[Row]) -> None:
        for row in rows:
            k, value, moment = row.values()
            self.duck.execute(
                f"INSERT INTO {stream} VALUES (?, ?, ?, ?)", [self.counts[stream], k, value, at(moment / 1000)]
            )
            self.counts[stream] += 1

    def answer(self, db: penstock.Database, view: str, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query over the windows that the watermark of its view has closed."""
        reached = job(db, view).watermark
        late = db.sql(f"SELECT stream, offset FROM penstock.late_rows WHERE job = '{view}'").rows()
        for stream in ("sales", "visits"):
            gone = [offset for name, offset in late if name == stream]
            started = "time_bucket(INTERVAL 10 SECOND, ts, TIMESTAMPTZ '1970-01-01 00:00:00+00')"
            self.duck.execute(
                f"CREATE OR REPLACE TEMP VIEW {stream}_windows AS SELECT *, {started} AS window_start, "
                f"{started} + INTERVAL 10 SECOND AS window_end FROM {stream} WHERE o NOT IN ({', '.join(map(str, [-1, *gone]))}) "
                f"AND {started} + INTERVAL 10 SECOND <= TIMESTAMPTZ '{reached or at(0)}'"
            )
            query = query.replace(WINDOW.format(stream), f"{stream}_windows")
        return in_order(self.duck.execute(query).fetchall())


def chunk(chance: random.Random, stream: str, newest: float) -> list[Row]:
    """Rows around a time, some of them behind the watermark."""
    found: list[Row] = []
    for _ in range(25):
        second = max(0.0, newest - chance.choice([0, 0, 1, 2, 6, 9, 14, 30]) - chance.random())
        key = chance.choice([None, "a", "b", "c", "d"])
        value = (
            {"v": chance.choice([None, *range(5)])}
            if stream == "sales"
            else {"x": chance.choice([None, -1.0, 0.5, 2.0])}
        )
        found.append({"k": key, **value, "ts": ms(second)})
    return found


def check(db: penstock.Database, oracle: Oracle) -> dict[str, int]:
    """Each view is DuckDB's answer, and what Spark's own join has given; how many rows each has."""
    counts = {}
    for name, query in QUERIES.items():
        want = oracle.answer(db, name, query)
        have = read(db, name)
        assert have == want, f"{name}: {have} instead of {want}"
        counts[name] = len(have)
    late = "SELECT stream, partition, offset, event_time, watermark, row FROM penstock.late_rows WHERE job = '{}'"
    for name in BESIDE_SPARK:
        assert read(db, name) == read(db, f"{name}_spark"), name
        have, want = (in_order(db.sql(late.format(view)).rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"late rows of {name}"
        assert job(db, name).watermark == job(db, f"{name}_spark").watermark
        # Spark does not keep a group without a key where it meets nothing.
        live = "SELECT key, window_start, count FROM penstock.window_aggregates WHERE job = '{}' AND key IS NOT NULL"
        have, want = (in_order(db.sql(live.format(view)).rows()) for view in (name, f"{name}_spark"))
        assert have == want, f"open windows of {name}"
    return counts


@pytest.mark.slow
def test_windows_are_joined_when_they_close(opened: Callable[..., penstock.Database]) -> None:
    """G9, G12, D4, E24, F5, H1: joins of every kind over several batches, with streams far apart, late rows, a restart,
    a stream that rests, ADVANCE WATERMARK and a drain."""
    chance = random.Random(SEED)  # noqa: S311 - the same rows each time
    oracle, db = Oracle(), opened()
    db.execute(STREAMS.format(idle="1 hour"))
    for name, query in (QUERIES | BESIDE_SPARK).items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        assert "joins them when they close" in str(db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}").rows()), (
            name
        )
    for name, query in BESIDE_SPARK.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name}_spark WITH (state = 'spark') AS {query}")

    def add(stream: str, newest: float) -> None:
        rows = chunk(chance, stream, newest)
        db.append(stream, rows)
        oracle.add(stream, rows)
        db.settle(180)

    add("visits", 45)
    add("visits", 500)
    assert set(check(db, oracle).values()) == {0}, "the stream that has no rows yet holds the watermark back"
    add("sales", 22)
    first = check(db, oracle)
    add("sales", 38)
    counts = check(db, oracle)
    assert all(counts[name] > first[name] for name in ("pairs", "every", "three")), (first, counts)
    assert db.metrics()["pairs"]["state_rows"] > 0
    db.close()

    db = opened()
    db.settle(180)
    assert check(db, oracle) == counts
    add("visits", 44)  # all of it behind the newest of its stream, and some of it late
    add("sales", 57)
    assert db.metrics()["pairs"]["late_rows"] > 0
    assert check(db, oracle)["alone"] > 0
    db.execute("ADVANCE WATERMARK FOR sales TO TIMESTAMP '1970-01-01 00:01:40'")
    db.settle(180)
    check(db, oracle)
    add("sales", 490)
    before = check(db, oracle)
    for name in (*QUERIES, *BESIDE_SPARK, *(f"{name}_spark" for name in BESIDE_SPARK)):
        db.drain(name, 180)
        check_change_log(db, name)
    after = check(db, oracle)
    assert all(after[name] > before[name] for name in ("pairs", "every")), (before, after)
    assert db.sql("SELECT COUNT(*) FROM penstock.window_aggregates").rows() == [(0,)]


@pytest.mark.slow
def test_a_side_without_rows_and_a_batch_that_breaks_off(opened: Callable[..., penstock.Database]) -> None:
    """G9, E12, F5, J7: a stream that stays empty is left out when it has been idle; a batch that breaks off before or
    behind its commit counts once."""
    oracle, db = Oracle(), opened()
    db.execute(STREAMS.format(idle="2 seconds"))
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def watermarks() -> dict[str, object]:
        return {name: job(db, name).watermark for name in QUERIES}

    def reached(newest: int) -> bool:
        """Each job by its own clock: none moves time on any more behind this."""
        return set(watermarks().values()) == {at(newest - 3)}

    rows = [{"k": "a", "v": 1, "ts": ms(second)} for second in (1, 2, 12, 25)]
    db.append("sales", rows)
    oracle.add("sales", rows)
    until(lambda: reached(25), 120, watermarks)
    db.settle(180)
    assert read(db, "unseen") == [(at(0), "a", 2), (at(10), "a", 1)]
    assert read(db, "alone") == [(at(0), "a"), (at(10), "a")]
    assert read(db, "pairs") == []
    for place, second in (("view.before_commit", 41), ("view.after_commit", 61)):
        rows = [{"k": key, "v": 2, "ts": ms(second + more)} for more, key in enumerate(("a", "b", "b"))]
        with enabled(place, "error@1"):
            db.append("sales", rows)
            oracle.add("sales", rows)
            until(lambda: sum(each.restarts for each in db.jobs()) > 0, 120)
            until(lambda newest=second + 2: reached(newest), 120, watermarks)  # type: ignore[misc]
            db.settle(180)
        for name, query in QUERIES.items():
            assert read(db, name) == oracle.answer(db, name, query), (name, place)
    for name, query in QUERIES.items():
        db.drain(name, 180)
        assert read(db, name) == oracle.answer(db, name, query), name
        check_change_log(db, name)
    assert len(read(db, "every")) == 7
