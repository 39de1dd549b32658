"""A checkpoint over topics and a file at once, with an operator of the program's own taking part."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import check_change_log, job, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM live (k STRING, v BIGINT) WITH (connector = 'topic', partitions = 2);
CREATE STREAM history (k STRING, v BIGINT) WITH (connector = 'file', path = '{path}', format = 'csv', tail = true);
CREATE MATERIALIZED VIEW counted AS
SELECT k, COUNT(*) AS n, SUM(v) AS total FROM (SELECT k, v FROM live UNION ALL SELECT k, v FROM history) GROUP BY k;
"""
OFFSETS = "SELECT connector_id, partition, offset FROM penstock.connector_offsets"
LAST = {("live", 0): 12_345, ("live", 1): 67_890, ("history", 0): 100_000}


def offsets(db: penstock.Database) -> dict[tuple[str, int], int]:
    return {(source, partition): offset for source, partition, offset in db.sql(OFFSETS).rows()}


def rows(key: str, count: int) -> pa.Table:
    return pa.table({"k": [key] * count, "v": list(range(count))})


def test_inject_align_cancel_recover(db: penstock.Database, tmp_path: Path) -> None:
    """SC16: two partitions of a topic and a file, at offsets 12345, 67890 and 100000: the barrier waits for everybody,
    one that is called off counts for nothing, and going back takes rows, offsets and state along."""
    file = tmp_path / "history.csv"
    file.write_text("".join(f"file,{n}\n" for n in range(100_001)))
    db.execute(SCRIPT.format(path=file))
    db.append("live", rows("zero", 12_346), partition=0)
    db.append("live", rows("one", 67_891), partition=1)
    db.settle(120)
    coordinator = db.checkpoints("counted")
    coordinator.register_participant("auditor")

    # injected: it is pending until our own operator has kept its state, too
    first = coordinator.trigger_checkpoint()
    status = {each.id: each for each in coordinator.list_checkpoints()}[first]
    assert (status.state, dict(status.operators)) == ("pending", {"auditor": False})
    with pytest.raises(TimeoutError, match="waits for auditor"):
        coordinator.wait_for_checkpoint(first, timeout_ms=50)
    assert coordinator.acknowledge_checkpoint("auditor", first, {"audited": 180_238})
    coordinator.wait_for_checkpoint(first, timeout_ms=60_000)
    assert coordinator.last_completed_checkpoint == first

    # aligned: the snapshot has each source at one offset, and the view holds exactly the rows before it
    assert offsets(db) == LAST
    snapshot = read(db, "counted")
    assert snapshot == [
        ("file", 100_001, sum(range(100_001))), ("one", 67_891, sum(range(67_891))), ("zero", 12_346, sum(range(12_346))),
    ]  # fmt: skip
    assert sum(n for _, n, _ in snapshot) == sum(offset + 1 for offset in LAST.values())

    # called off: the one before stays the last, and there is no going back to it
    cancelled = coordinator.trigger_checkpoint()
    coordinator.decline_checkpoint("auditor", cancelled, "called off")
    assert {each.id: each.state for each in coordinator.list_checkpoints()}[cancelled] == "failed"
    for refused in (coordinator.wait_for_checkpoint, coordinator.recover_from_checkpoint):
        with pytest.raises(PenstockError) as raised:
            refused(cancelled)
        assert raised.value.condition == "UNKNOWN_CHECKPOINT"
    coordinator.unregister_participant("auditor")

    # everything moves on
    db.append("live", rows("zero", 10), partition=0)
    db.append("live", rows("two", 20), partition=1)
    with file.open("a") as end:
        end.write("file,1\nfile,2\n")
    db.settle(120)
    final = read(db, "counted")
    assert [(k, n) for k, n, _ in final] == [("file", 100_003), ("one", 67_891), ("two", 20), ("zero", 12_356)]

    # and recovers
    db.execute("STOP JOB counted")
    kept = coordinator.recover_from_checkpoint(first)
    assert kept["live"] == {"0": 12_345, "1": 67_890}
    assert kept["history"] == {"0": 100_000}
    assert kept["auditor"] == {"audited": 180_238}
    assert (read(db, "counted"), offsets(db), job(db, "counted").batch_id) == (snapshot, LAST, first)
    db.execute("RESUME JOB counted")
    db.settle(120)
    assert read(db, "counted") == final
    assert offsets(db) == {("live", 0): 12_355, ("live", 1): 67_910, ("history", 0): 100_002}
    check_change_log(db, "counted", ("k",))
