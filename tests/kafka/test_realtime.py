"""Spark's real-time mode from topic to topic: rows at once, offsets and dead letters when a batch is over."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable

import pytest

import penstock
from penstock.errors import OptionError
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def sent(numbers: range) -> list[bytes | str | None]:
    return [json.dumps({"n": n, "names": ["a", "b"]}) for n in numbers]


def test_rows_at_once_and_what_is_kept(cluster: Cluster, opened: Callable[..., penstock.Database]) -> None:
    """A row is there long before its batch ends; bad records are dead letters; a stop repeats, and loses nothing."""
    source, out = cluster.topic(), cluster.topic()
    cluster.send(source, [*sent(range(10)), "{broken"])
    # A batch that lasts ten minutes: what comes within it has not waited for its end.
    db = opened(checkpoint_interval="600 s")
    db.execute(f"""
        CREATE STREAM numbers (n INT, names ARRAY<STRING>, at BIGINT METADATA FROM 'offset')
          WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK copied (n INT, name STRING, at BIGINT)
          WITH (connector = 'kafka', topic = '{out}', 'key.fields' = 'name');
    """)
    insert = (
        "INSERT INTO copied WITH (mode = 'realtime') "
        "SELECT n * 2, name, at FROM numbers CROSS JOIN UNNEST(names) AS t (name) WHERE n <> 3"
    )
    plan = db.execute(f"EXPLAIN {insert}")
    assert plan is not None
    assert [row[0] for row in plan.rows() if row[0].startswith("real time")] == [
        "real time   yes: each row is written at once, at least once; offsets are kept every 600 seconds"
    ]
    db.execute(insert)
    until(lambda: len(cluster.records(out)) == 18)
    cluster.send(source, sent(range(10, 20)))
    until(lambda: len(cluster.records(out)) == 38)
    job = "SELECT state, batch_id FROM penstock.jobs WHERE name = 'insert_copied'"
    assert db.sql(job).rows() == [("running", None)]  # no batch is over yet
    written = Counter((record.key(), json.loads(record.value())["n"]) for record in cluster.records(out))
    assert written == Counter((key, n * 2) for n in range(20) if n != 3 for key in (b"a", b"b"))

    # Stopped within a batch: it is read again from where the last one ended, and nothing is missing.
    db.close()
    cluster.send(source, sent(range(20, 21)))
    db = opened(checkpoint_interval="5 s")
    db.settle(120)
    again = Counter((record.key(), json.loads(record.value())["n"]) for record in cluster.records(out))
    assert again.keys() == written.keys() | {(b"a", 40), (b"b", 40)}
    assert max(again.values()) == 2
    # The job goes with its sink.
    db.execute("DROP SINK copied")
    assert db.sql(job).rows() == []
    db.execute(f"""
        CREATE SINK copied (n INT, name STRING, at BIGINT) WITH (connector = 'kafka', topic = '{out}-2', partitions = 2);
        {insert};
    """)
    db.settle(120)  # its batches last five seconds: this one is over
    assert {json.loads(value)["n"] for value in cluster.values(f"{out}-2")} == {n * 2 for n in range(21) if n != 3}
    offsets = "SELECT partition, offset, lag FROM penstock.connector_offsets WHERE job = 'insert_copied'"
    assert db.sql(offsets).rows() == [(0, 21, 0)]
    dead = "SELECT stream, partition, offset, CAST(raw AS STRING), reason FROM penstock.dead_letters"
    assert db.sql(dead).rows() == [("numbers", 0, 10, "{broken", "malformed")]
    counted = "SELECT value FROM penstock.metrics WHERE job = 'insert_copied' AND name = 'input_rows'"
    assert db.sql(counted).rows() == [(22.0,)]
    # The next start goes on there: nothing before is written again.
    before = len(cluster.records(f"{out}-2"))
    db.close()
    cluster.send(source, sent(range(21, 26)))
    db = opened(checkpoint_interval="5 s")
    db.settle(120)
    later = cluster.records(f"{out}-2")
    assert len(later) == before + 10
    assert {json.loads(record.value())["n"] for record in later} >= {n * 2 for n in range(21, 26)}
    db.execute("PAUSE JOB insert_copied")
    assert db.sql("SELECT state FROM penstock.jobs WHERE name = 'insert_copied'").rows() == [("paused",)]


def test_a_task_stays_on_each_partition_and_one_is_left_for_others(cluster: Cluster, db: penstock.Database) -> None:
    topic = cluster.topic(2)
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE SINK out (n BIGINT) WITH (connector = 'kafka', topic = '{topic}');
    """)
    with pytest.raises(OptionError, match="keeps a task on each of 2 partitions, and Spark runs 2"):
        db.execute("INSERT INTO out WITH (mode = 'realtime') SELECT n FROM s")
    assert db.sql("SELECT COUNT(*) FROM penstock.jobs").rows() == [(0,)]
