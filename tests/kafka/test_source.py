"""Topics of a real broker as sources: rows, metadata, event time by partition, offsets, what is bad or gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.connectors import kafka_anew
from penstock.errors import JobFailed, PenstockError
from penstock.runtime.kafka_broker import HOST, KafkaBroker, free_port
from tests.kafka.conftest import Cluster
from tests.kafka.held import held_batch

pytestmark = pytest.mark.kafka


def trade(symbol: str, price: float, at: str) -> str:
    return json.dumps({"symbol": symbol, "price": price, "ts": f"2026-01-01T10:00:{at}Z"})


def wait_until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def offsets(db: penstock.Database, job: str) -> list[tuple[Any, ...]]:
    return db.sql(
        f"SELECT connector_id, partition, offset, end_offset, lag FROM penstock.connector_offsets WHERE job = '{job}' "
        "ORDER BY partition"
    ).rows()


def test_windows_over_a_topic_with_metadata_bad_records_late_rows_and_a_restart(
    cluster: Cluster, opened: Callable[..., penstock.Database]
) -> None:
    """I9, I11, C1, C3, C5, E25, J1, M13, B12: the guide's trades, from a real broker."""
    topic = cluster.topic(2)
    cluster.send(
        topic, [trade("A", 1, "01"), trade("A", 2, "03"), "{broken"], partition=0, key="k", headers={"h": b"x"}
    )
    cluster.send(topic, [trade("B", 10, "02")], partition=1, timestamp_ms=1_750_000_000_000)
    db = opened()
    db.execute(f"""
        CREATE STREAM trades (
          symbol STRING, price DOUBLE, ts TIMESTAMP,
          place BIGINT METADATA FROM 'offset', part INT METADATA FROM 'partition', came_from STRING METADATA FROM 'topic',
          written TIMESTAMP METADATA FROM 'timestamp', kind STRING METADATA FROM 'timestamp-type',
          k STRING METADATA FROM 'key', h STRING HEADER('h'),
          WATERMARK FOR ts
        ) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', format = 'json');
        CREATE MATERIALIZED VIEW rows_seen AS
          SELECT part, place, symbol, came_from, kind, k, h, unix_millis(written) AS written FROM trades;
        CREATE MATERIALIZED VIEW per_window AS
          SELECT symbol, window_start, COUNT(*) AS n, SUM(price) AS total
          FROM TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY symbol, window_start;
    """)
    db.settle(120)
    seen = db.sql("SELECT part, place, symbol, came_from, kind, k, h FROM rows_seen ORDER BY part, place").rows()
    assert seen == [
        (0, 0, "A", topic, "CreateTime", "k", "x"),
        (0, 1, "A", topic, "CreateTime", "k", "x"),
        (1, 0, "B", topic, "CreateTime", None, None),
    ]
    assert db.sql("SELECT written FROM rows_seen WHERE symbol = 'B'").rows() == [(1_750_000_000_000,)]
    dead = "SELECT stream, partition, offset, CAST(raw AS STRING), reason FROM penstock.dead_letters WHERE job = 'rows_seen'"
    assert db.sql(dead).rows() == [("trades", 0, 2, "{broken", "malformed")]
    assert offsets(db, "per_window") == [("trades", 0, 2, 2, 0), ("trades", 1, 0, 0, 0)]

    # The slower partition holds the watermark back; when it has moved on, the window closes.
    cluster.send(topic, [trade("A", 4, "30")], partition=0)
    db.settle(120)
    assert db.sql("SELECT * FROM per_window").rows() == []
    cluster.send(topic, [trade("B", 20, "25")], partition=1)
    db.settle(120)
    closed = "SELECT symbol, n, total FROM per_window ORDER BY symbol"
    assert db.sql(closed).rows() == [("A", 2, 3.0), ("B", 1, 10.0)]
    # A row behind it is late, and told of with its place.
    cluster.send(topic, [trade("A", 100, "04")], partition=0)
    db.settle(120)
    late = db.sql("SELECT stream, partition, offset, row FROM penstock.late_rows WHERE job = 'per_window'").rows()
    assert late == [("trades", 0, 4, trade("A", 100, "04"))]
    db.close()

    # What comes while nobody reads is read at the next start, once; with nothing new, jobs run all the same.
    cluster.send(topic, [trade("B", 5, "26")], partition=1)
    db = opened()
    db.settle(120)
    assert db.sql("SELECT COUNT(*) FROM rows_seen").rows() == [(7,)]
    jobs = db.execute("SHOW JOBS")
    assert jobs is not None
    assert [(row[0], row[1], row[5]) for row in jobs.rows()] == [
        ("rows_seen", "running", 0),
        ("per_window", "running", 0),
    ]
    db.execute("RESTART JOB per_window")
    db.drain("per_window", 120)
    totals = "SELECT symbol, window_start, n FROM per_window ORDER BY window_start, symbol"
    assert [(row[0], row[2]) for row in db.sql(totals).rows()] == [("A", 2), ("B", 1), ("B", 2), ("A", 1)]


def test_start_positions_formats_and_limits(cluster: Cluster, db: penstock.Database) -> None:
    """I10: where a job begins, raw records, how many rows a batch may have."""
    topic = cluster.topic(4)
    for partition in range(4):
        cluster.send(
            topic, [f"{partition},{n}" for n in range(10)], partition=partition, timestamp_ms=1_000 + partition
        )
    cluster.send(topic, ["0,10"], partition=0, timestamp_ms=5_000, key=b"key")

    def created(name: str, options: str, columns: str = "(p INT, n INT)") -> None:
        db.execute(f"""
            CREATE STREAM s_{name} {columns} WITH (connector = 'kafka', topic = '{topic}', {options});
            CREATE MATERIALIZED VIEW {name} AS SELECT * FROM s_{name};
        """)

    created("whole", "format = 'csv', start = 'earliest', max_rows_per_batch = 8, max_parallelism = 2")
    created("newest", "format = 'csv'")
    created("since", "format = 'csv', start_timestamp = '1970-01-01 00:00:04'")
    created(
        "from_there",
        "format = 'csv', 'scan.startup.mode' = 'specific-offsets', "
        "'scan.startup.specific-offsets' = 'partition:0,offset:9;partition:1,offset:8;partition:2,offset:10;partition:3,offset:10'",
    )
    created("as_it_is", "format = 'raw', start = 'earliest'", "")
    db.settle(120)
    assert db.sql("SELECT p, COUNT(*), SUM(n) FROM whole GROUP BY p ORDER BY p").rows() == [
        (0, 11, 55), (1, 10, 45), (2, 10, 45), (3, 10, 45)
    ]  # fmt: skip
    batches = db.sql("SELECT MAX(value) FROM penstock.metrics WHERE job = 'whole' AND name = 'input_rows'").rows()
    assert batches[0][0] is not None
    rows = db.sql("SELECT batch_id FROM penstock.jobs WHERE name = 'whole'").rows()
    assert rows[0][0] >= 5  # 41 rows, at most 8 in a batch
    assert db.sql("SELECT * FROM newest").rows() == []
    assert db.sql("SELECT p, n FROM since").rows() == [(0, 10)]
    assert sorted(db.sql("SELECT p, n FROM from_there").rows()) == [(0, 9), (0, 10), (1, 8), (1, 9)]
    raw = db.sql("SELECT * FROM as_it_is WHERE offset = 10")
    assert list(raw.columns) == ["key", "value", "timestamp", "partition", "offset"]
    ((key, value, written, partition, offset),) = raw.rows()
    assert (key, value, partition, offset) == ("key", "0,10", 0, 10)
    assert written.timestamp() == 5
    cluster.send(topic, ["3,99"], partition=3)
    db.settle(120)
    assert db.sql("SELECT p, n FROM newest").rows() == [(3, 99)]
    assert offsets(db, "newest")[3] == ("s_newest", 3, 10, 10, 0)


def test_several_topics_new_partitions_and_a_source_that_ends(cluster: Cluster, db: penstock.Database) -> None:
    """I8: each partition of each topic is one of its own, and one that is added is read from its start."""
    prefix = f"many-{time.time_ns()}"
    one, two = cluster.create(f"{prefix}-one", 2), cluster.create(f"{prefix}-two")
    for topic, partition in ((one, 0), (one, 1), (two, 0)):
        cluster.send(topic, [json.dumps({"n": n}) for n in range(5)], partition=partition)
    db.execute(f"""
        CREATE STREAM many (n INT, t STRING METADATA FROM 'topic')
          WITH (connector = 'kafka', topic_pattern = '{prefix}-.*', start = 'earliest');
        CREATE STREAM single (n INT) WITH (connector = 'kafka', topic = '{two}', start = 'earliest');
        CREATE TABLE ended (n INT) WITH (connector = 'kafka', topic = '{one}', start = 'earliest', 'end' = 'latest');
        CREATE MATERIALIZED VIEW by_topic AS SELECT t, COUNT(*) AS n, SUM(n) AS s FROM many GROUP BY t;
        CREATE MATERIALIZED VIEW everything AS SELECT n FROM single;
        CREATE MATERIALIZED VIEW all_of_it AS SELECT COUNT(*) AS n FROM ended;
    """)
    db.settle(120)
    assert db.sql("SELECT * FROM by_topic ORDER BY t").rows() == [(one, 10, 20), (two, 5, 10)]
    assert [row[:4] for row in offsets(db, "by_topic")] == [("many", n, 4, 4) for n in range(3)]
    wait_until(lambda: db.sql("SELECT state FROM penstock.jobs WHERE name = 'all_of_it'").rows() == [("stopped",)])
    assert db.sql("SELECT n FROM all_of_it").rows() == [(10,)]
    assert db.sql("SELECT COUNT(*) FROM ended").rows() == [(10,)]

    cluster.grow(two, 2)
    cluster.send(two, [json.dumps({"n": 7})], partition=1)
    three = cluster.create(f"{prefix}-three")
    cluster.send(three, [json.dumps({"n": 9})])
    wait_until(lambda: db.sql("SELECT COUNT(*) FROM everything").rows() == [(6,)])
    wait_until(
        lambda: db.sql("SELECT * FROM by_topic ORDER BY t").rows() == [(one, 10, 20), (three, 1, 9), (two, 6, 17)]
    )
    db.settle(120)
    # The numbers that partitions had stay.
    found = offsets(db, "by_topic")
    assert [row[1] for row in found] == [0, 1, 2, 3, 4]
    assert [row[2] for row in found[:3]] == [4, 4, 4]


def test_records_of_several_topics_have_the_place_that_the_broker_gives_them(
    cluster: Cluster, db: penstock.Database
) -> None:
    """I8, T5: topic, partition and offset of rows, dead letters and offsets; a pattern stands for whole names."""
    prefix = f"place{time.time_ns()}"
    one, two, longer = (cluster.create(f"{prefix}{name}", 2) for name in ("a", "b", "ab"))
    for topic in (one, two, longer):
        cluster.send(topic, [json.dumps({"n": 1}), "{broken"], partition=1)
    metadata = "t STRING METADATA FROM 'topic', p INT METADATA FROM 'partition', o BIGINT METADATA FROM 'offset'"
    db.execute(f"""
        CREATE STREAM s (n INT, {metadata}) WITH (connector = 'kafka', topic_pattern = '{prefix}.', start = 'earliest');
        CREATE STREAM bytes WITH (connector = 'kafka', topic = '{one};{two}', start = 'earliest', format = 'raw');
        CREATE MATERIALIZED VIEW v AS SELECT t, p, o FROM s WHERE n = 1;
        CREATE MATERIALIZED VIEW raw_view AS SELECT partition, offset FROM bytes;
    """)
    db.settle(120)
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(one, 1, 0), (two, 1, 0)]
    assert sorted(db.sql("SELECT * FROM raw_view").rows()) == [(1, 0), (1, 0), (1, 1), (1, 1)]
    dead = "SELECT topic, topic_partition, offset FROM penstock.dead_letters WHERE job = 'v'"
    assert sorted(db.sql(dead).rows()) == [(one, 1, 1), (two, 1, 1)]
    read = "SELECT topic, topic_partition FROM penstock.connector_offsets WHERE job = 'v' AND offset >= 0"
    assert sorted(db.sql(read).rows()) == [(one, 1), (two, 1)]


def test_starts_that_cannot_be(cluster: Cluster, db: penstock.Database) -> None:
    """C2: offsets and partitions that are not there, patterns and options that say nothing."""
    topic = cluster.topic(2)
    cluster.send(topic, ["1"] * 3, partition=0)

    def refused(options: str) -> str:
        with pytest.raises(PenstockError) as raised:
            db.execute(f"""
                CREATE STREAM s (n STRING) WITH (connector = 'kafka', format = 'raw', {options});
                CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
            """)
        db.execute("DROP STREAM IF EXISTS s")
        return raised.value.message

    given = f"topic = '{topic}', start = 'offsets', start_offsets = "
    assert f"partition 0 of topic {topic} has offsets 0 to 3" in refused(f"{given}'partition:0,offset:800'")
    assert "names partition 7, which is not there" in refused(f"{given}'partition:7,offset:0'")
    assert "is no regular expression" in refused("topic_pattern = 'c_['")
    assert "commit_offsets needs the option group_id" in refused(f"topic = '{topic}', commit_offsets = 'true'")


def test_a_group_that_a_new_broker_does_not_know(tmp_path: Path, opened: Callable[..., penstock.Database]) -> None:
    """C2: nobody is in charge of groups yet; a job begins at the end, as for any group that has read nothing."""
    broker = KafkaBroker(tmp_path / "new broker")
    address = str(broker.start(0).address)
    try:
        cluster = Cluster(address)
        topic = cluster.topic(3)
        cluster.send(topic, ["old"])
        db = opened()
        db.execute(f"""
            CREATE STREAM s (n STRING) WITH (connector = 'kafka', topic = '{topic}', format = 'raw', start = 'group',
              group_id = 'unheard-of', bootstrap_servers = '{address}');
            CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
            CREATE TABLE all_of_it (n STRING) WITH (connector = 'kafka', topic = '{topic}', format = 'raw',
              'scan.startup.mode' = 'group-offsets', 'properties.group.id' = 'unheard-of',
              'properties.auto.offset.reset' = 'earliest', bootstrap_servers = '{address}');
            CREATE MATERIALIZED VIEW w AS SELECT n FROM all_of_it;
            CREATE TABLE none_of_it (n STRING) WITH (connector = 'kafka', topic = '{topic}', format = 'raw',
              'scan.startup.mode' = 'group-offsets', 'properties.group.id' = 'unheard-of',
              'properties.auto.offset.reset' = 'none', bootstrap_servers = '{address}');
        """)
        with pytest.raises(PenstockError, match="has no offset in partition 0"):
            db.execute("CREATE MATERIALIZED VIEW x AS SELECT n FROM none_of_it")
        cluster.send(topic, ["new"])
        db.settle(120)
        assert db.sql("SELECT n FROM v").rows() == [("new",)]
        assert sorted(db.sql("SELECT n FROM w").rows()) == [("new",), ("old",)]
        with pytest.raises(PenstockError, match="cannot be made") as raised:
            db.execute(f"""
                CREATE SINK k (n INT) WITH (connector = 'kafka', topic = 'wide', partitions = 1, replication_factor = 3,
                  bootstrap_servers = '{address}');
                INSERT INTO k VALUES (1);
            """)
        assert raised.value.condition == "INVALID_OPTION"
        db.execute("DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w")
    finally:
        broker.stop(delete=True)


def test_a_broker_that_is_not_there_and_a_topic_that_is_gone(cluster: Cluster, db: penstock.Database) -> None:
    """C2: one clear error with the address; SOURCE_DATA_LOST, never silence."""
    address = f"{HOST}:{free_port()}"
    db.execute(
        f"CREATE STREAM nowhere (n INT) WITH (connector = 'kafka', topic = 't', bootstrap_servers = '{address}')"
    )
    with pytest.raises(PenstockError) as raised:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM nowhere")
    assert raised.value.condition == "SOURCE_UNAVAILABLE"
    assert address in raised.value.message
    db.execute("CREATE STREAM missing (n INT) WITH (connector = 'kafka', topic = 'no-such-topic')")
    with pytest.raises(PenstockError, match="there is no topic no-such-topic") as raised:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT n FROM missing")
    assert raised.value.condition == "INVALID_OPTION"

    from confluent_kafka.admin import AdminClient

    topic = cluster.topic()
    cluster.send(topic, [json.dumps({"n": n}) for n in range(10)])
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE STREAM lenient (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', on_data_loss = 'skip');
        CREATE MATERIALIZED VIEW strict_view AS SELECT n FROM s;
        CREATE MATERIALIZED VIEW lenient_view AS SELECT n FROM lenient;
    """)
    db.settle(120)
    db.execute("PAUSE JOB strict_view; PAUSE JOB lenient_view")
    admin = AdminClient(cluster.client())
    # Expired before it was read: offsets 10 to 14 are removed while the jobs wait.
    cluster.send(topic, [json.dumps({"n": n}) for n in range(10, 20)])
    from confluent_kafka import TopicPartition

    for future in admin.delete_records([TopicPartition(topic, 0, 15)]).values():
        future.result(60)
    db.execute("RESUME JOB lenient_view")
    db.settle(120)
    assert sorted(row[0] for row in db.sql("SELECT n FROM lenient_view").rows()) == [*range(10), *range(15, 20)]
    lost = db.sql("SELECT value FROM penstock.metrics WHERE job = 'lenient_view' AND name = 'lost_offsets'").rows()
    assert lost == [(5.0,)]
    with pytest.raises(JobFailed, match=f"SOURCE_DATA_LOST.*topic {topic}, partition 0, offsets 10 to 14 are gone"):
        db.execute("RESUME JOB strict_view")
    assert sorted(row[0] for row in db.sql("SELECT n FROM strict_view").rows()) == [*range(10)]

    # Deleted and made anew under its name: another topic, and no silent start from the middle.
    db.execute("PAUSE JOB lenient_view; DROP MATERIALIZED VIEW strict_view")
    again = cluster.topic()
    cluster.send(again, [json.dumps({"n": 1})])
    db.execute(f"""
        CREATE STREAM renewed (n INT) WITH (connector = 'kafka', topic = '{again}', start = 'earliest');
        CREATE MATERIALIZED VIEW renewed_view AS SELECT n FROM renewed;
        PAUSE JOB renewed_view;
    """)
    admin.delete_topics([again], operation_timeout=60)[again].result(60)
    wait_until(lambda: again not in admin.list_topics(timeout=30).topics)
    cluster.create(again)
    cluster.send(again, [json.dumps({"n": n}) for n in (2, 3, 4)])
    with pytest.raises(PenstockError, match="made anew") as raised:
        db.execute("RESUME JOB renewed_view")
    assert raised.value.condition == "SOURCE_DATA_LOST"


def test_a_topic_that_is_made_anew_behind_the_back_of_a_batch(
    cluster: Cluster, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: to Spark it is the same topic, and longer than it was; the job never goes on in the middle of it silently."""
    from confluent_kafka.admin import AdminClient

    topic = cluster.topic()
    cluster.send(topic, [json.dumps({"n": n}) for n in range(10)])
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest');
        CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
    """)
    db.settle(120)
    admin = AdminClient(cluster.client())
    with held_batch(monkeypatch) as held:
        cluster.send(topic, [json.dumps({"n": 10})])
        assert held.wait(120)
        admin.delete_topics([topic], operation_timeout=60)[topic].result(60)
        wait_until(lambda: topic not in admin.list_topics(timeout=30).topics)
        cluster.create(topic)
        cluster.send(topic, [json.dumps({"n": n}) for n in range(1000, 1030)])
        time.sleep(kafka_anew._FRESH_S + 0.1)  # the look before this batch counts for so long
    wait_until(lambda: db.jobs()[0].state == "failed")
    error = db.sql("SELECT error FROM penstock.jobs").rows()[0][0]
    assert f"topic {topic} was deleted and made anew" in str(error)
    assert all(row[0] <= 10 for row in db.sql("SELECT n FROM v").rows())


def test_a_topic_that_goes_and_comes_again_while_a_job_runs(cluster: Cluster, db: penstock.Database) -> None:
    """C2, RELIABILITY test 6: with on_data_loss = 'skip' the job waits for a topic of that name, and goes on with it."""
    from confluent_kafka.admin import AdminClient

    topic = cluster.topic()
    cluster.send(topic, [json.dumps({"n": n}) for n in range(10)])
    db.execute(f"""
        CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{topic}', start = 'earliest', on_data_loss = 'skip');
        CREATE MATERIALIZED VIEW v AS SELECT n FROM s;
    """)
    db.settle(120)
    admin = AdminClient(cluster.client())
    admin.delete_topics([topic], operation_timeout=60)[topic].result(60)
    wait_until(lambda: topic not in admin.list_topics(timeout=30).topics)
    wait_until(lambda: db.jobs()[0].state == "restarting")
    cluster.create(topic)
    cluster.send(topic, [json.dumps({"n": n}) for n in range(100, 130)])
    wait_until(lambda: db.jobs()[0].state == "running")
    wait_until(lambda: db.sql("SELECT MAX(n) FROM v").rows() == [(129,)])
    found = sorted(row[0] for row in db.sql("SELECT n FROM v").rows())
    assert found[:10] == [*range(10)]
    assert len(found) == len(set(found)), "nothing is there twice"
    lost = db.sql("SELECT value FROM penstock.metrics WHERE job = 'v' AND name = 'lost_offsets'").rows()
    assert len(found) + int(lost[0][0] if lost else 0) == 40, "what is skipped is counted"
