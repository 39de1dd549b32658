"""What is kept under the state path, who may work with it, and the offsets in it (contracts H and J)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import at, ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

STREAM = "CREATE STREAM trades (symbol STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (partitions = 2)"
VIEWS = """
CREATE MATERIALIZED VIEW counted AS SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;
CREATE MATERIALIZED VIEW windows WITH (state = 'spark') AS
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
"""


def test_one_owner(opened: Callable[..., penstock.Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H10: a relative path is resolved once; a second database on it is refused and changes nothing."""
    monkeypatch.chdir(tmp_path)
    with penstock.connect("relative") as db:
        assert db.path == tmp_path / "relative"
        db.execute(STREAM)
        monkeypatch.chdir("/")
        before = sorted(path for path in db.path.rglob("*"))
        with pytest.raises(PenstockError) as raised:
            opened("relative")
        assert raised.value.condition == "ENGINE_ALREADY_RUNNING"
        assert sorted(path for path in db.path.rglob("*")) == before
        db.append("trades", [{"symbol": "A", "ts": ms(1)}])
        assert not Path("/relative").exists()
    with pytest.raises(PenstockError) as raised:
        db.sql("SELECT 1")
    assert raised.value.condition == "DATABASE_CLOSED"
    opened("relative").execute("DROP STREAM trades")


def test_offsets_and_state_agree(db: penstock.Database) -> None:
    """J1, J2, J6, J7, K9, K21, H15, DEC11: the table of offsets has one row a partition, of the batch that the view shows."""
    import pyarrow as pa

    db.execute(STREAM + ";" + VIEWS)
    assert db.sql("SELECT * FROM penstock.connector_offsets").columns[:4] == [
        "connector_id",
        "partition",
        "offset",
        "timestamp",
    ]
    db.append("trades", pa.table({"symbol": ["A"] * 12_346, "ts": [ms(n / 1000) for n in range(12_346)]}), partition=0)
    db.append("trades", [{"symbol": "B", "ts": ms(3)}], partition=1)
    db.settle()
    rows = db.sql("""
        SELECT connector_id, partition, offset, job, end_offset, lag, timestamp FROM penstock.connector_offsets ORDER BY job, partition
    """).rows()
    assert [row[:6] for row in rows] == [
        ("trades", 0, 12_345, "counted", 12_345, 0), ("trades", 1, 0, "counted", 0, 0),
        ("trades", 0, 12_345, "windows", 12_345, 0), ("trades", 1, 0, "windows", 0, 0),
    ]  # fmt: skip
    assert all(row[6] is not None and row[6] > at(0) for row in rows)
    # Everything of one batch was committed together: rows counted are offsets read.
    answer = db.sql("SELECT SUM(n) FROM counted")
    assert answer.rows() == [(12_347,)]
    kept = db.sql("SELECT batch_id FROM penstock.jobs WHERE name = 'counted'").rows()
    assert kept == [(answer.batch_id,)]
    assert db.sql("SELECT MAX(batch_id), MIN(state) FROM penstock.checkpoints WHERE job = 'counted'").rows() == [
        (answer.batch_id, "completed")
    ]
    table = db.sql("SELECT max_event_time FROM penstock.watermarks WHERE job = 'windows' ORDER BY partition").arrow()
    assert table.schema.field(0).type == pa.timestamp("us", tz="UTC")
    assert table.column(0).to_pylist() == [at(12.345), at(3)]
    db.execute("STOP JOB counted")
    db.append("trades", [{"symbol": "B", "ts": ms(3)}] * 3, partition=1)
    behind = db.sql(
        "SELECT partition, offset, end_offset, lag FROM penstock.connector_offsets WHERE job = 'counted' ORDER BY 1"
    )
    assert behind.rows() == [(0, 12_345, 12_345, 0), (1, 0, 3, 3)]


def test_a_copy_goes_on_elsewhere(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """H16, J3, J4, K19, W8: everything is under the state path; a copy of it in another place goes on exactly where it
    was, also when it is opened with another parallelism: that counts for jobs that begin."""
    db = opened()
    db.execute(STREAM + ";" + VIEWS)
    db.append("trades", [{"symbol": "A", "ts": ms(second)} for second in (1, 2, 11)], partition=0)
    db.append("trades", [{"symbol": "B", "ts": ms(12)}], partition=1)
    db.settle()
    assert read(db, "windows") == [(at(0), 2)]
    db.close()
    shutil.copytree(tmp_path / "home", tmp_path / "elsewhere" / "copy", ignore=shutil.ignore_patterns("logs"))
    shutil.rmtree(tmp_path / "home" / "topics")
    shutil.rmtree(tmp_path / "home" / "jobs")
    copy = opened("elsewhere/copy", parallelism=3)
    assert read(copy, "windows") == [(at(0), 2)]
    copy.append("trades", [{"symbol": "B", "ts": ms(13)}], partition=1)
    copy.settle()
    assert read(copy, "counted") == [("A", 3), ("B", 2)]
    copy.drain("windows")
    assert read(copy, "windows") == [(at(0), 2), (at(10), 3)]
    state = copy.path / "jobs" / "windows" / "checkpoint" / "state" / "0"
    assert sorted(path.name for path in state.iterdir() if path.name.isdigit()) == ["0", "1"]


def test_system_tables_have_their_columns(db: penstock.Database) -> None:
    """H4, H6, J1, W1: the tables begin with the columns that are promised, in their order."""
    promised = {
        "jobs": "name, state, sql, batch_id, watermark, restarts, error, started_at",
        "job_history": "job, at, from_state, to_state, reason",
        "watermarks": "job, source, partition, max_event_time, current_watermark, idle, pending_windows",
        "connector_offsets": "connector_id, partition, offset, timestamp, job, end_offset, lag",
        "checkpoints": "job, batch_id, state, started_at, completed_at, size_bytes",
        "late_rows": "job, stream, partition, offset, event_time, watermark, lateness, row, batch_id",
        "dead_letters": "job, stream, partition, offset, raw, reason, error, recorded_at",
        "metrics": "job, name, value, at",
        "columns": "relation, position, name, type, nullable, event_time",
        "options": "relation, name, value, source",
    }
    db.execute(STREAM)
    for table, columns in promised.items():
        wanted = columns.split(", ")
        assert db.sql(f"SELECT * FROM penstock.{table}").columns[: len(wanted)] == wanted
    assert db.sql("SELECT name, event_time FROM penstock.columns WHERE relation = 'trades' ORDER BY position").rows() == [
        ("symbol", False), ("ts", True),
    ]  # fmt: skip
