"""Where readers stand, and how much they take: offsets, admission, tasks."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.offsets import Offset, Range, admit, ranges_between, read_offset, spread

positions = st.dictionaries(st.integers(0, 6), st.integers(0, 50), max_size=6)


def test_offset_survives_spark_as_text() -> None:
    kept = Offset(3, {10: 4, 2: 7}, started_us=5)
    text = json.dumps(kept.json())
    assert text == '{"run": 3, "p": {"2": 7, "10": 4}, "started_us": 5}'
    assert read_offset(text) == kept
    assert json.dumps(read_offset(text).json()) == text


def test_topic_offset_has_no_start_time() -> None:
    assert Offset(1, {0: 0}).json() == {"run": 1, "p": {"0": 0}}


def test_new_partition_begins_at_its_first_row() -> None:
    assert ranges_between(Offset(1, {0: 5}), Offset(1, {0: 5, 1: 3})) == (Range(1, 0, 3),)


@given(positions, positions, st.integers(1, 60))
def test_admission_takes_what_is_there_up_to_the_limit(start: dict[int, int], more: dict[int, int], limit: int) -> None:
    ends = {partition: start.get(partition, 0) + rows for partition, rows in more.items()}
    reached = admit(Offset(1, start), ends, limit)
    taken = {partition: reached[partition] - start.get(partition, 0) for partition in reached}
    assert sum(taken.values()) == min(limit, sum(more.values()))
    assert all(0 <= rows <= more.get(partition, 0) for partition, rows in taken.items())
    assert set(reached) == set(start) | set(more)
    # No partition is cut short while another gets two rows more.
    cut = [rows for partition, rows in taken.items() if rows < more.get(partition, 0)]
    assert not cut or max(taken.values()) - min(cut) <= 1


@given(positions, positions, st.integers(1, 20))
def test_reading_on_by_admission_reaches_the_end_and_reads_each_row_once(
    start: dict[int, int], more: dict[int, int], limit: int
) -> None:
    ends = {partition: start.get(partition, 0) + rows for partition, rows in more.items()}
    seen: list[tuple[int, int]] = []
    at = Offset(1, start)
    while True:
        reached = Offset(1, admit(at, ends, limit))
        if reached == Offset(1, {**at.positions}):
            break
        for one in ranges_between(at, reached):
            seen += [(one.partition, offset) for offset in range(one.first, one.end)]
        at = reached
    wanted = [(p, offset) for p, end in ends.items() for offset in range(start.get(p, 0), end)]
    assert sorted(seen) == sorted(wanted)


@given(positions, st.integers(1, 4))
def test_tasks_hold_every_range_once_and_no_more_tasks_than_allowed(ends: dict[int, int], tasks: int) -> None:
    """A partition is never in two tasks, and tasks = min(partitions, max_parallelism)."""
    ranges = ranges_between(Offset(1, {}), Offset(1, ends))
    dealt = spread(ranges, tasks)
    assert sorted((one for task in dealt for one in task), key=lambda one: one.partition) == list(ranges)
    assert len(dealt) == min(len(ranges), tasks)
