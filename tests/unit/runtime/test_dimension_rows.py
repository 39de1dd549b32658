"""Rows of a program as a dimension: columns, keys, and a join of tables at hand (L1, L6, L18, R1)."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.runtime.dimension_join import joined
from penstock.runtime.dimension_rows import (
    columns_of_table,
    fitted_table,
    given_table,
    refuse_repeated,
    repeated_keys,
)

WANTED = {"id": [1, 2], "name": ["a", None]}


@pytest.mark.parametrize(
    "data",
    [
        pa.table(WANTED),
        pa.RecordBatch.from_pydict(WANTED),
        pl.DataFrame(WANTED),
        pd.DataFrame(WANTED),
        WANTED,
        [{"id": 1, "name": "a"}, {"id": 2}],
        iter([{"id": 1, "name": "a"}, {"name": None, "id": 2}]),
    ],
    ids=["table", "batch", "polars", "pandas", "dict", "rows", "iterator"],
)
def test_every_shape_of_rows(data: object) -> None:
    given = given_table(data)
    columns = columns_of_table(given)
    assert [(column.name, str(column.type)) for column in columns] == [("id", "BIGINT"), ("name", "STRING")]
    assert fitted_table(given, columns).to_pydict() == WANTED


def test_types() -> None:
    given = pa.table(
        {
            "at": pa.array([1_767_225_600_000_000_000], pa.timestamp("ns")),
            "tags": pa.array([["x"]], pa.large_list(pa.string())),
            "kind": pa.array(["a"]).dictionary_encode(),
            "none": pa.nulls(1),
        }
    )
    found = fitted_table(given, columns_of_table(given))
    assert [str(column.type) for column in columns_of_table(given)] == [
        "TIMESTAMP",
        "ARRAY<STRING>",
        "STRING",
        "STRING",
    ]
    assert found.to_pylist()[0]["at"] == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    with pytest.raises(PenstockError, match="no SQL type"):
        columns_of_table(pa.table({"length": pa.array([1], pa.duration("s"))}))


@pytest.mark.parametrize(
    ("data", "word"),
    [([], "no rows"), ([{"a": 1}, {"a": "x"}], "different types"), (7, "no rows"), ([1], "not a dict")],
)
def test_no_rows(data: object, word: str) -> None:
    with pytest.raises(PenstockError, match=word) as raised:
        given_table(data)
    assert raised.value.condition == "INVALID_ROWS"


def test_a_new_version_has_all_columns() -> None:
    columns = columns_of_table(pa.table(WANTED))
    assert fitted_table([{"ID": 3, "Name": "c"}], columns).to_pydict() == {"id": [3], "name": ["c"]}
    assert fitted_table([], columns).num_rows == 0
    with pytest.raises(PenstockError, match="column name is not given"):
        fitted_table([{"id": 3}], columns)
    with pytest.raises(PenstockError, match="no column other"):
        fitted_table([{"id": 3, "name": "c", "other": 1}], columns)


def test_repeated_keys() -> None:
    table = pa.table({"a": [1, 1, 1, 2, None, None], "b": ["x", "x", "y", "z", "n", "n"]})
    assert repeated_keys(table, ["a"]) == 1
    assert repeated_keys(table, ["a", "b"]) == 1
    assert repeated_keys(table.slice(1, 3), ["a", "b"]) == 0
    assert repeated_keys(table.slice(0, 0), ["a"]) == 0
    assert repeated_keys(table, []) == 0
    with pytest.raises(PenstockError, match="1 key stands in more than one row") as raised:
        refuse_repeated("d", table, ["a"])
    assert raised.value.condition == "DUPLICATE_KEYS"


# joins

FACT = pa.table({"symbol": ["B", "A", None, "C", "A"], "n": [1, 2, 3, 4, 5]})
DIMENSION = pa.table({"id": ["A", "B", None, "B"], "name": ["Apple", "Bee", "nobody", "Bus"], "n": [7, 8, 9, 10]})


def test_inner_join() -> None:
    """The rows of the fact table in their order, one for each match; NULL matches nothing."""
    found = joined(FACT, DIMENSION, {"symbol": "id"})
    assert found.to_pylist() == [
        {"symbol": "B", "n": 1, "name": "Bee", "n_right": 8},
        {"symbol": "B", "n": 1, "name": "Bus", "n_right": 10},
        {"symbol": "A", "n": 2, "name": "Apple", "n_right": 7},
        {"symbol": "A", "n": 5, "name": "Apple", "n_right": 7},
    ]


def test_left_join_keeps_rows_without_a_match() -> None:
    found = joined(FACT.to_batches()[0], DIMENSION.slice(0, 1), {"symbol": "id"}, "left")
    assert found.column("name").to_pylist() == [None, "Apple", None, None, "Apple"]
    assert found.column("symbol").equals(FACT.column("symbol"))


def test_join_by_several_keys_and_other_types() -> None:
    fact = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
    dimension = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "x"], "c": [10, 20]})
    assert joined(fact, dimension, ["a", "b"]).to_pylist() == [{"a": 1, "b": "x", "c": 10}]
    assert joined(fact, dimension.slice(0, 0), "a", "left").column("c").to_pylist() == [None, None]
    assert joined(fact.slice(0, 0), dimension, "a").num_rows == 0


def test_joins_that_cannot_be() -> None:
    for keys, how, condition in (
        ("nothing", "inner", "UNKNOWN_COLUMN"),
        ({"symbol": "nothing"}, "inner", "UNKNOWN_COLUMN"),
        ([], "inner", "INVALID_ARGUMENT"),
        ({"symbol": "id"}, "outer", "INVALID_ARGUMENT"),
    ):
        with pytest.raises(PenstockError) as raised:
            joined(FACT, DIMENSION, keys, how)  # type: ignore[arg-type]
        assert raised.value.condition == condition
