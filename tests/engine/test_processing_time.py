"""Windows over processing time: the rows of a batch have the time that Spark wrote down for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

import penstock
from penstock.connectors.registry import source_of
from penstock.errors import PenstockError
from penstock.spark.offset_log import read_offsets
from tests.engine.answers import EPOCH, check_change_log

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

SECOND: Final = 1_000_000
PATIENCE: Final = 600.0  # seconds, of a machine that does other things too
SELECT: Final = "SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS total"
# The size of windows in seconds, and the query; they begin every second.
QUERIES: Final = {
    "once": (
        1,
        f"{SELECT} FROM TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '1' SECOND) GROUP BY k, window_start, window_end",
    ),
    "live": (1, f"{SELECT} FROM s GROUP BY k, TUMBLE(PROCTIME(), INTERVAL '1' SECOND) EMIT CHANGES"),
    "hops": (
        3,
        f"{SELECT} FROM s GROUP BY k, HOP(at, INTERVAL '1' SECOND, INTERVAL '3' SECOND)",
    ),
    "steps": (
        3,
        (
            f"{SELECT} FROM CUMULATE(TABLE s, DESCRIPTOR(at), INTERVAL '1' SECOND, INTERVAL '3' SECOND) "
            "GROUP BY k, window_start, window_end"
        ),
    ),
    "ended": (1, f"{SELECT} FROM s GROUP BY k, SESSION(at, INTERVAL '1' SECOND)"),
}


def windows_at(view: str, size: int, moment: int) -> list[tuple[int, int]]:
    """The windows that a row of a moment is in."""
    if view == "steps":
        start = moment - moment % (size * SECOND)
        return [(start, end) for end in range(start + SECOND, start + size * SECOND + 1, SECOND) if end > moment]
    first = moment - moment % SECOND
    return [(start, start + size * SECOND) for start in range(first, moment - size * SECOND, -SECOND)]


def sessions(times: dict[str, list[tuple[int, int]]]) -> dict[tuple[Any, ...], list[int]]:
    """Times and values by key as sessions with a gap of a second; those that touch are one."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for key, values in times.items():
        start = end = None
        for moment, value in sorted(values):
            if end is None or moment > end:
                start = moment
            else:
                held = found.pop((key, start, end))
                found[(key, start, moment + SECOND)] = held
            end = moment + SECOND
            found.setdefault((key, start, end), []).append(value)
    return found


def rows(db: penstock.Database, view: str) -> Counter[tuple[Any, ...]]:
    return Counter(db.sql(f"SELECT * FROM {view}").rows())


def oracle(
    db: penstock.Database, view: str, given: list[dict[str, Any]], *, job: str | None = None
) -> Counter[tuple[Any, ...]]:
    """The windows of all rows by the times that stand in the job's offset log."""
    size, _ = QUERIES[view]
    found: dict[tuple[Any, ...], list[int]] = {}
    times: dict[str, list[tuple[int, int]]] = {}
    read = 0
    for batch in range(1_000):
        try:
            logged = read_offsets(db.path / "jobs" / (job or view) / "checkpoint", batch)
        except PenstockError:
            break
        assert logged.sources[0] is not None
        upto = source_of("topic").positions(logged.sources[0])[0]
        moment = logged.clock_ms * 1000
        for row in given[read:upto]:
            times.setdefault(row["k"], []).append((moment, row["v"]))
            for start, end in windows_at(view, size, moment):
                found.setdefault((row["k"], start, end), []).append(row["v"])
        read = upto
    assert read == len(given)
    groups = sessions(times) if view == "ended" else found
    return Counter(
        (key, EPOCH + timedelta(microseconds=start), EPOCH + timedelta(microseconds=end), len(values), sum(values))
        for (key, start, end), values in groups.items()
    )


def wait(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_windows_of_the_clock(opened: Callable[..., penstock.Database]) -> None:
    """D1, G5, G6, K14: windows close by the clock, with rows and without, over a restart, and all of them in a drain;
    rows that come after it are in a window of their own. A stream needs no event time for it."""
    db = opened()
    db.execute("CREATE STREAM s (k STRING, v BIGINT, at AS PROCTIME())")
    for name, (_, query) in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    visits = "SELECT k, COUNT(*) AS n FROM s GROUP BY k, SESSION(at, INTERVAL '1' HOUR) EMIT CHANGES"
    db.execute(f"CREATE MATERIALIZED VIEW visits AS {visits}")
    given: list[dict[str, Any]] = []

    def feed(count: int) -> None:
        more = [{"k": "ab"[number % 2], "v": len(given) + number} for number in range(count)]
        db.append("s", more)
        given.extend(more)
        db.settle(PATIENCE)

    for _ in range(3):
        feed(10)
        assert rows(db, "live") == oracle(db, "live", given)
        assert rows(db, "visits") == Counter({("a", len(given) // 2): 1, ("b", len(given) // 2): 1})
    # nothing comes any more, and they close
    wait(lambda: all(rows(db, name) == oracle(db, name, given) for name in QUERIES if name != "live"))
    wait(lambda: db.sql("SELECT COUNT(*) FROM penstock.window_aggregates WHERE job = 'live'").rows() == [(0,)])
    db.close()

    db = opened()
    feed(5)
    assert rows(db, "live") == oracle(db, "live", given)
    for name in QUERIES:
        db.drain(name, PATIENCE)
        assert rows(db, name) == oracle(db, name, given), name
    for name in QUERIES:
        db.execute(f"RESUME JOB {name}")
    feed(4)
    for name in QUERIES:
        db.drain(name, PATIENCE)
        assert rows(db, name) == oracle(db, name, given), name
        check_change_log(db, name, () if name == "live" else None)
    found = db.execute("EXPLAIN WATERMARK FOR once")
    assert found is not None
    assert found.rows()[0][0] == "processing time"


SINKS: Final = ("once", "live", "hops", "ended")


def test_windows_of_the_clock_into_sinks(opened: Callable[..., penstock.Database]) -> None:
    """D1, G5: a sink is given each window once, when the clock has closed it, and with EMIT CHANGES each change."""
    db = opened()
    db.execute("CREATE STREAM s (k STRING, v BIGINT, at AS PROCTIME())")
    columns = "k STRING, window_start TIMESTAMP, window_end TIMESTAMP, n BIGINT, total BIGINT"
    for name in SINKS:
        if name == "live":
            keyed = f"{columns}, PRIMARY KEY (k, window_start, window_end) NOT ENFORCED"
            db.execute(f"CREATE STREAM {name} ({keyed}) WITH (connector = 'topic', changes = 'upsert')")
        else:
            db.execute(f"CREATE STREAM {name} ({columns}) WITH (connector = 'topic')")
        db.execute(f"CREATE MATERIALIZED VIEW {name}_rows AS SELECT * FROM {name}")
        db.execute(f"INSERT INTO {name} {QUERIES[name][1]}")
    given: list[dict[str, Any]] = []

    def feed(count: int) -> None:
        more = [{"k": "ab"[number % 2], "v": len(given) + number} for number in range(count)]
        db.append("s", more)
        given.extend(more)
        db.settle(PATIENCE)

    def all_there() -> bool:
        return all(rows(db, f"{name}_rows") == oracle(db, name, given, job=f"insert_{name}") for name in SINKS)

    feed(10)
    feed(7)
    wait(all_there)  # nothing comes any more, and they close
    db.close()

    db = opened()
    feed(5)
    wait(all_there)


RANKED: Final = (
    "SELECT k, window_start, window_end, n, total FROM ({}) "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY k) <= 2 EMIT FINAL"
)


def test_ranks_of_windows_that_the_clock_has_closed(opened: Callable[..., penstock.Database]) -> None:
    """D1, G5: with EMIT FINAL the rows of a window are ranked when it has ended, and none of them changes after that."""
    db = opened()
    db.execute("CREATE STREAM s (k STRING, v BIGINT, at AS PROCTIME())")
    for name in ("once", "hops", "ended"):
        db.execute(f"CREATE MATERIALIZED VIEW {name}_ranked AS {RANKED.format(QUERIES[name][1])}")
    given: list[dict[str, Any]] = []

    def feed(count: int) -> None:
        more = [{"k": "ab"[number % 2], "v": len(given) + number} for number in range(count)]
        db.append("s", more)
        given.extend(more)
        db.settle(PATIENCE)

    def all_there() -> bool:
        names = ("once", "hops", "ended")
        return all(rows(db, f"{name}_ranked") == oracle(db, name, given, job=f"{name}_ranked") for name in names)

    for _ in range(3):
        feed(10)
        time.sleep(0.4)
    wait(all_there)  # nothing comes any more, and they close
    db.close()

    db = opened()
    feed(5)
    wait(all_there)
    for name in ("once", "hops", "ended"):
        check_change_log(db, f"{name}_ranked")
