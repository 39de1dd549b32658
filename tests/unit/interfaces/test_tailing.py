"""tail_query: when it asks again, when it stops, and what it does about files that change under it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Timer
from typing import Any

import pytest

from penstock.errors import InvalidArgument, RuntimeFailure
from penstock.interfaces.result import Result
from penstock.interfaces.tailing import tail


class Table:
    """Something that grows by one row each time it is read, or fails first."""

    def __init__(self, *failures: RuntimeFailure) -> None:
        self.failures = list(failures)
        self.asked: list[float] = []

    def __call__(self) -> Result:
        import pyarrow as pa

        self.asked.append(time.monotonic())
        if self.failures:
            raise self.failures.pop(0)
        return Result(pa.table({"n": list(range(len(self.asked)))}))


def tailed(table: Table, **how: Any) -> Iterator[Result]:
    wanted: dict[str, Any] = {"every": None, "event": None, "iterations": None, "closed": lambda: False, **how}
    return tail(table, wanted["every"], wanted["event"], wanted["iterations"], wanted["closed"])


def test_so_often_and_so_many_times() -> None:
    """S1, S3, U10: the first answer at once, then one each interval, counted from the question before."""
    table = Table()
    answers = [len(found) for found in tailed(table, every=0.1, iterations=4)]
    assert answers == [1, 2, 3, 4]
    gaps = [after - before for before, after in zip(table.asked, table.asked[1:], strict=False)]
    assert min(gaps) >= 0.099
    assert sum(gaps) < 30


def test_a_slow_reader_has_no_backlog() -> None:
    table = Table()
    found = tailed(table, every=timedelta(milliseconds=50))
    next(found)
    time.sleep(0.3)
    next(found)
    next(found)
    assert table.asked[2] - table.asked[1] >= 0.049


def test_when_an_event_is_set() -> None:
    """S3: nothing is asked before it; what is set while the answer is computed is answered by the next round."""
    event, table = Event(), Table()
    found = tailed(table, event=event, iterations=3)
    next(found)
    before = time.monotonic()
    Timer(0.2, event.set).start()
    next(found)
    assert time.monotonic() - before >= 0.15
    event.set()
    next(found)
    assert len(table.asked) == 3
    with pytest.raises(StopIteration):
        next(found)


def test_whichever_comes_first() -> None:
    event, table = Event(), Table()
    found = tailed(table, every=60, event=event)
    next(found)
    Timer(0.1, event.set).start()
    next(found)
    assert table.asked[1] - table.asked[0] < 50
    event, table = Event(), Table()
    found = tailed(table, every=0.4, event=event)
    next(found)
    event.set()
    next(found)
    next(found)
    assert table.asked[2] - table.asked[1] >= 0.39


def test_it_ends_with_the_database() -> None:
    closed = Event()
    found = tailed(Table(), event=Event(), closed=closed.is_set)
    next(found)
    Timer(0.1, closed.set).start()
    assert list(found) == []


TORN = RuntimeFailure("SOURCE_DATA_LOST", "file x.parquet is gone before all of it was read")


def test_a_file_that_changes_under_the_reading() -> None:
    """S6: the question is asked again, from what is there then; other errors, and one that stays, are raised at once."""
    (answer,) = tailed(Table(TORN, TORN), iterations=1)
    assert len(answer) == 3
    table = Table(*[TORN] * 9)
    with pytest.raises(RuntimeFailure, match="is gone before"):
        list(tailed(table, iterations=1))
    assert len(table.asked) == 8
    table = Table(RuntimeFailure("SPARK_FAILED", "[DIVIDE_BY_ZERO] Division by zero"))
    with pytest.raises(RuntimeFailure, match="DIVIDE_BY_ZERO"):
        list(tailed(table, iterations=1))
    assert len(table.asked) == 1


@pytest.mark.parametrize("wrong", [{"every": 0}, {"every": -1.0}, {"every": float("nan")}, {"iterations": 0}], ids=str)
def test_arguments_are_checked_at_the_call(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        tailed(Table(), **wrong)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"event": 5}, "event must be a threading.Event, not 5"),
        ({"every": "abc"}, "every must be a time above zero, not 'abc'"),
    ],
    ids=str,
)
def test_what_is_no_event_and_no_time_is_told_at_the_call(how: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument, match="INVALID_ARGUMENT") as refused:
        tailed(Table(), **how)
    assert refused.value.message == told
