"""EMIT FINAL over rows that change: each window is told once, as its rows are when the watermark passes its end; what
changes in it later is late (F2, F5, G3, G5, G16, G18, H1)."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any, Final

import duckdb
import pytest

import penstock
from penstock.failpoints import enabled
from tests.databases import Opened
from tests.engine.answers import at, check_change_log, in_order, job, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SEED: Final = 41
PATIENCE: Final = 300.0
TEN: Final = "INTERVAL '10' SECOND"
STREAMS: Final = """
CREATE STREAM c (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', format = 'debezium-json', idle_timeout = '1 hour');
CREATE STREAM u (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert', idle_timeout = '1 hour');
CREATE STREAM names (k STRING, name STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
"""
# What is asked of us, and the same of DuckDB over the rows by then.
QUERIES: Final = {
    "tumbled": (
        (f"SELECT k, TUMBLE_END(ts, {TEN}) AS e, COUNT(*) AS n, SUM(v) AS total FROM c WHERE v > 1 "
         f"GROUP BY k, TUMBLE(ts, {TEN}) HAVING COUNT(*) > 1"),
        ("SELECT k, time_bucket(INTERVAL 10 SECOND, ts) + INTERVAL 10 SECOND AS e, count(*), sum(v)::BIGINT FROM c "
         "WHERE v > 1 GROUP BY ALL HAVING count(*) > 1"),
    ),
    "hopped": (
        (f"SELECT window_end AS e, COUNT(*) AS n, COUNT(DISTINCT k) AS kinds FROM HOP(TABLE u, DESCRIPTOR(ts), "
         f"INTERVAL '5' SECOND, {TEN}) GROUP BY window_start, window_end"),
        ("SELECT e, count(*), count(DISTINCT k) FROM (SELECT k, time_bucket(INTERVAL 5 SECOND, ts) + to_seconds(5 * i) AS e "
         "FROM u, range(1, 3) AS r(i)) GROUP BY e"),
    ),
    "named": (
        (f"SELECT names.name, TUMBLE_END(u.ts, {TEN}) AS e, COUNT(*) AS n FROM u JOIN names ON u.k = names.k "
         f"GROUP BY names.name, TUMBLE(u.ts, {TEN})"),
        ("SELECT name, time_bucket(INTERVAL 10 SECOND, ts) + INTERVAL 10 SECOND AS e, count(*) FROM u JOIN names USING (k) "
         "GROUP BY ALL"),
    ),
}  # fmt: skip
SINK: Final = "CREATE SINK told WITH (connector = 'topic', topic = 'told', partitions = 1) AS {}"
Row = tuple[int, str, int, float]


class Source:
    """Rows that come, change and go, told to both streams, and those that are there."""

    def __init__(self, db: penstock.Database) -> None:
        self.db = db
        self.rnd = random.Random(SEED)  # noqa: S311
        self.rows: dict[int, Row] = {}

    def add(self, changes: list[tuple[int, Row | None]]) -> None:
        envelopes, upserts = [], []
        for identity, row in changes:
            before, after = _told(self.rows.get(identity)), _told(row)
            operation = "d" if after is None else "c" if before is None else "u"
            envelopes.append(json.dumps({"op": operation, "before": before or {"id": identity}, "after": after}))
            upserts.append({"id": identity, "_op": "delete"} if after is None else after)
            self.rows.pop(identity, None)
            if row is not None:
                self.rows[identity] = row
        self.db.append("c", envelopes)
        self.db.append("u", upserts)
        self.db.settle(PATIENCE)

    def batch(self, newest: float) -> list[tuple[int, Row | None]]:
        """Changes within the delay of the watermark: none of them is late."""
        found: list[tuple[int, Row | None]] = []
        for _ in range(15):
            identity = self.rnd.randrange(60)
            known = self.rows.get(identity)
            if known is not None and known[3] < newest - 10:
                continue  # its windows may have closed
            if self.rnd.random() < 0.25:
                found.append((identity, None))
            else:
                time = round(newest - 4 * self.rnd.random(), 3)
                found.append((identity, (identity, self.rnd.choice("ab"), self.rnd.randrange(6), time)))
        return found


def _told(row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {"id": row[0], "k": row[1], "v": row[2], "ts": ms(row[3])}


def answers(rows: dict[int, Row]) -> dict[str, list[tuple[Any, ...]]]:
    """What DuckDB answers over the rows."""
    with duckdb.connect() as oracle:
        for name in ("c", "u"):
            oracle.execute(f"CREATE TABLE {name} (id BIGINT, k VARCHAR, v BIGINT, ts TIMESTAMP)")
            for row in rows.values():
                oracle.execute(f"INSERT INTO {name} VALUES (?, ?, ?, make_timestamp(?))", [*row[:3], ms(row[3]) * 1000])
        oracle.execute("CREATE TABLE names AS FROM (VALUES ('a', 'first'), ('b', 'second')) AS t(k, name)")
        found = {name: oracle.execute(query).fetchall() for name, (_, query) in QUERIES.items()}
    return {name: in_order(tuple(_utc(value) for value in row) for row in rows) for name, rows in found.items()}


def _utc(value: Any) -> Any:
    return value.replace(tzinfo=at(0).tzinfo) if hasattr(value, "tzinfo") else value


def made(db: penstock.Database) -> Source:
    db.execute(STREAMS)
    for name, (query, _) in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query} EMIT FINAL")
    db.execute(SINK.format(f"{QUERIES['tumbled'][0]} EMIT FINAL"))
    db.append("names", [{"k": "a", "name": "first"}, {"k": "b", "name": "second"}])
    return Source(db)


def test_closed_windows_are_the_answer_when_nothing_is_late(opened: Opened) -> None:
    """Through a failure in the middle of a batch, a stop and a resume; a sink of appended rows has the same rows."""
    db = opened()
    source = made(db)
    shown: Counter[tuple[Any, ...]] = Counter()
    for step in range(8):
        if step == 3:
            with enabled("view.before_commit", "error@2"):
                source.add(source.batch(20.0 + 6 * step))
        elif step == 5:
            with enabled("sink.after_write", "error@1"):
                source.add(source.batch(20.0 + 6 * step))
        else:
            source.add(source.batch(20.0 + 6 * step))
        if step == 4:
            db.close()
            db = source.db = opened()
            db.settle(PATIENCE)
        now = Counter(read(db, "tumbled"))
        assert not shown - now, "what was told stays"
        shown = now
    assert shown, "windows close on the way"
    assert sum(each.restarts for each in db.jobs()) >= 1
    assert not any(db.metrics()[name].get("late_rows") for name in QUERIES)
    for name in QUERIES:
        db.drain(name, PATIENCE)
        check_change_log(db, name)
    db.drain("told", PATIENCE)
    wanted = answers(source.rows)
    assert {name: read(db, name) for name in QUERIES} == wanted
    db.execute(
        "CREATE STREAM written (k STRING, e TIMESTAMP, n BIGINT, total BIGINT) WITH (connector = 'topic', topic = 'told')"
    )
    db.execute("CREATE MATERIALIZED VIEW of_sink AS SELECT k, e, n, total FROM written")
    db.settle(PATIENCE)
    assert read(db, "of_sink") == wanted["tumbled"]


def test_what_changes_in_a_closed_window_is_late(opened: Opened) -> None:
    """A row that moves into an open window counts there; one that moves from an open window into a closed one leaves it."""
    db = opened()
    source = made(db)
    source.add([(n, (n, "a", 5, float(n))) for n in range(1, 5)])
    source.add([(10, (10, "a", 5, 31.0)), (11, (11, "a", 5, 32.0)), (12, (12, "a", 5, 33.0))])
    source.add([])
    told = [("a", at(10), 4, 20)]
    assert read(db, "tumbled") == told
    source.add([
        (5, (5, "a", 5, 5.0)),  # comes too late
        (1, (1, "a", 9, 1.0)),  # changes too late
        (2, None),  # goes too late
        (3, (3, "a", 5, 34.0)),  # moves to where it counts
        (10, (10, "a", 5, 6.0)),  # moves to where it counts no more, too late to count there
        (6, (6, "a", 0, 5.0)),  # is left out by the condition of one of the views
    ])  # fmt: skip
    source.add([])
    assert read(db, "tumbled") == told
    late = db.sql("SELECT event_time, watermark FROM penstock.late_rows WHERE job = 'tumbled' ORDER BY offset").rows()
    assert late == [(at(5), at(28)), (at(1), at(28)), (at(6), at(28))], "a deletion by key brings no time"
    assert db.metrics()["tumbled"]["late_rows"] == 3
    hopped = db.sql("SELECT COUNT(*) FROM penstock.late_rows WHERE job = 'hopped'").rows()
    assert hopped == [(4,)], "this view has no condition"
    assert job(db, "tumbled").watermark == at(29)
    source.add([(20, (20, "b", 5, 50.0))])
    source.add([])
    for name in QUERIES:
        db.drain(name, PATIENCE)
        check_change_log(db, name)
    assert read(db, "tumbled") == [*told, ("a", at(40), 3, 15)]
    assert ("first", at(40), 3) in read(db, "named")
    assert ("first", at(10), 4) in read(db, "named")


def test_rows_without_a_time_and_explain(db: penstock.Database) -> None:
    """A row whose time becomes NULL leaves its window; nothing of it is a dead letter."""
    source = made(db)
    source.add([(1, (1, "a", 5, 1.0)), (2, (2, "a", 5, 2.0)), (3, (3, "a", 5, 3.0))])
    db.append("u", [{"id": 3, "k": "a", "v": 5, "ts": None}])
    db.append("u", [{"id": 9, "k": "a", "v": 5, "ts": ms(40)}])
    db.settle(PATIENCE)
    db.append("u", [{"id": 9, "k": "a", "v": 5, "ts": ms(41)}])
    db.settle(PATIENCE)
    assert ("first", at(10), 2) in read(db, "named")
    assert db.sql("SELECT COUNT(*) FROM penstock.dead_letters").rows() == [(0,)]
    told = str(db.sql(f"EXPLAIN {QUERIES['tumbled'][0]} EMIT FINAL").rows())
    assert "append: rows are only added" in told
    assert "goes when the windows of its ts" in told
