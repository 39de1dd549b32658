"""What is looked for in the store of a dead program is found: a ledger, a tracker, a view or a log that does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from penstock.spark.offset_log import read_offsets
from penstock.stores.views.model import BatchCommit
from penstock.stores.views.store import ViewStore
from tests.chaos.agreement import check_agreement
from tests.unit.stores.views.making import batch_table, update_view

JOB = "by_item"
BATCHES = 4


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The state directory of a job that has run a few batches, with one more that Spark has planned."""
    checkpoint = tmp_path / "jobs" / JOB / "checkpoint"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    with ViewStore.open(tmp_path) as store:
        store.create_view(update_view(JOB))
        for number in range(BATCHES + 1):
            head = json.dumps({"batchWatermarkMs": number, "batchTimestampMs": number, "conf": {}})
            (checkpoint / "offsets" / str(number)).write_text(f'v1\n{head}\n{{"end": {number}}}')
            if number == BATCHES:
                break
            (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
            rows = batch_table("update", [("a", 1.0, number, 1, True), ("b", 2.0, number, 2, number != 2)])
            told = read_offsets(checkpoint, number).hash
            tracker = json.dumps({"watermark_us": number})
            store.commit(BatchCommit(JOB, number, told, number, tracker, JOB, rows))
    return tmp_path


def check(home: Path) -> None:
    with ViewStore.open(home) as store:
        check_agreement(home, store, [JOB, "nobody"])


def test_what_agrees(home: Path) -> None:
    """Also where the tracker has moved on without a batch, and where Spark has not heard of the last one yet."""
    check(home)
    with ViewStore.open(home) as store:
        store.save_tracker(JOB, json.dumps({"watermark_us": 9}), 9)
    check(home)
    (home / "jobs" / JOB / "checkpoint" / "commits" / str(BATCHES - 1)).unlink()
    (home / "jobs" / JOB / "checkpoint" / "offsets" / str(BATCHES)).unlink()
    check(home)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (f"DELETE FROM store.ledger WHERE batch = {BATCHES - 1}", "Spark has planned batch 4, and the ledger has 2"),
        ("UPDATE store.ledger SET hash = 'other'", "other offsets than Spark's"),
        ("UPDATE store.ledger SET wm = wm + 1", "the tracker of by_item says 3"),
        ("DELETE FROM {log} WHERE seq = 2", "a gap in the change log"),
        ("UPDATE {log} SET batch = 7 WHERE seq = (SELECT max(seq) FROM {log})", "its change log has batch 7"),
        ("UPDATE {log} SET batch = 3 WHERE seq = 1", "in no order"),
        ("UPDATE {rows} SET c1 = 99 WHERE k0 = 'a'", "not in its log"),
        ("DELETE FROM {rows} WHERE k0 = 'b'", "in its log alone"),
    ],
)
def test_what_does_not_agree(home: Path, damage: str, fault: str) -> None:
    with duckdb.connect(home / "views.duckdb") as database:
        tables = database.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'store'").fetchall()
        names = {name for (name,) in tables if name[-1].isdigit()}
        (log,) = {name for name in names if not name.startswith("v")}
        (rows,) = names - {log}
        database.execute(damage.format(log=f"store.{log}", rows=f"store.{rows}"))
    with pytest.raises(AssertionError, match=fault):
        check(home)


def test_batches_that_only_spark_has_done(home: Path) -> None:
    (home / "jobs" / JOB / "checkpoint" / "commits" / str(BATCHES)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    with pytest.raises(AssertionError, match="Spark is done with batch 4"):
        check(home)
