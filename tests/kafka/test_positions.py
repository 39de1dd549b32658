"""Where reading begins and ends: transactions, the offsets of a consumer group, moments and offsets to end at."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

import penstock
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def wait_until(holds: Callable[[], bool], otherwise: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.05)


def numbers(found: Sequence[int] | range) -> list[bytes | str | None]:
    return [json.dumps({"n": n}) for n in found]


def commit(cluster: Cluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Set the offsets of a consumer group, as another program leaves them behind."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(cluster.client(**{"group.id": group}))
    try:
        told = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        consumer.commit(offsets=told, asynchronous=False)
    finally:
        consumer.close()


def test_records_of_transactions(cluster: Cluster, db: penstock.Database) -> None:
    """I8: what was taken back is never seen, and what is open only once it is committed; unless somebody asks for it."""
    from confluent_kafka import Producer

    topic = cluster.topic()
    producer = Producer(cluster.client(**{"transactional.id": f"writer-{topic}"}))
    producer.init_transactions(60)

    def begin(found: range) -> None:
        producer.begin_transaction()
        for value in numbers(found):
            producer.produce(topic, value)
        assert producer.flush(60) == 0

    begin(range(5))
    producer.abort_transaction(60)
    begin(range(10, 15))
    producer.commit_transaction(60)
    begin(range(20, 25))  # and this one stays open
    db.execute(f"""
        CREATE STREAM by_default (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE STREAM everything (n INT)
          WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', isolation_level = 'read_uncommitted');
        CREATE TABLE so_far (n INT)
          WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', 'end' = 'latest');
        CREATE MATERIALIZED VIEW committed AS SELECT n FROM by_default;
        CREATE MATERIALIZED VIEW uncommitted AS SELECT n FROM everything;
    """)
    db.settle(120)
    aborted, first, last = [*range(5)], [*range(10, 15)], [*range(20, 25)]

    def seen(name: str) -> list[int]:
        return [n for (n,) in db.sql(f"SELECT n FROM {name} ORDER BY n").rows()]

    assert seen("committed") == first
    assert seen("uncommitted") == aborted + first + last
    assert seen("so_far") == first
    lag = "SELECT job, lag FROM penstock.connector_offsets ORDER BY job"
    assert db.sql(lag).rows() == [("committed", 0), ("uncommitted", 0)]
    producer.commit_transaction(60)
    cluster.wait_until_nothing_is_open(topic)  # readers of committed records see the end a moment after the answer
    db.settle(120)
    assert seen("committed") == first + last
    assert seen("uncommitted") == aborted + first + last


def test_a_group_with_other_offsets_in_each_partition(cluster: Cluster, db: penstock.Database) -> None:
    """I10: each partition is read from where the group is there; where it has no offset, from the end or the start."""
    topic = cluster.topic(3)
    for partition in range(3):
        cluster.send(topic, numbers(range(10)), partition=partition)
    group = f"known-{topic}"
    commit(cluster, group, topic, {0: 2, 1: 7})
    from_group = f"connector = 'kafka', topic = '{topic}', start = 'group', group_id = '{group}'"
    db.execute(f"""
        CREATE STREAM s (n INT, p INT METADATA FROM 'partition') WITH ({from_group});
        CREATE STREAM from_start (n INT, p INT METADATA FROM 'partition')
          WITH ({from_group}, 'properties.auto.offset.reset' = 'earliest');
        CREATE MATERIALIZED VIEW v AS SELECT p, n FROM s;
        CREATE MATERIALIZED VIEW w AS SELECT p, n FROM from_start;
    """)
    db.settle(120)
    expected = [(0, n) for n in range(2, 10)] + [(1, n) for n in range(7, 10)]
    assert db.sql("SELECT p, n FROM v ORDER BY p, n").rows() == expected
    whole = [(2, n) for n in range(10)]
    assert db.sql("SELECT p, n FROM w ORDER BY p, n").rows() == expected + whole
    cluster.send(topic, numbers([99]), partition=2)
    db.settle(120)
    assert db.sql("SELECT p, n FROM v ORDER BY p, n").rows() == [*expected, (2, 99)]


def test_sources_that_end_at_a_moment_at_offsets_and_where_a_group_is(
    cluster: Cluster, db: penstock.Database, caplog: pytest.LogCaptureFixture
) -> None:
    """I10: nothing behind the end is read, however much is there, and the job is over then."""
    topic = cluster.topic(2)
    for partition in range(2):
        for n in range(10):
            cluster.send(topic, numbers([n]), partition=partition, timestamp_ms=1_000 * (1 + n + partition))
    group = f"ends-{topic}"
    commit(cluster, group, topic, {0: 4})
    ends = {
        "moment": "'end' = 'timestamp', end_timestamp = '1970-01-01 00:00:05.0005'",
        "before_all": "'end' = 'timestamp', end_timestamp = '1969-01-01 00:00:00'",
        "after_all": "'end' = 'timestamp', end_timestamp = '2100-01-01 00:00:00'",
        "places": "'end' = 'offsets', end_offsets = 'partition:0,offset:3;partition:1,offset:20'",
        "flink": "'scan.bounded.mode' = 'specific-offsets', 'scan.bounded.specific-offsets' = 'partition:0,offset:1;partition:1,offset:2'",
        "as_group": f"'end' = 'group', group_id = '{group}'",
        "behind": "'end' = 'offsets', end_offsets = 'partition:0,offset:2;partition:1,offset:9', "
        "start = 'offsets', start_offsets = 'partition:0,offset:6;partition:1,offset:8'",
    }
    for name, options in ends.items():
        start = "" if "start" in options else "start = 'earliest', "
        db.execute(f"""
            CREATE TABLE t_{name} (n INT, p INT METADATA FROM 'partition')
              WITH (connector = 'kafka', topic = '{topic}', {start}{options});
            CREATE MATERIALIZED VIEW {name} AS SELECT p, n FROM t_{name};
        """)

    def upto(zero: range, one: range) -> list[tuple[int, int]]:
        return [*((0, n) for n in zero), *((1, n) for n in one)]

    expected = {
        "moment": upto(range(5), range(4)),
        "before_all": [],
        "after_all": upto(range(10), range(10)),
        "places": upto(range(3), range(10)),
        "flink": upto(range(1), range(2)),
        # What the group has not read of a partition is no place to end at: that one ends where the topic does.
        "as_group": upto(range(4), range(10)),
        "behind": upto(range(0), range(8, 9)),
    }
    jobs = "SELECT name, state FROM penstock.jobs ORDER BY name"
    over = [(name, "stopped") for name in sorted(ends)]
    wait_until(
        lambda: db.sql(jobs).rows() == over, lambda: db.sql("SELECT name, state, error FROM penstock.jobs").rows()
    )
    # What comes later is not read by those that begin before it and end before it.
    for partition in range(2):
        cluster.send(topic, numbers([50]), partition=partition, timestamp_ms=4_500)
    for name, rows in expected.items():
        assert db.sql(f"SELECT p, n FROM {name} ORDER BY p, n").rows() == rows, name
    for name in ("moment", "flink", "behind"):
        assert db.sql(f"SELECT p, n FROM t_{name} ORDER BY p, n").rows() == expected[name], name
    cut = [record.getMessage() for record in caplog.records if "option end_offsets" in record.getMessage()]
    assert cut == [
        (
            f"job places: option end_offsets of table t_places ends partition 1 of topic {topic} at 20, and it has offsets "
            "up to 10 now: it ends there, and what comes later is not read"
        )
    ]
