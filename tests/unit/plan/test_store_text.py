"""DuckDB's text of bounded queries: traps between the engines, names, and what is left to Spark.

tests/spark/test_store_answers.py holds the same text against Spark.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.plan.logical import LogicalPlan
from penstock.plan.script import analyze_script
from penstock.plan.store_text import store_sql
from penstock.types import SqlType

SETUP = """
CREATE STREAM source (i INT, b BIGINT, d DOUBLE, f FLOAT, s STRING, m DECIMAL(10, 2), ts TIMESTAMP, day DATE,
    flag BOOLEAN, a ARRAY<INT>, kv MAP<STRING, INT>, raw BINARY, `q"n` INT);
CREATE MATERIALIZED VIEW v AS SELECT * FROM source;
CREATE MATERIALIZED VIEW windows AS SELECT TUMBLE(ts, INTERVAL '1' MINUTE) AS w, COUNT(*) AS n FROM source
    GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE);
CREATE TABLE names (id STRING) WITH (connector = 'file', path = 'names.csv', format = 'csv');
CREATE FUNCTION fee(x DOUBLE) RETURNS DOUBLE LANGUAGE python AS 'pricing.fee';
"""


def planned(sql: str) -> LogicalPlan:
    report = analyze_script(f"{SETUP}{sql};")[-1]
    assert report.error is None, report.error
    assert report.plan is not None
    return report.plan


def text(sql: str) -> str:
    found = store_sql(planned(sql))
    assert found is not None, sql
    return found


def answer(expression: str, **values: Any) -> Any:
    """The value of an expression in DuckDB over one row."""
    import duckdb

    types = {"i": "INTEGER", "b": "BIGINT", "d": "DOUBLE", "s": "VARCHAR", "m": "DECIMAL(10, 2)", "a": "INTEGER[]"}
    connection = duckdb.connect()
    listed = ", ".join(f'CAST(? AS {types[name]}) AS "{name}"' for name in values)
    connection.execute(f'CREATE TABLE "v" AS SELECT {listed}', list(values.values()))
    row = connection.execute(text(f"SELECT {expression} AS x FROM v")).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("CAST(d AS INT)", {"d": 1.5}, 1),  # DuckDB alone: 2
        ("CAST(d AS INT)", {"d": -1.5}, -1),
        ("CAST(m AS INT)", {"m": "2.50"}, 2),
        ("i / 2", {"i": 7}, 3.5),
        ("i % 3", {"i": -7}, -1),
        ("pmod(i, 3)", {"i": -7}, 2),
        ("concat(s, 'x')", {"s": None}, None),  # DuckDB alone: 'x'
        ("length(s)", {"s": "日本"}, 2),
        ("trim(s)", {"s": " \t x "}, "\t x"),
        ("a[1]", {"a": [5, 6]}, 5),
        ("a[3]", {"a": [5, 6]}, None),
        ("d > 1.5", {"d": float("nan")}, True),
        ("coalesce(i, 0)", {"i": None}, 0),
        ("greatest(i, 3)", {"i": None}, 3),
        ("i IN (1, NULL)", {"i": 2}, None),
    ],
)
def test_traps(expression: str, values: dict[str, Any], expected: object) -> None:
    """Where DuckDB's own reading would differ from Spark's, the text says what Spark means."""
    assert answer(expression, **values) == expected


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("i / i", {"i": 0}),
        ("i + 1", {"i": 2**31 - 1}),
        ("CAST(d AS INT)", {"d": float("nan")}),
        ("-i", {"i": -(2**31)}),
    ],
)
def test_what_spark_refuses_fails(expression: str, values: dict[str, Any]) -> None:
    """A division by zero, an overflow and a number that is none are errors, as in Spark."""
    import duckdb

    with pytest.raises(duckdb.Error):
        answer(expression, **values)


@pytest.mark.parametrize(
    "expression",
    [
        "upper(s)",  # other rules for letters such as ß
        "round(d, 9)", "round(m, 1)",  # other roundings
        "CAST(d AS STRING)", "CAST(m AS STRING)", "CAST(s AS INT)", "CAST(s AS TIMESTAMP)", "CAST(d AS DECIMAL(10, 2))",
        "TRY_CAST(i AS TINYINT)", "TRY_CAST(d AS INT)", "TRY_CAST(b AS INT)",  # NULL, and an error in the store
        "s > 5", "s = i", "m > d", "m / 2", "i / m",  # other coercions
        "s LIKE 'a\\\\%'", "s LIKE s", "s ILIKE 'a'", "s RLIKE 'a+'",
        "substring(s, 0, 2)", "substring(s, -2)", "substring(s, i)", "replace(s, '', 'x')",
        "i % i", "i DIV 2", "f + i", "sqrt(d)", "ln(d)", "floor(m)", "date_format(ts, 'yyyy')",
        "ts + INTERVAL '1' MONTH", "ts > '2024-1-1'", "ts > 'now'", "ts > '2024-02-30'",
        "kv['a']", "a[i]", "a > a", "uuid()", "rand()",
        "PERCENTILE(d, 0.5) OVER ()", "SUM(i) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SUM(i) OVER (ORDER BY day RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
        "fee(d)", "i IN (SELECT 1 FROM names)",
    ],
)  # fmt: skip
def test_left_to_spark(expression: str) -> None:
    """What might not mean the same in both engines has no text for the store."""
    assert store_sql(planned(f"SELECT {expression} AS x FROM v")) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM names",
        "SELECT REGR_SLOPE(d, d) AS x FROM v",
        "SELECT AVG(CAST(m AS DECIMAL(30, 2))) AS x FROM v",
        "SELECT flag, COUNT(*) AS n FROM v GROUP BY ROLLUP (flag, kv)",
        "SELECT DISTINCT kv FROM v",
        "SELECT MODE(a) AS x FROM v",
        "SELECT MAX_BY(i, kv) AS x FROM v",
    ],
)
def test_queries_left_to_spark(sql: str) -> None:
    assert store_sql(planned(sql)) is None


def test_a_continuous_query_has_no_text() -> None:
    assert store_sql(planned("SELECT i FROM source")) is None


UNTYPED = "CREATE MATERIALIZED VIEW sums AS SELECT flag, SUM(m * 2) AS x FROM source GROUP BY flag"


def untyped(sql: str) -> LogicalPlan:
    return planned(f"{UNTYPED}; {sql}")


def test_columns_that_spark_typed() -> None:
    """They are handed on as they are; computed with only when the store says their types."""
    plan = untyped("SELECT flag, x FROM sums WHERE x IS NOT NULL")
    assert plan.columns[1].type is None
    assert store_sql(plan) is not None
    for sql in ("SELECT x + 1 AS y FROM sums", "SELECT flag FROM sums ORDER BY x", "SELECT DISTINCT x FROM sums",
                "SELECT x FROM sums GROUP BY x", "SELECT coalesce(x, x) AS y FROM sums", "SELECT MAX(x) AS y FROM sums",
                "SELECT x FROM sums UNION ALL SELECT x FROM sums"):  # fmt: skip
        assert store_sql(untyped(sql)) is None, sql
    types = {"sums": {"x": SqlType("DECIMAL", (23, 2))}}
    assert store_sql(untyped("SELECT flag FROM sums ORDER BY x"), types) is not None
    assert store_sql(untyped("SELECT MAX(x) AS y FROM sums"), types) is not None


def test_late_rows_are_read_from_the_store() -> None:
    """A system table with an interval in it."""
    assert '"late_rows"."lateness"' in text("SELECT * FROM penstock.late_rows")


def test_names_are_quoted() -> None:
    """A view under its own name, a system table under its whole name as one, odd names with their quotes doubled."""
    assert 'FROM "v" AS "t"' in text("SELECT t.i FROM v AS t")
    assert 'FROM "penstock.jobs"' in text("SELECT name, state FROM penstock.jobs WHERE state = 'running'")
    assert '"q""n"' in text('SELECT "q""n" FROM v')


def test_strings_cannot_end_early() -> None:
    assert "'it''s; DROP TABLE v --'" in text("SELECT i FROM v WHERE s = 'it''s; DROP TABLE v --'")


def test_nulls_are_placed() -> None:
    """Both engines have a default of their own; what the user means is written out."""
    assert text("SELECT i FROM v ORDER BY i").endswith('ORDER BY "i" ASC NULLS FIRST')
    assert text("SELECT i FROM v ORDER BY i DESC").endswith('ORDER BY "i" DESC NULLS LAST')
    assert text("SELECT i FROM v ORDER BY i NULLS LAST").endswith('ORDER BY "i" ASC NULLS LAST')


def test_sums_are_cast_to_the_planned_type() -> None:
    found = text("SELECT SUM(i) AS a, SUM(m) AS b, AVG(i) AS c FROM v")
    assert 'CAST(sum("v"."i") AS BIGINT)' in found
    assert 'CAST(sum("v"."m") AS DECIMAL(20, 2))' in found
    assert 'sum(CAST("v"."i" AS DOUBLE)) / count(CAST("v"."i" AS DOUBLE))' in found


def test_the_clock_is_read_in_utc() -> None:
    assert "make_timestamp(epoch_us(now()))" in text("SELECT i FROM v WHERE ts > now() - INTERVAL '5' MINUTE")


def test_fields_of_windows() -> None:
    assert '("windows"."w")."start"' in text("SELECT w.start, n FROM windows")
