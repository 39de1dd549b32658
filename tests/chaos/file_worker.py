"""The program that is killed while it moves rows from files to files.

    python -m tests.chaos.file_worker …, as `program` says

It writes files into a directory that is tailed, some whole and one that grows, and appends to a topic. Three jobs: the
directory is copied into another one, windows over the topic are written to a directory of Parquet files, and the same
windows to one plain file.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

import penstock
from tests.chaos.program import PATIENCE, Events, Run, main, rows_of

JOBS: Final = ("copied", "in_files", "in_one_file")
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


def run(started: Run) -> None:
    files = started.log.parent / "files"
    (files / "in").mkdir(parents=True, exist_ok=True)
    mend(files / "in" / "grows.json")
    with started.connect() as db:
        db.execute(script(files))
        started.events.write("declared")
        started.appends(lambda number: feed(db, started.events, files, number), _LAST)
        started.drain(db)
        topic = db.select_once("SELECT id, ts FROM t", timeout=PATIENCE)
        started.report(
            {
                "topic": [[row[0], int(row[1].timestamp() * 1000)] for row in topic.rows()],
                "dead": rows_of(db, "SELECT * FROM penstock.dead_letters"),
                "late": rows_of(db, "SELECT * FROM penstock.late_rows"),
            }
        )


def mend(path: Path) -> None:
    """A killed writer leaves half a line: one that is not read yet, so it may be finished as if it were no record."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")


if __name__ == "__main__":
    raise SystemExit(main(run))
