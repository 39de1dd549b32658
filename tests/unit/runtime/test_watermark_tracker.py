"""penstock.WatermarkTracker: the names and the worked numbers of the source texts, in milliseconds (DEC3)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from penstock.clock import ManualClock
from penstock.errors import ResolutionError
from penstock.runtime.watermark_tracker import WatermarkTracker

if TYPE_CHECKING:
    import pyarrow as pa


def trades() -> pa.RecordBatch:
    """SC13"""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {
            "symbol": ["AAPL", "MSFT", "AAPL", "GOOGL"],
            "price": [150.0, 300.0, 151.0, 2800.0],
            "ts": pa.array([1000, 2000, 3000, 4000], pa.timestamp("ms")),
        }
    )


def test_e2_e8_rows_to_4000_with_a_second_of_delay_give_3000_and_3500_stays_open() -> None:
    tracker = WatermarkTracker(1000)
    assert tracker.update_watermark(trades(), 0) == 3000
    assert tracker.should_trigger_window(3500) is False
    assert tracker.current_watermark == tracker.get_global_watermark() == tracker.watermark() == 3000


def test_e4_advance_tells_a_value_only_when_it_moved() -> None:
    tracker = WatermarkTracker(max_out_of_orderness_ms=1000)
    assert tracker.advance() is None
    tracker.observe(4000)
    assert tracker.watermark() is None
    assert tracker.advance() == 3000
    assert tracker.advance() is None
    tracker.observe(3500)
    assert tracker.advance() is None
    tracker.observe(4001)
    assert tracker.watermark() == 3000
    assert tracker.advance() == 3001


def test_e3_older_batches_move_nothing_back() -> None:
    tracker = WatermarkTracker()
    assert tracker.update_watermark([5000]) == 5000
    assert tracker.update_watermark([1000]) == 5000
    assert tracker.get_watermark(0) == 5000


def test_e5_e6_the_minimum_over_the_partitions_that_were_declared() -> None:
    tracker = WatermarkTracker(5_000, partitions=2)
    assert tracker.update_watermark([1_000_000], partition_id=0) is None
    assert tracker.update_watermark([100_000], partition_id=1) == 95_000
    assert (tracker.get_watermark(0), tracker.get_watermark(1), tracker.get_watermark(7)) == (995_000, 95_000, None)
    assert not tracker.is_late(100_000)


def test_without_a_declaration_a_partition_counts_from_its_first_row() -> None:
    tracker = WatermarkTracker()
    assert tracker.update_watermark(1000, 0) == 1000
    assert tracker.update_watermark(500, 1) == 1000
    assert tracker.update_watermark(2000, 0) == 1000
    assert tracker.update_watermark(1500, 1) == 1500


def test_e7_an_idle_partition_is_left_out() -> None:
    clock = ManualClock()
    tracker = WatermarkTracker(partitions=2, idle_timeout_ms=60_000, clock=clock)
    tracker.update_watermark([1000], 0)
    assert tracker.update_watermark([100], 1) == 100
    clock.advance(seconds=59.999)
    tracker.observe(1001, 0)
    assert tracker.advance() is None
    clock.advance(us=1000)
    assert tracker.advance() == 1001


def test_an_empty_batch_is_silence_and_rows_without_a_time_are_not() -> None:
    clock = ManualClock()
    tracker = WatermarkTracker(partitions=2, idle_timeout_ms=1_000, clock=clock)
    tracker.update_watermark([1000], 0)
    tracker.update_watermark([100], 1)
    clock.advance(seconds=1)
    tracker.update_watermark([None], 1)
    assert tracker.update_watermark([1001], 0) == 100
    clock.advance(seconds=1)
    tracker.update_watermark([], 1)
    assert tracker.update_watermark([1002], 0) == 1002


def test_e9_e10_windows_that_end_at_the_watermark_are_triggered() -> None:
    tracker = WatermarkTracker()
    assert tracker.get_triggered_windows([2000, 4000, 6000]) == []
    tracker.update_watermark(5000)
    assert tracker.get_triggered_windows([2000, 4000, 6000]) == [2000, 4000]
    assert [tracker.should_trigger_window(end) for end in (4999, 5000, 5001)] == [True, True, False]


def test_f1_late_is_below_the_watermark_and_not_at_it() -> None:
    tracker = WatermarkTracker()
    assert not tracker.is_late(0)
    tracker.update_watermark(5000)
    assert [tracker.is_late(time) for time in (4999, 5000, 5001)] == [True, False, False]


def test_e16_rows_without_a_time_are_passed_over() -> None:
    import pyarrow as pa

    tracker = WatermarkTracker()
    empty = pa.RecordBatch.from_pydict({"ts": pa.array([None, None], pa.timestamp("ms"))})
    assert tracker.update_watermark(empty) is None
    assert tracker.update_watermark([None, 7, None]) == 7
    assert tracker.update_watermark(empty) == 7
    tracker.observe(None)
    assert tracker.advance() is None


def test_e24_the_delay_is_the_trackers_own() -> None:
    assert WatermarkTracker(timedelta(seconds=2)).update_watermark(5000) == 3000
    assert WatermarkTracker().update_watermark(5000) == 5000


def test_e25_times_come_from_the_column_that_is_named() -> None:
    import pyarrow as pa

    stamps = pa.array([9000], pa.timestamp("us", tz="UTC"))
    batch = pa.RecordBatch.from_pydict({"arrived": stamps, "happened": pa.array([4], pa.timestamp("s"))})
    assert WatermarkTracker(timestamp_column="happened").update_watermark(batch) == 4000
    assert WatermarkTracker(timestamp_column="arrived").update_watermark(pa.table(batch)) == 9
    with pytest.raises(ResolutionError, match="has 2 timestamp columns") as refused:
        WatermarkTracker().update_watermark(batch)
    assert refused.value.hint == "name one with timestamp_column; there are arrived, happened"
    with pytest.raises(ResolutionError, match="has no column elsewhere"):
        WatermarkTracker(timestamp_column="elsewhere").update_watermark(batch)


def test_dec3_an_integer_column_holds_milliseconds() -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"ts": pa.array([1609459200000], pa.int64())})
    assert WatermarkTracker(timestamp_column="ts").update_watermark(batch) == 1609459200000


def test_datetimes_are_times_too() -> None:
    tracker = WatermarkTracker()
    assert tracker.update_watermark(datetime(1970, 1, 1, 0, 0, 5)) == 5000  # noqa: DTZ001  naive is UTC
    assert tracker.update_watermark([datetime(1970, 1, 1, 1, 0, 6, tzinfo=timezone(timedelta(hours=1)))]) == 6000
    assert tracker.is_late(datetime(1970, 1, 1, 0, 0, 5, 999_999, tzinfo=UTC))
    assert tracker.should_trigger_window(datetime(1970, 1, 1, 0, 0, 6, tzinfo=UTC))


def test_parts_of_a_millisecond_count_though_they_are_not_shown() -> None:
    tracker = WatermarkTracker()
    tracker.update_watermark(datetime(1970, 1, 1, 0, 0, 5, 999, tzinfo=UTC))
    assert tracker.watermark() == 5000
    assert not tracker.should_trigger_window(5001)
    assert tracker.is_late(5000)


@pytest.mark.parametrize("name", ["max_out_of_orderness_ms", "partitions", "idle_timeout_ms"])
@pytest.mark.parametrize("given", [-1, "abc", True, float("nan")])
def test_arguments_that_are_no_number_are_refused(name: str, given: Any) -> None:
    arguments = {name: given}
    with pytest.raises(ResolutionError, match=f"INVALID_ARGUMENT. {name} is a number .* not {given!r}"):
        WatermarkTracker(**arguments)


def test_sc38_e22_timers_are_registered_cancelled_and_fired_once_in_order() -> None:
    tracker = WatermarkTracker(1000)
    tracker.register_timer("b", 3000)
    tracker.register_timer("a", 3000)
    tracker.register_timer("a", 3000)
    tracker.register_timer("c", 2000)
    tracker.register_timer("d", 2500)
    tracker.register_timer("e", 3001)
    assert tracker.cancel_timer("d", 2500) is True
    assert tracker.cancel_timer("d", 2500) is False
    assert tracker.fire_timers() == []
    tracker.update_watermark(4000)
    assert tracker.fire_timers() == [("c", 2000), ("a", 3000), ("b", 3000)]
    assert tracker.fire_timers() == []
    tracker.update_watermark(4001)
    assert tracker.fire_timers() == [("e", 3001)]


def test_sc38_skewed_partitions_do_not_lose_rows_of_the_slow_one() -> None:
    tracker = WatermarkTracker(partitions=2)
    late = 0
    for step in range(100):
        late += tracker.is_late(step) + tracker.is_late(step + 900)
        tracker.update_watermark([step], 0)
        tracker.update_watermark([step + 900], 1)
    assert (late, tracker.watermark()) == (0, 99)


def test_u2_a_batch_of_ten_thousand_rows_takes_less_than_a_millisecond() -> None:
    """The quickest of a hundred: what the tracker needs, not what else the machine does."""
    import pyarrow as pa

    tracker = WatermarkTracker(1000, timestamp_column="ts")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(milliseconds=number) for number in range(10_000)]
    batch = pa.record_batch({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    spent = []
    for _ in range(100):
        before = time.perf_counter()
        tracker.update_watermark(batch)
        spent.append(time.perf_counter() - before)
    assert tracker.current_watermark == int(start.timestamp() * 1000) + 9_999 - 1000
    assert min(spent) < 0.001


@pytest.mark.parametrize("partition", [2, 7, -1, True, 1.0, "0", None])
def test_a_partition_that_there_is_none_of_is_refused(partition: Any) -> None:
    tracker = WatermarkTracker(partitions=2)
    refusal = r"there is no partition .*partitions are numbered from 0 to 1"
    with pytest.raises(ValueError, match=refusal):
        tracker.update_watermark([1], partition)
    with pytest.raises(ValueError, match=refusal):
        tracker.observe(1, partition)
    tracker.update_watermark([5000], 0)
    assert tracker.update_watermark([4000], 1) == 4000


def test_partitions_are_counted_from_one_and_unknown_ones_from_zero() -> None:
    with pytest.raises(ValueError, match="partitions is a number from 1 on, not 0"):
        WatermarkTracker(partitions=0)
    with pytest.raises(ValueError, match="there is no partition -1"):
        WatermarkTracker().update_watermark([1], -1)
    assert WatermarkTracker().update_watermark([5000], 7) == 5000
