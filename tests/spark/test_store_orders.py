"""The view store orders lists and structs as Spark does, wherever a NULL is inside of them: many random ones in both."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql
from penstock.plan.store_text import store_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SETUP: Final = """
CREATE STREAM source (
  id INT, k INT, a ARRAY<DOUBLE>, t ARRAY<ARRAY<STRING>>, p STRUCT<x: INT, y: STRUCT<when: TIMESTAMP, l: ARRAY<BOOLEAN>>>,
  r ARRAY<STRUCT<s: STRING, d: DOUBLE>>
);
CREATE MATERIALIZED VIEW v AS SELECT * FROM source;
"""
NESTED: Final = ("a", "t", "p", "r")
ORDERS: Final = ("", "DESC", "NULLS LAST", "DESC NULLS FIRST")
QUERIES: Final = [
    *(f"SELECT id FROM v ORDER BY {column} {order}, id" for column in NESTED for order in ORDERS),
    *(
        f"SELECT id, RANK() OVER (PARTITION BY k ORDER BY {column} {order}) AS a, "
        f"COUNT(*) OVER (ORDER BY {column} {order}) AS b FROM v ORDER BY id"
        for column in NESTED
        for order in ORDERS[:2]
    ),
    *(
        f"SELECT k, MIN({column}) AS a, MAX({column}) AS b, MAX({column}) FILTER (WHERE id % 3 = 0) AS c, "
        f"MAX({column}) FILTER (WHERE id < 0) AS d FROM v GROUP BY k ORDER BY k"
        for column in NESTED
    ),
    "SELECT id, MAX(p) OVER (PARTITION BY k ORDER BY id) AS m FROM v ORDER BY id",
    "SELECT MAX_BY(a, id) AS x, MAX(MAX(r)) OVER () AS y FROM v GROUP BY k ORDER BY x",
    "SELECT p, a FROM v WHERE id < 50 UNION SELECT p, a FROM v WHERE id > 40 ORDER BY p DESC, a LIMIT 30",
    "SELECT id, p FROM v ORDER BY p.y, a, id LIMIT 20",
]


def _values(rnd: random.Random) -> tuple[Any, ...]:
    def some(value: Callable[[], Any]) -> Any:
        return None if rnd.random() < 0.2 else value()

    def listed(value: Callable[[], Any]) -> list[Any]:
        return [some(value) for _ in range(rnd.randrange(4))]

    def number() -> float:
        return rnd.choice([-math.inf, -1.5, -0.0, 0.0, 1.0, math.inf, math.nan])

    def text() -> str:
        return rnd.choice(["", "a", "a\0", "ab", "Z", "é", "日本", "\U0001f600"])

    def inner() -> dict[str, Any]:
        moment = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC) + timedelta(seconds=rnd.randrange(3))
        return {"when": some(lambda: moment), "l": some(lambda: listed(lambda: rnd.random() < 0.5))}

    return (
        some(lambda: listed(number)),
        some(lambda: listed(lambda: listed(text))),
        some(lambda: {"x": some(lambda: rnd.randrange(3)), "y": some(inner)}),
        some(lambda: listed(lambda: {"s": some(text), "d": some(number)})),
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    import pyarrow as pa

    rnd = random.Random(5)  # noqa: S311
    inner = pa.struct([("when", pa.timestamp("us", tz="UTC")), ("l", pa.list_(pa.bool_()))])
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("k", pa.int32()),
            ("a", pa.list_(pa.float64())),
            ("t", pa.list_(pa.list_(pa.string()))),
            ("p", pa.struct([("x", pa.int32()), ("y", inner)])),
            ("r", pa.list_(pa.struct([("s", pa.string()), ("d", pa.float64())]))),
        ]
    )
    rows = [(place, rnd.randrange(5), *_values(rnd)) for place in range(300)]
    return pa.table(
        [pa.array(cells, field.type) for cells, field in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )


@pytest.fixture(scope="module")
def store(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", table)
        connection.execute(
            "CREATE TABLE \"v\" AS SELECT * REPLACE (CASE WHEN p IS NOT NULL THEN {'x': p.x, 'y': CASE WHEN p.y IS NOT NULL "
            "THEN {'when': p.y.\"when\"::TIMESTAMP, 'l': p.y.l} END} END AS p) FROM rows"
        )
        yield connection


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0 if value else 0.0  # -0.0 is 0.0
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, list):
        return list(map(_comparable, value))
    return {name: _comparable(each) for name, each in value.items()} if isinstance(value, dict) else value


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [list(map(_comparable, column.to_pylist())) for column in table.columns]
    return list(zip(*columns, strict=True))


def test_lists_and_structs_have_one_order(
    spark: SparkSession, table: pa.Table, store: duckdb.DuckDBPyConnection
) -> None:
    """ORDER BY in each direction, ranks, the smallest and the largest value of each group."""
    spark.createDataFrame(table).createOrReplaceTempView("v")
    wrong: list[str] = []
    for sql in QUERIES:
        report = analyze_script(SETUP + sql)[-1]
        assert report.plan is not None, f"{sql}: {report.error}"
        text = store_sql(report.plan)
        assert text is not None, sql
        expected = _rows(spark.sql(spark_sql(report.plan.spark)).toArrow())
        found = _rows(store.sql(text).to_arrow_table())
        assert expected, sql
        if found != expected:
            wrong.append(f"{sql}: store {found[:5]}, Spark {expected[:5]}")
    assert not wrong, "\n".join(wrong)


def test_the_order_is_not_that_of_duckdb(store: duckdb.DuckDBPyConnection) -> None:
    """The rows above tell both orders apart: otherwise nothing would have been shown."""
    for column in NESTED:
        own = store.sql(f"SELECT id FROM v ORDER BY {column} NULLS FIRST, id").fetchall()
        report = analyze_script(f"{SETUP} SELECT id FROM v ORDER BY {column}, id")[-1]
        assert report.plan is not None
        assert store.sql(store_sql(report.plan) or "").fetchall() != own, column
