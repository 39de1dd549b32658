"""Joins of windowed aggregates of different kinds and sizes by a bound: what DuckDB answers in the end, and on the way
nothing that is taken back (D4, F5, G9, G12, H1)."""

from __future__ import annotations

import random
from typing import Any, Final

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import at, check_change_log, in_order, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SEED: Final = 17
PATIENCE: Final = 300.0
STREAMS: Final = """
CREATE STREAM l (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '6' SECOND) WITH (idle_timeout = '1 hour');
CREATE STREAM r (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '6' SECOND) WITH (idle_timeout = '1 hour');
"""
TUMBLED: Final = (
    "(SELECT k, window_start AS s, window_end AS e, COUNT(*) AS n FROM TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND) "
    "GROUP BY k, window_start, window_end)"
)
HOPPED: Final = (
    "(SELECT k, window_start AS s, window_end AS e, SUM(v) AS t FROM HOP(TABLE r, DESCRIPTOR(ts), INTERVAL '5' SECOND, "
    "INTERVAL '20' SECOND) GROUP BY k, window_start, window_end)"
)
LONGER: Final = HOPPED.replace("HOP(", "TUMBLE(").replace("INTERVAL '5' SECOND, ", "")
OURS: Final = {
    "tumbled": ("SELECT k, time_bucket(INTERVAL 10 SECOND, ts) AS s, s + INTERVAL 10 SECOND AS e, count(*) AS n FROM l "
                "GROUP BY ALL"),
    "hopped": ("SELECT k, s, s + INTERVAL 20 SECOND AS e, sum(v)::BIGINT AS t FROM (SELECT k, v, "
               "time_bucket(INTERVAL 5 SECOND, ts) - to_seconds(5 * i) AS s FROM r, range(0, 4) AS x(i)) GROUP BY ALL"),
    "longer": ("SELECT k, time_bucket(INTERVAL 20 SECOND, ts) AS s, s + INTERVAL 20 SECOND AS e, sum(v)::BIGINT AS t FROM r "
               "GROUP BY ALL"),
}  # fmt: skip
# A join, with the relations on both sides of it in our words and in DuckDB's.
QUERIES: Final = {
    "ends": ("SELECT a.k, a.s, a.e, n, b.s AS other, t FROM {0} AS a JOIN {1} AS b ON a.e = b.e AND a.k = b.k", HOPPED, "hopped"),
    "any_key": ("SELECT a.k, b.k AS other, a.e, n, t FROM {0} AS a, {1} AS b WHERE a.e = b.e AND n < t", HOPPED, "hopped"),
    "starts": ("SELECT a.k, a.s, n, t FROM {0} AS a JOIN {1} AS b ON a.s = b.s AND a.k = b.k", LONGER, "longer"),
    "left_out": ("SELECT a.k, a.e, n, t FROM {0} AS a LEFT JOIN {1} AS b ON a.e = b.e AND a.k = b.k", LONGER, "longer"),
}  # fmt: skip
ADDED: Final = ("ends", "any_key", "starts")  # to these rows are only added


def rows(chance: random.Random, newest: float) -> list[dict[str, Any]]:
    """Rows within the delay of the watermark: none of them is late."""
    return [
        {"k": chance.choice("abc"), "v": chance.randrange(9), "ts": ms(newest - 5 * chance.random())} for _ in range(12)
    ]


def wanted(given: dict[str, list[dict[str, Any]]]) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect() as oracle:
        for stream, each in given.items():
            oracle.execute(f"CREATE TABLE {stream} (k VARCHAR, v BIGINT, ts TIMESTAMP)")
            oracle.executemany(
                f"INSERT INTO {stream} VALUES (?, ?, make_timestamp(?))",
                [[row["k"], row["v"], row["ts"] * 1000] for row in each],
            )
        for name, query in OURS.items():
            oracle.execute(f"CREATE VIEW {name} AS {query}")
        found = {
            name: oracle.execute(query.format("tumbled", view)).fetchall() for name, (query, _, view) in QUERIES.items()
        }
    utc = at(0).tzinfo
    return {
        name: in_order(tuple(v.replace(tzinfo=utc) if hasattr(v, "tzinfo") else v for v in row) for row in answer)
        for name, answer in found.items()
    }


def test_windows_that_differ_are_joined_by_their_bounds(opened: Opened) -> None:
    """With a stop and a resume in the middle; a sink of appended rows takes such a join, too."""
    chance = random.Random(SEED)  # noqa: S311
    db = opened()
    db.execute(STREAMS)
    for name, (query, other, _) in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query.format(TUMBLED, other)}")
    query, other, _ = QUERIES["ends"]
    db.execute(
        f"CREATE SINK out WITH (connector = 'topic', topic = 'joined', partitions = 1) AS {query.format(TUMBLED, other)}"
    )
    given: dict[str, list[dict[str, Any]]] = {"l": [], "r": []}
    shown = 0
    for step in range(6):
        for stream, each in given.items():
            made = rows(chance, 12 + 9 * step + (3 if stream == "r" else 0))
            db.append(stream, made)
            each.extend(made)
        db.settle(PATIENCE)
        shown = len(read(db, "ends"))
        if step == 3:
            assert shown, "windows close on the way"
            db.close()
            db = opened()
            db.settle(PATIENCE)
            assert len(read(db, "ends")) == shown
    for name in (*QUERIES, "out"):
        db.drain(name, PATIENCE)
    answers = wanted(given)
    assert {name: read(db, name) for name in QUERIES} == answers
    assert all(answers.values())
    for name in ADDED:
        check_change_log(db, name)
        assert not db.metrics()[name].get("late_rows")
    db.execute(
        "CREATE STREAM joined (k STRING, s TIMESTAMP, e TIMESTAMP, n BIGINT, other TIMESTAMP, t BIGINT) WITH (connector = 'topic')"
    )
    db.execute("CREATE MATERIALIZED VIEW of_sink AS SELECT * FROM joined")
    db.settle(PATIENCE)
    assert read(db, "of_sink") == answers["ends"]
