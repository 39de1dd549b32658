"""The program that is killed while dimensions change: appends, updates a dimension now and then, and at the end reports.

    python -m tests.chaos.dimension_worker HOME LOG START (feed | finish)

`events` in LOG is its memory, as in `worker.py`: a restarted program goes on behind the last append that it knows of.
Every row of a version has the number of the version's update as its tag, so a joined row tells what it was joined with.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import penstock
from tests.chaos.worker import Events, read_events

if TYPE_CHECKING:
    from penstock.interfaces.database import Database

KEYS: Final = 4
ROWS: Final = 6
UPDATE_EVERY: Final = 3
_LAST: Final = 6
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


def feed(db: Database, events: Events, number: int, start: int) -> None:
    """One append, and before every third one a new version."""
    if number % UPDATE_EVERY == 0:
        events.write("updated", version=db.update_dimension("tags", tags(number)), tag=number)
    rows = [
        {"id": f"{number}.{place}.{start}", "k": (number + place) % KEYS, "ts": number * 1_000} for place in range(ROWS)
    ]
    db.append("events", rows, partition=number % 2)
    events.write("appended", number=number, start=start)
    time.sleep(0.15)


def main(home: str, log: str, start: int, mode: str) -> None:
    directory = Path(log)
    past = read_events(directory / "events")
    number = 1 + max((event["number"] for event in past if event["event"] == "appended"), default=-1)
    events = Events(directory / "events", start)
    with penstock.connect(home, driver_memory="1GB") as db:
        if db.sql("SELECT COUNT(*) AS n FROM penstock.dimensions").rows() == [(0,)]:
            db.register_dimension("tags", tags(-1))
        else:
            # At once, while jobs have batches to run again that were planned with the version before.
            events.write("updated", version=db.update_dimension("tags", tags(10_000 + start)), tag=10_000 + start)
        db.execute(_SCRIPT)
        events.write("declared")
        last = number + _LAST
        while mode == "feed" or number < last:
            feed(db, events, number, start)
            number += 1
        db.settle(timeout=150)
        for job in ("tagged", "windows"):
            db.drain(job, timeout=150)
        report = {
            "changes": [
                {"batch": change.batch_id, "op": change.op, **(change.row or {})}
                for change in db.subscribe("tagged", since=0, timeout=0.2)
            ],
            "windows": db.sql("SELECT SUM(n) AS n FROM windows").rows()[0][0],
        }
        (directory / "report").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
