"""The checkpoints of a job: its batches, asked for, waited for and gone back to (contract K)."""

from __future__ import annotations

import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import Rows, at, check_change_log, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCRIPT = """
CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(v) AS total FROM s GROUP BY k;
CREATE MATERIALIZED VIEW windows WITH (state = 'spark') AS
SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
"""


def put(db: penstock.Database, *rows: tuple[str, int, float]) -> None:
    db.append("s", [{"k": k, "v": v, "ts": ms(second)} for k, v, second in rows])
    db.settle()


def test_trigger_wait_recover(db: penstock.Database) -> None:
    """K3 to K7, K10, K11, K16, J6, DEC13: a number for each boundary; going back takes view, offsets and state along."""
    db.execute(SCRIPT)
    put(db, ("a", 1, 1), ("b", 2, 2))
    coordinators = {name: db.checkpoints(name) for name in ("totals", "windows")}
    numbers = {}
    for name, coordinator in coordinators.items():
        first = coordinator.trigger_checkpoint()
        coordinator.wait_for_checkpoint(first, timeout_ms=30_000)
        second = coordinator.trigger_checkpoint()
        coordinator.wait_for_checkpoint(second, timeout_ms=30_000)
        assert second > first, "numbers grow, also without rows"
        assert coordinator.last_completed_checkpoint == second
        stats = coordinator.get_stats()
        assert (stats.total, stats.failed) == (stats.completed, 0), "none is left dangling"
        assert job(db, name).batch_id == second
        numbers[name] = second
        for unknown in (second + 100, -1):
            with pytest.raises(PenstockError) as raised:
                coordinator.recover_from_checkpoint(unknown)
            assert raised.value.condition == "UNKNOWN_CHECKPOINT"
        with pytest.raises(PenstockError) as raised:
            coordinator.wait_for_checkpoint(second + 100, timeout_ms=100)
        assert raised.value.condition == "UNKNOWN_CHECKPOINT"

    put(db, ("a", 10, 15), ("c", 7, 3))
    put(db, ("b", 20, 5), ("a", 100, 30))  # the row of second 5 is late
    final: dict[str, Rows] = {"totals": [("a", 111), ("b", 22), ("c", 7)], "windows": [(at(0), 3), (at(10), 1)]}
    late = "SELECT job, offset, watermark FROM penstock.late_rows"
    told = db.sql(late).rows()
    assert told == [("windows", 4, at(15))]
    for name, rows in final.items():
        assert read(db, name) == rows
    keys = {"totals": ("k",), "windows": None}
    for name in final:
        check_change_log(db, name, keys[name])

    # Gone back to while stopped, everything shows what was at that batch.
    for name, coordinator in coordinators.items():
        db.execute(f"STOP JOB {name}")
        kept = coordinator.recover_from_checkpoint(numbers[name])
        assert kept["s"] == {"0": 1}, "the last offset that the checkpoint holds"
        assert job(db, name).batch_id == numbers[name]
    assert read(db, "totals") == [("a", 1), ("b", 2)]
    assert read(db, "windows") == []
    assert db.sql(late).rows() == []
    assert db.sql("SELECT job, offset FROM penstock.connector_offsets ORDER BY 1").rows() == [
        ("totals", 1),
        ("windows", 1),
    ]

    # What came after it is read again, and comes to the same.
    for name in final:
        db.execute(f"RESUME JOB {name}")
    db.settle()
    for name in final:
        check_change_log(db, name, keys[name])
    assert read(db, "totals") == final["totals"]
    # Read in one batch, the row of second 5 is in time now: nothing has closed its window.
    db.drain("windows")
    assert read(db, "windows") == [(at(0), 4), (at(10), 1), (at(30), 1)]


def test_recover_while_running(db: penstock.Database) -> None:
    """K7, K8: a running job goes back and goes on by itself, also for checkpoints that nobody asked for."""
    db.execute(SCRIPT)
    put(db, ("a", 1, 1))
    batch = job(db, "totals").batch_id
    assert batch is not None
    put(db, ("a", 2, 2))
    put(db, ("b", 4, 3))
    coordinator = db.checkpoints("totals")
    assert batch in {each.id for each in coordinator.list_checkpoints()}
    coordinator.recover_from_checkpoint(batch)
    assert job(db, "totals").state == "running"
    db.settle()
    assert read(db, "totals") == [("a", 3), ("b", 4)]
    check_change_log(db, "totals", ("k",))
    put(db, ("b", 1, 4))
    assert read(db, "totals") == [("a", 3), ("b", 5)]


def test_interval_and_sinks(db: penstock.Database) -> None:
    """K1, K13: checkpoints come by themselves at an interval until shut down; a job into a sink cannot go back."""
    db.execute(SCRIPT)
    db.execute("CREATE STREAM copy (k STRING) WITH (connector = 'topic'); INSERT INTO copy SELECT k FROM s")
    put(db, ("a", 1, 1))
    before = job(db, "totals").batch_id
    assert before is not None
    with db.checkpoints("totals", interval_seconds=0.2) as coordinator:
        until(lambda: (coordinator.last_completed_checkpoint or 0) >= before + 3)
    asked = job(db, "totals").batch_id
    put(db, ("a", 1, 2))
    after = job(db, "totals").batch_id
    assert asked is not None
    assert after is not None
    assert after <= asked + 2, "nothing asks for more once it is shut down"
    into_sink = db.checkpoints("insert_copy")
    number = into_sink.trigger_checkpoint()
    into_sink.wait_for_checkpoint(number, timeout_ms=30_000)
    with pytest.raises(PenstockError) as raised:
        into_sink.recover_from_checkpoint(number)
    assert raised.value.condition == "JOB_STATE"
    assert job(db, "insert_copy").state == "running"
