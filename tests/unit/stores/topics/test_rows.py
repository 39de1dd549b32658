"""What a program may hand over as rows, and how each value becomes one of the declared column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.model import ColumnDefinition
from penstock.errors import PenstockError
from penstock.stores.arrow_types import arrow_type
from penstock.stores.topics.rows import rows_to_table
from penstock.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, SqlType

MONEY = SqlType("DECIMAL", (10, 2))
POINT = SqlType("STRUCT", fields=(Field("x", INT), Field("at", TIMESTAMP)))
LIST = SqlType("ARRAY", elements=(MONEY,))
MAP = SqlType("MAP", elements=(STRING, INT))
NEW_YEAR = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
NEW_YEAR_MS = 1_609_459_200_000
TRADE = (
    ColumnDefinition("symbol", STRING, nullable=False),
    ColumnDefinition("price", MONEY),
    ColumnDefinition("volume", INT),
    ColumnDefinition("ts", TIMESTAMP),
)
ROWS: list[dict[str, Any]] = [
    {"symbol": "A", "price": Decimal("12.34"), "volume": 5, "ts": NEW_YEAR},
    {"symbol": None, "price": None, "volume": None, "ts": None},
]


def converted(sql_type: SqlType, value: Any) -> Any:
    return rows_to_table([{"c": value}], [ColumnDefinition("c", sql_type)]).column("c")[0].as_py()


@pytest.mark.parametrize(
    ("sql_type", "given", "kept"),
    [
        (TIMESTAMP, NEW_YEAR_MS, NEW_YEAR),
        (TIMESTAMP, np.int64(NEW_YEAR_MS), NEW_YEAR),
        (TIMESTAMP, "2021-01-01T00:00:00Z", NEW_YEAR),
        (TIMESTAMP, "2021-01-01T02:00:00+02:00", NEW_YEAR),
        (TIMESTAMP, "2021-01-01 00:00:00", NEW_YEAR),
        (TIMESTAMP, "2021-01-01", NEW_YEAR),
        (TIMESTAMP, NEW_YEAR.replace(tzinfo=None), NEW_YEAR),
        (TIMESTAMP, NEW_YEAR.astimezone(dt.timezone(dt.timedelta(hours=-5))), NEW_YEAR),
        (TIMESTAMP, dt.date(2021, 1, 1), NEW_YEAR),
        (TIMESTAMP, pd.Timestamp("2021-01-01"), NEW_YEAR),
        (TIMESTAMP, pd.NaT, None),
        (TIMESTAMP, np.datetime64("2021-01-01T00:00:00.000000001"), NEW_YEAR),
        (TIMESTAMP, -1, NEW_YEAR - dt.timedelta(milliseconds=NEW_YEAR_MS + 1)),
        (DATE, "2021-01-31", dt.date(2021, 1, 31)),
        (DATE, dt.date(2021, 1, 31), dt.date(2021, 1, 31)),
        (DATE, dt.datetime(2021, 1, 31), dt.date(2021, 1, 31)),  # noqa: DTZ001
        (MONEY, 12.34, Decimal("12.34")),
        (MONEY, "12.34", Decimal("12.34")),
        (MONEY, Decimal("12.340"), Decimal("12.34")),
        (MONEY, -99_999_999, Decimal("-99999999.00")),
        (MONEY, 1e-2, Decimal("0.01")),
        (SqlType("DECIMAL", (38, 18)), 0.1, Decimal("0.100000000000000000")),
        (SqlType("UBIGINT"), 2**64 - 1, Decimal(2**64 - 1)),
        (SqlType("UTINYINT"), 255, 255),
        (INT, 5.0, 5),
        (INT, Decimal(5), 5),
        (INT, np.int32(5), 5),
        (BIGINT, pd.NA, None),
        (DOUBLE, 1, 1.0),
        (DOUBLE, Decimal("0.5"), 0.5),
        (SqlType("FLOAT"), 0.5, 0.5),
        (BINARY, bytearray(b"x"), b"x"),
        (BOOLEAN, np.bool_(True), True),
        (STRING, np.str_("x"), "x"),
        (LIST, [1, None, "2.50"], [Decimal("1.00"), None, Decimal("2.50")]),
        (MAP, {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        (POINT, {"at": NEW_YEAR_MS}, {"x": None, "at": NEW_YEAR}),
        (SqlType("VARIANT"), None, None),
    ],
)
def test_a_value_becomes_one_of_the_column(sql_type: SqlType, given: Any, kept: Any) -> None:
    """DEC3: an integer in a TIMESTAMP column is epoch milliseconds."""
    assert converted(sql_type, given) == kept
    assert converted(sql_type, None) is None


@pytest.mark.parametrize(
    ("sql_type", "value", "said"),
    [
        (TIMESTAMP, "noon", "'noon' is no time such as"),
        (TIMESTAMP, 1.5, "1.5 is no TIMESTAMP"),
        (TIMESTAMP, True, "True is no TIMESTAMP"),
        (TIMESTAMP, 2**62, "4611686018427387904 is no number of milliseconds"),
        (DATE, "31.1.2021", "is no date such as"),
        (DATE, 18_000, "18000 is no DATE"),
        (DATE, dt.datetime(2021, 1, 1, 12), "is a time, not a DATE"),  # noqa: DTZ001
        (MONEY, 12.345, r"12.345 does not fit DECIMAL\(10, 2\)"),
        (MONEY, "100000000", r"does not fit DECIMAL\(10, 2\)"),
        (MONEY, Decimal("1e400"), "does not fit"),
        (MONEY, float("nan"), "nan is no number"),
        (MONEY, "twelve", "'twelve' is no number"),
        (MONEY, True, "True is no DECIMAL"),
        (INT, 2**31, "2147483648 does not fit INT"),
        (INT, Decimal("1e400"), "is no INT"),
        (INT, 5.5, "5.5 is no INT"),
        (INT, "5", "'5' is no INT"),
        (INT, True, "True is no INT"),
        (SqlType("UBIGINT"), -1, "-1 does not fit BIGINT UNSIGNED"),
        (SqlType("UBIGINT"), 2**64, "does not fit BIGINT UNSIGNED"),
        (SqlType("UTINYINT"), 256, "256 does not fit TINYINT UNSIGNED"),
        (SqlType("FLOAT"), 1e300, r"1e\+300 does not fit FLOAT"),
        (DOUBLE, 10**400, "does not fit DOUBLE"),
        (DOUBLE, "1", "'1' is no number"),
        (STRING, 5, "5 is no text"),
        (STRING, "\ud800", "is no valid Unicode"),
        (STRING, ["x" * 100], r"\['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… is no text"),
        (BINARY, "x", "'x' is no bytes"),
        (BOOLEAN, 1, "1 is no BOOLEAN"),
        (LIST, "abc", "'abc' is no ARRAY"),
        (LIST, [True], r"\[True\] is no DECIMAL"),
        (MAP, [1], r"\[1\] is no MAP"),
        (MAP, {None: 1}, "has a NULL key"),
        (POINT, {"y": 1}, "has a field y that"),
        (POINT, 5, "5 is no STRUCT"),
        (SqlType("VARIANT"), "{}", "declare the column as STRING and use parse_json"),
    ],
)
def test_a_value_that_does_not_fit_is_named(sql_type: SqlType, value: Any, said: str) -> None:
    with pytest.raises(PenstockError, match=f"column c, row 2: .*{said}") as caught:
        rows_to_table({"c": [None, value, None]}, [ColumnDefinition("c", sql_type)])
    assert caught.value.condition == "INVALID_ROWS"
    assert caught.value.hint == f"the column is {sql_type}"


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        iter(ROWS),
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        {"SYMBOL": ("A", None), "Price": ["12.34", None], "volume": np.array([5, None], object), "ts": [NEW_YEAR_MS, None]},
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pa.table({"symbol": pa.array(["A", None]).dictionary_encode(), "price": pa.array([12.34, None]),
                  "volume": pa.array([5, None], pa.uint64()), "ts": pa.array([NEW_YEAR, None], pa.timestamp("ns"))}),
        pa.table({"symbol": pa.array(["A", None], pa.large_string()), "price": ["12.34", None],
                  "volume": pa.array([5.0, None]), "ts": ["2021-01-01T00:00:00Z", None]}),
        pa.table({"symbol": pa.array(["A", None], pa.string_view()), "price": pa.array(ROWS[0]["price"]for _ in [1]).cast(pa.decimal256(40, 4)).take([0, None]),
                  "volume": [5, None], "ts": pa.array([NEW_YEAR_MS, None])}),
        pd.DataFrame(ROWS),
        pd.DataFrame({"symbol": ["A", None], "price": [12.34, None], "volume": [5, None],
                      "ts": pd.to_datetime(["2021-01-01", None])}),
        pl.DataFrame(ROWS),
    ],
    ids=["dicts", "iterator", "lists", "mixed lists", "table", "batch", "dictionary", "texts", "views", "pandas objects",
         "pandas", "polars"],
)  # fmt: skip
def test_rows_of_any_kind_become_the_same_table(data: Any) -> None:
    table = rows_to_table(data, TRADE)
    assert table.to_pylist() == ROWS
    assert table.schema.types == [arrow_type(column.type) for column in TRADE if column.type]


def test_columns_that_are_missing_are_null() -> None:
    assert rows_to_table([{"symbol": "A"}, {"volume": 1}], TRADE).to_pylist() == [
        {"symbol": "A", "price": None, "volume": None, "ts": None},
        {"symbol": None, "price": None, "volume": 1, "ts": None},
    ]
    assert rows_to_table([], TRADE).num_rows == 0
    assert rows_to_table(pa.table({"volume": pa.nulls(3)}), TRADE).num_rows == 3


@pytest.mark.parametrize(
    ("data", "said", "hint"),
    [
        ([{"pric": 1}], "there is no column pric", "did you mean price?"),
        (pa.table({"zzz": [1]}), "there is no column zzz", "columns: symbol, price, volume, ts"),
        ([{"volume": 1}, (1, 2)], r"row 2 is \(1, 2\), not a dict", None),
        ({"volume": [1], "price": [1, 2]}, "different numbers of values: volume 1, price 2", None),
        ({"volume": 1}, "column volume is 1, not a list of values", None),
        ([{"volume": 1, "VOLUME": 2}], "column volume is given twice", None),
        (pa.table([[1], [2]], names=["volume", "volume"]), "column volume is given twice", None),
        ("rows", "'rows' is no rows", None),
        (7, "7 is no rows", None),
    ],
)
def test_data_of_another_shape_is_refused(data: Any, said: str, hint: str | None) -> None:
    with pytest.raises(PenstockError, match=said) as caught:
        rows_to_table(data, TRADE)
    assert caught.value.condition == "INVALID_ROWS"
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize(
    ("sql_type", "column"),
    [
        (INT, pa.array([1, 2**40])),
        (INT, pa.array(["1", "2"])),
        (BOOLEAN, pa.array([1, 0])),
        (STRING, pa.array([1, 2])),
        (MONEY, pa.array([1.5, 1.005])),
        (MONEY, pa.array([0, 10**8])),
        (SqlType("UINT"), pa.array([1, -1])),
        (DATE, pa.array([NEW_YEAR, NEW_YEAR + dt.timedelta(hours=1)])),
        (TIMESTAMP, pa.array([1, 2**60])),
        (LIST, pa.array([["1"], ["x"]])),
    ],
)
def test_a_column_of_arrow_that_does_not_fit_names_its_row(sql_type: SqlType, column: pa.Array) -> None:
    with pytest.raises(PenstockError, match="column c, row") as caught:
        rows_to_table(pa.table({"c": column}), [ColumnDefinition("c", sql_type)])
    assert caught.value.condition == "INVALID_ROWS"


def test_an_instant_beyond_every_calendar_is_refused_by_name() -> None:
    with pytest.raises(PenstockError, match=r"column c has a timestamp\[s\]") as caught:
        rows_to_table(pa.table({"c": pa.array([2**50], pa.timestamp("s"))}), [ColumnDefinition("c", TIMESTAMP)])
    assert caught.value.condition == "INVALID_ROWS"


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**8) + 1, max_value=10**8 - 1))
def test_decimals_are_exact_whichever_way_they_come(value: Decimal) -> None:
    assert converted(MONEY, value) == converted(MONEY, str(value)) == value
    assert rows_to_table(pa.table({"c": [str(value)]}), [ColumnDefinition("c", MONEY)])["c"][0].as_py() == value
    assert converted(MONEY, float(value)) == value
    assert rows_to_table(pa.table({"c": [float(value)]}), [ColumnDefinition("c", MONEY)])["c"][0].as_py() == value
