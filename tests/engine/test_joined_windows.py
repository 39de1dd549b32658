"""Windows over joined rows that change or never end, and over views whose rows change, beside DuckDB after every batch,
with a stop and a resume in the middle (G3, G8, G9, G12, G16)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import duckdb
import pytest

import penstock
from tests.engine.answers import at, check_change_log, read
from tests.engine.beside_duckdb import answer_of
from tests.engine.test_more_shapes import SESSIONS
from tests.engine.test_quantified import BUCKET, add_both, make_streams

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE: Final = 240.0
TEN: Final = "INTERVAL '10' SECOND"
NAMED: Final = "(SELECT a.cat, c.label, a.ts FROM a JOIN c ON a.cat = c.id)"
# What is asked of us, and the same of DuckDB.
QUERIES: Final = {
    # joined with rows that replace each other
    "tumbled": (
        (f"SELECT c.label, TUMBLE_START(a.ts, {TEN}) AS s, COUNT(*) AS n, SUM(a.price) AS total FROM a LEFT JOIN c "
        f"ON a.cat = c.id WHERE a.price IS NOT NULL GROUP BY c.label, TUMBLE(a.ts, {TEN}) HAVING COUNT(*) > 1"),
        (f"SELECT c.label, {BUCKET.format('a')}, count(*), sum(a.price)::BIGINT FROM a LEFT JOIN c ON a.cat = c.id "
        "WHERE a.price IS NOT NULL GROUP BY ALL HAVING count(*) > 1"),
    ),
    "hopped": (
        (f"SELECT c.cat, HOP_END(c.ts, INTERVAL '5' SECOND, {TEN}) AS e, COUNT(DISTINCT a.price) AS n "
        f"FROM a JOIN c ON a.cat = c.id GROUP BY c.cat, HOP(c.ts, INTERVAL '5' SECOND, {TEN}) EMIT CHANGES"),
        ("SELECT cat, w + INTERVAL 10 SECOND, count(DISTINCT price) FROM (SELECT c.cat, a.price, "
        "time_bucket(INTERVAL 5 SECOND, c.ts) - to_seconds(5 * i) AS w FROM a JOIN c ON a.cat = c.id, range(0, 2) AS r(i)) "
        "GROUP BY cat, w"),
    ),
    "visits": (
        ("SELECT UPPER(c.label) AS label, SESSION_START(a.ts, INTERVAL '3' SECOND) AS s, COUNT(*) AS n FROM a JOIN c "
        "ON a.cat = c.id GROUP BY UPPER(c.label), SESSION(a.ts, INTERVAL '3' SECOND)"),
        f"SELECT upper(label), s, count(*) FROM ({SESSIONS.format(NAMED, 'label')}) AS z GROUP BY ALL",
    ),
    # joined for ever
    "pairs": (
        (f"SELECT a.cat, TUMBLE_START(b.ts, {TEN}) AS s, COUNT(*) AS n, MAX(b.price) AS high FROM a JOIN b ON a.cat = b.aid "
        f"GROUP BY a.cat, TUMBLE(b.ts, {TEN})"),
        f"SELECT a.cat, {BUCKET.format('b')}, count(*), max(b.price) FROM a JOIN b ON a.cat = b.aid GROUP BY ALL",
    ),
    "of_windows": (
        (f"SELECT x.cat, x.window_start, COUNT(*) AS n FROM TUMBLE(TABLE a, DESCRIPTOR(ts), {TEN}) AS x "
        "JOIN b ON x.cat = b.aid GROUP BY x.cat, x.window_start, x.window_end"),
        f"SELECT a.cat, {BUCKET.format('a')}, count(*) FROM a JOIN b ON a.cat = b.aid GROUP BY ALL",
    ),
    "once": 2 * ("SELECT DISTINCT a.ts, a.cat FROM a JOIN b ON a.cat = b.aid",),
    "bounded_above": 2
    * (
        ("SELECT a.id, b.price, x.id AS other FROM a JOIN b ON a.cat = b.aid JOIN a AS x ON a.price = x.price "
        "AND x.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"),
    ),
    "one_time_then_another": 2
    * (
        ("SELECT a.id, b.price, x.id AS one, y.id AS two FROM a "
        "JOIN b ON a.cat = b.aid AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND "
        "JOIN a AS x ON x.cat = a.cat AND x.ts BETWEEN a.ts AND a.ts + INTERVAL '3' SECOND "
        "JOIN a AS y ON y.cat = b.aid AND y.ts BETWEEN b.ts AND b.ts + INTERVAL '3' SECOND"),
    ),
    # over views whose rows change, or take no event time; the views are made below
    "of_latest": (
        f"SELECT cat, TUMBLE_START(ts, {TEN}) AS s, COUNT(*) AS n FROM latest GROUP BY cat, TUMBLE(ts, {TEN})",
        f"SELECT cat, {BUCKET.format('c')}, count(*) FROM c GROUP BY ALL",
    ),
    "steps": (
        (f"SELECT window_start AS s, window_end AS e, COUNT(*) AS n FROM CUMULATE(TABLE latest, DESCRIPTOR(ts), "
        f"INTERVAL '5' SECOND, {TEN}) GROUP BY window_start, window_end EMIT CHANGES"),
        (f"SELECT s, s + to_seconds(5 * i), count(*) FROM (SELECT {BUCKET.format('c')} AS s, i, c.ts FROM c, range(1, 3) AS r(i)) "
        "WHERE ts < s + to_seconds(5 * i) GROUP BY s, i"),
    ),
    "of_counts": (
        (f"SELECT TUMBLE_START(last, {TEN}) AS s, COUNT(*) AS n, SUM(n) AS total FROM counts "
        f"GROUP BY TUMBLE(last, {TEN}) EMIT CHANGES"),
        ("SELECT time_bucket(INTERVAL 10 SECOND, last), count(*), sum(n)::BIGINT "
        "FROM (SELECT cat, count(*) AS n, max(ts) AS last FROM a GROUP BY cat) GROUP BY 1"),
    ),
    "gaps": (
        ("SELECT cat, SESSION_START(ts, INTERVAL '3' SECOND) AS s, SESSION_END(ts, INTERVAL '3' SECOND) AS e, COUNT(*) AS n "
        "FROM latest GROUP BY cat, SESSION(ts, INTERVAL '3' SECOND)"),
        f"SELECT cat, s, e, count(*) FROM ({SESSIONS.format('(SELECT cat, ts FROM c)', 'cat')}) AS z GROUP BY ALL",
    ),
    "beside_a_stream": (
        (f"SELECT l.label, TUMBLE_END(b.ts, {TEN}) AS e, COUNT(*) AS n FROM b JOIN latest AS l ON b.aid = l.id "
        f"GROUP BY l.label, TUMBLE(b.ts, {TEN})"),
        f"SELECT c.label, {BUCKET.format('b')} + INTERVAL 10 SECOND, count(*) FROM b JOIN c ON b.aid = c.id GROUP BY ALL",
    ),
    # over aggregates of the query itself, whose times change with their rows
    "of_groups": (
        (f"SELECT TUMBLE_START(last, {TEN}) AS s, COUNT(*) AS n, SUM(n) AS total FROM (SELECT cat, COUNT(*) AS n, MAX(ts) AS last "
        f"FROM a GROUP BY cat) AS x GROUP BY TUMBLE(last, {TEN})"),
        ("SELECT time_bucket(INTERVAL 10 SECOND, last), count(*), sum(n)::BIGINT "
        "FROM (SELECT cat, count(*) AS n, max(ts) AS last FROM a GROUP BY cat) GROUP BY 1"),
    ),
    "hops_of_groups": (
        (f"WITH x AS (SELECT cat, price, MIN(ts) AS ts FROM a GROUP BY cat, price) SELECT cat, window_end, COUNT(price) AS n "
        f"FROM HOP(TABLE x, DESCRIPTOR(ts), INTERVAL '5' SECOND, {TEN}) GROUP BY cat, window_start, window_end EMIT CHANGES"),
        ("SELECT cat, w + INTERVAL 10 SECOND, count(price) FROM (SELECT cat, price, "
        "time_bucket(INTERVAL 5 SECOND, min(ts)) - to_seconds(5 * i) AS w FROM a, range(0, 2) AS r(i) GROUP BY cat, price, i) "
        "GROUP BY cat, w"),
    ),
    "gaps_of_groups": (
        ("SELECT cat, SESSION_START(ts, INTERVAL '3' SECOND) AS s, COUNT(*) AS n FROM (SELECT cat, price, MAX(ts) AS ts FROM a "
        "GROUP BY cat, price) AS x GROUP BY cat, SESSION(ts, INTERVAL '3' SECOND)"),
        (f"SELECT cat, s, count(*) FROM ({SESSIONS.format('(SELECT cat, max(ts) AS ts FROM a GROUP BY cat, price)', 'cat')}) AS z "
        "GROUP BY ALL"),
    ),
    "latest_of_groups": (
        (f"SELECT TUMBLE_START(ts, {TEN}) AS s, COUNT(*) AS n FROM (SELECT cat, n, ts, ROW_NUMBER() OVER (PARTITION BY n ORDER BY "
        f"ts DESC, cat) AS place FROM (SELECT cat, COUNT(*) AS n, MAX(ts) AS ts FROM a GROUP BY cat)) WHERE place = 1 "
        f"GROUP BY TUMBLE(ts, {TEN})"),
        ("SELECT time_bucket(INTERVAL 10 SECOND, ts), count(*) FROM (SELECT n, max(ts) AS ts FROM "
        "(SELECT count(*) AS n, max(ts) AS ts FROM a GROUP BY cat) GROUP BY n) GROUP BY 1"),
    ),
    # what is made of such windows, and rows of several in their order
    "fullest": (
        f"SELECT MAX(n) AS m FROM (SELECT c.label, COUNT(*) AS n FROM a JOIN c ON a.cat = c.id GROUP BY c.label, TUMBLE(a.ts, {TEN}))",
        f"SELECT max(n) FROM (SELECT count(*) AS n FROM a JOIN c ON a.cat = c.id GROUP BY c.label, {BUCKET.format('a')})",
    ),
    "before": 2 * ("SELECT id, LAG(id) OVER (ORDER BY ts, id) AS l FROM c",),
}  # fmt: skip


# Few at a time: each of those that read streams is a query of its own in Spark.
STOPPED: Final = ("tumbled", "pairs", "of_latest", "steps", "gaps", "of_counts")
GROUPED: Final = ("of_groups", "hops_of_groups", "gaps_of_groups", "latest_of_groups")
JOINED: Final = ("hopped", "visits", "of_windows", "once", "bounded_above")


def test_with_a_stop_in_the_middle(opened: Callable[..., penstock.Database]) -> None:
    _check(opened, {name: QUERIES[name] for name in STOPPED}, stop_at=1)


def test_more_joins(opened: Callable[..., penstock.Database]) -> None:
    _check(opened, {name: QUERIES[name] for name in JOINED}, stop_at=None)


def test_over_groups_of_the_query_itself(opened: Callable[..., penstock.Database]) -> None:
    _check(opened, {name: QUERIES[name] for name in GROUPED}, stop_at=2)


def test_other_shapes(opened: Callable[..., penstock.Database]) -> None:
    rest = {name: query for name, query in QUERIES.items() if name not in (*STOPPED, *JOINED, *GROUPED)}
    _check(opened, rest, stop_at=None)


def _check(opened: Callable[..., penstock.Database], queries: dict[str, tuple[str, str]], stop_at: int | None) -> None:
    rnd = random.Random(29)  # noqa: S311
    db = opened()
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        db.execute(
            "CREATE STREAM c (id BIGINT, cat BIGINT, label STRING, ts TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED) "
            "WITH (changes = 'upsert')"
        )
        oracle.execute("CREATE TABLE c (id BIGINT, cat BIGINT, label VARCHAR, ts TIMESTAMP)")
        db.execute("CREATE MATERIALIZED VIEW latest AS SELECT id, cat, label, ts FROM c")
        db.execute("CREATE MATERIALIZED VIEW counts AS SELECT cat, COUNT(*) AS n, MAX(ts) AS last FROM a GROUP BY cat")
        for name, (ours, _) in queries.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {ours}")
        had_rows = set()
        for step in range(3):
            if step == stop_at:
                db.close()
                db = opened()
            add_both(db, oracle, rnd, step, count=10)
            for _ in range(8):
                _change(db, oracle, rnd, step)
            db.settle(PATIENCE)
            for name, (_, theirs) in queries.items():
                answer = answer_of(oracle, theirs)
                assert read(db, name) == answer, f"{name} after step {step}"
                had_rows |= {name} if answer else set()
        assert had_rows == set(queries), "an answer without rows says nothing"
        for name in queries:
            check_change_log(db, name, ())


def _change(db: penstock.Database, oracle: duckdb.DuckDBPyConnection, rnd: random.Random, step: int) -> None:
    """A row of `c` that comes, takes the place of another one or goes."""
    key = rnd.randrange(4)
    oracle.execute("DELETE FROM c WHERE id = ?", [key])
    if rnd.random() < 0.15:
        db.append("c", [{"id": key, "_op": "delete"}])
        return
    row = {"id": key, "cat": rnd.randrange(3), "label": rnd.choice([None, "p", "q"])}
    moment = at(20 * step + rnd.randrange(20))
    db.append("c", [{**row, "ts": moment}])
    oracle.execute("INSERT INTO c VALUES (?, ?, ?, ?)", [*row.values(), moment.replace(tzinfo=None)])
