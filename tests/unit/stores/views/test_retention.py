"""What jobs leave behind is kept as long as the settings say, and no longer; what was counted stays counted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.clock import ManualClock
from penstock.runtime.retention import retention_of
from penstock.stores.views import BatchCommit, JobTransition, Kept, ViewStore

DAY_US = 86_400_000_000
START_US = 20_000 * DAY_US


def late(offset: int) -> pa.Table:
    utc = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "stream": ["s"],
            "partition": pa.array([0], pa.int32()),
            "offset": [offset],
            "event_time": pa.array([0], pa.int64()).cast(utc),  # how old the row itself is plays no part
            "watermark": pa.array([0], pa.int64()).cast(utc),
            "lateness": pa.array([1], pa.duration("us")),
            "row": ["{}"],
        }
    )


def dead(offset: int, at_us: int) -> pa.Table:
    return pa.table(
        {
            "stream": ["s"],
            "partition": pa.array([0], pa.int32()),
            "offset": [offset],
            "raw": pa.array([b"x"], pa.binary()),
            "reason": ["bad"],
            "error": ["no"],
            "recorded_at": pa.array([at_us], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        }
    )


def filled(store: ViewStore, clock: ManualClock, days: int) -> None:
    """A job that leaves one of everything behind, every day at the same time."""
    for day in range(days):
        now = clock.now_us()
        counters = {"late_rows": 1.0, "dead_letters": 1.0}
        store.commit(BatchCommit("j", day, f"{day}", late=late(day), dead=dead(day, now), counters=counters))
        store.add_transition(JobTransition("j", now, "starting", "running", str(day)))
        clock.advance(us=DAY_US)
    store.add_transition(JobTransition("quiet", START_US, "running", "failed", "long ago"))


def column(store: ViewStore, table: str, name: str) -> list[Any]:
    found = store.system_table(f"penstock.{table}")
    assert found is not None
    values: list[Any] = found.column(name).to_pylist()
    return values


def test_what_is_older_goes_and_what_is_newer_stays(tmp_path: Path) -> None:
    clock = ManualClock(START_US)
    with ViewStore.open(tmp_path, clock.now_us) as store:
        filled(store, clock, days=10)
        store.trim()
        assert len(column(store, "late_rows", "offset")) == len(column(store, "dead_letters", "offset")) == 10
        before = store.system_table("penstock.metrics")
        # Now it is day 10: what came on day 7 is exactly three days old.
        store.trim(Kept(late_rows_us=3 * DAY_US, dead_letters_us=5 * DAY_US, job_history_us=2 * DAY_US))
        assert column(store, "late_rows", "offset") == [7, 8, 9]
        assert column(store, "dead_letters", "offset") == [5, 6, 7, 8, 9]
        assert column(store, "job_history", "reason") == ["long ago", "8", "9"], "the last step of a job stays"
        assert before is not None
        assert before.equals(store.system_table("penstock.metrics"))
        assert ("late_rows", 10.0) in zip(
            column(store, "metrics", "name"), column(store, "metrics", "value"), strict=True
        )
        store.rollback("j", 8)
        assert column(store, "late_rows", "offset") == [7, 8]
        clock.advance(us=1_000 * DAY_US)
        store.trim()
        assert column(store, "late_rows", "offset") == [7, 8]
        store.trim(Kept(late_rows_us=1))
        assert column(store, "late_rows", "offset") == []
        assert len(column(store, "dead_letters", "offset")) == 4


def test_maintenance_trims_after_enough_batches(tmp_path: Path) -> None:
    clock = ManualClock(START_US)
    with ViewStore.open(tmp_path, clock.now_us) as store:
        filled(store, clock, days=60)
        store.maintain(Kept(late_rows_us=2 * DAY_US))
        assert column(store, "late_rows", "offset") == [58, 59]
        assert len(column(store, "dead_letters", "offset")) == 60


def test_late_rows_of_the_first_layout_count_from_when_they_are_met(tmp_path: Path) -> None:
    clock = ManualClock(START_US)
    with ViewStore.open(tmp_path, clock.now_us) as store:
        filled(store, clock, days=3)
    with duckdb.connect(str(tmp_path / "views.duckdb")) as older:
        older.execute("ALTER TABLE store.late_rows DROP COLUMN recorded_at; UPDATE store.meta SET layout = 1")
    clock.advance(us=100 * DAY_US)
    with ViewStore.open(tmp_path, clock.now_us) as store:
        store.trim(Kept(late_rows_us=DAY_US))
        assert column(store, "late_rows", "offset") == [0, 1, 2]
        store.commit(BatchCommit("j", 3, "3", late=late(3)))
        clock.advance(us=2 * DAY_US)
        store.trim(Kept(late_rows_us=DAY_US))
        assert column(store, "late_rows", "offset") == []
    with ViewStore.open(tmp_path, clock.now_us) as store:
        assert len(column(store, "dead_letters", "offset")) == 3


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, Kept(90 * DAY_US, 90 * DAY_US, 365 * DAY_US)),
        ({"late_rows_retention": timedelta(hours=1)}, Kept(3_600_000_000, 90 * DAY_US, 365 * DAY_US)),
        (
            {"dead_letters_retention": timedelta(0), "job_history_retention": timedelta(days=1)},
            Kept(90 * DAY_US, None, DAY_US),
        ),
    ],
)
def test_settings_say_how_long(settings: dict[str, object], found: Kept) -> None:
    assert retention_of(settings) == found
