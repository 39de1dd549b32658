"""Every data type goes into a view and comes out as it was, with the Arrow type of its SQL type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.stores.duckdb_types import duckdb_type, from_duckdb, out_type, to_duckdb
from penstock.stores.views.model import ViewSpec
from penstock.stores.views.store import ViewStore
from penstock.types import BIGINT, SPARK_NAMES, Field, SqlType
from tests.unit.stores.views.making import arrow, commit

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
LATER = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
TIMESTAMP = SqlType("TIMESTAMP")
ARRAY = SqlType("ARRAY", elements=(TIMESTAMP,))
STRUCT = SqlType("STRUCT", fields=(Field('a "b"', TIMESTAMP), Field("inner", ARRAY)))
MAP = SqlType("MAP", elements=(SqlType("STRING"), STRUCT))

VALUES: list[tuple[SqlType, list[Any]]] = [
    (SqlType("STRING"), ["", "é😀\x00'\"", "x" * 300]),
    (SqlType("BOOLEAN"), [True, False]),
    (SqlType("TINYINT"), [-128, 127]),
    (SqlType("SMALLINT"), [-(2**15), 2**15 - 1]),
    (SqlType("INT"), [-(2**31), 2**31 - 1]),
    (SqlType("BIGINT"), [-(2**63), 2**63 - 1]),
    (SqlType("UTINYINT"), [0, 255]),
    (SqlType("USMALLINT"), [0, 2**16 - 1]),
    (SqlType("UINT"), [0, 2**32 - 1]),
    (SqlType("UBIGINT"), [Decimal(0), Decimal(2**64 - 1)]),
    (SqlType("FLOAT"), [0.5, math.inf, -math.inf]),
    (SqlType("DOUBLE"), [5e-324, 1.7976931348623157e308, math.inf]),
    (
        SqlType("DECIMAL", (38, 18)),
        [Decimal("99999999999999999999.999999999999999999"), Decimal("-0.000000000000000001")],
    ),
    (SqlType("DECIMAL", (5, 2)), [Decimal("-999.99")]),
    (SqlType("BINARY"), [b"", b"\x00\xff'"]),
    (SqlType("DATE"), [date(1, 1, 1), date(9999, 12, 31)]),
    (TIMESTAMP, [MOMENT, LATER]),
    (SqlType("INTERVAL"), [timedelta(0), timedelta(days=-3, microseconds=1), timedelta(days=400)]),
    (ARRAY, [[], [MOMENT, None]]),
    (STRUCT, [{'a "b"': MOMENT, "inner": [LATER]}, {'a "b"': None, "inner": None}]),
    (MAP, [[], [("k", {'a "b"': MOMENT, "inner": [None]})], [("k", None)]]),
    (
        SqlType("ARRAY", elements=(SqlType("ARRAY", elements=(SqlType("DECIMAL", (4, 1)),)),)),
        [[[Decimal("1.5")], None]],
    ),
]


def _as_python(kind: SqlType, value: Any) -> Any:
    """A value as a change shows it: Arrow gives a map as pairs, Python has a dict for it."""
    return dict(value) if kind.name == "MAP" and value is not None else value


def test_every_type_is_tried() -> None:
    assert {kind.name for kind, _ in VALUES} == {*SPARK_NAMES, "DECIMAL", "ARRAY", "STRUCT", "MAP"} - {"VARIANT"}


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda part: str(part) if isinstance(part, SqlType) else "")
def test_a_value_comes_out_as_it_went_in(kind: SqlType, values: list[Any]) -> None:
    columns = (("id", BIGINT), ("x", kind))
    rows = [(number, value) for number, value in enumerate([*values, None])]
    with ViewStore.open(None, threads=1) as store:
        store.create_view(ViewSpec("added", columns))
        store.create_view(ViewSpec("replaced", columns, "update", ("id",)))
        for view in ("added", "replaced"):
            store.commit(commit(view, 0, arrow(columns, rows)))
            table = store.read(f'SELECT "x" FROM "{view}" ORDER BY "id"').table
            assert table.column("x").to_pylist() == [*values, None]
            assert table.schema.field("x").type == out_type(kind)
            snapshot = store.snapshot(view).table
            assert snapshot.schema.types == [pa.int64(), out_type(kind)]
            got = {change.row["id"]: change.row["x"] for change in store.changes(view, 0) if change.row}
            assert got == {number: _as_python(kind, value) for number, value in rows}
        # The same rows again change nothing: values are compared as they are.
        assert store.commit(commit("replaced", 1, arrow(columns, rows))).changes == 0


def test_a_nan_in_a_column_is_equal_to_itself() -> None:
    columns = (("id", BIGINT), ("x", SqlType("ARRAY", elements=(SqlType("DOUBLE"),))))
    with ViewStore.open(None, threads=1) as store:
        store.create_view(ViewSpec("v", columns, "update", ("id",)))
        rows = arrow(columns, [(1, [math.nan, None])])
        assert store.commit(commit("v", 0, rows)).changes == 1
        assert store.commit(commit("v", 1, rows)).changes == 0


def test_other_arrow_layouts_are_taken() -> None:
    given = pa.table(
        {
            "text": pa.array(["a"], pa.large_string()),
            "bytes": pa.array([b"a"], pa.large_binary()),
            "list": pa.array([[1]], pa.large_list(pa.int64())),
            "time": pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")),
            "coarse": pa.array([1], pa.timestamp("ms")),
        }
    )
    went_in = to_duckdb(given)
    assert went_in.schema.field("time").type == pa.timestamp("us")
    came_out = from_duckdb(went_in)
    assert came_out.schema.types == [
        pa.string(),
        pa.binary(),
        pa.list_(pa.int64()),
        pa.timestamp("us", "UTC"),
        pa.timestamp("us", "UTC"),
    ]
    assert came_out.column("time").to_pylist() == [MOMENT]


def test_a_variant_has_no_place_yet() -> None:
    with pytest.raises(PenstockError) as refused:
        duckdb_type(SqlType("VARIANT"))
    assert refused.value.condition == "QUERY_NOT_YET"


def test_an_instant_beyond_the_calendar_is_a_text_in_changes() -> None:
    columns = (("at", TIMESTAMP),)
    far = pa.table({"at": pa.array([253_402_300_800_000_000], pa.timestamp("us", tz="UTC"))})
    with ViewStore.open(None, threads=1) as store:
        store.create_view(ViewSpec("v", columns))
        store.commit(commit("v", 0, far))
        (followed,) = store.changes("v", 0)
        (whole,) = store.changes("v", None)
    assert followed.row == whole.row == {"at": "+10000-01-01T00:00:00Z"}
