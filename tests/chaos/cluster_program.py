"""A program whose Spark is a cluster of processes on this machine; one of them is killed while it works.

python cluster_program.py HOME WORKERS QUERY…

It prints one object: what the batch queries answered beside DuckDB, and what the views held before and after the loss.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import duckdb

import penstock
from penstock.plan.script import read_script, report_statement
from penstock.runtime.queries import spark_answer
from penstock.spark.session import jvm_pid
from tests.batch.answers import alike
from tests.batch.orders_data import tables
from tests.batch.orders_queries import QUERIES
from tests.engine.answers import check_change_log, job, ms, until

PATIENCE = 300.0
ROWS = 4_000  # in each partition: enough that tasks read them, and not the driver
STREAM = (
    "CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'topic', partitions = 2)"
)
VIEWS = """
CREATE MATERIALIZED VIEW windows WITH (parallelism = 4) AS
SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND) AS start, COUNT(*) AS n, SUM(v) AS total
FROM s GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND);
CREATE MATERIALIZED VIEW seen AS SELECT process(v) AS worker, COUNT(*) AS n, SUM(held(v)) AS total FROM s GROUP BY process(v);
"""


def parent(pid: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executors() -> list[int]:
    """The processes that run Spark's tasks."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (path / "stat").exists():
            try:
                if (
                    parent(int(path.name)) == jvm_pid()
                    and b"CoarseGrainedExecutorBackend" in (path / "cmdline").read_bytes()
                ):
                    found.append(int(path.name))
            except OSError:
                continue  # it has ended meanwhile
    return found


def batch_answers(db: penstock.Database, names: list[str]) -> dict[str, bool]:
    """For each query, whether Spark and DuckDB answer alike."""
    found = {}
    with duckdb.connect() as oracle:
        for name, table in tables().items():
            db.register_table(name, table)
            oracle.register(name, table)
        for name in names:
            parsed, source = read_script(QUERIES[name])
            report, _ = report_statement(parsed[0], source, db._engine.session)
            assert report.plan is not None, report.error
            answer = penstock.Result(spark_answer(db._engine, report.plan).table)
            found[name] = alike(answer.rows()) == alike(oracle.execute(QUERIES[name]).fetchall())
    return found


def main(home: Path, workers: int, names: list[str]) -> dict[str, Any]:
    told = home.parent

    def process(value: int) -> int:
        """The executor that a row is worked on by: the parent of the process that forks Python workers. At the first row
        of a partition it waits for the reader of the other: else one worker that is early could read both."""
        executor = parent(os.getppid())
        if value == 10:
            (told / f"reader-{executor}").touch()
            end = time.monotonic() + PATIENCE
            while len(list(told.glob("reader-*"))) < 2 and time.monotonic() < end:
                time.sleep(0.05)
        return executor

    def held(value: int) -> int:
        """At one row, says which process works on it, and waits until it may go on; a failure comes first."""
        if value == 7 and not (told / "failed").exists():
            (told / "failed").touch()
            raise OSError("Connection reset by peer")
        if value == 7:
            (told / "attempts").open("a").write(f"{parent(os.getppid())}\n")
            end = time.monotonic() + PATIENCE
            while not (told / "go").exists() and time.monotonic() < end:
                time.sleep(0.05)
        return value

    with penstock.connect(
        home, spark_master=f"local-cluster[{workers},1,1024]", parallelism=workers, driver_memory="1g"
    ) as db:
        answers = batch_answers(db, names)
        db.register_function("process", process, ["BIGINT"], int)
        db.register_function("held", held, ["BIGINT"], int)
        db.execute(STREAM)
        for partition in range(2):
            rows = [{"k": f"k{n % 7}", "v": 10 + n, "ts": ms(n % 40)} for n in range(ROWS)]
            db.append("s", rows, partition=partition)
        db.execute(VIEWS)  # both partitions are there by now: the first batch has a task for each
        db.settle(PATIENCE)
        before = db.sql("SELECT worker, n FROM seen").rows()
        started = executors()

        # The process that works on a row is killed: its task runs again in another.
        for partition in range(2):
            db.append(
                "s",
                [{"k": "late", "v": 7 if partition == 0 and not n else 1, "ts": ms(45)} for n in range(ROWS)],
                partition=partition,
            )
        until(lambda: (told / "attempts").exists() and (told / "attempts").read_text().endswith("\n"), PATIENCE)
        victim = int((told / "attempts").read_text().split()[0])
        os.kill(victim, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{victim}").exists(), PATIENCE)
        (told / "go").touch()
        db.settle(PATIENCE)
        after = db.sql("SELECT worker, n FROM seen").rows()
        check_change_log(db, "seen", ("worker",))
        until(lambda: len(executors()) == workers, PATIENCE)  # Spark has started another in its place
        for partition in range(2):
            db.append("s", [{"k": "end", "v": 1, "ts": ms(200)} for _ in range(ROWS)], partition=partition)
        db.settle(PATIENCE)
        return {
            "answers": answers,
            "executors": len(started),
            "victim": victim,
            "attempts": [int(line) for line in (told / "attempts").read_text().split()],
            "before": before,
            "after": after,
            "windows": [
                [k, start.timestamp(), n, total]
                for k, start, n, total in db.sql("SELECT k, start, n, total FROM windows ORDER BY start, k").rows()
            ],
            "sums": db.sql("SELECT SUM(n), SUM(total) FROM seen").rows()[0],
            "states": {name: job(db, name).state for name in ("windows", "seen")},
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])) + "\n")
