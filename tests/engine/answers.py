"""How the tests of the engine write times down, read views, and hold a view against its change log."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import penstock

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Rows = list[tuple[Any, ...]]


def at(seconds: float) -> datetime:
    """The moment so many seconds after 1970."""
    return EPOCH + timedelta(seconds=seconds)


def ms(seconds: float) -> int:
    """The same as a number in a TIMESTAMP column: milliseconds since 1970."""
    return round(seconds * 1000)


def read(db: penstock.Database, view: str) -> Rows:
    """The rows of a view in a stable order, NULLs first."""
    return in_order(db.sql(f"SELECT * FROM {view}").rows())


def in_order(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row])


def job(db: penstock.Database, name: str) -> penstock.Job:
    """A job as SHOW JOBS tells of it."""
    return next(found for found in db.jobs() if found.name == name)


def until(holds: Callable[[], bool], timeout: float = 60.0, told: Callable[[], object] = lambda: "") -> None:
    """Wait for something that only the clock brings; `told` is asked what stands instead, where it does not come."""
    end = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < end, f"it did not come {told()}"
        time.sleep(0.05)


def check_change_log(db: penstock.Database, view: str, key: tuple[str, ...] | None = None) -> list[penstock.Change]:
    """The changes from the first on, folded, are the view; without a `key` a view only grows. Returns the changes."""
    columns = db.sql(f"SELECT * FROM {view} LIMIT 0").columns
    folded: Counter[tuple[Any, ...]] = Counter()
    changes = list(db.subscribe(view, since=0, timeout=0.1))
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1)), f"{view}: a gap in the change log"
    for change in changes:
        if key is None:
            assert change.op == "insert", f"{view} only grows, and its change log has {change}"
        if change.before is not None:
            before = _row(change.before, columns)
            assert folded[before] > 0, f"{view}: {change} takes back a row that is not there"
            folded[before] -= 1
        if change.row is not None:
            folded[_row(change.row, columns)] += 1
        assert (change.op == "insert") == (change.before is None)
        assert (change.op == "delete") == (change.row is None)
        if change.op == "update":
            assert change.before is not None
            assert change.row is not None
            assert [change.before[name] for name in key or ()] == [change.row[name] for name in key or ()]
    shown = db.sql(f"SELECT * FROM {view}").rows()
    found = Counter(_row(dict(zip(columns, row, strict=True)), columns) for row in shown)
    assert +folded == found, f"{view} is not its change log: {found - folded} {folded - found}"
    return changes


def _row(row: Mapping[str, Any], columns: list[str]) -> tuple[Any, ...]:
    assert list(row) == columns
    return tuple(tuple(sorted(value.items())) if isinstance(value, dict) else value for value in row.values())
