"""A program with a view, two sinks and a job in real time over one topic; it is killed, or told to end with a report."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import penstock


def main(state: str, address: str, topic: str, task: str) -> None:
    settings: dict[str, object] = {
        "parallelism": 4,
        "driver_memory": "1g",
        "checkpoint_interval": "5 s",
        "kafka.bootstrap_servers": address,
    }
    sink = f"WITH (connector = 'kafka', partitions = 2, topic = '{topic}-{{}}'{{}}) AS SELECT id FROM numbers"
    with penstock.connect(Path(state), **settings) as db:
        # What is there already stays as it is: a start after a kill is this script again, and nothing else.
        db.execute(f"""
            CREATE STREAM numbers (id INT, ts TIMESTAMP)
              WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
            CREATE MATERIALIZED VIEW seen AS SELECT id FROM numbers;
            CREATE MATERIALIZED VIEW sums AS
              SELECT id % 7 AS k, COUNT(*) AS n, SUM(id) AS total FROM numbers GROUP BY id % 7;
            CREATE SINK exact {sink.format("exact", ", delivery = 'exactly_once'")};
            CREATE SINK plain {sink.format("plain", "")};
            CREATE SINK quick {sink.format("quick", ", mode = 'realtime'")};
        """)
        while {row[0] for row in db.sql("SELECT state FROM penstock.jobs").rows()} != {"running"}:
            time.sleep(0.05)
        print("ready", flush=True)  # noqa: T201 - to whoever kills it
        if task == "run":
            time.sleep(3_600)
        db.settle(600)
        report = {
            "seen": [row[0] for row in db.sql("SELECT id FROM seen").rows()],
            "sums": db.sql("SELECT k, n, CAST(total AS BIGINT) FROM sums ORDER BY k").rows(),
        }
        print(json.dumps(report), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
