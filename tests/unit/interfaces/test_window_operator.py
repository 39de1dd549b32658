"""The window operator of the texts: its columns and the windows it refuses; tests/engine runs it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import penstock
from penstock import StreamingSQLExecutor, WindowOperator
from penstock.interfaces.window_operator import is_in_window, tumble_window_start, window_schema

SECOND = timedelta(seconds=1)


def test_ten_columns() -> None:
    """N1: names, order and types."""
    assert [(field.name, str(field.type)) for field in window_schema()] == [
        ("key", "string"), ("window_start", "timestamp[ms]"), ("window_end", "timestamp[ms]"), ("count", "int64"),
        ("sum", "double"), ("avg", "double"), ("min", "double"), ("max", "double"),
        ("first_timestamp", "timestamp[ms]"), ("last_timestamp", "timestamp[ms]"),
    ]  # fmt: skip


def test_worked_numbers() -> None:
    """D13, D14, V4: 1500 ms is in the window that begins at 0, and in [1000, 3000)."""
    assert tumble_window_start(1500, 2000) == 0
    assert tumble_window_start(2000, 2000) == 2000
    assert tumble_window_start(-1, 2000) == -2000
    assert is_in_window(1500, 1000, 3000)
    assert is_in_window(1000, 1000, 3000)
    assert not is_in_window(3000, 1000, 3000)


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ({"window_type": "SLIDE", "size": SECOND}, "known are TUMBLE, HOP, SESSION"),
        ({"window_type": "TUMBLE"}, "a TUMBLE window has size, not nothing"),
        ({"window_type": "HOP", "size": SECOND}, "a HOP window has slide and size, not size"),
        ({"window_type": "TUMBLE", "size": 0}, "size must be a time above zero, not 0"),
        ({"window_type": "HOP", "slide": -SECOND, "size": SECOND}, "slide must be a time above zero, not "),
        ({"window_type": "SESSION", "gap": SECOND, "size": SECOND}, "a SESSION window has gap, not size and gap"),
    ],
    ids=str,
)
def test_windows_that_are_none(window: dict[str, Any], told: str) -> None:
    with StreamingSQLExecutor() as executor:
        executor.execute_ddl("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        with pytest.raises(ValueError, match="INVALID_ARGUMENT") as refused:
            WindowOperator(executor.database, "s", key_column="k", value_column="v", timestamp_column="ts", **window)
        assert told in str(refused.value)
        assert executor.database.jobs() == []


def test_a_column_that_is_not_there() -> None:
    with StreamingSQLExecutor() as executor:
        executor.execute_ddl("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        with pytest.raises(penstock.PenstockError) as refused:
            WindowOperator(
                executor.database, "s", key_column='a"b', value_column="v", timestamp_column="ts", size=SECOND
            )
        assert refused.value.condition == "UNKNOWN_COLUMN"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"key_column": "zz"}, "[UNKNOWN_COLUMN] \"s\" has no key_column 'zz'; hint: columns in scope: k, v, ts"),
        ({"value_column": "zz"}, "[UNKNOWN_COLUMN] \"s\" has no value_column 'zz'; hint: columns in scope: k, v, ts"),
        ({"timestamp_column": "v"}, '[MISSING_EVENT_TIME] column "v" is INT'),
    ],
    ids=str,
)
def test_columns_are_told_by_their_arguments(given: dict[str, str], told: str) -> None:
    """And without a place in a text that the user never wrote."""
    names: dict[str, Any] = {"key_column": "k", "value_column": "v", "timestamp_column": "ts", **given}
    with StreamingSQLExecutor() as executor:
        executor.execute_ddl("CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts)")
        with pytest.raises(penstock.PenstockError) as refused:
            WindowOperator(executor.database, "s", size=SECOND, **names)
        assert str(refused.value).startswith(told)
        assert refused.value.span is None
