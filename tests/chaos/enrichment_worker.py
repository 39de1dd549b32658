"""The program that is killed while it joins two streams and a dimension that changes, into files.

    python -m tests.chaos.enrichment_worker …, as `program` says

Orders and their payments are appended to two topics; a new version of the dimension comes now and then, and at every
start while jobs still have a batch to run again. Every row of a version carries the version's mark, so a joined row
tells what it was joined with. Two sinks: `paid` writes each pair as soon as both are there, `all_orders` also what nobody
paid for, when the watermark says so.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Final

import penstock
from tests.chaos.program import PATIENCE, Events, Run, main, read_events, rows_of

JOBS: Final = ("paid", "all_orders")
KEYS: Final = 5
ROWS: Final = 6
BOUND_MS: Final = 3_000
STARTS: Final = 10_000  # how far the marks of two starts lie apart; later versions have larger marks
_UPDATE_EVERY: Final = 4
_LAST: Final = 6
_FIRST_MS: Final = 1_767_225_600_000


def script(files: Path) -> str:
    stream = (
        "ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (partitions = 2, idle_timeout = '1 hour')"
    )
    bound = f"o.id = p.order_id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '{BOUND_MS // 1000}' SECOND"
    chosen = "o.id, o.k, p.number, d.mark"
    return f"""
        CREATE STREAM orders (id STRING, k INT, {stream};
        CREATE STREAM payments (order_id STRING, number BIGINT, {stream};
        CREATE SINK paid WITH (connector = 'file', path = '{files}/paid', format = 'json') AS
            SELECT {chosen} FROM orders AS o JOIN payments AS p ON {bound} JOIN marks AS d ON o.k = d.k;
        CREATE SINK all_orders WITH (connector = 'file', path = '{files}/all_orders', format = 'parquet') AS
            SELECT {chosen} FROM orders AS o LEFT JOIN payments AS p ON {bound} LEFT JOIN marks AS d ON o.k = d.k;
    """


def marks(mark: int) -> list[dict[str, object]]:
    """A version: one key fewer than there are, so that the inner join leaves rows out."""
    return [{"k": key, "mark": mark} for key in range(KEYS - 1)]


def feed(db: penstock.Database, started: Run, number: int) -> None:
    """One append of orders and one of payments for them and for the ones before; sometimes a version between."""
    if number % _UPDATE_EVERY == 1:
        # What is settled is written: it can only carry versions up to now, and what comes after it only newer ones.
        db.settle(timeout=PATIENCE)
        started.events.write("settled", number=number)
        update(db, started.events, started.start * STARTS + number + 1)
    source = random.Random(f"{started.seed} {number}")  # noqa: S311
    own = [f"{number}.{place}.{started.start}" for place in range(ROWS)]
    at = _FIRST_MS + number * 1_000
    orders = [{"id": name, "k": source.randrange(KEYS), "ts": at + source.randrange(500)} for name in own]
    db.append("orders", orders, partition=number % 2)
    before = [event["orders"] for event in read_events(started.log / "events") if event["event"] == "appended"]
    paid = [name for name in [*own, *(before[-1] if before else ())] if source.random() < 0.6]
    payments = [
        {"order_id": name, "number": number * 100 + place, "ts": at + 500 + source.randrange(500)}
        for place, name in enumerate(paid)
    ]
    db.append("payments", payments or [{"order_id": None, "number": -1, "ts": at}], partition=number % 2)
    started.events.write("appended", number=number, orders=own, payments=[row["number"] for row in payments])
    time.sleep(0.1)


def update(db: penstock.Database, events: Events, mark: int) -> None:
    """A new version. That it is coming is told first: a killed program may have written it all the same."""
    events.write("updating", mark=mark)
    events.write("updated", mark=mark, version=db.update_dimension("marks", marks(mark)))


def run(started: Run) -> None:
    with started.connect() as db:
        if db.sql("SELECT COUNT(*) AS n FROM penstock.dimensions").rows() == [(0,)]:
            db.register_dimension("marks", marks(-1))
        else:
            update(db, started.events, started.start * STARTS)
        db.execute(script(started.log.parent / "files"))
        started.events.write("declared")
        started.appends(lambda number: feed(db, started, number), _LAST)
        started.drain(db)
        started.report(
            {
                "orders": rows_of_topic(db, "SELECT id, k, ts FROM orders"),
                "payments": rows_of_topic(db, "SELECT order_id, number, ts FROM payments"),
                "dead": rows_of(db, "SELECT * FROM penstock.dead_letters"),
                "late": rows_of(db, "SELECT * FROM penstock.late_rows"),
                "errors": [job.error for job in db.jobs()],
            }
        )


def rows_of_topic(db: penstock.Database, query: str) -> list[list[object]]:
    """All rows that a topic has kept; the last column is a time, in milliseconds."""
    rows = db.select_once(query, timeout=PATIENCE).rows()
    return [[*row[:-1], round(row[-1].timestamp() * 1000)] for row in rows]


if __name__ == "__main__":
    raise SystemExit(main(run))
