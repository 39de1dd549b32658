"""Temporal filters in jobs: rows leave and come in by themselves, beside DuckDB, over a stop (G3, G16)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import duckdb
import pytest

import penstock
from tests.engine.answers import Rows, check_change_log, in_order, job, read, until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

STEP: Final = 4  # seconds between the times at which something happens
LIFE: Final = 600  # seconds that a row stays: the one that is to outlive the stop does so on any machine
PATIENCE: Final = 300.0
# Read in RisingWave's dialect; the same text is asked of DuckDB with the time in the place of NOW().
QUERIES: Final = {
    "young": f"SELECT id, k FROM s WHERE ts > NOW() - INTERVAL '{LIFE} seconds'",
    "counts": f"SELECT k, COUNT(*) AS n FROM s WHERE ts + INTERVAL '{LIFE} seconds' > NOW() GROUP BY k",
    "come": f"SELECT id FROM s WHERE ts BETWEEN NOW() - INTERVAL '{LIFE} seconds' AND CURRENT_TIMESTAMP",
    "lasting": f"SELECT k, COUNT(*) AS n FROM s GROUP BY k HAVING MAX(ts) > NOW() - INTERVAL '{LIFE} seconds'",
    "pairs": f"SELECT s.id, o.name FROM s LEFT JOIN o ON s.k = o.k WHERE s.ts > NOW() - INTERVAL '{LIFE} seconds'",
    "millis": f"SELECT id FROM s WHERE mz_now() < EXTRACT(EPOCH FROM ts) * 1000 + {LIFE * 1000}",  # as Materialize counts
    "of_view": f"SELECT k, COUNT(*) AS n FROM every WHERE ts > NOW() - INTERVAL '{LIFE} seconds' GROUP BY k",
    "of_counts": "SELECT n, COUNT(*) AS c FROM counts GROUP BY n",
}


def answer(oracle: duckdb.DuckDBPyConnection, name: str, now: datetime) -> Rows:
    """What DuckDB says of a time."""
    clock = f"TIMESTAMP '{now.replace(tzinfo=None).isoformat(sep=' ')}'"
    text = QUERIES[name].replace("NOW()", clock).replace("CURRENT_TIMESTAMP", clock).replace("FROM every", "FROM s")
    text = text.replace("mz_now()", f"epoch({clock}) * 1000")
    if name == "of_counts":
        text = text.replace("counts", f"({QUERIES['counts'].replace('NOW()', clock)})")
    return in_order(oracle.sql(text).fetchall())


def test_rows_leave_and_come_by_themselves(opened: Callable[..., penstock.Database]) -> None:
    """Every view shows, one after the other, the answers of the times at which something happens, and no other ones;
    rows whose time is over while nothing runs are gone when it runs again."""
    db = opened()
    db.execute("CREATE STREAM s (id BIGINT, k BIGINT, ts TIMESTAMP)")
    db.execute("CREATE STREAM o (k BIGINT, name STRING)")
    db.execute("CREATE MATERIALIZED VIEW every AS SELECT id, k, ts FROM s")
    db.execute("SET dialect = 'risingwave'")
    for name, query in QUERIES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    with duckdb.connect() as oracle:
        oracle.execute("CREATE TABLE s (id BIGINT, k BIGINT, ts TIMESTAMP)")
        oracle.execute("CREATE TABLE o (k BIGINT, name VARCHAR)")
        began = datetime.now(UTC) + timedelta(seconds=STEP)
        # Rows leave at began + 4 seconds, + 8 and so on; two have no such time, one comes in later.
        rows: list[tuple[int, int, datetime | None]] = [
            (place, place % 2, began + timedelta(seconds=STEP * (1 + place) - LIFE)) for place in range(5)
        ]
        rows += [(10, 0, began - timedelta(days=1)), (11, 1, None), (12, 3, began + timedelta(seconds=3 * STEP))]
        given = [(identity, k, None if ts is None else ts.replace(tzinfo=None)) for identity, k, ts in rows]
        oracle.executemany("INSERT INTO s VALUES (?, ?, ?)", given)
        oracle.execute("INSERT INTO o VALUES (0, 'even'), (1, 'odd')")
        db.append("o", [{"k": 0, "name": "even"}, {"k": 1, "name": "odd"}])
        db.append("s", [{"id": identity, "k": k, "ts": ts} for identity, k, ts in rows])
        db.settle(PATIENCE)

        def right(name: str) -> bool:
            """A view is as of now, or as of some seconds ago: a batch takes its time."""
            now = datetime.now(UTC)
            found = read(db, name)
            times = [now + timedelta(seconds=0.25 * ahead) for ahead in range(8, -240, -1)]
            return any(found == answer(oracle, name, each) for each in times)

        while datetime.now(UTC) < began + timedelta(seconds=3 * STEP):
            for name in QUERIES:
                assert right(name), f"{name}: {read(db, name)}"
            time.sleep(0.3)
        until(lambda: len(read(db, "young")) <= 3, PATIENCE)  # of six, three have left by now
        db.close()
        time.sleep(max(0.0, (began + timedelta(seconds=5 * STEP) - datetime.now(UTC)).total_seconds()))

        db = opened()
        after = began + timedelta(seconds=6 * STEP)

        def wrong() -> list[object]:
            """The views that are not as of the last time yet, with their jobs."""
            late = [name for name in QUERIES if read(db, name) != answer(oracle, name, after)]
            return [(name, read(db, name), job(db, name)) for name in late]

        until(lambda: not wrong(), PATIENCE, wrong)
        assert read(db, "young") == [(12, 3)]
        assert read(db, "pairs") == [(12, None)]
        for name in QUERIES:
            check_change_log(db, name, ())
