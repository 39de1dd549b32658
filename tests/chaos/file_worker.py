"""The program that is killed while it moves rows from files to files.

    python -m tests.chaos.file_worker HOME LOG SEED START (feed | finish)

It writes files into a directory that is tailed, some whole and one that grows, and appends to a topic. Three jobs: the
directory is copied into another one, windows over the topic are written to a directory of Parquet files, and the same
windows to one plain file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import penstock
from tests.chaos.worker import Events, read_events, rows_of

JOBS: Final = ("copied", "in_files", "in_one_file")
_PATIENCE: Final = 150.0
_LAST: Final = 6
_FIRST_MS: Final = 1_767_225_600_000


def script(files: Path) -> str:
    windows = """SELECT TUMBLE_START(ts, INTERVAL '1' SECOND) AS s, COUNT(*) AS n, SUM(id) AS total FROM t
        GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"""
    return f"""
        CREATE STREAM f (id BIGINT, word STRING) WITH (connector = 'file', path = '{files}/in', monitor_interval = '200 ms');
        CREATE STREAM t (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
        CREATE SINK copied WITH (connector = 'file', path = '{files}/copied', format = 'json', partition_by = 'word',
            rollover_rows = 3) AS SELECT id, word FROM f;
        CREATE SINK in_files WITH (connector = 'file', path = '{files}/windows', format = 'parquet') AS {windows};
        CREATE SINK in_one_file WITH (connector = 'single_file', path = '{files}/windows.json') AS {windows};
    """


def feed(db: penstock.Database, events: Events, files: Path, number: int) -> None:
    """One more file or two more lines, and rows in the topic."""
    rows = "".join(json.dumps({"id": number * 10 + place, "word": f"w{place % 3}"}) + "\n" for place in range(8))
    if number % 2:
        hidden = files / "in" / f".{number}"
        hidden.write_text(rows)
        hidden.rename(files / "in" / f"{number}.json")
    else:
        with (files / "in" / "grows.json").open("a") as file:
            file.write(rows[:20])
            file.flush()
            time.sleep(0.02)
            file.write(rows[20:])
    for place in range(3):
        at = _FIRST_MS + number * 700 + place
        db.append("t", [{"id": number, "ts": at}])
    events.write("appended", number=number)
    time.sleep(0.3)


def run(options: argparse.Namespace) -> None:
    log = Path(options.log)
    files = log.parent / "files"
    (files / "in").mkdir(parents=True, exist_ok=True)
    past = read_events(log / "events")
    number = 1 + max((event["number"] for event in past if event["event"] == "appended"), default=-1)
    mend(files / "in" / "grows.json")
    events = Events(log / "events", options.start)
    events.write("begun", pid=os.getpid())
    with penstock.connect(options.home, driver_memory="1GB") as db:
        db.execute(script(files))
        events.write("declared")
        ending = any(event["event"] == "settling" for event in past)
        last = number if ending else number + _LAST
        while options.mode == "feed" or number < last:
            feed(db, events, files, number)
            number += 1
        events.write("settling")
        db.settle(timeout=_PATIENCE)
        for job in JOBS:
            db.drain(job, timeout=_PATIENCE)
        topic = db.select_once("SELECT id, ts FROM t", timeout=_PATIENCE)
        (log / "report").write_text(
            json.dumps(
                {
                    "topic": [[row[0], int(row[1].timestamp() * 1000)] for row in topic.rows()],
                    "dead": rows_of(db, "SELECT * FROM penstock.dead_letters"),
                    "late": rows_of(db, "SELECT * FROM penstock.late_rows"),
                }
            ),
            encoding="utf-8",
        )
        events.write("reported")


def mend(path: Path) -> None:
    """A killed writer leaves half a line: one that is not read yet, so it may be finished as if it were no record."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("home")
    parser.add_argument("log")
    parser.add_argument("seed", type=int)
    parser.add_argument("start", type=int)
    parser.add_argument("mode", choices=("feed", "finish"))
    parser.add_argument("--jobs")
    parser.add_argument("--pause")
    try:
        run(parser.parse_args(arguments))
    except penstock.PenstockError as error:
        sys.stderr.write(f"[{error.condition}] {error.message}\n")
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
