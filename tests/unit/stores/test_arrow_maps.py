"""Maps with a key twice on their way to DuckDB, which has none."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.stores.arrow_maps import with_keys_once
from penstock.stores.duckdb_types import to_duckdb

MAP = pa.map_(pa.string(), pa.int64())
TWICE = [("a", 1), ("b", None), ("a", 2)]
ONCE = [("a", 2), ("b", None)]


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (MAP, [None, [], [("a", 0)], TWICE], [None, [], [("a", 0)], ONCE]),
        (pa.map_(pa.int64(), MAP), [[(1, [("x", 1)]), (2, TWICE)]], [[(1, [("x", 1)]), (2, ONCE)]]),
        (pa.list_(MAP), [[TWICE], None, [None]], [[ONCE], None, [None]]),
        (pa.struct([("n", pa.int64()), ("m", MAP)]), [{"n": 1, "m": TWICE}, None], [{"n": 1, "m": ONCE}, None]),
    ],
)
def test_the_last_value_of_a_key_counts(kind: pa.DataType, given: list[Any], expected: list[Any]) -> None:
    table = pa.table({"id": range(len(given)), "v": pa.array(given, kind)})
    found = with_keys_once(table)
    assert found["v"].to_pylist() == expected
    assert found.schema == table.schema
    with duckdb.connect() as connection:
        connection.register("t", to_duckdb(table))
        assert connection.execute("SELECT count(v) FROM t").fetchall() == [(sum(each is not None for each in given),)]


def test_only_what_has_a_key_twice_is_made_anew() -> None:
    """Also where a column is a part of another one, and the same key stands in two maps."""
    maps = pa.array([TWICE, [("a", 1), ("b", 2)], None, [("b", 3), ("a", 4)], TWICE], MAP)
    table = pa.table({"v": maps.slice(1, 3)})
    assert with_keys_once(table) is table
    assert with_keys_once(pa.table({"v": maps.slice(3)}))["v"].to_pylist() == [[("b", 3), ("a", 4)], ONCE]
    chunks = pa.chunked_array([maps.slice(1, 1), maps.slice(4)])
    assert with_keys_once(pa.table({"v": chunks}))["v"].to_pylist() == [[("a", 1), ("b", 2)], ONCE]
    assert with_keys_once(pa.table({"v": pa.chunked_array([], MAP)})).num_rows == 0
