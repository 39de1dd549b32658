"""What EXPLAIN WATERMARK and penstock.watermarks tell."""

from __future__ import annotations

from penstock.runtime.event_time import EventTimeTracker, ScanTime, Seen
from penstock.runtime.watermark_report import (
    ExplainedPartition,
    WatermarkRow,
    explain_watermark,
    watermark_rows,
)

S = 1_000_000
IDLE = 60 * S


def told(tracker: EventTimeTracker, now_us: int = 0) -> str:
    return explain_watermark("v", tracker, now_us).sentence


def test_rows_have_the_columns_of_the_system_table_e5_e20() -> None:
    tracker = EventTimeTracker([ScanTime("s", delay_us=5, idle_timeout_us=IDLE, partitions=3)], 0)
    tracker.observe("s", {0: 100, 1: 50}, now_us=0)
    tracker.observe("s", {0: 200}, now_us=IDLE)
    assert watermark_rows("v", tracker, [60, 0]) == [
        WatermarkRow("v", "s", 0, 200, 195, idle=False, pending_windows=(0, 60)),
        WatermarkRow("v", "s", 1, 50, 45, idle=True, pending_windows=(0, 60)),
        WatermarkRow("v", "s", 2, None, None, idle=True, pending_windows=(0, 60)),
    ]


def test_a_partition_without_rows_is_named_with_the_time_it_has_left() -> None:
    tracker = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE, partitions=2)], 0)
    tracker.observe("s", {0: 5 * S}, now_us=0)
    answer = explain_watermark("v", tracker, 17 * S + 1)
    assert answer.rows == (
        ExplainedPartition("s", 0, 5 * S, 5 * S, "active", holds_back=False),
        ExplainedPartition("s", 1, None, None, "no rows yet", holds_back=True),
    )
    assert answer.sentence == (
        "v has no watermark yet: s partition 1 has had no row yet; "
        "it is left out when it has no row for another 43 s and others have"
    )
    tracker.observe("s", {0: 6 * S}, now_us=10 * S)
    assert told(tracker, 17 * S + 1).endswith("; it is left out when no row comes for another 43 s")
    assert told(tracker, 2 * IDLE).endswith("another 0 s")


def test_what_is_told_of_partitions_left_out_comes_true() -> None:
    """A partition is left out where another one goes on without it; silence alone moves nothing."""
    alone = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE)], 0)
    alone.observe("s", {0: S}, now_us=0)
    assert told(alone).endswith(
        "s partition 0 is slowest; when no row comes for another 60 s it is idle, which moves nothing"
    )
    assert alone.tick(2 * IDLE) == S

    silent = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE, partitions=2)], 0)
    silent.observe("s", {0: S, 1: 5 * S}, now_us=0)
    assert told(silent).endswith("it is left out when it has no row for another 60 s and others have")
    assert silent.tick(2 * IDLE) == S

    outlived = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE, partitions=2)], 0)
    outlived.observe("s", {0: S, 1: 5 * S}, now_us=0)
    outlived.observe("s", {1: 6 * S}, now_us=S)
    assert told(outlived).endswith("it is left out when no row comes for another 60 s")
    assert outlived.tick(IDLE) == 6 * S


def test_the_slowest_partition_is_named() -> None:
    tracker = EventTimeTracker([ScanTime("a"), ScanTime("b#2", partitions=2)], 0)
    tracker.observe_batch({"a": Seen({0: 900 * S}), "b#2": Seen({0: 100 * S, 1: 500 * S})}, 0)
    assert told(tracker) == (
        "the watermark of v is 1970-01-01 00:01:40: b#2 partition 0 is slowest, "
        "and without an idle_timeout nothing is left out"
    )
    assert [row.holds_back for row in explain_watermark("v", tracker, 0).rows] == [False, True, False]


def test_a_partition_that_lags_behind_the_watermark_is_told_so() -> None:
    tracker = EventTimeTracker([ScanTime("s")], 0)
    tracker.observe("s", {0: 10 * S}, now_us=0)
    tracker.drain(60 * S)
    assert told(tracker).startswith(
        "the watermark of v is 1970-01-01 00:01:10: s partition 0 is slowest, still at 1970-01-01 00:00:10, and"
    )


def test_many_partitions_are_counted_instead_of_listed() -> None:
    three = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE, partitions=3)], 0)
    assert told(three) == (
        "v has no watermark yet: s partition 0, s partition 1 and s partition 2 have had no row yet; "
        "when no row comes for another 60 s they are idle, which moves nothing"
    )
    many = EventTimeTracker([ScanTime("s", partitions=16)], 0)
    assert "s partition 0, s partition 1 and 14 more have had no row yet" in told(many)


def test_a_scan_without_partitions_is_named_by_itself() -> None:
    tracker = EventTimeTracker([ScanTime("s", partitions=0)], 0)
    assert told(tracker).startswith("v has no watermark yet: s has had no row yet")


def test_idleness_and_the_end_of_the_input_are_told() -> None:
    tracker = EventTimeTracker([ScanTime("s", idle_timeout_us=IDLE)], 0)
    tracker.observe("s", {0: S}, now_us=0)
    tracker.tick(IDLE)
    assert told(tracker) == (
        "the watermark of v is 1970-01-01 00:00:01: every partition is idle, "
        "and it stays until a row comes or ADVANCE WATERMARK moves it"
    )
    tracker.end("s")
    answer = explain_watermark("v", tracker, 0)
    assert answer.sentence.endswith(": every source is read to its end")
    assert [row.state for row in answer.rows] == ["ended"]
