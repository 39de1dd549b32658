"""Functions in SQL, in jobs and in queries that end: what their bodies say beside DuckDB, NULLs too (U1)."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

FUNCTIONS = """
CREATE FUNCTION band(x INT) RETURNS STRING
RETURN CASE WHEN x IS NULL THEN 'none' WHEN x < 10 THEN 'low' ELSE 'high' END;
CREATE FUNCTION scaled(x INT, by DOUBLE) RETURNS DOUBLE LANGUAGE SQL AS $$ SELECT x * $2 $$;
CREATE FUNCTION label(k STRING, x INT) RETURNS STRING RETURN UPPER(k) || '-' || band(x);
"""
VIEWS = {
    "passed": "SELECT k, label(k, v) AS b, scaled(v, 0.5) AS s FROM s WHERE scaled(v, 2) <> 4",
    "counted": "SELECT band(v) AS b, COUNT(*) AS n, SUM(scaled(v, 0.5)) AS t FROM s GROUP BY band(v)",
    "ranked": "SELECT k, label(k, v) AS b FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY scaled(v, -1) NULLS LAST, v) = 1",
    "joined": "SELECT a.k, band(a.v) AS x, band(b.v) AS y FROM s a LEFT JOIN s b ON b.k = a.k AND band(b.v) = 'high'",
}
MACROS = """
CREATE TABLE s (k VARCHAR, v INTEGER);
CREATE MACRO band(x) AS CASE WHEN x IS NULL THEN 'none' WHEN x < 10 THEN 'low' ELSE 'high' END;
CREATE MACRO scaled(x, b) AS CAST(x AS DOUBLE) * b;
CREATE MACRO label(k, x) AS upper(k) || '-' || band(x);
"""


def test_functions_in_sql_beside_duckdb(opened: Callable[..., penstock.Database]) -> None:
    db, duck = opened(), duckdb.connect()
    db.execute(f"CREATE STREAM s (k STRING, v INT); {FUNCTIONS}")
    duck.execute(MACROS)
    for name, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def add(*rows: tuple[str | None, int | None]) -> None:
        db.append("s", [{"k": k, "v": v} for k, v in rows])
        duck.executemany("INSERT INTO s VALUES (?, ?)", [list(row) for row in rows])
        db.settle()
        for name, query in VIEWS.items():
            wanted = sorted(duck.execute(query).fetchall(), key=str)
            assert sorted(read(db, name), key=str) == wanted, name

    add(("a", 1), ("b", 20), ("a", None))
    add(("a", 30), (None, 2), ("b", 3))
    with pytest.raises(PenstockError) as raised:
        db.execute("CREATE OR REPLACE FUNCTION band(x INT) RETURNS STRING RETURN 'all'")
    assert raised.value.condition == "DEPENDENT_OBJECTS"
    assert "calls it" in raised.value.message
    db.close()

    db = opened()
    shown = db.execute("SHOW FUNCTIONS")
    assert shown is not None
    assert [(row[0], row[3]) for row in shown.rows()] == [("band", "sql"), ("scaled", "sql"), ("label", "sql")]
    add(("c", 5), ("b", 50))
    assert db.sql("SELECT band(12) AS b, scaled(CAST(NULL AS INT), 2) AS s").rows() == [("high", None)]
    assert db.sql("SELECT label(k, 7) AS b FROM ranked WHERE k = 'c'").rows() == [("C-low",)]


def test_an_insert_holds_its_functions(db: penstock.Database) -> None:
    db.execute(
        "CREATE STREAM s (v INT); CREATE STREAM t (v INT); CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1;"
        "INSERT INTO t SELECT f(v) FROM s"
    )
    for statement in ("DROP FUNCTION f", "CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x + 2"):
        with pytest.raises(PenstockError) as raised:
            db.execute(statement)
        assert raised.value.condition == "DEPENDENT_OBJECTS"
    db.execute("DROP FUNCTION f CASCADE")
    assert not db.jobs()
