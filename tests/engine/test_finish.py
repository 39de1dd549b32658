"""Answers that change, as jobs: Spark hands rows over, the view store answers (contract G). The breadth of shapes is in
tests/unit/stores/views/test_finish.py, which needs no Spark."""

from __future__ import annotations

import random

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import check_change_log, in_order, ms, read
from tests.unit.stores.views.finishing import NULLS, STREAMS, TABLES, add_rows, random_batch
from tests.unit.stores.views.test_finish import SHAPES

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

JOBS = (
    "top 2 of a key", "several distinct", "by a computed key", "aggregate of an aggregate", "full join",
    "three streams, one by another key", "left lateral limit", "join by inequality",
)  # fmt: skip
SHUFFLES = (1, 2, 5)  # partitions, by turns
COLUMNS = {"l": ("k", "id", "v", "s"), "r": ("k", "id", "w", "s"), "u": ("k", "x")}


def test_views_are_the_batch_answer_also_after_a_stop(opened: Opened) -> None:
    """G13, G16, G18: after every settled batch each view and its folded changes are DuckDB's answer over all rows; the
    jobs go on from kept rows when the database is opened again."""
    rnd = random.Random(7)  # noqa: S311
    with duckdb.connect() as oracle:
        oracle.execute(NULLS)
        oracle.execute(TABLES)
        number = 0
        for run in range(2):
            with opened() as db:
                if run == 0:
                    db.execute(STREAMS)
                    for place, shape in enumerate(JOBS):
                        options = f"parallelism = {SHUFFLES[place % len(SHUFFLES)]}"
                        db.execute(f"CREATE MATERIALIZED VIEW v{place} WITH ({options}) AS {SHAPES[shape][0]}")
                for _ in range(3):
                    batch = random_batch(rnd, 10 * number)
                    number += 1
                    for name, rows in batch.items():
                        add_rows(oracle, name, rows)
                        if rows:
                            db.append(name, [dict(zip(COLUMNS[name], row, strict=True)) for row in rows])
                    db.settle(180)
                    for place, shape in enumerate(JOBS):
                        expected = in_order(oracle.execute(SHAPES[shape][0]).fetchall())
                        assert read(db, f"v{place}") == expected, f"{shape} after {number} batches"
                for place in range(len(JOBS)):
                    check_change_log(db, f"v{place}", key=())


AUCTIONS = """
CREATE STREAM auction (id BIGINT, category BIGINT, seller BIGINT, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
WINNERS = """
SELECT a.id, a.category, a.seller, b.price, b.ts,
  ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts) AS rn
FROM auction AS a JOIN bid AS b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '30' SECOND
"""
HOPS = """
SELECT window_start, window_end, auction, COUNT(*) AS n
FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
GROUP BY window_start, window_end, auction
"""
# What DuckDB says for HOPS: a row of second t is in the windows that begin at the last five even seconds up to t.
COUNTED = """
SELECT w, auction, COUNT(*) AS n
FROM (SELECT auction, unnest(range(t // 2 * 2 - 8, t // 2 * 2 + 1, 2)) AS w FROM (SELECT auction, epoch_ms(ts) // 1000 AS t FROM bid))
GROUP BY w, auction
"""
# View, its query, and DuckDB's words for it.
OVER_TIME: dict[str, tuple[str, str]] = {
    # Nexmark q4, with an inner join without a bound, which the store answers
    "mean_price": (
        """SELECT category, AVG(final) AS mean FROM (SELECT a.id, a.category, MAX(b.price) AS final FROM auction AS a
        JOIN bid AS b ON a.id = b.auction AND b.ts >= a.ts GROUP BY a.id, a.category) AS q GROUP BY category""",
        "",
    ),
    # q6: what Flink refuses
    "sellers": (
        f"""SELECT seller, id, AVG(price) OVER (PARTITION BY seller ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
        AS mean FROM ({WINNERS}) AS q WHERE rn = 1""",
        "",
    ),
    # q5: windows that Spark closes, joined with their own maximum
    "hot": (
        f"""SELECT unix_seconds(window_start) AS w, auction, n FROM ({HOPS}) AS c
        QUALIFY RANK() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) = 1""",
        f"SELECT w, auction, n FROM ({COUNTED}) QUALIFY RANK() OVER (PARTITION BY w ORDER BY n DESC) = 1",
    ),
    # the same windows twice, run once, beside rows of a stream
    "twice": (
        f"""WITH c AS ({HOPS}) SELECT a.category, COUNT(DISTINCT x.n) AS sizes, MAX(y.total) AS total FROM auction AS a
        LEFT JOIN c AS x ON a.id = x.auction LEFT JOIN (SELECT auction, SUM(n) AS total FROM c GROUP BY auction) AS y
        ON a.id = y.auction GROUP BY a.category""",
        f"""WITH c AS ({COUNTED}) SELECT a.category, COUNT(DISTINCT x.n) AS sizes, MAX(y.total)::BIGINT AS total FROM auction AS a
        LEFT JOIN c AS x ON a.id = x.auction LEFT JOIN (SELECT auction, SUM(n) AS total FROM c GROUP BY auction) AS y
        ON a.id = y.auction GROUP BY a.category""",
    ),
    # the auction as it was when the bid came, by either spelling
    "asof": (
        "SELECT b.price, a.category FROM bid AS b ASOF LEFT JOIN auction AS a ON b.auction = a.id AND b.ts >= a.ts",
        "",
    ),
    "as_of": (
        "SELECT b.price, a.category FROM bid AS b JOIN auction FOR SYSTEM_TIME AS OF b.ts AS a ON b.auction = a.id",
        "SELECT b.price, a.category FROM bid AS b ASOF JOIN auction AS a ON b.auction = a.id AND b.ts >= a.ts",
    ),
    # a join within a bound and distinct rows, each kept by Spark
    "quick": (
        """SELECT category, COUNT(DISTINCT price) AS n FROM (SELECT a.category, b.price FROM auction AS a JOIN bid AS b
        ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND) AS x GROUP BY category""",
        "",
    ),
}


def test_windows_and_joins_of_spark_below_an_answer_that_changes(opened: Opened) -> None:
    """G13, G16: subqueries that Spark closes by the watermark are the leaves of a finish; with a stop between two
    batches, and drained at the end, each view is DuckDB's answer, and its changes fold to it."""
    rnd = random.Random(11)  # noqa: S311
    with duckdb.connect() as oracle:
        oracle.execute(NULLS)
        oracle.execute("CREATE TABLE auction (id BIGINT, category BIGINT, seller BIGINT, ts TIMESTAMP)")
        oracle.execute("CREATE TABLE bid (auction BIGINT, price BIGINT, ts TIMESTAMP)")
        for run in range(2):
            with opened() as db:
                if run == 0:
                    db.execute(AUCTIONS)
                    for name, (query, _) in OVER_TIME.items():
                        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
                for number in range(2 * run, 2 * run + 2):
                    auctions, bids = _auctions(rnd, 20 * number)
                    for table, rows in (("auction", auctions), ("bid", bids)):
                        db.append(table, rows)
                        values = ", ".join(
                            f"({', '.join(str(row[key]) for key in row if key != 'ts')}, make_timestamp_ms({row['ts']}))"
                            for row in rows
                        )
                        oracle.execute(f"INSERT INTO {table} VALUES {values}")
                    db.settle(600)
                if run == 1:
                    for name, (query, words) in OVER_TIME.items():
                        db.drain(name, 300)
                        expected = in_order(oracle.execute(words or query).fetchall())
                        assert expected, name
                        assert read(db, name) == expected, name
                        check_change_log(db, name, key=())
                    late = db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows()
                    assert late == [(0,)]


def _auctions(rnd: random.Random, start: int) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
    """Auctions and bids of twenty seconds, in the order of time."""
    auctions = [
        {"id": start + at, "category": at % 3, "seller": rnd.randrange(3), "ts": ms(1000 + start + 2 * at)}
        for at in range(8)
    ]
    bids = [
        {"auction": max(0, start + rnd.randrange(-4, 8)), "price": rnd.randrange(9), "ts": ms(1000 + start + at / 2)}
        for at in range(40)
    ]
    return auctions, bids
