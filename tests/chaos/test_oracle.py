"""The judge of the kill tests finds what it is there to find."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos import oracle, workload
from tests.chaos.oracle import Place
from tests.chaos.workload import JOBS, STREAM, Row

SEED = 1
ROWS: list[tuple[Any, ...]] = [("a", 1, 10), ("a", 2, 5), ("b", 1, 7)]


def topic() -> dict[Place, Row]:
    """Forty appends as the topic would have them."""
    found: dict[Place, Row] = {}
    ends = dict.fromkeys(range(workload.PARTITIONS), 0)
    for number in range(40):
        partition = number % workload.PARTITIONS
        for row in workload.rows_of(SEED, number, 1):
            found[partition, ends[partition]] = row
            ends[partition] += 1
    return found


def dead_letters(rows: dict[Place, Row]) -> list[dict[str, Any]]:
    return [
        {
            "job": job,
            "stream": STREAM,
            "partition": partition,
            "offset": offset,
            "reason": reason,
            "raw": f'{{"id": "{row.id}"}}',
        }
        for (partition, offset), row in rows.items()
        for job in JOBS
        if (reason := workload.reason_of(job, row.item, row.time_us)) is not None
    ]


def late_rows(rows: dict[Place, Row], watermark: int) -> list[dict[str, Any]]:
    return [
        {
            "job": job,
            "stream": STREAM,
            "partition": partition,
            "offset": offset,
            "event_time": row.time_us,
            "watermark": watermark,
            "lateness": watermark - row.time_us,
            "row": f'{{"id": "{row.id}"}}',
        }
        for (partition, offset), row in rows.items()
        for job, windowed in JOBS.items()
        if windowed and workload.late_by_design(row.number)
        if row.time_us is not None and workload.reason_of(job, row.item, row.time_us) is None
    ]


def test_the_workload_has_rows_of_every_kind() -> None:
    rows = topic().values()
    reasons = {workload.reason_of("by_tumble", row.item, row.time_us) for row in rows}
    assert {None, "not_null", "null_time", "future_time"} <= reasons
    assert any(workload.late_by_design(row.number) for row in rows)


def test_rows_that_are_not_late_by_design_are_within_the_delay() -> None:
    latest = dict.fromkeys(range(workload.PARTITIONS), 0)
    for (partition, _), row in topic().items():
        if workload.late_by_design(row.number) or workload.reason_of("by_tumble", row.item, row.time_us):
            continue
        assert row.time_us is not None
        assert row.time_us > latest[partition] - workload.DELAY_US
        latest[partition] = max(latest[partition], row.time_us)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (ROWS[1:], "lost 1"),
        ([*ROWS, ROWS[0]], "doubled 1"),
        ([*ROWS, ("c", 1, 1)], "phantom 1"),
        ([*ROWS[:2], ("b", 1, 8)], "wrong 1"),
    ],
)
def test_rows_that_differ_from_the_batch_answer(found: list[tuple[Any, ...]], fault: str) -> None:
    expected = windows(ROWS)
    oracle.compare("by_tumble", expected[::-1], expected)
    with pytest.raises(AssertionError, match=fault):
        oracle.compare("by_tumble", windows(found), expected)


def windows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(key, start, start + 1, total) for key, start, total in rows]


def test_dead_letters_are_exactly_the_bad_rows() -> None:
    rows = topic()
    told = dead_letters(rows)
    found = oracle.check_dead_letters(rows, told)
    assert found["by_tumble"] > found["by_item"], "rows without a usable time are bad for windows only"
    for wrong in (told[1:], [*told, told[0]], [{**told[0], "reason": "malformed"}, *told[1:]]):
        with pytest.raises(AssertionError, match="dead letters"):
            oracle.check_dead_letters(rows, wrong)


def test_late_rows_are_exactly_those_late_by_design_and_behind_a_watermark_that_was_due() -> None:
    rows = topic()
    dead = oracle.check_dead_letters(rows, dead_letters(rows))
    due = oracle._last_watermark(rows)
    told = late_rows(rows, due)
    assert oracle.check_late_rows(rows, dead, told)["by_hop"]
    for wrong in (told[1:], [*told, told[0]]):
        with pytest.raises(AssertionError, match="late rows"):
            oracle.check_late_rows(rows, dead, wrong)
    with pytest.raises(AssertionError, match="not late"):
        oracle.check_late_rows(rows, dead, late_rows(rows, due + 1))
    early = min(row["event_time"] for row in told)
    with pytest.raises(AssertionError, match="not late"):
        oracle.check_late_rows(rows, dead, late_rows(rows, early + 1))


@pytest.mark.parametrize(
    "changes",
    [
        [{"seq": 2, "op": "insert", "before": None, "row": {"item": "a", "n": 1}}],
        [
            {"seq": 1, "op": "insert", "before": None, "row": {"item": "a", "n": 1}},
            {"seq": 2, "op": "insert", "before": None, "row": {"item": "a", "n": 1}},
        ],
        [{"seq": 1, "op": "update", "before": {"item": "a", "n": 0}, "row": {"item": "a", "n": 1}}],
        [],
    ],
)
def test_a_change_log_that_is_not_the_view(changes: list[dict[str, Any]]) -> None:
    with pytest.raises(AssertionError, match="by_item"):
        oracle.check_changes("by_item", changes, [{"item": "a", "n": 1}])


def test_the_batch_answer_of_sessions_joins_rows_up_to_the_gap() -> None:
    gap = workload.GAP_US
    given = [Row(f"{place}.0.1", "a", 1, time) for place, time in enumerate((0, gap, 2 * gap + 1))]
    answer = oracle.batch_answer(oracle._QUERIES["by_session"], given)
    assert sorted(row[:4] for row in answer) == [("a", 0, 2 * gap, 2), ("a", 2 * gap + 1, 3 * gap + 1, 1)]


def test_the_batch_answer_of_hops_counts_a_row_in_each_of_its_windows() -> None:
    slide, size = workload.HOP_US
    answer = oracle.batch_answer(oracle._QUERIES["by_hop"], [Row("0.0.1", "a", 1, 10 * slide + 1)])
    assert sorted(row[1:4] for row in answer) == [(n * slide, n * slide + size, 1) for n in (8, 9, 10)]
