"""A database while it runs: what it tells and logs, what it measures, how it waits, and how often it tries."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import BaseModel

import penstock
from penstock import JobFailed
from penstock.connectors.offsets import Offset, Range
from penstock.connectors.reading import reading_of
from penstock.connectors.topic_reader import TopicRows
from penstock.failpoints import enabled
from penstock.options import unregister_connector
from penstock.spark.session import jvm_pid
from tests.engine.answers import at, check_change_log, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE MATERIALIZED VIEW minutes WITH (state = 'spark') AS
SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS start, COUNT(*) AS n, AVG(price) AS mean
FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE);
"""
START = 1_609_459_200  # of the example row of the texts
TRIGGERS = "SELECT job, key, window_start, window_end, state_key, fired FROM penstock.triggers ORDER BY window_end, key"


def trade(db: penstock.Database, *rows: tuple[str, float, float]) -> None:
    db.append("trades", [{"symbol": s, "price": p, "ts": ms(START + second)} for s, p, second in rows])
    db.settle()


def test_phases_triggers_and_measures(db: penstock.Database, caplog: pytest.LogCaptureFixture) -> None:
    """P6, H5, H18, W1, P7: the way of a statement is logged; open windows wait for their ends; memory is measured and
    bounded; a job whose metrics are off has none."""
    with caplog.at_level(logging.INFO, logger="penstock"):
        db.execute(SCRIPT)
    told = [message for message in caplog.messages if not message.startswith("looking")]
    assert told == [
        "read CREATE STREAM",
        "registered stream trades",
        "read CREATE MATERIALIZED VIEW",
        "registered materialized view minutes",
        "job minutes: a pipeline over trades",
        "job minutes runs",
    ]
    db.execute("SET metrics = 'off'")
    db.execute("CREATE MATERIALIZED VIEW silent AS SELECT symbol, price FROM trades")
    trade(db, ("AAPL", 150.0, 1), ("MSFT", 300.0, 2), ("AAPL", 152.0, 61))

    # The first minute has ended at the watermark: its triggers have fired and are gone, its rows are in the view.
    assert db.sql(TRIGGERS).rows() == [("minutes", "AAPL", at(START + 60), at(START + 120), "AAPL", False)]
    assert read(db, "minutes") == [("AAPL", at(START), 1, 150.0), ("MSFT", at(START), 1, 300.0)]

    wanted = {
        "input_rows": 3.0, "output_rows": 2.0, "state_rows": 1.0, "state_memory_bytes": None, "batch_ms": None,
        "watermark_lag_ms": None,
    }  # fmt: skip
    until(lambda: db.metrics()["minutes"].get("state_rows") == 1.0)
    found = db.metrics()
    assert found["minutes"].keys() == wanted.keys()
    assert {name: found["minutes"][name] for name, value in wanted.items() if value is not None} == {
        name: value for name, value in wanted.items() if value is not None
    }
    assert 0 < found["minutes"]["state_memory_bytes"] < 256 * 1024**2, "RocksDB has a bound for all jobs together"
    assert found["minutes"]["batch_ms"] > 0
    assert abs(found["minutes"]["watermark_lag_ms"] - (time.time() - START - 61) * 1000) < 600_000
    assert "silent" not in found
    assert db.sql("SELECT COUNT(*) FROM penstock.metrics WHERE job = 'silent'").rows() == [(0,)]
    assert job(db, "silent").input_rows == 3
    assert len(read(db, "silent")) == 3
    db.execute("STOP JOB minutes")
    assert db.metrics()["minutes"].keys() == {"input_rows", "output_rows"}, "what is counted stays, gauges do not"


def test_inputs_are_written_down_first(db: penstock.Database) -> None:
    """K20: the offsets of a batch are durable before it runs, its state and results only behind it; so a batch that
    broke runs again over the same rows, although more have come."""
    db.execute(
        "SET restart_delay = '5 seconds'; "  # as long as what lies broken is looked at
        "CREATE STREAM s (k STRING, v BIGINT); CREATE MATERIALIZED VIEW t AS SELECT k, SUM(v) AS v FROM s GROUP BY k"
    )
    db.append("s", [{"k": "a", "v": 1}])
    db.settle()
    checkpoint = db.path / "jobs" / "t" / "checkpoint"
    done = job(db, "t").batch_id
    assert done is not None
    with enabled("view.before_write", "error@1"):
        db.append("s", [{"k": "a", "v": 10}])
        until(lambda: job(db, "t").restarts == 1)
        planned = (checkpoint / "offsets" / str(done + 1)).read_text()
        assert not (checkpoint / "commits" / str(done + 1)).exists()
        db.append("s", [{"k": "b", "v": 100}])
        db.settle()
    assert (checkpoint / "offsets" / str(done + 1)).read_text() == planned
    assert (checkpoint / "commits" / str(done + 1)).exists()
    assert read(db, "t") == [("a", 11), ("b", 100)]
    changes = check_change_log(db, "t", ("k",))
    assert [(change.batch_id, change.row) for change in changes[-2:]] == [
        (done + 1, {"k": "a", "v": 11}),
        (done + 2, {"k": "b", "v": 100}),
    ]


def cpu_seconds(pid: int) -> float:
    """The processor time of a process and of what it has started, running or ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(path.name) == pid or int(fields[1]) == pid:
                total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def test_waiting_costs_little_and_rows_wake_it(db: penstock.Database) -> None:
    """I17, U9: a reader takes at most 1,000 rows at a time; a job without rows sleeps, and wakes when some come."""
    db.execute("CREATE STREAM s (v BIGINT) WITH (batch_size = 1000)")
    db.execute("CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(v) AS total FROM s")
    db.append("s", [{"v": n} for n in range(2_500)])
    db.settle()
    assert read(db, "total") == [(2_500, sum(range(2_500)))]
    run = db._engine.jobs["total"].run
    assert run is not None
    scan = reading_of(run.scans[0].request)
    rows = TopicRows(str(db.path / "topics" / "s"), ["v"]).read(
        Range(0, 300, 2_500), Offset(0, {0: 2_500}), scan.batch_size
    )
    assert [(batch.num_rows, batch.column(0)[0].as_py()) for batch in rows] == [
        (1_000, 300),
        (1_000, 1_300),
        (200, 2_300),
    ]

    jvm = jvm_pid()
    assert jvm is not None
    if Path("/proc/self/stat").exists():
        # A loop that does not wait takes a whole core. Compilers and collectors work on for a while: one calm stretch
        # is enough.
        shares = []
        for _ in range(12):
            before, begun = cpu_seconds(jvm) + time.process_time(), time.monotonic()
            time.sleep(5)
            shares.append((cpu_seconds(jvm) + time.process_time() - before) / (time.monotonic() - begun))
            if shares[-1] < 0.4:
                break
        assert min(shares) < 0.4, shares
    batch = job(db, "total").batch_id
    db.append("s", [{"v": 1}])
    db.settle()
    assert read(db, "total") == [(2_501, sum(range(2_500)) + 1)]
    after = job(db, "total").batch_id
    assert batch is not None
    assert after is not None
    assert after <= batch + 2, "no batch runs for nothing"


class Broken(penstock.Connector):
    """A source whose connection is gone as long as a file is there; it notes each time that it is asked."""

    schema = pa.schema([("n", pa.int64())])

    class options(BaseModel):  # noqa: N801
        folder: str

    def initialize(self, config: penstock.ConnectorConfig) -> None:
        self.folder = Path(config["folder"])
        self.last = 0

    def get_next_batch(self, max_rows: int) -> pa.RecordBatch:
        if (self.folder / "down").exists():
            with (self.folder / "asked").open("a") as file:
                file.write(f"{time.time()}\n")
            raise ConnectionRefusedError("the server does not answer")
        rows = [self.last + 1] if self.last < 3 else []
        self.last += len(rows)
        return pa.record_batch([rows], schema=self.schema)

    def get_current_offset(self) -> int:
        return self.last

    def seek_to_offset(self, offset: int) -> None:
        self.last = offset


@pytest.fixture
def down(tmp_path: Path) -> Iterator[Path]:
    penstock.register_connector("broken", Broken)
    folder = tmp_path / "source"
    folder.mkdir()
    yield folder / "down"
    unregister_connector("broken")


@pytest.mark.slow
def test_three_retries_then_the_error(opened: Callable[..., penstock.Database], down: Path) -> None:
    """SC11: a source that fails is tried three times more, a second apart; then the error reaches whoever waits. Mended,
    the job goes on where it was."""
    db = opened(restart_attempts=3, restart_delay="1 s")
    db.execute(f"""
        CREATE STREAM s (n BIGINT) WITH (connector = 'broken', folder = '{down.parent}');
        CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n, SUM(n) AS total FROM s;
    """)
    until(lambda: read(db, "v") == [(3, 6)])
    down.touch()
    until(lambda: job(db, "v").state == "failed", 120)
    assert job(db, "v").restarts == 3
    with pytest.raises(JobFailed, match="SOURCE_UNAVAILABLE") as raised:
        db.settle()
    assert "the server does not answer" in raised.value.message
    assert len((down.parent / "asked").read_text().splitlines()) >= 4
    told = db.sql("SELECT to_state FROM penstock.job_history WHERE job = 'v' ORDER BY at").rows()
    assert [state for (state,) in told].count("restarting") == 3
    started = db.sql("SELECT at, to_state FROM penstock.job_history WHERE job = 'v' ORDER BY at").rows()
    waits = [(after[0] - before[0]).total_seconds() for before, after in pairwise(started) if before[1] == "restarting"]
    assert all(wait >= 0.99 for wait in waits), waits
    down.unlink()
    db.execute("RESUME JOB v")
    db.settle()
    assert (job(db, "v").state, read(db, "v")) == ("running", [(3, 6)])


def test_results_come_in_the_order_of_batches(db: penstock.Database) -> None:
    """W5: what tasks compute for many partitions reaches the reader as one stream, batch after batch."""
    db.execute("CREATE STREAM s (p INT, v BIGINT) WITH (partitions = 4, max_rows_per_batch = 300)")
    for partition in range(4):
        db.append("s", [{"p": partition, "v": n} for n in range(500)], partition=partition)

    async def collect() -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = []
        async for batch in db.stream("SELECT p, v FROM s"):
            found.append(batch)
            if sum(each.num_rows for each in found) >= 2_000:
                break
        return found

    batches = asyncio.run(collect())
    assert len(batches) >= 7
    rows = [(row["p"], row["v"]) for batch in batches for row in batch.to_pylist()]
    for partition in range(4):
        assert [v for p, v in rows if p == partition] == list(range(500))
