"""The event-time tracker by worked numbers: CONTRACT E and F, without Spark."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError
from penstock.runtime.event_time import EventTimeTracker, HeldBack, ScanTime, Seen
from penstock.runtime.job_spec import WATERMARK_US

MS = 1_000
S = 1_000_000
IDLE = 60 * S


def tracker(*scans: ScanTime, started_us: int = 0) -> EventTimeTracker:
    return EventTimeTracker(scans or (ScanTime("s"),), started_us)


def test_e2_the_watermark_is_the_largest_time_minus_the_delay() -> None:
    time = tracker(ScanTime("s", delay_us=1 * S))
    for at in (1000, 2000, 3000, 4000):
        time.observe("s", {0: at * MS}, now_us=0)
    assert time.watermark_us == 3000 * MS


def test_nothing_is_known_before_the_first_row() -> None:
    time = tracker()
    assert time.watermark_us is None
    assert not time.is_late(-1)
    assert not time.should_trigger(0)
    assert time.triggered([0, 1]) == []


def test_e1_a_delay_of_zero_puts_the_watermark_at_the_largest_time() -> None:
    assert tracker().observe("s", {0: 7}, now_us=0) == 7


def test_e3_an_older_batch_moves_neither_the_job_nor_the_partition_back() -> None:
    time = tracker(ScanTime("s", delay_us=1))
    time.observe("s", {0: 100}, now_us=0)
    assert time.observe("s", {0: 50}, now_us=1) == 99
    assert time.partition_watermarks() == {"s": {0: 99}}
    assert time.partitions()[0].max_event_time_us == 100


def test_e5_each_partition_has_its_own_watermark() -> None:
    time = tracker(ScanTime("s", delay_us=5, partitions=3))
    time.observe("s", {0: 100, 2: 50}, now_us=0)
    assert time.partition_watermarks() == {"s": {0: 95, 1: None, 2: 45}}


def test_e6_the_job_stands_where_its_slowest_partition_stands() -> None:
    time = tracker(ScanTime("s", delay_us=5 * S, partitions=2))
    assert time.observe("s", {0: 1000 * S}, now_us=0) is None
    assert time.observe("s", {1: 100 * S}, now_us=0) == 95 * S
    assert not time.is_late(100 * S)


def test_e7_a_partition_idle_past_the_timeout_is_left_out_and_its_old_rows_are_late() -> None:
    time = tracker(ScanTime("s", delay_us=5 * S, idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000 * S, 1: 100 * S}, now_us=0)
    assert time.observe("s", {0: 1001 * S}, now_us=IDLE - 1) == 95 * S
    assert time.tick(IDLE) == 996 * S
    assert [each.state for each in time.partitions()] == ["active", "idle"]
    assert time.observe("s", {1: 101 * S}, now_us=IDLE + 1) == 996 * S
    assert time.is_late(101 * S)
    assert [each.state for each in time.partitions()] == ["active", "active"]


def test_a_partition_that_came_back_holds_the_watermark_back_again() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    assert time.observe("s", {0: 1001}, now_us=IDLE) == 1001
    time.observe("s", {1: 1500}, now_us=IDLE + 1)
    assert time.observe("s", {0: 2000}, now_us=IDLE + 2) == 1500


def test_a_partition_without_rows_holds_back_until_the_timeout_has_passed_since_the_start() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2), started_us=10)
    assert time.observe("s", {0: 1000}, now_us=5 + IDLE) is None
    assert time.held_back_by() == (HeldBack("s", 1, "no rows yet", None, IDLE + 10),)
    assert time.next_idle_us == IDLE + 10
    assert time.tick(IDLE + 9) is None
    assert time.tick(IDLE + 10) == 1000


@pytest.mark.parametrize("never", [None, 0])
def test_without_a_timeout_a_silent_partition_holds_back_for_ever(never: int | None) -> None:
    time = tracker(ScanTime("s", idle_timeout_us=never, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    assert time.observe("s", {0: 2000}, now_us=10**15) == 100
    assert time.next_idle_us is None


def test_e13_when_all_fall_silent_together_nothing_moves() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    assert time.tick(10 * IDLE) == 100
    assert time.all_idle
    assert time.held_back_by() == ()


def test_when_all_are_idle_those_that_were_active_last_have_decided_however_seldom_one_looks() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {1: 100}, now_us=0)
    time.observe("s", {0: 1000}, now_us=1)
    assert time.watermark_us == 100
    assert time.tick(10 * IDLE) == 1000


def test_rows_without_a_time_keep_a_partition_active_and_e16_move_nothing() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    assert time.observe("s", {0: 1001, 1: None}, {0: 1, 1: 3}, now_us=IDLE) == 100
    assert time.observe("s", {0: 1002, 1: None}, {0: 1, 1: 0}, now_us=2 * IDLE) == 1002


def test_a_batch_of_rows_without_a_time_tells_nothing() -> None:
    """E16"""
    assert tracker().observe("s", {0: None}, {0: 50}, now_us=0) is None


def test_a_partition_with_rows_still_to_read_is_not_idle() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    assert time.observe("s", {0: 2000}, now_us=IDLE, waiting={1}) == 100


def test_e8_e9_a_window_closes_at_its_end_and_not_before() -> None:
    time = tracker(ScanTime("s", delay_us=1 * S))
    time.observe("s", {0: 4000 * MS}, now_us=0)
    assert time.watermark_us == 3000 * MS
    assert not time.should_trigger(3500 * MS)
    assert time.should_trigger(3000 * MS)
    assert not time.should_trigger(3000 * MS + 1)


def test_e10_e11_the_closed_ones_of_the_pending_windows() -> None:
    time = tracker()
    time.observe("s", {0: 5000}, now_us=0)
    assert time.triggered([6000, 4000, 2000, 5000]) == [4000, 2000, 5000]


def test_f1_late_is_below_the_watermark_and_not_at_it() -> None:
    time = tracker()
    time.observe("s", {0: 100}, now_us=0)
    assert [time.is_late(at) for at in (99, 100, 101)] == [True, False, False]


def test_f5_a_row_behind_the_watermark_is_told_late_while_its_window_is_open() -> None:
    time = tracker()
    time.observe("s", {0: 100}, now_us=0)
    assert time.is_late(95)
    assert not time.should_trigger(110)


def test_e24_each_scan_has_its_delay_and_the_job_takes_the_minimum() -> None:
    time = tracker(ScanTime("a", delay_us=10), ScanTime("b", delay_us=100))
    assert time.observe("a", {0: 1000}, now_us=0) is None
    assert time.observe("b", {0: 1000}, now_us=0) == 900
    assert time.partition_watermarks() == {"a": {0: 990}, "b": {0: 900}}


def test_a_scan_that_is_idle_is_left_out() -> None:
    time = tracker(ScanTime("a", idle_timeout_us=IDLE), ScanTime("b", idle_timeout_us=10 * IDLE))
    time.observe("a", {0: 100}, now_us=0)
    assert time.observe("b", {0: 1000}, now_us=1) == 100
    assert time.tick(IDLE) == 1000


def test_scans_of_one_batch_are_taken_in_at_once() -> None:
    """A scan that comes back from idleness counts, whichever of the two is named first."""
    for order in (("a", "b"), ("b", "a")):
        time = tracker(ScanTime("a", idle_timeout_us=IDLE), ScanTime("b"))
        time.observe_batch({"a": Seen({0: 100}), "b": Seen({0: 150})}, now_us=0)
        seen = {"a": Seen({0: 101}), "b": Seen({0: 1000})}
        assert time.observe_batch({scan: seen[scan] for scan in order}, now_us=IDLE) == 101


def test_advance_is_a_floor_for_its_scan_only() -> None:
    time = tracker(ScanTime("a"), ScanTime("b"))
    time.observe_batch({"a": Seen({0: 10}), "b": Seen({0: 20})}, now_us=0)
    assert time.advance(["a"], 500) == 20
    assert time.advance(["b"], 400) == 400
    assert time.partition_watermarks() == {"a": {0: 500}, "b": {0: 400}}
    assert time.advance(["b"], 300) == 400


def test_advance_counts_for_partitions_without_rows() -> None:
    time = tracker(ScanTime("s", partitions=2))
    assert time.advance(["s"], 500) == 500
    assert time.observe("s", {0: 900}, now_us=1) == 500
    assert time.observe("s", {1: 700}, now_us=2) == 700


def test_advance_moves_a_job_whose_scans_are_all_idle() -> None:
    time = tracker(ScanTime("a", idle_timeout_us=IDLE), ScanTime("b", idle_timeout_us=IDLE))
    time.observe("a", {0: 10}, now_us=0)
    time.observe("b", {0: 20}, now_us=1)
    time.tick(2 * IDLE)
    assert time.advance(["a"], 500) == 500


def test_advance_moves_a_job_whose_scans_are_all_ended() -> None:
    time = tracker()
    time.end("s")
    assert time.advance(["s"], 500) == 500
    assert time.advance([], 900) == 500


def test_drain_goes_past_everything_seen_and_the_job_goes_on_with_newer_rows() -> None:
    time = tracker(ScanTime("a", delay_us=5, partitions=2), ScanTime("b"))
    assert time.drain(60) is None
    time.observe_batch({"a": Seen({0: 100, 1: 10}), "b": Seen({0: 50})}, now_us=0)
    assert time.watermark_us == 5
    assert time.drain(60) == 160
    assert time.observe_batch({"a": Seen({0: 200, 1: 200}), "b": Seen({0: 190})}, now_us=1) == 190


@pytest.mark.parametrize(
    ("largest", "reached"), [(5_000_000, 65_000_000), (5_000_001, 65_001_000), (5_000_999, 65_001_000), (0, 60_000_000)]
)
def test_a_drained_watermark_is_whole_milliseconds_and_closes_all_the_same(largest: int, reached: int) -> None:
    """Spark rounds a watermark down to milliseconds: the end of the last window, in them, must not be before it."""
    time = tracker()
    time.observe("s", {0: largest}, now_us=0)
    assert time.drain(60_000_000, whole_us=WATERMARK_US) == reached
    assert time.watermark_us is not None
    assert time.watermark_us // 1000 * 1000 >= largest + 60_000_000


def test_drain_goes_past_an_advance_too() -> None:
    time = tracker(ScanTime("a"), ScanTime("b"))
    time.observe("a", {0: 10}, now_us=0)
    time.advance(["b"], 1000)
    assert time.drain(7) == 1007


def test_a_scan_read_to_its_end_holds_nothing_back() -> None:
    time = tracker(ScanTime("a"), ScanTime("b"))
    time.observe_batch({"a": Seen({0: 10}), "b": Seen({0: 100})}, now_us=0)
    assert time.end("a") == 100
    assert [each.state for each in time.partitions()] == ["ended", "active"]
    half = time.ended
    assert time.end("b") == 100
    assert (half, time.ended) == (False, True)
    assert time.held_back_by() == ()


def test_new_partitions_hold_back_until_they_have_a_row_or_are_idle() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE))
    time.observe("s", {0: 100}, now_us=0)
    time.add_partitions("s", 2, now_us=50)
    assert time.observe("s", {0: 200}, now_us=60) == 100
    assert time.held_back_by() == (HeldBack("s", 1, "no rows yet", None, 50 + IDLE),)
    assert time.observe("s", {0: 201}, now_us=50 + IDLE) == 201


def test_a_scan_without_partitions_holds_back_until_it_is_idle() -> None:
    time = tracker(ScanTime("a"), ScanTime("none", idle_timeout_us=IDLE, partitions=0))
    assert time.observe("a", {0: 100}, now_us=0) is None
    assert time.held_back_by() == (HeldBack("none", None, "no rows yet", None, IDLE),)
    assert time.tick(IDLE) == 100


def test_the_slowest_partitions_are_named() -> None:
    time = tracker(ScanTime("a", delay_us=5, partitions=3), ScanTime("b"))
    time.observe_batch({"a": Seen({0: 15, 1: 90, 2: 15}), "b": Seen({0: 50})}, now_us=0)
    assert time.held_back_by() == (HeldBack("a", 0, "slowest", 10, None), HeldBack("a", 2, "slowest", 10, None))


def test_e15_a_restart_gives_the_same_time_and_starts_the_idle_clocks_again() -> None:
    scans = (ScanTime("a", delay_us=5, idle_timeout_us=IDLE, partitions=2), ScanTime("b"))
    time = EventTimeTracker(scans, 0)
    time.observe_batch({"a": Seen({0: 1000, 1: 100}), "b": Seen({0: 2000})}, now_us=0)
    time.observe("a", {0: 1001}, now_us=IDLE)
    assert time.watermark_us == 996
    later = 100 * IDLE
    again = EventTimeTracker.from_json(time.to_json(), scans, later)
    assert again.watermark_us == 996
    assert again.is_late(995)
    assert again.partition_watermarks() == time.partition_watermarks()
    assert [each.state for each in again.partitions()] == ["active", "active", "active"]
    assert again.observe("a", {0: 1500}, now_us=later) == 996
    assert again.observe("a", {0: 1501}, now_us=later + IDLE) == 1496


def test_floors_ends_and_drains_survive_a_restart() -> None:
    scans = (ScanTime("a"), ScanTime("b"), ScanTime("c"))
    time = EventTimeTracker(scans, 0)
    time.advance(["a"], 500)
    time.end("b")
    again = EventTimeTracker.from_json(time.to_json(), scans, 0)
    assert again.observe("c", {0: 9999}, now_us=0) == 500
    assert again.drain(1) == 10_000
    assert EventTimeTracker.from_json(again.to_json(), scans, 0).watermark_us == 10_000


def test_a_restart_with_more_partitions_and_another_scan() -> None:
    time = tracker(ScanTime("a", partitions=1), ScanTime("gone"))
    time.observe_batch({"a": Seen({0: 10}), "gone": Seen({0: 10})}, now_us=0)
    again = EventTimeTracker.from_json(time.to_json(), (ScanTime("a", partitions=2), ScanTime("new")), 0)
    assert again.watermark_us == 10
    assert again.partition_watermarks() == {"a": {0: 10, 1: None}, "new": {0: None}}


def test_a_later_version_of_what_is_kept_is_not_guessed_at() -> None:
    with pytest.raises(InternalError, match="version 99"):
        EventTimeTracker.from_json('{"version": 99, "watermark_us": 1, "scans": {}}', (), 0)


def test_two_scans_of_one_name_are_a_bug() -> None:
    with pytest.raises(InternalError, match="two scans are called s"):
        tracker(ScanTime("s"), ScanTime("s"))


def test_a_clock_that_steps_back_makes_nothing_active_again() -> None:
    time = tracker(ScanTime("s", idle_timeout_us=IDLE, partitions=2))
    time.observe("s", {0: 1000, 1: 100}, now_us=0)
    time.observe("s", {0: 1001}, now_us=IDLE)
    time.tick(0)
    assert [each.state for each in time.partitions()] == ["active", "idle"]
