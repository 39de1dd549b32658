"""Topics of a real broker as sinks: at least once by Spark's tasks, exactly once by one transaction a batch."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import penstock
from penstock.connectors.kafka_sink import KafkaSink
from penstock.connectors.registry import sink_of
from penstock.errors import JobFailed, PenstockError
from penstock.failpoints import enabled
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def test_a_pipeline_from_topic_to_topic(cluster: Cluster, db: penstock.Database) -> None:
    """N5: keys, headers and timestamps; topics made where allowed; what Spark writes and what we do."""
    source, out = cluster.topic(2), f"{cluster.topic()}-out"
    for partition in range(2):
        cluster.send(
            source, [json.dumps({"k": f"k{n % 3}", "n": n}) for n in range(partition, 60, 2)], partition=partition
        )
    db.execute(f"""
        CREATE STREAM numbers (k STRING, n INT, kept TIMESTAMP METADATA FROM 'timestamp')
          WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK plain (k STRING, n INT, doubled INT) WITH (
          connector = 'kafka', topic = '{out}', partitions = 3, 'key.fields' = 'k', format = 'json');
        CREATE SINK dated (n INT, at TIMESTAMP METADATA FROM 'timestamp', h MAP<STRING, BINARY> METADATA FROM 'headers')
          WITH (connector = 'kafka', topic = '{out}-dated', partitions = 1);
        CREATE SINK exact (k STRING, n INT) WITH (
          connector = 'kafka', topic = '{out}-exact', partitions = 2, delivery = 'exactly_once', key_field = 'k',
          'value.fields_include' = 'EXCEPT_KEY');
        CREATE SINK nowhere (n INT) WITH (connector = 'kafka', topic = '{out}-missing');
        INSERT INTO plain SELECT k, n, n * 2 FROM numbers;
        INSERT INTO dated SELECT n, TIMESTAMP '2026-01-01 00:00:00', MAP('origin', CAST(k AS BINARY)) FROM numbers;
        INSERT INTO exact SELECT k, n FROM numbers;
    """)
    db.settle(120)
    written = cluster.records(out)
    assert sorted(json.loads(record.value())["n"] for record in written) == list(range(60))
    by_key = {(record.key(), record.partition()) for record in written}
    assert len(by_key) == 3  # a key has one partition
    assert json.loads(written[0].value()).keys() == {"k", "n", "doubled"}
    dated = cluster.records(f"{out}-dated")
    assert {record.timestamp()[1] for record in dated} == {1_767_225_600_000}
    assert Counter(dict(record.headers())["origin"] for record in dated) == {b"k0": 20, b"k1": 20, b"k2": 20}
    exact = cluster.records(f"{out}-exact")
    assert sorted(json.loads(record.value())["n"] for record in exact) == list(range(60))
    assert {tuple(json.loads(record.value())) for record in exact} == {("n",)}
    # Both ways to write put a key into the partition that Kafka's own clients would, for the same number of them.
    counters = db.sql("SELECT value FROM penstock.metrics WHERE job = 'insert_plain' AND name = 'output_rows'").rows()
    assert counters == [(60.0,)]
    with pytest.raises(PenstockError, match=r"there is no topic .*-missing") as raised:
        db.execute("INSERT INTO nowhere SELECT n FROM numbers")
    assert raised.value.condition == "INVALID_OPTION"
    db.execute("INSERT INTO plain VALUES ('k9', 1, 2)")
    assert len(cluster.records(out)) == 61


def test_a_batch_is_there_once_whatever_fails_behind_it(cluster: Cluster, db: penstock.Database) -> None:
    """N5: the transaction is committed, the ledger of the engine is not; the batch that runs again writes nothing."""
    source, out = cluster.topic(), cluster.topic()
    cluster.send(source, [json.dumps({"n": n}) for n in range(20)])
    db.execute(f"""
        CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK exact (n INT) WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once');
        INSERT INTO exact SELECT n FROM numbers;
    """)
    db.settle(120)
    with enabled("sink.after_write", "error@1"):
        cluster.send(source, [json.dumps({"n": n}) for n in range(20, 40)])
        db.settle(120)
    assert sorted(json.loads(value)["n"] for value in cluster.values(out)) == list(range(40))
    restarts = db.sql("SELECT restarts FROM penstock.jobs WHERE name = 'insert_exact'").rows()
    assert restarts == [(1,)]


def test_a_copy_of_the_state_that_is_older_than_the_topic(cluster: Cluster, tmp_path: Path) -> None:
    """N5, K14: its batches have numbers that the topic knows, and other rows: they are refused, not left out."""
    source, out = cluster.topic(), cluster.topic()
    settings: dict[str, object] = {"kafka.bootstrap_servers": cluster.address}

    def send(first: int) -> None:
        cluster.send(source, [json.dumps({"n": n}) for n in range(first, first + 10)])

    send(0)
    with penstock.connect(tmp_path / "state", **settings) as db:
        db.execute(f"""
            CREATE STREAM s (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
            CREATE SINK k WITH (connector = 'kafka', topic = '{out}', format = 'json', delivery = 'exactly_once')
            AS SELECT n FROM s;
        """)
        db.settle(120)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with penstock.connect(tmp_path / "state", **settings) as db:
        for first in (10, 20):
            send(first)
            db.settle(120)
    send(30)
    with penstock.connect(tmp_path / "copy", **settings) as db, pytest.raises(JobFailed, match="now has other input"):
        db.settle(120)
    with penstock.connect(tmp_path / "state", **settings) as db:
        db.settle(120)
    assert [json.loads(value)["n"] for value in cluster.values(out)] == [*range(40)]


def test_the_partition_of_a_record_and_who_holds_the_connection(cluster: Cluster, db: penstock.Database) -> None:
    """Round robin, or all of a writer in one partition; a producer goes with its job, and a new one begins anew."""
    source, out = cluster.topic(), cluster.topic()
    cluster.send(source, [json.dumps({"n": n}) for n in range(30)], key="same")
    db.execute(f"CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest')")
    made = {
        "spread": "partitioner = 'round-robin'",
        "spread_once": "'sink.partitioner' = 'round-robin', delivery = 'exactly_once'",
        "single": "partitioner = 'fixed', 'key.fields' = 'n'",
        "single_once": "partitioner = 'fixed', 'key.fields' = 'n', delivery = 'exactly_once'",
    }
    for name, options in made.items():
        db.execute(f"""
            CREATE SINK {name} (n INT) WITH (connector = 'kafka', topic = '{out}-{name}', partitions = 3, {options});
            INSERT INTO {name} SELECT n FROM numbers;
        """)
    db.settle(180)
    found = {name: Counter(record.partition() for record in cluster.records(f"{out}-{name}")) for name in made}
    assert found["spread"] == found["spread_once"] == {0: 10, 1: 10, 2: 10}
    assert [sorted(found[name].values()) for name in ("single", "single_once")] == [[30], [30]]
    db.execute("INSERT INTO spread VALUES (100), (101), (102)")
    assert Counter(record.partition() for record in cluster.records(f"{out}-spread")) == {0: 11, 1: 11, 2: 11}

    sink = sink_of("kafka")
    assert isinstance(sink, KafkaSink)
    own = {name for name in sink._writers if name.startswith(("insert_spread_once@", "insert_single_once@"))}
    assert len(own) == 2
    db.execute("PAUSE JOB insert_spread_once; DROP SINK single_once")
    assert not own & set(sink._writers)
    db.execute("RESUME JOB insert_spread_once")
    cluster.send(source, [json.dumps({"n": 30})])
    db.settle(120)
    assert len(cluster.records(f"{out}-spread_once")) == 31
    db.close()
    assert not {name for name in sink._writers if name.startswith("insert_spread_once@")}


def test_a_second_writer_shuts_the_first_one_out(cluster: Cluster, db: penstock.Database) -> None:
    from confluent_kafka import Producer

    source, out = cluster.topic(), cluster.topic()
    db.execute(f"""
        CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK exact (n INT) WITH (
          connector = 'kafka', topic = '{out}', delivery = 'exactly_once', transactional_id_prefix = 'mine');
        INSERT INTO exact SELECT n FROM numbers;
    """)
    cluster.send(source, [json.dumps({"n": 1})])
    db.settle(120)
    sink = sink_of("kafka")
    assert isinstance(sink, KafkaSink)
    (own,) = [writer._id for writer in sink._writers.values() if writer._id.startswith("mine-insert_exact@")]
    other = Producer(cluster.client(**{"transactional.id": own}))
    other.init_transactions(60)
    cluster.send(source, [json.dumps({"n": 2})])
    with pytest.raises(JobFailed, match="another writer has taken over"):
        db.settle(120)
    db.execute("RESUME JOB insert_exact")
    db.settle(120)
    assert [json.loads(value)["n"] for value in cluster.values(out)] == [1, 2]
