"""Answers: their values, their times, and as of when they are."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from penstock.errors import PenstockError
from penstock.interfaces.result import Result

NOON_US = 1_767_268_800_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def result(**as_of: tuple[int, int | None]) -> Result:
    import pyarrow as pa

    table = pa.table(
        {
            "symbol": ["ACME", None],
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "at": pa.array([NOON_US, None], pa.timestamp("us")),
        }
    )
    return Result(table, as_of)


def test_rows_are_tuples_with_aware_times() -> None:
    assert result().rows() == [("ACME", Decimal("1.50"), NOON), (None, None, None)]
    assert result().rows()[0][2].tzinfo is UTC
    assert list(result()) == result().rows()
    assert len(result()) == 2


@pytest.mark.parametrize(("unit", "zone", "factor"), [("ns", None, 1000), ("us", "UTC", 1), ("us", "Asia/Tokyo", 1)])
def test_every_instant_is_in_utc_whatever_the_column_says(unit: str, zone: str | None, factor: int) -> None:
    import pyarrow as pa

    found = Result(pa.table({"at": pa.array([NOON_US * factor], pa.timestamp(unit, tz=zone))}))
    assert found.arrow().schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert found.rows() == [(NOON,)]


def test_instants_inside_values_are_in_utc_and_intervals_are_lengths() -> None:
    import pyarrow as pa

    interval = pa.array([pa.MonthDayNano([0, 1, 5_000_000_000]), None], pa.month_day_nano_interval())
    nested = pa.array([{"at": datetime(2026, 1, 1, 12), "many": [1]}, None])  # noqa: DTZ001 - as a store gives it
    pairs = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32()))
    found = Result(pa.table({"lateness": interval, "nested": nested, "pairs": pairs}))
    assert found.rows()[0] == (timedelta(days=1, seconds=5), {"at": NOON, "many": [1]}, {"a": 1})
    assert found.rows()[1] == (None, None, None)


def test_an_instant_beyond_the_calendar_is_its_text() -> None:
    import pyarrow as pa

    far = [253_402_300_800_000_000, -62_135_596_800_000_001, -9_223_372_036_854_775_808]
    found = Result(pa.table({"at": pa.array(far, pa.timestamp("us", tz="UTC"))}))
    assert found.rows()[:2] == [("+10000-01-01T00:00:00Z",), ("+0000-12-31T23:59:59.999999Z",)]
    assert str(found.rows()[2][0]).startswith("-290308-12-21")


def test_an_answer_says_as_of_when_it_is() -> None:
    one = result(prices=(12, NOON_US))
    assert (one.batch_id, one.watermark, dict(one.as_of)) == (12, NOON, {"prices": 12})
    two = result(prices=(12, NOON_US), totals=(7, NOON_US - 1_000_000))
    assert (two.batch_id, two.watermark) == (None, NOON - timedelta(seconds=1))
    assert dict(two.as_of) == {"prices": 12, "totals": 7}
    none = result(prices=(12, NOON_US), totals=(7, None))
    assert none.watermark is None
    assert (result().batch_id, result().watermark, dict(result().as_of)) == (None, None, {})


def test_frames_have_the_same_rows() -> None:
    assert result().polars().rows() == result().rows()
    assert list(result().pandas()["symbol"]) == ["ACME", None]
    assert result().columns == ["symbol", "price", "at"]


def test_a_missing_frame_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PenstockError) as raised:
        result().polars()
    assert raised.value.condition == "INSTALLATION_UNUSABLE"
    assert "pip install polars" in str(raised.value.hint)


def test_the_repr_is_a_small_table() -> None:
    import pyarrow as pa

    shown = repr(result(prices=(12, NOON_US)))
    assert shown.splitlines()[0] == "symbol | price | at"
    assert shown.splitlines()[-1] == "(2 rows; as of prices batch 12, watermark 2026-01-01 12:00:00)"
    long = repr(Result(pa.table({"n": list(range(5000))})))
    assert long.endswith("(5,000 rows, the first 10 shown)")
    assert len(long.splitlines()) == 13


def test_an_answer_without_columns_has_rows() -> None:
    import pyarrow as pa

    assert Result(pa.table({})).rows() == []


def test_frames_share_the_memory_of_the_answer() -> None:
    """U11: Arrow, Polars and NumPy look at the same numbers; nothing is copied on the way out."""
    import pyarrow as pa

    found = Result(pa.table({"n": list(range(10_000)), "x": [0.5] * 10_000}))
    for name in ("n", "x"):
        column = found.arrow().column(name).chunk(0)
        place = column.buffers()[1].address
        assert found.polars()[name].to_arrow().buffers()[1].address == place
        assert column.to_numpy(zero_copy_only=True).__array_interface__["data"][0] == place
