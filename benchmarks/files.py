"""How fast files are read and written: rows a second through Spark, job start not included.

    python -m benchmarks.files [rows]

A file of JSON lines, one of CSV and one of Parquet with the same rows are read by jobs that throw the rows away and by
jobs that count them in windows; then JSON lines are written back, to directories in each format and to one plain file.
Rows a second of work are those for each second that a core was busy with Spark and its Python processes: on a machine
that does other things as well they tell more than rows a second.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import penstock
from penstock.spark.session import jvm_pid

COLUMNS = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts"
ALL = "auction, bidder, price, channel, ts"
FORMATS = ("json", "csv", "parquet")
_TICKS = os.sysconf("SC_CLK_TCK")
_FIRST_MS = 1_767_225_600_000


def write_inputs(directory: Path, rows: int) -> None:
    """The same rows in each format: ten in a millisecond."""
    times = [_FIRST_MS + number // 10 for number in range(rows)]
    table = pa.table(
        {
            "auction": [number % 1_000 for number in range(rows)],
            "bidder": [number * 7 % 10_007 for number in range(rows)],
            "price": [number % 5_000 for number in range(rows)],
            "channel": [f"channel {number % 50}" for number in range(rows)],
            "ts": times,
        }
    )
    pa.csv.write_csv(table, directory / "bids.csv", pa.csv.WriteOptions(include_header=False))
    with (directory / "bids.json").open("w") as file:
        for auction, bidder, price, channel, at in zip(*(column.to_pylist() for column in table.columns), strict=True):
            file.write(
                f'{{"auction": {auction}, "bidder": {bidder}, "price": {price}, "channel": "{channel}", "ts": {at}}}\n'
            )
    moments = pa.array(times, pa.timestamp("ms", tz="UTC"))
    pq.write_table(table.set_column(4, "ts", moments), directory / "bids.parquet", row_group_size=250_000)


def seconds_of(db: penstock.Database, name: str) -> float:
    """From the first batch's start to the last one's end, once the job has ended."""
    while next(job for job in db.jobs() if job.name == name).state != "stopped":
        time.sleep(0.05)
    table = "SELECT MIN(started_at), MAX(completed_at) FROM penstock.checkpoints WHERE job = "
    begun, done = db.sql(f"{table} '{name}'").rows()[0]
    return float((done - begun).total_seconds())


def busy_seconds() -> float:
    """How long cores have been busy with Spark's JVM and the processes below it, ended ones included."""
    parents: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            spent[int(entry.name)] = sum(map(int, fields[11:15]))
    waiting, total = [jvm_pid() or 0], 0
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0)
        waiting += parents.get(process, [])
    return total / _TICKS


def jobs(directory: Path) -> dict[str, str]:
    """What is measured: a name, and the rest of CREATE SINK."""
    found = {"lines to nothing": "(connector = 'blackhole') AS SELECT value FROM lines"}
    for name in FORMATS:
        found[f"{name} to nothing"] = f"(connector = 'blackhole') AS SELECT {ALL} FROM {name}_bids"
    for name in FORMATS:
        window = "GROUP BY auction, TUMBLE(ts, INTERVAL '10' SECOND)"
        query = f"SELECT auction, COUNT(*) AS n FROM {name}_bids {window}"
        found[f"{name} in windows"] = f"(connector = 'blackhole') AS {query}"
    for name in FORMATS:
        place = f"(connector = 'file', path = '{directory}/out_{name}', format = '{name}')"
        found[f"json to {name}"] = f"{place} AS SELECT {ALL} FROM json_bids"
    place = f"(connector = 'single_file', path = '{directory}/one.json')"
    found["json to one file"] = f"{place} AS SELECT {ALL} FROM json_bids"
    return found


def main(rows: int) -> None:
    """Measure each job once, in a session that has read all the input before."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        write_inputs(directory, rows)
        with penstock.connect(directory / "home") as db:
            for name in FORMATS:
                options = f"connector = 'file', path = '{directory}/bids.{name}', format = '{name}'"
                db.execute(f"CREATE TABLE {name}_bids ({COLUMNS}) WITH ({options})")
            lines = f"connector = 'file', path = '{directory}/bids.json', format = 'raw'"
            db.execute(f"CREATE TABLE lines (value STRING) WITH ({lines})")
            db.execute("CREATE SINK warm WITH (connector = 'blackhole') AS SELECT auction, price FROM json_bids")
            seconds_of(db, "warm")
            for number, (name, rest) in enumerate(jobs(directory).items()):
                before = busy_seconds()
                db.execute(f"CREATE SINK s{number} WITH {rest}")
                took = seconds_of(db, f"s{number}")
                worked = busy_seconds() - before
                work = f"{rows / worked / 1000:8.0f} k rows a second of work"
                sys.stdout.write(f"{name:20} {rows / took / 1000:8.0f} k rows/s {work}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000)
