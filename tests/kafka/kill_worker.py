"""A program that copies a topic into another one exactly once, until it is killed or told that all is there."""

from __future__ import annotations

import sys
from pathlib import Path

import penstock


def main(state: str, address: str, source: str, target: str) -> None:
    settings: dict[str, object] = {"parallelism": 2, "driver_memory": "1g", "kafka.bootstrap_servers": address}
    with penstock.connect(Path(state), **settings) as db:
        db.execute(f"""
            CREATE STREAM numbers (id INT, ts TIMESTAMP, WATERMARK FOR ts)
              WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
            CREATE SINK exact (id INT) WITH (connector = 'kafka', topic = '{target}', delivery = 'exactly_once');
            CREATE SINK windows (start TIMESTAMP, n BIGINT)
              WITH (connector = 'kafka', topic = '{target}-windows', partitions = 1, delivery = 'exactly_once');
            CREATE SINK hops (start TIMESTAMP, n BIGINT)
              WITH (connector = 'kafka', topic = '{target}-hops', partitions = 1, delivery = 'exactly_once');
        """)
        jobs = {row[0] for row in db.sql("SELECT name FROM penstock.jobs").rows()}
        if "insert_exact" not in jobs:
            db.execute("INSERT INTO exact SELECT id FROM numbers")
        if "insert_windows" not in jobs:
            db.execute(
                "INSERT INTO windows SELECT window_start, COUNT(*) "
                "FROM TUMBLE(TABLE numbers, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start"
            )
        if "insert_hops" not in jobs:  # the view store closes these
            db.execute(
                "INSERT INTO hops SELECT window_start, COUNT(*) "
                "FROM HOP(TABLE numbers, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY window_start"
            )
        db.settle(180)


if __name__ == "__main__":
    main(*sys.argv[1:])
