"""Where a subscription may begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.errors import InvalidArgument, PenstockError
from penstock.interfaces.changes import checked_since


@pytest.mark.parametrize(("since", "number"), [(0, 0), (6, 6), (True - 1, 0)])
def test_a_number_up_to_the_newest_is_taken(since: object, number: int) -> None:
    assert checked_since("v", since, 6) == number


@pytest.mark.parametrize("since", ["x", "3", 1.0, -1, True, object(), b"1", [1]])
def test_what_is_no_number_of_a_change_is_refused(since: object) -> None:
    with pytest.raises(InvalidArgument, match="number of a change of view v, zero or more") as refused:
        checked_since("v", since, 6)
    assert refused.value.condition == "INVALID_ARGUMENT"
    assert isinstance(refused.value, ValueError)


def test_a_change_that_is_not_there_yet_is_refused_not_waited_for() -> None:
    with pytest.raises(PenstockError, match="view v has no change 7 yet: its newest is 6") as refused:
        checked_since("v", 7, 6)
    assert "begin with the whole view" in str(refused.value.hint)


def test_a_setting_without_a_unit_is_told(tmp_path: Path) -> None:
    with penstock.connect(tmp_path, idle_timeout=5, max_future_drift="1 day", checkpoint_interval_seconds=5) as db:
        assert db.notices() == ["idle_timeout = 5 means 5 milliseconds; to say so, or seconds, write '5 ms' or '5 s'"]


@pytest.mark.parametrize("moment", ["soon", "2026-13-01", None, True, 1.5, b"2026-01-01"])
def test_what_is_no_time_moves_no_watermark(tmp_path: Path, moment: Any) -> None:
    with penstock.connect(tmp_path) as db:
        db.execute("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        with pytest.raises(ValueError, match="is no time") as refused:
            db.advance_watermark("s", moment)
        assert isinstance(refused.value, PenstockError)


def test_an_error_of_a_call_points_into_no_text(tmp_path: Path) -> None:
    with penstock.connect(tmp_path) as db, pytest.raises(PenstockError) as refused:
        db.append("nowhere", [])
    assert "line" not in str(refused.value)
    with pytest.raises(PenstockError) as refused:
        penstock.connect(tmp_path, idle_timout=5)
    assert "line" not in str(refused.value)


def test_system_tables_take_no_rows_and_have_no_changes(tmp_path: Path) -> None:
    with penstock.connect(tmp_path) as db:
        for call in (lambda: db.append("penstock.jobs", []), lambda: db.subscribe("Penstock.Jobs")):
            with pytest.raises(PenstockError, match="is a system table, and can only be read") as refused:
                call()
            assert refused.value.condition == "WRONG_OBJECT_KIND"
