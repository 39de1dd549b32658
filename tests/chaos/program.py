"""What the programs that are killed have in common: their arguments, their memory, and how they go on and end.

    python -m tests.chaos.… HOME LOG SEED START (feed | finish) --jobs NAME,… [--pause SECONDS]

LOG is a directory outside the home. `events` in it is the program's memory: one JSON object a line, forced to disk, in
particular one for each append that was acknowledged. A restarted program goes on behind the last of them. `feed` appends
for as long as it lives; `finish` appends a few times more, settles, drains and ends, with `report` in LOG.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import penstock

PATIENCE: Final = 300.0
REFUSED: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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


class Run:
    """One start of a program, with what it knows of the starts before."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.home, self.log = Path(options.home), Path(options.log)
        self.seed: int = options.seed
        self.start: int = options.start
        self.jobs: tuple[str, ...] = tuple(options.jobs.split(","))
        self.pause: float = options.pause
        self.finishes: bool = options.mode == "finish"
        self._past = read_events(self.log / "events")
        self.events = Events(self.log / "events", self.start)
        self.events.write("begun", pid=os.getpid())

    def connect(self) -> penstock.Database:
        return penstock.connect(self.home, driver_memory="1GB")

    def appends(self, append: Callable[[int], None], last: int) -> None:
        """Append by numbers that no start before has acknowledged: for ever, or so many times."""
        number = 1 + max((event["number"] for event in self._past if event["event"] == "appended"), default=-1)
        # Rows that come after a drain are behind it: a drain that was begun is only finished.
        ending = any(event["event"] == "settling" for event in self._past)
        end = number if ending else number + last
        while not self.finishes or number < end:
            append(number)
            number += 1

    def drain(self, db: penstock.Database) -> None:
        """Let every job read all there is and close what is open."""
        self.events.write("settling")
        db.settle(timeout=PATIENCE)
        self.events.write("settled", jobs=standing(db))
        for job in self.jobs:
            self.events.write("draining", job=job)
            db.drain(job, timeout=PATIENCE)
        self.events.write("drained", jobs=standing(db))

    def report(self, found: dict[str, Any]) -> None:
        """Leave what can be seen from outside to whoever judges it."""
        (self.log / "report").write_text(json.dumps(found), encoding="utf-8")
        self.events.write("reported")


def standing(db: penstock.Database) -> dict[str, Any]:
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


def rows_of(db: penstock.Database, query: str) -> list[dict[str, object]]:
    result = db.sql(query)
    return [{name: plain(value) for name, value in zip(result.columns, row, strict=True)} for row in result.rows()]


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


def main(run: Callable[[Run], None]) -> int:
    """Run a program with the arguments that a campaign gives it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home")
    parser.add_argument("log")
    parser.add_argument("seed", type=int)
    parser.add_argument("start", type=int)
    parser.add_argument("mode", choices=("feed", "finish"))
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--pause", type=float, default=0.1)
    try:
        run(Run(parser.parse_args()))
    except penstock.PenstockError as error:
        sys.stderr.write(f"[{error.condition}] {error.message}\n")
        return REFUSED
    return 0
