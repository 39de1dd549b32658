"""Comparisons with all rows of a subquery, grouping sets with their marks, distinct sums in windows, arrays side by side:
each beside DuckDB over the same rows (G3, G9, G12, G14)."""

from __future__ import annotations

import random
from typing import Any, Final

import duckdb
import pytest

import penstock
from tests.engine.answers import at, read
from tests.engine.beside_duckdb import Queries, add_row, answer_of, hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

A: Final = "id BIGINT NOT NULL, cat BIGINT, price BIGINT, tags ARRAY<STRING>, ns ARRAY<BIGINT>, ts TIMESTAMP"
B: Final = "aid BIGINT, price BIGINT, ts TIMESTAMP"
TUMBLED: Final = "TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '10' SECOND)"
NEAR: Final = "ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts"
BUCKET: Final = "time_bucket(INTERVAL 10 SECOND, {0}.ts)"

# The answer changes as rows come, and is held against DuckDB's after each batch: same text, unless there are two.
CHANGING: Final[Queries] = {
    "pairs": "SELECT a.id, a.cat FROM a WHERE (a.cat, a.price) IN (SELECT aid, price FROM b)",
    "no_pairs": (
        "SELECT a.id, a.cat FROM a WHERE (a.cat, a.price) NOT IN (SELECT aid, price FROM b WHERE b.aid > 1)",
        ("SELECT id, cat FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.aid > 1 "
        "AND coalesce(a.cat = b.aid AND a.price = b.price, TRUE))"),
    ),
    "above_all": "SELECT a.id FROM a WHERE a.price > ALL (SELECT price FROM b WHERE b.aid = a.cat)",
    "below_some": "SELECT a.id FROM a WHERE a.price < SOME (SELECT price FROM b WHERE b.aid = a.cat) AND a.id > 2",
    "not_any": "SELECT a.id FROM a WHERE NOT (a.price >= ANY (SELECT price FROM b WHERE b.aid = a.cat))",
    "equals": "SELECT a.id FROM a WHERE a.price = ANY (SELECT price FROM b)",
    "differs": "SELECT a.id FROM a WHERE a.price <> ALL (SELECT price FROM b WHERE price IS NOT NULL)",
    "cube": (
        ("SELECT cat, price, COUNT(*) AS n, GROUPING(cat) AS c, GROUPING_ID(cat, price) AS g FROM a "
        "GROUP BY CUBE (cat, price) HAVING COUNT(*) > 1"),
        ("SELECT cat, price, count(*) AS n, grouping(cat) AS c, grouping(cat, price) AS g FROM a "
        "GROUP BY CUBE (cat, price) HAVING count(*) > 1"),
    ),
    # What an outer join makes up has no value of Spark's: not that of COALESCE either.
    "left_joined": (
        "SELECT a.id, COALESCE(HEX(b.price), 'none') AS h, b.price IS NULL OR HEX(b.price) = '1' AS q "
        "FROM a LEFT JOIN b ON a.cat = b.aid"
    ),
    "right_joined": "SELECT b.price, COALESCE(HEX(a.price), 'none') AS h FROM a RIGHT JOIN b ON a.cat = b.aid",
    "full_joined": (
        "SELECT COALESCE(a.price, -1) AS p, COALESCE(b.price, -2) AS q, COUNT(*) AS n FROM a FULL JOIN b ON a.cat = b.aid "
        "GROUP BY COALESCE(a.price, -1), COALESCE(b.price, -2)"
    ),
    "chained": (
        "SELECT k, x.id, y.price, z.id AS other FROM (SELECT cat AS k, id FROM a WHERE id % 2 = 0) AS x "
        "FULL JOIN (SELECT aid AS k, price FROM b) AS y USING (k) "
        "LEFT JOIN (SELECT price AS k, id FROM a WHERE id % 3 = 0) AS z USING (k)"
    ),
    # EMIT CHANGES speaks of the windows in subqueries too.
    "open_ranks": (
        (
            "SELECT window_start, cat, n, DENSE_RANK() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS r "
            f"FROM (SELECT window_start, window_end, cat, COUNT(*) AS n FROM {TUMBLED.format('a')} "
            "GROUP BY window_start, window_end, cat) EMIT CHANGES"
        ),
        (
            "SELECT w, cat, n, dense_rank() OVER (PARTITION BY w ORDER BY n DESC) "
            f"FROM (SELECT {BUCKET.format('a')} AS w, cat, count(*) AS n FROM a GROUP BY ALL)"
        ),
    ),
    "open_best": (
        (
            f"SELECT x.id, x.price FROM {TUMBLED.format('a')} AS x JOIN (SELECT window_start, window_end, MAX(price) AS m "
            f"FROM {TUMBLED.format('a')} GROUP BY window_start, window_end) AS y ON x.window_start = y.window_start "
            "AND x.window_end = y.window_end AND x.price = y.m EMIT CHANGES"
        ),
        (
            f"SELECT a.id, a.price FROM a JOIN (SELECT {BUCKET.format('a')} AS w, max(price) AS m FROM a GROUP BY 1) AS y "
            f"ON {BUCKET.format('a')} = y.w AND a.price = y.m"
        ),
    ),
    "widened": "SELECT CAST(price AS INT) AS p FROM a UNION SELECT aid FROM b",
    "left_over": "SELECT CAST(id AS INT) AS p FROM a EXCEPT SELECT aid FROM b",
    "shares": (
        "SELECT cat, price, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY cat) AS of_cat, "
        "MAX(SUM(id)) OVER () AS most FROM a GROUP BY cat, price"
    ),
    "texts": (
        "SELECT cat, STRING_AGG(DISTINCT CAST(price AS STRING), ',') AS t FROM a GROUP BY cat",
        "SELECT cat, string_agg(DISTINCT price::VARCHAR, ',' ORDER BY price::VARCHAR) AS t FROM a GROUP BY cat",
    ),
    "second": "SELECT id, NTH_VALUE(price, 2) OVER (PARTITION BY cat ORDER BY id) AS s FROM a",
    "by_all": "SELECT cat, price % 2 AS odd, COUNT(*) AS n, 'x' AS x FROM a GROUP BY ALL",
    "whole": "SELECT COUNT(*) AS n, MAX(price) AS m FROM a GROUP BY ALL",
    "zipped": (
        "SELECT id, t, n, o FROM a CROSS JOIN UNNEST(tags, ns) WITH ORDINALITY AS x(t, n, o)",
        ("SELECT id, tags[o] AS t, ns[o] AS n, o FROM a, range(1, 9) AS r(o) "
        "WHERE o <= greatest(coalesce(len(tags), 0), coalesce(len(ns), 0))"),
    ),
    "tagged": (
        "SELECT id, t FROM a, UNNEST(tags) AS t WHERE t <> 'x'",
        "SELECT id, t FROM (SELECT id, unnest(tags) AS t FROM a) WHERE t <> 'x'",
    ),
    "sliced": (
        "SELECT id, tags[2:3] AS x, tags[2:] AS y, tags[:1] AS z FROM a WHERE tags IS NOT NULL",
        "SELECT id, tags[2:3] AS x, tags[2:] AS y, tags[:1] AS z FROM a WHERE tags IS NOT NULL",
    ),
}  # fmt: skip
# Windows that close: held against DuckDB's once they are drained.
CLOSING: Final = {
    "sums": (
        (f"SELECT window_start, SUM(DISTINCT price) AS s, AVG(DISTINCT price) AS m, "
        f"SUM(DISTINCT price) FILTER (WHERE cat > 1) AS f, COUNT(DISTINCT cat) AS c FROM {TUMBLED.format('a')} GROUP BY ALL"),
        (f"SELECT {BUCKET.format('a')}, sum(DISTINCT price)::BIGINT, avg(DISTINCT price), "
        f"(sum(DISTINCT price) FILTER (WHERE cat > 1))::BIGINT, count(DISTINCT cat) FROM a GROUP BY ALL"),
    ),
    "listed": (
        f"SELECT window_start, STRING_AGG(DISTINCT CAST(price AS STRING), '-') AS t FROM {TUMBLED.format('a')} GROUP BY ALL",
        (
            f"SELECT {BUCKET.format('a')}, string_agg(DISTINCT price::VARCHAR, '-' ORDER BY price::VARCHAR) "
            "FROM a GROUP BY ALL"
        ),
    ),
    "semi": (
        (f"SELECT l.id FROM (SELECT * FROM {TUMBLED.format('a')}) l WHERE l.cat IN (SELECT aid FROM "
        f"(SELECT * FROM {TUMBLED.format('b')}) r WHERE l.window_start = r.window_start AND l.window_end = r.window_end)"),
        f"SELECT a.id FROM a WHERE a.cat IN (SELECT aid FROM b WHERE {BUCKET.format('b')} = {BUCKET.format('a')})",
    ),
    "anti": (
        (f"SELECT l.id FROM (SELECT * FROM {TUMBLED.format('a')}) l WHERE l.cat NOT IN (SELECT aid FROM "
        f"(SELECT * FROM {TUMBLED.format('b')}) r WHERE l.window_start = r.window_start AND l.window_end = r.window_end)"),
        f"SELECT a.id FROM a WHERE a.cat NOT IN (SELECT aid FROM b WHERE {BUCKET.format('b')} = {BUCKET.format('a')})",
    ),
    # Within a bound of time: the same joins as LEFT SEMI and LEFT ANTI.
    "near": 2 * (f"SELECT id, cat FROM a WHERE a.price > 0 AND EXISTS (SELECT 1 FROM b WHERE b.aid = a.cat AND b.{NEAR})",),
    "far": 2 * (f"SELECT id, cat FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.aid = a.cat AND b.{NEAR})",),
    "among": 2 * (f"SELECT id, cat FROM a WHERE a.cat IN (SELECT aid FROM b WHERE b.price = a.price AND b.{NEAR})",),
    # NOT IN also leaves out what may be in: by columns that can be NULL, and by those that cannot.
    "not_among": 2
    * (f"SELECT id, cat FROM a WHERE a.cat NOT IN (SELECT aid FROM b WHERE b.price = a.price AND b.{NEAR})",),
    "not_near": 2
    * ((f"SELECT id, cat FROM a WHERE cat IS NOT NULL AND a.cat NOT IN "
       f"(SELECT aid FROM b WHERE aid IS NOT NULL AND b.{NEAR})"),),
    "no_id": 2 * (f"SELECT id FROM a WHERE a.id NOT IN (SELECT aid FROM b WHERE b.aid IS NOT NULL AND b.{NEAR})",),
}  # fmt: skip


@pytest.mark.slow
def test_answers_that_change(db: penstock.Database) -> None:
    rnd = random.Random(11)  # noqa: S311
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        hold_beside(db, oracle, CHANGING, lambda opened, step: add_both(opened, oracle, rnd, step, count=14))


@pytest.mark.slow
def test_windows_that_close(db: penstock.Database) -> None:
    rnd = random.Random(12)  # noqa: S311
    with duckdb.connect() as oracle:
        make_streams(db, oracle)
        for name, (query, _) in CLOSING.items():
            db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for step in range(3):
            add_both(db, oracle, rnd, step, count=14)
            db.settle(180)
        for name, (_, query) in CLOSING.items():
            db.drain(name, 180)
            answer = answer_of(oracle, query)
            assert answer, name
            assert read(db, name) == answer, name


def make_streams(db: penstock.Database, oracle: duckdb.DuckDBPyConnection) -> None:
    """The streams of these tests, and tables of the same columns beside them."""
    for name, columns in (("a", A), ("b", B)):
        db.execute(f"CREATE STREAM {name} ({columns}, WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)")
    oracle.execute("CREATE TABLE a (id BIGINT, cat BIGINT, price BIGINT, tags VARCHAR[], ns BIGINT[], ts TIMESTAMP)")
    oracle.execute("CREATE TABLE b (aid BIGINT, price BIGINT, ts TIMESTAMP)")


def add_both(
    db: penstock.Database, oracle: duckdb.DuckDBPyConnection, rnd: random.Random, step: int, *, count: int
) -> None:
    """Few values, so that many are equal, and now and then none."""

    def value(most: int) -> int | None:
        return None if rnd.random() < 0.15 else rnd.randrange(most)

    def listed(of: Any) -> list[Any] | None:
        return None if rnd.random() < 0.2 else [of() for _ in range(rnd.randrange(4))]

    for place in range(count):
        moment = at(20 * step + rnd.randrange(20))
        one = (step * count + place, value(4), value(5), listed(lambda: rnd.choice("xyz")), listed(lambda: value(9)))
        add_row(db, oracle, "a", ("id", "cat", "price", "tags", "ns", "ts"), (*one, moment))
        if rnd.random() < 0.6:
            add_row(db, oracle, "b", ("aid", "price", "ts"), (value(4), value(5), moment))
