"""Values that only some rows have, in queries that the view store answers, beside DuckDB (G13)."""

from __future__ import annotations

import random

import duckdb
import pytest

import penstock
from tests.engine.beside_duckdb import hold_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

COLUMNS = ("kind", "id", "k", "v", "txt")
# Casts of what is no number: DuckDB answers with NULL where nobody looks, Spark must not be asked.
QUERIES = {
    name: (query, query.replace("CAST(", "TRY_CAST("))
    for name, query in {
        "by_kind": "SELECT x.id, CASE WHEN x.kind = 1 THEN CAST(x.txt AS INT) WHEN x.kind = 3 THEN b.w END AS q "
        "FROM e x LEFT JOIN b ON b.k = x.k",
        "of_both": "SELECT x.id, CASE WHEN x.kind = 1 AND y.w IS NOT NULL THEN CAST(x.txt AS INT) + y.w END AS q "
        "FROM e x LEFT JOIN b y ON x.k = y.k",
        "if_met": "SELECT x.id, CASE WHEN y.w IS NULL THEN 0 ELSE CAST(x.txt AS INT) END AS q "
        "FROM e x LEFT JOIN b y ON x.k = y.k AND x.kind = 1",
        "filtered": "SELECT k, SUM(CAST(txt AS INT)) FILTER (WHERE kind = 1) AS s, COUNT(DISTINCT v) AS n FROM e GROUP BY k",
        "over": "SELECT k, id, MAX(CAST(txt AS INT)) FILTER (WHERE kind = 1) OVER (PARTITION BY k) AS s FROM e",
        "sets": "SELECT k, SUM(CAST(txt AS INT)) FILTER (WHERE kind = 1) AS s, SUM(v) AS n FROM e GROUP BY ROLLUP(k)",
        "either": "SELECT x.id, x.kind = 2 OR x.kind = 4 OR x.txt IS NULL OR CAST(x.txt AS INT) > b.w AS q "
        "FROM e x LEFT JOIN b ON b.k = x.k",
        "self": "SELECT x.id, y.id AS other, CAST(x.txt AS INT) + y.v AS q FROM e x JOIN e y ON x.k = y.k "
        "WHERE x.kind = 1 AND y.kind = 2 AND CAST(x.txt AS INT) > y.v",
        # Of rows that find no partner, or that a condition over both relations leaves out, nothing is computed.
        "partner": "SELECT b.k, b.w, x.id, CAST(x.txt AS INT) + 1 AS q FROM b LEFT JOIN e x ON x.k = b.k AND x.kind = 1",
        "partners": "SELECT b.k, SUM(CAST(x.txt AS INT)) AS s FROM b LEFT JOIN e x ON x.k = b.k AND x.kind = 1 GROUP BY b.k",
        "of_pairs": "SELECT x.id, y.k, CAST(x.txt AS INT) AS q FROM e x LEFT JOIN b y ON x.k = y.k WHERE x.kind = y.w + 1 AND y.w <> 1",
        "if_any": "SELECT b.k, x.id, COALESCE(CAST(x.txt AS INT), -1) AS q FROM b LEFT JOIN e x ON x.k = b.k AND x.kind = 3",
    }.items()
}


def test_only_where_the_query_computes_them(db: penstock.Database) -> None:
    db.execute("CREATE STREAM e (kind INT, id INT, k STRING, v INT, txt STRING)")
    db.execute("CREATE STREAM b (k STRING, w INT)")
    rnd = random.Random(3)  # noqa: S311
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE e (kind INT, id INT, k TEXT, v INT, txt TEXT)")
        oracle.execute("CREATE TABLE b (k TEXT, w INT)")

        def advance(opened: penstock.Database, step: int) -> None:
            rows = []
            for number in range(8):
                kind = rnd.choice([1, 2, 3, 4])
                text = str(rnd.randrange(9)) if kind in (1, 3) else rnd.choice(["abc", "", "word"])
                rows.append((kind, step * 8 + number, rnd.choice("pqr"), rnd.randrange(5), text))
            met = [(rnd.choice("pq"), rnd.choice([1, 2, None])) for _ in range(2)]
            opened.append("e", [dict(zip(COLUMNS, row, strict=True)) for row in rows])
            opened.append("b", [{"k": k, "w": w} for k, w in met])
            oracle.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", rows)
            oracle.executemany("INSERT INTO b VALUES (?, ?)", met)

        hold_beside(db, oracle, QUERIES, advance)
    assert {found.state for found in db.jobs()} == {"running"}


def test_where_the_query_computes_it_a_value_may_fail(db: penstock.Database) -> None:
    db.execute("CREATE STREAM a (k INT)")
    db.execute("CREATE STREAM b (k INT, txt STRING)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, CAST(b.txt AS INT) AS n FROM a LEFT JOIN b ON a.k = b.k")
    db.append("a", [{"k": 1}, {"k": 2}])
    db.append("b", [{"k": 2, "txt": "7"}, {"k": 3, "txt": "seven"}, {"k": 2, "txt": None}])
    db.settle(60)
    assert sorted(db.sql("SELECT k, n FROM v").rows(), key=str) == [(1, None), (2, 7), (2, None)]
    db.append("a", [{"k": 3}])
    with pytest.raises(penstock.JobFailed, match="seven"):
        db.settle(60)
