"""Jobs that write to topics and sinks, and sources that come to an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import at, check_change_log, in_order, job, ms, read, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_insert_into_topic(opened: Callable[..., penstock.Database]) -> None:
    """A7: a job from topic to topic, read by a view behind it; restarts double nothing; VALUES go the same way."""
    db = opened()
    db.execute("""
        CREATE STREAM s (k STRING, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE STREAM doubled (k STRING, twice INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'topic');
        INSERT INTO doubled SELECT k, v * 2, ts FROM s WHERE v > 0;
        INSERT INTO doubled (twice, k) WITH (job_name = 'negative') SELECT v, 'negative' FROM s WHERE v < 0;
        CREATE MATERIALIZED VIEW totals AS SELECT k, COUNT(*) AS n, SUM(twice) AS total FROM doubled GROUP BY k;
        CREATE SINK nowhere WITH (connector = 'blackhole') AS SELECT k FROM s;
        INSERT INTO s VALUES ('a', 1, TIMESTAMP '1970-01-01 00:00:01'), ('b', -2, NULL);
    """)
    assert {found.name for found in db.jobs()} == {"insert_doubled", "negative", "totals", "nowhere"}
    with pytest.raises(PenstockError) as raised:
        db.execute("INSERT INTO doubled SELECT k, v, ts FROM s")
    assert raised.value.condition == "OBJECT_EXISTS"
    db.execute("INSERT INTO doubled SELECT k, v * 2, ts FROM s WHERE v > 0")  # the same again: there already
    db.settle()
    db.settle()  # the first has moved the rows into the topic that the view reads
    assert read(db, "totals") == [("a", 1, 2), ("negative", 1, -2)]
    db.close()
    db = opened()
    db.append("s", [{"k": "a", "v": 5, "ts": ms(2)}])
    db.settle()
    db.settle()
    assert read(db, "totals") == [("a", 2, 12), ("negative", 1, -2)]
    assert in_order(db.select_once("SELECT k, twice FROM doubled").rows()) == [("a", 10), ("a", 2), ("negative", -2)]
    assert job(db, "nowhere").input_rows == 3


def test_answers_over_a_table_are_written_as_they_change(db: penstock.Database) -> None:
    """A table is read batch by batch: a sink of changes takes each answer, one of added rows none."""
    db.execute("""
        CREATE TABLE made (id BIGINT, v INT) WITH (connector = 'datagen', number_of_rows = 30, seed = 7,
            max_rows_per_batch = 10, 'fields.v.min' = '1', 'fields.v.max' = '9');
        CREATE STREAM kinds (third BIGINT, n BIGINT, PRIMARY KEY (third) NOT ENFORCED)
            WITH (connector = 'topic', format = 'debezium-json');
        CREATE STREAM added (third BIGINT, n BIGINT);
        INSERT INTO kinds SELECT id % 3 AS third, COUNT(DISTINCT v) AS n FROM made GROUP BY id % 3;
    """)
    until(lambda: {found.state for found in db.jobs()} == {"stopped"})
    expected = db.sql("SELECT id % 3, COUNT(DISTINCT v) FROM made GROUP BY id % 3").rows()
    assert len(expected) == 3
    assert in_order(db.select_once("SELECT third, n FROM kinds").rows()) == in_order(expected)
    for aggregate in ("COUNT(DISTINCT v)", "COUNT(v)"):
        with pytest.raises(PenstockError) as told:
            db.execute(f"INSERT INTO added SELECT id % 3 AS third, {aggregate} AS n FROM made GROUP BY id % 3")
        assert told.value.condition == "SINK_CANNOT_UPDATE"


def test_bounded_sources_end_by_themselves(db: penstock.Database) -> None:
    """V10, D24: a generator with an end closes its windows and stops its job; the same seed makes the same rows."""
    db.execute("""
        CREATE TABLE ticks WITH (connector = 'impulse', event_rate = 100000, message_count = 100, interval = INTERVAL '1' SECOND,
            start_timestamp = '1970-01-02 00:00:00');
        CREATE MATERIALIZED VIEW minutes AS
        SELECT TUMBLE_START(timestamp, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, SUM(counter) AS total
        FROM ticks GROUP BY TUMBLE(timestamp, INTERVAL '1' MINUTE);
        CREATE TABLE made (id BIGINT, v INT) WITH (connector = 'datagen', number_of_rows = 500, seed = 7, partitions = 2,
            'fields.v.min' = '1', 'fields.v.max' = '9');
        CREATE MATERIALIZED VIEW ninths AS SELECT v, COUNT(*) AS n FROM made GROUP BY v;
    """)
    until(lambda: {found.state for found in db.jobs()} == {"stopped"})
    day = 86_400
    assert read(db, "minutes") == [(at(day), 60, sum(range(60))), (at(day + 60), 40, sum(range(60, 100)))]
    counted: dict[int, int] = dict(read(db, "ninths"))
    assert set(counted) <= set(range(1, 10))
    assert sum(counted.values()) == 500
    check_change_log(db, "minutes")
    assert in_order(db.sql("SELECT v, COUNT(*) FROM made GROUP BY v").rows()) == in_order(counted.items())
    db.settle()
