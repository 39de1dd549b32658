"""Expressions that Spark computes for the view store: compiled once, of every type, and as a DataFrame gives them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.plan.decimal_types import spark_type
from penstock.plan.finish_plan import Asked
from penstock.spark.asked_rows import AskedRows
from penstock.spark.row_function import RowFunction
from penstock.stores.arrow_types import arrow_type
from penstock.types import DATE, DOUBLE, STRING, TIMESTAMP, Field, SqlType
from tests.unit.plan.analysis import planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MONEY = SqlType("DECIMAL", (10, 2))
TEXTS = SqlType("ARRAY", elements=(STRING,))
PAIR = SqlType("STRUCT", fields=(Field("at", TIMESTAMP), Field("text", STRING)))
BY_NAME = SqlType("MAP", elements=(STRING, TIMESTAMP))
MOMENT = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
EXPRESSIONS: list[tuple[str, tuple[SqlType, ...], SqlType, list[tuple[Any, ...]]]] = [
    ("upper(a0 || a1)", (STRING, STRING), STRING, [("straße", "ǆ"), (None, "x"), ("", "日本")]),
    ("a0 / a1", (MONEY, MONEY), SqlType("DECIMAL", (23, 13)), [(Decimal("1.50"), Decimal("-0.70")), (None, None)]),
    ("date_format(a0, 'EEE yyyy SSS')", (TIMESTAMP,), STRING, [(MOMENT,), (None,)]),
    ("last_day(a0)", (DATE,), DATE, [(date(2024, 2, 1),), (None,)]),
    ("a0 + INTERVAL '1' MONTH", (TIMESTAMP,), TIMESTAMP, [(MOMENT,), (None,)]),
    ("transform(a0, x -> reverse(x))", (TEXTS,), TEXTS, [(["ab", None],), ([],), (None,)]),
    ("named_struct('at', a0.at, 'text', lower(a0.text))", (PAIR,), PAIR, [({"at": MOMENT, "text": "Ä"},), (None,)]),
    ("map(a0, a1)", (STRING, TIMESTAMP), BY_NAME, [("k", MOMENT), ("l", None)]),
    ("sqrt(a0)", (DOUBLE,), DOUBLE, [(-1.0,), (float("inf"),), (None,)]),
    ("encode(a0, 'UTF-8')", (STRING,), SqlType("BINARY"), [("é",), (None,)]),
    ("7 + length('abc')", (SqlType("INT"),), SqlType("INT"), [(0,), (0,)]),
    ("upper(a0)", (STRING,), STRING, [("x" * 50,)] * 2048),
]


def table(kinds: tuple[SqlType, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], arrow_type(kind)) for place, kind in enumerate(kinds)]
    return pa.table(columns, names=[f"a{place}" for place in range(len(kinds))])


@pytest.mark.parametrize(("text", "kinds", "kind", "rows"), EXPRESSIONS)
def test_as_a_data_frame_gives_it(
    spark: SparkSession, text: str, kinds: tuple[SqlType, ...], kind: SqlType, rows: list[tuple[Any, ...]]
) -> None:
    given = table(kinds, rows)
    columns = ", ".join(f"a{place} {each.spark()}" for place, each in enumerate(kinds))
    compiled = RowFunction.of(spark, text, columns)
    assert compiled is not None, "nobody would notice but by the time it takes"
    whole = spark.createDataFrame(given).selectExpr(f"{text} AS value").toArrow().column(0)
    asked = AskedRows(lambda: spark, lambda *_: None)(Asked("f", text, kinds, kind, text), given)
    assert asked.type == arrow_type(kind)
    assert str(asked.to_pylist()) == str(whole.cast(arrow_type(kind)).to_pylist())
    assert str(compiled(given).to_pylist()) == str(whole.to_pylist())


def test_after_an_error_it_goes_on(spark: SparkSession) -> None:
    compiled = RowFunction.of(spark, "a0 / a1", "a0 INT, a1 INT")
    assert compiled is not None
    kinds = (SqlType("INT"), SqlType("INT"))
    for _ in range(3):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            compiled(table(kinds, [(1, 2), (1, 0), (1, 4)]))
        assert compiled(table(kinds, [(1, 2)])).to_pylist() == [0.5]


@pytest.mark.parametrize(
    "text",
    ["m / n", "m * n", "m + n", "m - n", "m % n", "m / 3", "3 / m", "m * 1.25", "n % 7", "m / i", "b / n", "w * w", "w / m",
     "ROUND(m, 1)", "ROUND(m)", "ROUND(m / n, 3)", "ROUND(w, -4)", "BROUND(n, 2)", "-(m / n)", "m / d", "1.5 * i",
     "0.001 + m", "ROUND(m * 100, 5)"],
)  # fmt: skip
def test_types_of_decimals(spark: SparkSession, text: str) -> None:
    kinds = "m DECIMAL(10, 2), n DECIMAL(12, 4), w DECIMAL(38, 10), i INT, b BIGINT, d DOUBLE"
    plan = planned(f"CREATE STREAM s ({kinds}); CREATE VIEW v AS SELECT {text} AS x FROM s;")
    found = spark.createDataFrame([], kinds).selectExpr(f"{text} AS x").schema["x"].dataType.simpleString()
    mine = spark_type(plan.spark.expressions[0].unalias())
    assert mine is not None
    assert mine.spark().replace(", ", ",").lower() == found
