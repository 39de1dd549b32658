"""The program that is killed while dimensions change: appends, updates a dimension now and then, and at the end reports.

    python -m tests.chaos.dimension_worker …, as `program` says

Every row of a version has the number of the version's update as its tag, so a joined row tells what it was joined with.
"""

from __future__ import annotations

import time
from typing import Final

import penstock
from tests.chaos.program import PATIENCE, Run, main

JOBS: Final = ("tagged", "windows")
KEYS: Final = 4
ROWS: Final = 6
UPDATE_EVERY: Final = 3
_LAST: Final = 12  # four updates
_SCRIPT: Final = """
CREATE STREAM events (id STRING, k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic', partitions = 2,
  idle_timeout = INTERVAL '1' HOUR);
CREATE MATERIALIZED VIEW tagged AS SELECT e.id, e.k, d.tag FROM events AS e LEFT JOIN tags AS d ON e.k = d.k;
CREATE MATERIALIZED VIEW windows AS
SELECT TUMBLE_START(e.ts, INTERVAL '10' SECOND) AS starts, d.tag, COUNT(*) AS n
FROM events AS e JOIN tags AS d ON e.k = d.k GROUP BY d.tag, TUMBLE(e.ts, INTERVAL '10' SECOND);
"""


def tags(number: int) -> list[dict[str, object]]:
    return [{"k": key, "tag": number} for key in range(KEYS)]


def feed(db: penstock.Database, started: Run, number: int) -> None:
    """One append, and before every third one a new version."""
    if number % UPDATE_EVERY == 0:
        if (
            started.finishes
        ):  # what came before it is joined by then: several versions are seen, however slow the machine
            db.settle(timeout=PATIENCE)
        update(db, started, number)
    rows = [
        {"id": f"{number}.{place}.{started.start}", "k": (number + place) % KEYS, "ts": number * 1_000}
        for place in range(ROWS)
    ]
    db.append("events", rows, partition=number % 2)
    started.events.write("appended", number=number)
    time.sleep(started.pause)


def update(db: penstock.Database, started: Run, tag: int) -> None:
    started.events.write("updated", version=db.update_dimension("tags", tags(tag)), tag=tag)


def run(started: Run) -> None:
    with started.connect() as db:
        if db.sql("SELECT COUNT(*) AS n FROM penstock.dimensions").rows() == [(0,)]:
            db.register_dimension("tags", tags(-1))
        else:
            # At once, while jobs have batches to run again that were planned with the version before.
            update(db, started, 10_000 + started.start)
        db.execute(_SCRIPT)
        started.events.write("declared")
        started.appends(lambda number: feed(db, started, number), _LAST)
        started.drain(db)
        started.report(
            {
                "changes": [
                    {"batch": change.batch_id, "op": change.op, **(change.row or {})}
                    for change in db.subscribe("tagged", since=0, timeout=0.2)
                ],
                "windows": db.sql("SELECT SUM(n) AS n FROM windows").rows()[0][0],
            }
        )


if __name__ == "__main__":
    raise SystemExit(main(run))
