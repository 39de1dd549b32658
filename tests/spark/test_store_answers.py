"""The view store answers as Spark does: the same bound queries in DuckDB and in Spark, over the same awkward rows.

Several hundred expressions over NULL, NaN, infinity, negative, extreme and empty values; then aggregates, joins, orders
and set operations as whole queries; then what must fail in both.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from penstock.plan.logical import LogicalPlan
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_terms import kept, store_type
from penstock.plan.store_text import store_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (
    "id INT, i INT, j INT, b BIGINT, d DOUBLE, e DOUBLE, f FLOAT, s STRING, u STRING, m DECIMAL(10, 2), "
    "n DECIMAL(12, 4), ts TIMESTAMP, at TIMESTAMP, day DATE, flag BOOLEAN, other BOOLEAN, a ARRAY<INT>"
)
SETUP = f"""
CREATE STREAM source ({COLUMNS});
CREATE MATERIALIZED VIEW v AS SELECT * FROM source;
CREATE MATERIALIZED VIEW w AS SELECT i AS k, s AS label, d AS weight FROM source;
"""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NAN, INF = math.nan, math.inf
ROWS: list[tuple[Any, ...]] = [
    (1, 1, 2, 10, 1.5, -2.25, 0.5, "abc", "b", Decimal("1.25"), Decimal("2.5000"), moment("2024-02-29T12:34:56.789012"),
     moment("2024-03-01T00:00:00"), date(2024, 2, 29), True, False, [1, 2, 3]),
    (2, -7, 3, -(2**40), -1.5, 0.0, -0.5, "", "abc", Decimal("-1.25"), Decimal("0.0001"), moment("1969-12-31T23:59:59"),
     moment("1970-01-01T00:00:00"), date(1969, 12, 31), False, None, []),
    (3, 0, 1, 0, NAN, 1.0, 1.0, "aB%_c", "a", Decimal("0.00"), Decimal("-99.9999"), moment("2023-12-31T23:59:59.999999"),
     moment("2024-01-01T00:00:00"), date(2023, 12, 31), None, True, None),
    (4, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None),
    (5, 2147483, -5, 2**40, INF, -0.0, 2.0, "  x ", " ", Decimal("12345678.99"), Decimal("1.0000"),
     moment("0999-01-01T00:00:00"), moment("2100-12-31T23:00:00"), date(2100, 12, 31), True, True, [None, 7]),
    (6, 7, 7, 7, 7.0, 7.0, 7.0, "é日本", "日", Decimal("7.00"), Decimal("7.0000"), moment("2024-01-29T00:00:00"),
     moment("2024-01-29T00:00:00"), date(2024, 1, 29), False, False, [7]),
    (7, -1, 60000, 5, -0.0, NAN, 0.25, "abcabc", "abc", Decimal("-0.01"), Decimal("0.0000"),
     moment("2024-06-30T23:30:00"), moment("2024-07-01T00:00:00"), date(2024, 6, 30), True, None, [9, None, -1]),
]  # fmt: skip


def expressions() -> list[str]:
    """What the store claims to compute as Spark does."""
    found = [f"{x} {op} {y}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")
             for x, y in (("i", "j"), ("i", "b"), ("d", "e"), ("d", "i"), ("s", "u"), ("ts", "at"), ("m", "n"),
                          ("flag", "other"), ("day", "ts"), ("d", "f"), ("m", "i"), ("b", "m"))]  # fmt: skip
    found += [f"{x} {op} {y}" for op in ("+", "-", "*")
              for x, y in (("i", "j"), ("i", "b"), ("d", "e"), ("d", "i"), ("m", "n"), ("m", "i"), ("m", "2"),
                           ("n", "m"), ("i", "1"), ("b", "3"), ("d", "2"), ("d", "0.5"), ("f", "f"))]  # fmt: skip
    found += [f"{x} > {y}" for x in ("i", "b", "d", "m", "n") for y in ("0", "1", "1.5", "-2", "7")]
    found += [f"{x} / {y}" for x in ("i", "b", "d") for y in ("2", "4", "-3")] + ["d / 0.5", "f > 1.5", "f < 0.5"]
    found += [f"{x} % {y}" for x in ("i", "b", "j") for y in ("3", "7")]
    found += [f"timestampdiff({unit}, {x}, {y})" for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
              for x, y in (("ts", "at"), ("at", "ts"))]  # fmt: skip
    found += ["concat_ws('-', s, u)", "concat_ws('', u, s, u)", "lpad(s, 5, '*')", "rpad(s, 2, 'xy')", "lpad(u, 0, 'x')",
              "rpad(s, 7)"]  # fmt: skip
    found += ["(i % 3) + 1", "-i", "-d", "-m", "-b", "- 5", "-(i + j)", "i + j * 2 - 1", "(i + j) * 2", "d * d + e"]
    found += ["abs(i)", "abs(d)", "abs(m)", "abs(b)", "greatest(i, j)", "least(i, j, 3)", "greatest(d, e)",
              "least(d, e)", "greatest(s, u)", "greatest(i, b)", "pmod(i, 3)", "pmod(b, 7)"]  # fmt: skip
    found += ["flag AND other", "flag OR other", "NOT flag", "flag IS NULL", "flag IS NOT NULL", "flag IS TRUE",
              "flag IS NOT TRUE", "other IS FALSE", "i IS NULL", "flag AND i > 0", "NOT (i > 0 OR d > 0)",
              "(i > 0) = flag", "d IS NOT NULL AND d > 1"]  # fmt: skip
    found += ["i BETWEEN 0 AND 5", "d BETWEEN -1.5 AND 2", "s BETWEEN 'a' AND 'b'", "i NOT BETWEEN 0 AND 5",
              "ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-12-31 00:00:00'",
              "i IN (1, 7, -7)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "s IN ('abc', '')", "d IN (1.5, 7)",
              "i NOT IN (1, 2)", "m IN (1.25, 7)", "b IN (10, 5)", "d IN (1, 7, 0)"]  # fmt: skip
    found += ["s LIKE 'a%'", "s LIKE '%b_'", "s NOT LIKE '%c'", "s LIKE ''", "u LIKE '_'", "s LIKE 'a%%c'"]
    found += ["s || u", "concat(s, u)", "concat(s, '-', u)", "length(s)", "char_length(u)", "trim(s)", "ltrim(s)",
              "rtrim(s)", "substring(s, 1, 2)", "substring(s, 2)", "substr(s, 3, 0)", "substring(s, 2, 100)",
              "left(s, 2)", "right(s, 2)", "left(s, 0)", "right(s, 0)", "replace(s, 'a', 'xy')", "replace(s, 'b', u)",
              "startswith(s, 'a')", "endswith(s, u)", "contains(s, u)", "s || 'it''s'", "s = 'a\\b'"]  # fmt: skip
    found += ["coalesce(i, j, 0)", "coalesce(d, 0)", "coalesce(s, 'none')", "ifnull(i, b)", "nvl(d, e)", "nullif(i, j)",
              "nullif(s, '')", "nullif(d, e)", "if(flag, i, j)", "if(i > 0, 'yes', 'no')", "coalesce(m, 0)",
              "coalesce(ts, at)", "coalesce(NULL, i)", "if(flag, i, NULL)", "if(flag, d, i)"]  # fmt: skip
    found += ["CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END", "CASE i WHEN 1 THEN 'one' WHEN 7 THEN 's' END",
              "CASE WHEN flag THEN i END", "CASE WHEN flag THEN i ELSE d END", "CASE WHEN flag THEN 1 ELSE b END",
              "CASE WHEN i > 0 THEN m ELSE 0 END", "CASE s WHEN 'abc' THEN u ELSE s END",
              "CASE WHEN d > 1 THEN ts ELSE at END"]  # fmt: skip
    found += ["CAST(i AS BIGINT)", "CAST(i AS DOUBLE)", "CAST(b AS DOUBLE)", "CAST(f AS DOUBLE)", "CAST(i AS STRING)",
              "CAST(b AS STRING)", "CAST(flag AS STRING)", "CAST(day AS TIMESTAMP)", "CAST(ts AS DATE)",
              "CAST(m AS INT)", "CAST(n AS INT)", "CAST(n AS BIGINT)", "CAST(m AS DECIMAL(12, 4))",
              "CAST(n AS DECIMAL(10, 1))", "CAST(n AS DECIMAL(12, 2))", "CAST(i AS DECIMAL(12, 2))", "CAST(flag AS INT)",
              "CAST(m AS DOUBLE)"]  # fmt: skip
    found += ["CAST(coalesce(nullif(f, NULL), 0.5) AS DOUBLE)", "CAST(1.5 AS INT)", "CAST(-1.5 AS INT)",
              "CAST(2.5 AS BIGINT)", "CAST(i / 2 AS INT)", "CAST(i / 4 AS BIGINT)"]  # fmt: skip
    found += [f"{name}(ts)" for name in ("year", "quarter", "month", "day", "dayofmonth", "dayofyear", "hour", "minute",
                                         "second")]  # fmt: skip
    found += ["year(day)", "month(day)", "day(day)"]
    found += [f"date_trunc('{unit}', ts)" for unit in ("year", "quarter", "month", "week", "day", "hour", "minute",
                                                        "second")]  # fmt: skip
    found += ["ts + INTERVAL '1' DAY", "ts - INTERVAL '90' SECOND", "ts + INTERVAL '3' HOUR", "ts + INTERVAL '2' WEEK",
              "at - INTERVAL '15' MINUTE", "ts > '2024-01-01'", "ts >= '2024-01-01 00:00:00.5'",
              "ts < TIMESTAMP '2024-01-29 00:00:01'", "day = '2024-02-29'", "day > DATE '2000-01-01'",
              "ts = '2024-01-29T00:00:00'", "ts + INTERVAL '250' MILLISECOND"]  # fmt: skip
    found += [
        "a[1]",
        "a[2]",
        "a[9]",
        "size(a)",
        "slice(a, 1, 1)",
        "slice(a, 2, 9)",
        "slice(a, 5, 1)",
        "slice(a, 1, 0)",
        "a[1] + 1",
    ]
    found += ["round(d, 2)", "round(e, 1)", "round(d)", "round(d * 0.1, 2)", "round(i)", "round(i / 8, 2)", "floor(d)",
              "ceil(e)", "floor(i)", "ceiling(i / 4)"]  # fmt: skip
    found += ["1", "1.5", "'x'", "TRUE", "1e3", "2147483648", "0.001", "i > 1.5 AND d < 1e2", "d > 2147483648"]
    return found


QUERIES = [
    "SELECT COUNT(*) AS n, COUNT(i) AS c, SUM(i) AS s, MIN(i) AS low, MAX(i) AS high, AVG(i) AS mean FROM v",
    "SELECT SUM(b) AS s, SUM(m) AS t, SUM(n) AS u, MIN(m) AS low, MAX(s) AS top, MIN(ts) AS first FROM v",
    "SELECT flag, COUNT(*) AS n, SUM(i) AS s FROM v GROUP BY flag",
    "SELECT i > 0 AS positive, MAX(d) AS top, MIN(d) AS low, MAX(e) AS te FROM v GROUP BY i > 0",
    "SELECT COUNT(DISTINCT flag) AS a, COUNT(DISTINCT d) AS b, COUNT(DISTINCT s) AS c FROM v",
    "SELECT SUM(i) FILTER (WHERE flag) AS s, COUNT(*) FILTER (WHERE i > 0) AS n, count_if(d > 0) AS p FROM v",
    "SELECT bool_and(flag) AS a, bool_or(flag) AS o, AVG(e) FILTER (WHERE e < 100) AS m FROM v",
    "SELECT COUNT(*) AS n, SUM(i) AS s, AVG(d) AS m, MIN(s) AS l FROM v WHERE i > 1000000000",
    "SELECT flag, SUM(i) AS s FROM v GROUP BY flag HAVING COUNT(*) > 1 AND SUM(i) > -100",
    "SELECT flag, COUNT(*) + 1 AS n, SUM(i) * 2 AS s, MAX(i) - MIN(i) AS spread FROM v GROUP BY flag",
    "SELECT id, i FROM v ORDER BY i, id",
    "SELECT id, i FROM v ORDER BY i DESC, id DESC",
    "SELECT id, d FROM v ORDER BY d, id",
    "SELECT id, d FROM v ORDER BY d DESC NULLS FIRST, id",
    "SELECT id, s FROM v ORDER BY s NULLS LAST, id LIMIT 3",
    "SELECT id, s FROM v ORDER BY s, id LIMIT 2 OFFSET 1",
    "SELECT id FROM v ORDER BY abs(i) DESC, id",
    "SELECT id, flag FROM v ORDER BY 2 DESC, 1",
    "SELECT DISTINCT flag, other FROM v",
    "SELECT DISTINCT i > 0 AS p FROM v ORDER BY p",
    "SELECT id FROM v WHERE i > 0 UNION ALL SELECT j FROM v",
    "SELECT i FROM v UNION SELECT j FROM v",
    "SELECT i FROM v UNION SELECT b FROM v",
    "SELECT b AS x FROM v EXCEPT SELECT i FROM v",
    "SELECT i FROM v UNION ALL SELECT b FROM v ORDER BY i LIMIT 4",
    "SELECT s, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t, MAX(SUM(i)) OVER (ORDER BY s) AS m FROM v GROUP BY s",
    "SELECT i FROM v EXCEPT SELECT j FROM v",
    "SELECT i FROM v INTERSECT SELECT j FROM v",
    "SELECT i FROM v UNION ALL SELECT j FROM v ORDER BY i LIMIT 5",
    "SELECT v.id, w.label FROM v JOIN w ON v.i = w.k",
    "SELECT v.id, w.label FROM v LEFT JOIN w ON v.i = w.k AND w.weight > 0",
    "SELECT v.id, w.k FROM v FULL JOIN w ON v.j = w.k",
    "SELECT v.id, w.k FROM v RIGHT JOIN w ON v.j = w.k",
    "SELECT COUNT(*) AS n FROM v CROSS JOIN w",
    "SELECT k, n FROM (SELECT i AS k, COUNT(*) AS n FROM v GROUP BY i) AS t WHERE n > 0 AND k IS NOT NULL",
    "WITH t AS (SELECT flag, SUM(d) AS s FROM v WHERE d < 100 GROUP BY flag) SELECT flag, s FROM t WHERE flag",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY i, id) AS r FROM v",
    "SELECT id, RANK() OVER (PARTITION BY flag ORDER BY i DESC) AS r FROM v",
    "SELECT id, DENSE_RANK() OVER (ORDER BY flag) AS r FROM v",
    "SELECT id, SUM(i) OVER (PARTITION BY flag ORDER BY id) AS s, COUNT(*) OVER (PARTITION BY flag) AS n FROM v",
    "SELECT id, SUM(i) OVER (ORDER BY d RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s FROM v",
    "SELECT id, SUM(i) OVER (ORDER BY d DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM v",
    "SELECT id, COUNT(*) OVER (PARTITION BY flag ORDER BY m RANGE BETWEEN 2 PRECEDING AND 5 FOLLOWING) AS s FROM v",
    (
        "SELECT id, COUNT(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL '31' DAY PRECEDING AND CURRENT ROW) AS a, "
        "SUM(i) OVER (ORDER BY day DESC RANGE BETWEEN INTERVAL '2' MONTH PRECEDING AND INTERVAL '7' MONTH FOLLOWING) AS b, "
        "SUM(i) OVER (ORDER BY day RANGE BETWEEN 60 PRECEDING AND 1 PRECEDING) AS c FROM v"
    ),
    "SELECT id, SUM(i) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW) AS s FROM v",
    "SELECT id, a = slice(a, 1, 9) AS x, a <=> slice(a, 1, 2) AS y, slice(a, 1, 1) <> slice(a, 3, 1) AS z FROM v",
    "SELECT DISTINCT a, flag FROM v",
    "SELECT COUNT(DISTINCT a) AS n, COUNT(DISTINCT slice(a, 1, 1)) AS m FROM v",
    "SELECT id, COUNT(*) OVER (PARTITION BY slice(a, 1, 0)) AS n FROM v",
    "SELECT a FROM v EXCEPT SELECT slice(a, 1, 9) AS a FROM v WHERE id < 7",
    "SELECT x.id FROM v AS x JOIN v AS y ON x.a = y.a",
    "SELECT id FROM v WHERE a IN (SELECT a FROM v AS x WHERE id > 1)",
    "SELECT i, NULL AS x FROM v UNION SELECT NULL AS y, s FROM v",
    "SELECT NULL AS x FROM v UNION ALL SELECT NULL AS y FROM v UNION ALL SELECT d FROM v",
    "SELECT id, LAG(i) OVER (ORDER BY id) AS before, LEAD(s) OVER (ORDER BY id) AS after FROM v",
    (
        "SELECT flag, STDDEV(i) AS a, STDDEV_POP(m) AS b, VARIANCE(d) AS c, VAR_POP(j) AS p, "
        "STDDEV(f) FILTER (WHERE id = 6) AS one FROM v WHERE id <> 5 GROUP BY flag"
    ),
    (
        "SELECT flag, MAX_BY(s, id) AS a, MIN_BY(s, id) AS b, MAX_BY(i, d) AS c, MIN_BY(day, ts) AS l, "
        "MAX_BY(id, b) FILTER (WHERE id > 2) AS m FROM v GROUP BY flag"
    ),
    "SELECT id, m * m AS a, m * n AS b, m * i AS c, CAST(m AS DECIMAL(18, 2)) * 10 AS d FROM v",
    "SELECT SUM(m * m) AS a, MAX(m) * MAX(m) AS b FROM v",
    "SELECT flag, AVG(m) AS a, AVG(n) AS b, AVG(DISTINCT m) AS c FROM v GROUP BY flag",
    "SELECT AVG(m) AS a, AVG(-m) AS b, AVG(m) FILTER (WHERE id > 100) AS c FROM v",
    "SELECT COUNT(DISTINCT i, flag) AS a, COUNT(DISTINCT s, d) AS b FROM v",
    "SELECT i, x, o FROM v LEFT JOIN UNNEST(a) WITH ORDINALITY AS u(x, o) ON TRUE",
    "SELECT flag, size(collect_list(i)) AS a, size(collect_set(i % 2)) AS b FROM v GROUP BY flag",
    "SELECT v.id, t.label FROM v, LATERAL (SELECT label FROM w WHERE w.k = v.i ORDER BY weight DESC, label LIMIT 1) AS t",
    "SELECT v.id, t.n FROM v LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM w WHERE w.k <= v.i) AS t ON t.n > 0",
    "SELECT id FROM v WHERE b IN (SELECT i FROM v AS y) OR j NOT IN (SELECT b FROM v AS x WHERE b IS NOT NULL)",
    "SELECT SUM(DISTINCT i % 2) AS a, AVG(DISTINCT j % 3) AS b, SUM(DISTINCT m) AS c FROM v",
    "SELECT id, STDDEV(j) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS z FROM v",
    "SELECT * FROM (VALUES (1, 'a', 1.5), (2, NULL, 2.25)) AS t(x, y, z) WHERE x > 1",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT 1 AS one, 'x' AS text, NULL IS NULL AS yes",
]

FAILING = [
    "i / 0", "d / e", "CAST(d AS INT)", "CAST(b AS INT)", "b * b * b", "i * 2147483647 + 1000000", "i / (j - j)",
]  # fmt: skip


def planned(sql: str) -> LogicalPlan:
    report = analyze_script(SETUP + sql)[-1]
    assert report.error is None, f"{sql}: {report.error}"
    assert report.plan is not None
    return report.plan


@pytest.fixture(scope="module")
def table() -> pa.Table:
    import pyarrow as pa

    time = pa.timestamp("us", tz="UTC")
    types = [
        pa.int32(), pa.int32(), pa.int32(), pa.int64(), pa.float64(), pa.float64(), pa.float32(), pa.string(),
        pa.string(), pa.decimal128(10, 2), pa.decimal128(12, 4), time, time, pa.date32(), pa.bool_(), pa.bool_(),
        pa.list_(pa.int32()),
    ]  # fmt: skip
    names = [
        part.split()[0] for part in COLUMNS.replace("DECIMAL(10, 2)", "X").replace("DECIMAL(12, 4)", "X").split(", ")
    ]
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(zip(*ROWS, strict=True), types, strict=True)], names
    )


@pytest.fixture(scope="module")
def store(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb
    import pyarrow as pa

    naive = table
    for name in ("ts", "at"):
        place = table.column_names.index(name)
        naive = naive.set_column(place, name, table.column(name).cast(pa.timestamp("us")))
    connection = duckdb.connect()
    connection.register("rows", naive)
    connection.execute('CREATE TABLE "v" AS FROM rows')
    connection.execute('CREATE TABLE "w" AS SELECT i AS k, s AS label, d AS weight FROM rows')
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def filled(spark: SparkSession, table: pa.Table) -> SparkSession:
    spark.createDataFrame(table).createOrReplaceTempView("v")
    spark.sql("SELECT i AS k, s AS label, d AS weight FROM v").createOrReplaceTempView("w")
    return spark


def comparable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float):
        return value + 0.0 if value else 0.0  # -0.0 is 0.0
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(map(comparable, row)) for row in zip(*[column.to_pylist() for column in table.columns], strict=True)]


def _rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def test_expressions(filled: SparkSession, store: duckdb.DuckDBPyConnection) -> None:
    """Every expression has the same values in both, row by row, and in the store the type that Spark finds."""
    listed = expressions()
    assert len(listed) >= 280
    plans = [planned(f"SELECT id, {text} AS x FROM v") for text in listed]
    wrong: list[str] = []
    answers: list[list[Any]] = []
    for start in range(0, len(plans), 80):
        items = [
            f"{spark_sql(plan.spark.expressions[1].unalias())} AS x{place}"
            for place, plan in enumerate(plans[start : start + 80])
        ]
        frame = filled.sql(f"SELECT v.id, {', '.join(items)} FROM v ORDER BY v.id")
        found = frame.toArrow()
        answers += [[comparable(value) for value in column.to_pylist()] for column in found.columns[1:]]
        for place, field in enumerate(frame.schema.fields[1:], start=start):
            planned_type = kept(plans[place].columns[1].type)
            if (
                planned_type is not None
                and planned_type.spark().lower().replace(" ", "") != field.dataType.simpleString()
            ):
                wrong.append(f"{listed[place]}: planned {planned_type}, Spark finds {field.dataType.simpleString()}")
    for text, plan, expected in zip(listed, plans, answers, strict=True):
        written = store_sql(plan)
        if written is None:
            wrong.append(f"{text}: not written for the store")
            continue
        found = rows_of(store.sql(f"SELECT x FROM ({written}) ORDER BY id").to_arrow_table())
        if [row[0] for row in found] != expected:
            wrong.append(f"{text}: store {[row[0] for row in found]}, Spark {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("sql", QUERIES)
def test_queries(sql: str, filled: SparkSession, store: duckdb.DuckDBPyConnection) -> None:
    """Whole queries give the same rows, in the same order where they ask for one."""
    plan = planned(sql)
    text = store_sql(plan)
    assert text is not None
    frame = filled.sql(spark_sql(plan.spark))
    expected, found = rows_of(frame.toArrow()), rows_of(store.sql(text).to_arrow_table())
    if "STDDEV" in sql:  # the same sums in another order
        expected, found = ([tuple(map(_rounded, row)) for row in rows] for rows in (expected, found))
    if "ORDER BY" not in sql or "OVER" in sql or "LATERAL" in sql:
        expected, found = sorted(expected, key=repr), sorted(found, key=repr)
    assert found == expected
    described = store.execute(f"DESCRIBE {text}").fetchall()
    for (name, store_kind, *_), field in zip(described, frame.schema.fields, strict=True):
        spark_kind = field.dataType.simpleString().upper()
        same = {"STRING": "VARCHAR", "INT": "INTEGER", "ARRAY<INT>": "INTEGER[]"}.get(spark_kind, spark_kind)
        assert store_kind == same, name


@pytest.mark.parametrize("text", FAILING)
def test_errors(text: str, filled: SparkSession, store: duckdb.DuckDBPyConnection) -> None:
    """What Spark refuses to compute is no answer of the store's either."""
    import duckdb

    plan = planned(f"SELECT id, {text} AS x FROM v")
    written = store_sql(plan)
    assert written is not None
    with pytest.raises(Exception, match=r"(?i)zero|overflow|cast"):
        filled.sql(spark_sql(plan.spark)).collect()
    with pytest.raises(duckdb.Error):
        store.execute(written).fetchall()


def test_types_are_written_out() -> None:
    """The helper that names types for DuckDB covers every type of the test table."""
    plan = planned("SELECT * FROM v")
    assert [store_type(field.type) for field in plan.columns if field.type is not None][9] == "DECIMAL(10, 2)"
