"""Aggregates over the rows of windows in one query, beside DuckDB after every batch, stopped and resumed between them
(G9, G13): of windows that close, and of windows that show each change."""

from __future__ import annotations

import random
from typing import Final

import duckdb
import pytest

from tests.databases import Opened
from tests.engine.answers import at, check_change_log, read
from tests.engine.beside_duckdb import add_row, answer_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

DELAY: Final = 3
CLOSED: Final = f"(SELECT max(ts) - INTERVAL {DELAY} SECOND FROM s)"
INNER: Final = (
    "SELECT k, TUMBLE_START(ts, INTERVAL '5' SECOND) AS w, COUNT(*) AS n, SUM(v) AS t FROM s "
    "GROUP BY k, TUMBLE(ts, INTERVAL '5' SECOND)"
)
THERE: Final = (
    "SELECT k, time_bucket(INTERVAL 5 SECOND, ts) AS w, count(*) AS n, sum(v)::BIGINT AS t FROM s GROUP BY k, w"
)
CLOSED_ROWS: Final = f"SELECT * FROM ({THERE}) WHERE w + INTERVAL 5 SECOND <= {CLOSED}"

# Of each view its query, and DuckDB's.
QUERIES: Final[dict[str, tuple[str, str]]] = {
    "told": (
        f"SELECT k, STRING_AGG(CAST(n AS STRING), ',' ORDER BY w) AS ns, MAX_BY(t, w) AS last FROM ({INNER}) GROUP BY k",
        f"SELECT k, string_agg(n::VARCHAR, ',' ORDER BY w), arg_max(t, w) FROM ({CLOSED_ROWS}) GROUP BY k",
    ),
    "middle": (
        f"SELECT MEDIAN(n) AS m, STRING_AGG(CAST(t AS STRING), ' ' ORDER BY w, k) AS ts FROM ({INNER})",
        f"SELECT median(n), string_agg(t::VARCHAR, ' ' ORDER BY w, k) FROM ({CLOSED_ROWS})",
    ),
    "of_distinct": (
        (
            "SELECT k, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v) AS m, STRING_AGG(CAST(v AS STRING), ',' ORDER BY v, ts) AS vs "
            "FROM (SELECT DISTINCT k, v, ts FROM s) GROUP BY k"
        ),
        (
            "SELECT k, quantile_cont(v, 0.5), string_agg(v::VARCHAR, ',' ORDER BY v, ts) "
            "FROM (SELECT DISTINCT k, v, ts FROM s) GROUP BY k"
        ),
    ),
    "of_sessions": (
        (
            "SELECT k, STRING_AGG(CAST(v AS STRING), ',' ORDER BY v) AS vs, COUNT(*) AS n FROM s "
            "GROUP BY k, SESSION(ts, INTERVAL '2' SECOND) EMIT CHANGES"
        ),
        (
            "SELECT k, string_agg(v::VARCHAR, ',' ORDER BY v), count(*) FROM (SELECT *, sum(b) OVER (PARTITION BY k ORDER BY ts) "
            "AS g FROM (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) <= INTERVAL 2 SECOND THEN 0 ELSE 1 "
            "END AS b FROM s)) GROUP BY k, g"
        ),
    ),
    "of_open": (
        (
            f"SELECT k, TUMBLE_START(w, INTERVAL '15' SECOND) AS b, COUNT(DISTINCT n) AS d, SUM(t) AS s FROM ({INNER}) "
            "GROUP BY k, TUMBLE(w, INTERVAL '15' SECOND) EMIT CHANGES"
        ),
        (
            "SELECT k, time_bucket(INTERVAL 15 SECOND, w) AS b, count(DISTINCT n), sum(t)::BIGINT "
            f"FROM ({THERE}) GROUP BY k, b"
        ),
    ),
    "of_named": (
        (
            f"WITH r AS ({INNER}) SELECT HOP_END(w, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS e, MAX(n) AS most FROM r "
            "GROUP BY HOP(w, INTERVAL '5' SECOND, INTERVAL '10' SECOND) EMIT CHANGES"
        ),
        (f"SELECT w + INTERVAL 5 SECOND * (1 + h) AS e, max(n) FROM ({THERE}), range(0, 2) AS r(h) GROUP BY e"),
    ),
}


def test_aggregates_over_windows(opened: Opened) -> None:
    """What is made of all rows of a group, over windows, over distinct rows; windows of windows that are still open."""
    rnd, db, oracle = random.Random(11), opened(), duckdb.connect()  # noqa: S311
    db.execute(
        f"CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '{DELAY}' SECOND)"
    )
    oracle.execute("CREATE TABLE s (k VARCHAR, v BIGINT, ts TIMESTAMP)")
    for name, (query, _) in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    moment = 100
    for step in range(4):
        if step == 2:
            db.close()
            db = opened()
        for _ in range(12):
            moment += rnd.randrange(3)
            early = at(moment - rnd.randrange(DELAY))
            add_row(db, oracle, "s", ("k", "v", "ts"), (rnd.choice("ab"), rnd.randrange(6), early))
        db.settle(180)
        for name, (_, query) in QUERIES.items():
            assert read(db, name) == answer_of(oracle, query), f"{name} after step {step}"
    for name in QUERIES:
        check_change_log(db, name, ())
