"""The program that is killed: declares, appends, and at the end settles, drains and reports what it sees.

    python worker.py HOME LOG SEED START (feed | finish) [--jobs NAME,…] [--pause SECONDS]

LOG is a directory outside the home. `events` in it is the program's memory: one JSON object a line, forced to disk, in
particular one for each append that was acknowledged. A restarted program goes on behind the last of them. `feed` appends
for as long as it lives; `finish` appends a few times more and ends, with `report` in LOG.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import penstock
from tests.chaos import workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.interfaces.database import Database

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_APPENDS: Final = 8
_PATIENCE: Final = 150.0
REFUSED: Final = 3


class Events:
    """The log of what happened, in order. What is in it is on disk."""

    def __init__(self, path: Path, start: int) -> None:
        self._start = start
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, event: str, **facts: object) -> None:
        line = json.dumps({"event": event, "start": self._start, "at": time.time(), **facts})
        os.write(self._file, line.encode() + b"\n")
        os.fsync(self._file)


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events so far; a last line that is not whole did not happen."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def plain(value: object) -> object:
    """A value of a row as JSON keeps it: times are microseconds since 1970."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def rows_of(db: Database, query: str) -> list[dict[str, object]]:
    result = db.sql(query)
    return [{name: plain(value) for name, value in zip(result.columns, row, strict=True)} for row in result.rows()]


def standing(db: Database) -> dict[str, Any]:
    """Where each job stands."""
    return {
        job.name: {
            "state": job.state,
            "batch": job.batch_id,
            "watermark": plain(job.watermark),
            "restarts": job.restarts,
            "error": job.error,
        }
        for job in db.jobs()
    }


def feed(db: Database, events: Events, options: argparse.Namespace, number: int) -> int:
    """Append once; the number of the next append."""
    if workload.late_by_design(number):
        db.settle(timeout=_PATIENCE)
    rows = workload.rows_of(options.seed, number, options.start)
    for place in db.append(workload.STREAM, [row.appended() for row in rows], partition=number % workload.PARTITIONS):
        events.write("appended", number=number, partition=place.partition, first=place.first_offset, count=place.count)
    if number % 4 == 3:
        events.write("standing", jobs=standing(db))
    time.sleep(options.pause)
    return number + 1


def report(db: Database, jobs: Sequence[str]) -> dict[str, Any]:
    """Everything that can be seen from outside."""
    names = [job for job in jobs if job != workload.INSERT]
    views = {view: rows_of(db, f"SELECT * FROM {view}") for view in names}
    changes = {
        view: [
            {"seq": change.seq, "op": change.op, "before": plain(change.before), "row": plain(change.row)}
            for change in db.subscribe(view, since=0, timeout=0.2)
        ]
        for view in names
    }
    result = db.select_once(f"SELECT id, item, doubled, ts FROM {workload.SINK}", timeout=_PATIENCE)
    return {
        "views": views,
        "changes": changes,
        "sink": [[plain(value) for value in row] for row in result.rows()],
        "late_rows": rows_of(db, "SELECT * FROM penstock.late_rows"),
        "dead_letters": rows_of(db, "SELECT * FROM penstock.dead_letters"),
        "jobs": standing(db),
    }


def run(options: argparse.Namespace) -> None:
    log = Path(options.log)
    jobs = options.jobs.split(",")
    past = read_events(log / "events")
    number = 1 + max((event["number"] for event in past if event["event"] == "appended"), default=-1)
    events = Events(log / "events", options.start)
    events.write("begun", pid=os.getpid())
    with penstock.connect(options.home, driver_memory="1GB") as db:
        events.write("opened", jobs=standing(db))
        db.execute(workload.script(jobs))
        events.write("declared", jobs=standing(db), notices=db.notices())
        # Rows that come after a drain are behind it: a drain that was begun is only finished.
        ending = any(event["event"] == "settling" for event in past)
        last = number if ending else number + _LAST_APPENDS
        while options.mode == "feed" or number < last:
            number = feed(db, events, options, number)
        events.write("settling")
        db.settle(timeout=_PATIENCE)
        events.write("settled", jobs=standing(db))
        for job in jobs:
            events.write("draining", job=job)
            db.drain(job, timeout=_PATIENCE)
        events.write("drained", jobs=standing(db))
        (log / "report").write_text(json.dumps(report(db, jobs)), encoding="utf-8")
        events.write("reported")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("home")
    parser.add_argument("log")
    parser.add_argument("seed", type=int)
    parser.add_argument("start", type=int)
    parser.add_argument("mode", choices=("feed", "finish"))
    parser.add_argument("--jobs", default=",".join(workload.JOBS))
    parser.add_argument("--pause", type=float, default=0.1)
    options = parser.parse_args(arguments)
    try:
        run(options)
    except penstock.PenstockError as error:
        sys.stderr.write(f"[{error.condition}] {error.message}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
