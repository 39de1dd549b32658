"""Event time and watermarks of running jobs (contract E), with the worked numbers of the source texts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Event, Thread

import pytest

import penstock
from tests.engine.answers import at, check_change_log, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TRADES = """
CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
CREATE MATERIALIZED VIEW windows AS
SELECT symbol, TUMBLE_START(ts, INTERVAL '2' SECOND) AS s, SUM(price) AS total, COUNT(*) AS n
FROM trades GROUP BY symbol, TUMBLE(ts, INTERVAL '2' SECOND);
"""
ROWS = [("AAPL", 150.0, 1), ("MSFT", 300.0, 2), ("AAPL", 151.0, 3), ("GOOGL", 2800.0, 4)]


def test_operator_replay(db: penstock.Database) -> None:
    """SC13, G9, E2, E3, E8, E11, E12, E21 to E23, DEC1: four trades, watermark 3000, three windows emitted at 4000."""
    db.execute(TRADES)
    db.append("trades", [{"symbol": symbol, "price": price, "ts": ms(second)} for symbol, price, second in ROWS])
    db.settle()
    assert job(db, "windows").watermark == at(3)
    first = [("AAPL", at(0), 150.0, 1)]
    assert read(db, "windows") == first
    for second in (3.5, 3.999):
        db.advance_watermark("trades", ms(second))
        assert job(db, "windows").watermark == at(second)
        assert read(db, "windows") == first
    closed = [("AAPL", at(0), 150.0, 1), ("AAPL", at(2), 151.0, 1), ("MSFT", at(2), 300.0, 1)]
    db.advance_watermark("trades", ms(4))
    assert read(db, "windows") == closed
    db.execute("ADVANCE WATERMARK FOR trades TO TIMESTAMP '1970-01-01 00:00:05'")
    assert read(db, "windows") == closed
    db.advance_watermark("trades", ms(1))  # never back
    assert job(db, "windows").watermark == at(5)
    # In time for the open window of GOOGL, and nothing older comes out for it.
    db.append("trades", [{"symbol": "GOOGL", "price": 1.0, "ts": ms(5.5)}])
    db.settle()
    assert read(db, "windows") == closed
    assert db.sql("SELECT watermark FROM penstock.jobs").rows() == [(at(5),)]
    db.drain("windows")
    assert read(db, "windows") == sorted([*closed, ("GOOGL", at(4), 2801.0, 2)])
    assert len(check_change_log(db, "windows")) == 4, "each window is emitted once"
    assert read(db, "penstock.late_rows") == []


STREAM_OF_PAIRS = """
CREATE STREAM pairs (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH (partitions = 2, idle_timeout = '{idle}');
"""
TENS = """
CREATE MATERIALIZED VIEW tens AS
SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM pairs GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND);
"""
PAIRS = STREAM_OF_PAIRS + TENS


def put(db: penstock.Database, partition: int, *seconds: float) -> None:
    db.append("pairs", [{"k": f"p{partition}", "ts": ms(second)} for second in seconds], partition=partition)


def test_slowest_partition_decides(db: penstock.Database) -> None:
    """E5, E6, E14, H4: partition 0 at 1000 s and partition 1 at 100 s give 95 s, and no row of partition 1 is dropped."""
    db.execute(PAIRS.format(idle="1 hour"))
    put(db, 0, 1000, 999, 1000)
    db.settle()
    assert job(db, "tens").watermark is None
    explained = db.execute("EXPLAIN WATERMARK FOR tens")
    assert explained is not None
    assert "partition 1" in str(explained.rows()[0][-1])
    assert "no row yet" in str(explained.rows()[0][-1])

    put(db, 1, 100)
    db.settle()
    assert job(db, "tens").watermark == at(95)
    assert db.sql("SELECT partition, max_event_time, current_watermark, idle FROM penstock.watermarks ORDER BY 1").rows() == [
        (0, at(1000), at(995), False), (1, at(100), at(95), False),
    ]  # fmt: skip
    explained = db.execute("EXPLAIN WATERMARK FOR tens")
    assert explained is not None
    assert [(row[1], row[5]) for row in explained.rows()] == [(0, False), (1, True)]

    put(db, 1, 98, 101, 109.999, 110)  # in order for its own partition, 890 s behind the other
    db.settle()
    assert job(db, "tens").watermark == at(105)
    put(db, 1, 130)
    db.settle()
    assert read(db, "tens") == [("p1", at(90), 1), ("p1", at(100), 3), ("p1", at(110), 1)]
    assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]
    put(db, 1, 2000)
    db.settle()
    assert job(db, "tens").watermark == at(995)
    db.drain("tens")
    assert read(db, "tens") == [
        ("p0", at(990), 1), ("p0", at(1000), 2),
        ("p1", at(90), 1), ("p1", at(100), 3), ("p1", at(110), 1), ("p1", at(130), 1), ("p1", at(2000), 1),
    ]  # fmt: skip


def test_partitions_that_are_added_and_time_that_moves_while_paused(db: penstock.Database) -> None:
    """E5, E6, E21: a running job sees the event time of new partitions, a paused one is told when it goes on."""
    db.execute(PAIRS.format(idle="1 hour"))
    put(db, 0, 1, 12)
    put(db, 1, 3)
    db.settle()
    db.execute("ALTER STREAM pairs SET (partitions = 4)")
    put(db, 3, 2, 50)
    db.settle()
    assert job(db, "tens").watermark == at(-2), "partition 2 has had no row"
    for partition in range(4):
        put(db, partition, 60)
    db.settle()
    assert job(db, "tens").watermark == at(55)
    first = [("p0", at(0), 1), ("p0", at(10), 1), ("p1", at(0), 1), ("p3", at(0), 1)]
    assert read(db, "tens") == first
    assert "a new partition 2" in str(db.sql("SELECT * FROM penstock.job_history").rows())

    db.execute("PAUSE JOB tens")
    db.execute("ADVANCE WATERMARK FOR pairs TO TIMESTAMP '1970-01-01 00:01:10'")
    assert read(db, "tens") == first
    db.execute("RESUME JOB tens")
    db.settle()
    assert job(db, "tens").watermark == at(70)
    assert read(db, "tens") == sorted([*first, ("p3", at(50), 1), *((f"p{each}", at(60), 1) for each in range(4))])
    assert db.sql("SELECT COUNT(*) FROM penstock.late_rows").rows() == [(0,)]


def test_idle_partition_is_left_out(db: penstock.Database) -> None:
    """E7, E13: a silent partition no longer counts; when it comes back with old rows, they are late by rule."""
    db.execute(STREAM_OF_PAIRS.format(idle="1500 ms"))
    put(db, 0, 985, 1000)
    put(db, 1, 100)
    db.execute(TENS)  # the rows of both are there by now: one batch has them, and neither partition is silent before
    db.settle()
    assert job(db, "tens").watermark == at(95)

    def left_out() -> bool:
        put(db, 0, 1000)  # the other one goes on
        db.settle()
        return job(db, "tens").watermark == at(995)

    until(left_out)
    db.settle()  # the clock may have moved event time just now; the windows that this ends close in the next batch
    assert read(db, "tens") == [("p0", at(980), 1), ("p1", at(100), 1)]
    idle = dict(db.sql("SELECT partition, idle FROM penstock.watermarks").rows())
    assert idle[1] is True
    # All are idle now: the clock alone closes nothing more.
    until(lambda: all(row[0] for row in db.sql("SELECT idle FROM penstock.watermarks").rows()))
    assert job(db, "tens").watermark == at(995)
    put(db, 1, 101, 102)
    db.settle()
    assert job(db, "tens").watermark == at(995)
    assert read(db, "tens") == [("p0", at(980), 1), ("p1", at(100), 1)]
    assert db.sql("SELECT partition, event_time FROM penstock.late_rows ORDER BY 2").rows() == [
        (1, at(101)),
        (1, at(102)),
    ]


def test_watermark_outlives_the_program(opened: Callable[..., penstock.Database]) -> None:
    """E15, E21, H13, J4, K8: closed and opened again, the watermark is where it was, late is late, open windows go on."""
    db = opened()
    db.execute(TRADES)
    db.append("trades", [{"symbol": symbol, "price": price, "ts": ms(second)} for symbol, price, second in ROWS])
    db.settle()
    db.advance_watermark("trades", ms(5))
    before = read(db, "windows")
    batch = job(db, "windows").batch_id
    db.close()

    db = opened()
    assert read(db, "windows") == before, "readable before the job runs"
    # Appended before the job has begun: its first batch runs under the old watermark.
    db.append(
        "trades", [{"symbol": "LATE", "price": 1.0, "ts": ms(3.9)}, {"symbol": "GOOGL", "price": 1.0, "ts": ms(4.5)}]
    )
    db.settle()
    found = job(db, "windows")
    assert (found.state, found.watermark, found.restarts) == ("running", at(5), 0)
    assert found.batch_id is not None
    assert batch is not None
    assert found.batch_id > batch
    assert read(db, "windows") == before
    assert db.sql("SELECT event_time, watermark FROM penstock.late_rows").rows() == [(at(3.9), at(5))]
    db.drain("windows")
    assert read(db, "windows") == sorted([*before, ("GOOGL", at(4), 2801.0, 2)])
    assert len(check_change_log(db, "windows")) == 4

    db.close()
    db = opened()
    assert job(db, "windows").state == "stopped", "a drained job stays stopped"
    explained = db.execute("EXPLAIN WATERMARK FOR windows")
    assert explained is not None
    assert str(explained.rows()[0][-1]).endswith("job windows is stopped")
    assert len(read(db, "windows")) == 4


def test_null_times_and_defaults(db: penstock.Database) -> None:
    """E16, E19, A3, DEC14: NULL times never move the watermark and are counted; without a clause the delay is 5 seconds."""
    db.execute("""
        CREATE STREAM plain (v INT, ts TIMESTAMP);
        CREATE MATERIALIZED VIEW counted AS
        SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, COUNT(*) AS n FROM plain GROUP BY TUMBLE(ts, INTERVAL '10' SECOND);
        CREATE MATERIALIZED VIEW everything AS SELECT v, ts FROM plain;
    """)
    db.append("plain", [{"v": 1, "ts": ms(14.999)}, {"v": 2, "ts": ms(3)}])
    db.settle()
    assert job(db, "counted").watermark == at(9.999)
    assert read(db, "counted") == []
    db.append("plain", [{"v": 3, "ts": None}, {"v": 4, "ts": None}])
    db.settle()
    assert job(db, "counted").watermark == at(9.999)
    assert db.sql("SELECT job, reason, COUNT(*) FROM penstock.dead_letters GROUP BY job, reason").rows() == [
        ("counted", "null_time", 2)
    ]
    assert db.metrics()["counted"]["dead_letters"] == 2
    assert len(read(db, "everything")) == 4, "a job without windows takes them as they are"
    db.append("plain", [{"v": 5, "ts": ms(15)}])
    db.settle()
    assert job(db, "counted").watermark == at(10)
    assert read(db, "counted") == [(at(0), 1)]


def test_two_sources_two_delays(db: penstock.Database) -> None:
    """E24: each source has its own delay, and a job over both goes by the slower one."""
    db.execute("""
        CREATE STREAM quick (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
        CREATE STREAM slow (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10' SECOND);
        CREATE MATERIALIZED VIEW of_quick AS SELECT COUNT(*) AS n FROM quick GROUP BY TUMBLE(ts, INTERVAL '1' SECOND);
        CREATE MATERIALIZED VIEW of_both AS
        SELECT TUMBLE_START(ts, INTERVAL '5' SECOND) AS s, COUNT(*) AS n
        FROM (SELECT k, ts FROM quick UNION ALL SELECT k, ts FROM slow) AS u GROUP BY TUMBLE(ts, INTERVAL '5' SECOND);
    """)
    db.append("quick", [{"k": "q", "ts": ms(second)} for second in (80, 88, 100)])
    db.settle()
    assert job(db, "of_quick").watermark == at(99)
    assert job(db, "of_both").watermark is None
    db.append("slow", [{"k": "s", "ts": ms(second)} for second in (81, 100)])
    db.settle()
    assert job(db, "of_both").watermark == at(90)
    assert read(db, "of_both") == [(at(80), 2), (at(85), 1)]
    db.advance_watermark("slow", ms(98))
    assert job(db, "of_both").watermark == at(98)
    assert job(db, "of_quick").watermark == at(99)
    db.advance_watermark("slow", ms(500))
    assert job(db, "of_both").watermark == at(99), "the other source holds it back"


def test_settling_ends_while_rows_keep_coming(db: penstock.Database) -> None:
    """What was there when it was asked for is waited for, and not what comes meanwhile."""
    db.execute("""
        CREATE STREAM s (n INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE MATERIALIZED VIEW v AS
        SELECT TUMBLE_END(ts, INTERVAL '1' SECOND) AS e, COUNT(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1' SECOND);
    """)
    enough = Event()
    written = [0]

    def go_on() -> None:
        for second in count(1):
            if enough.wait(0.02):
                return
            db.append("s", [{"n": 1, "ts": at(second)}])
            written.append(second)

    writing = Thread(target=go_on)
    writing.start()
    try:
        for _ in range(3):
            last = written[-1]
            db.settle(timeout=100)
            assert writing.is_alive()
            assert len(read(db, "v")) >= last - 1, "what these rows end is closed"
            db.advance_watermark("s", at(last))
    finally:
        enough.set()
        writing.join()
    db.settle(timeout=100)
    assert read(db, "v") == [(at(second + 1), 1) for second in written[1:-1]]
