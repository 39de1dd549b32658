"""Transactions of an exactly-once sink that last too long, that another writer ends, or that are not taken."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.model import SinkDefinition
from penstock.connectors import kafka_transactions
from penstock.connectors.kafka_transactions import Transactions
from penstock.connectors.kafka_writers import PlainWriter
from penstock.connectors.sink import SinkContext
from penstock.errors import JobFailed, RuntimeFailure
from penstock.plan.script import analyze_script
from penstock.runtime.backoff import transient
from penstock.stores.topics.store import TopicStore
from tests.kafka.conftest import Cluster

pytestmark = pytest.mark.kafka


def sink_of_topic(cluster: Cluster, topic: str, options: str = "") -> SinkDefinition:
    *_, report = analyze_script(f"""
        CREATE SINK k (v STRING) WITH (
          connector = 'kafka', topic = '{topic}', bootstrap_servers = '{cluster.address}', format = 'raw',
          delivery = 'exactly_once'{options})
    """)
    assert report.analysis is not None, report.error
    definition = report.analysis.definition
    assert isinstance(definition, SinkDefinition)
    return definition


def context_of(definition: SinkDefinition, directory: Path, mark: str = "") -> SinkContext:
    """As of a job; `mark` tells its input from that of another one."""
    return SinkContext(
        job="j",
        producer=f"j@{definition.options.values['topic']}",
        definition=definition,
        topics=TopicStore(directory),
        encode=lambda rows: rows.column("v").cast(pa.binary()),
        state_path=directory,
        input_hash=lambda batch_id: f"{mark}{batch_id}",
    )


def rows_of(*values: str) -> pa.Table:
    return pa.table({"v": list(values)})


def before_the_first_commit(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something inside of a transaction, once."""
    waiting = [do]

    def hit(name: str) -> None:
        if name == "sink.before_commit" and waiting:
            waiting.pop()()

    monkeypatch.setattr(kafka_transactions, "hit", hit)


# Long enough that one of them alone is behind its time: the broker looks every ten seconds which ones are.
SHORT = ", 'kafka.transaction.timeout.ms' = '3000'"


def test_a_batch_whose_transaction_the_broker_took_back_is_written_again(
    cluster: Cluster, db: penstock.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lasted too long. What the client says is that of a writer that another one has shut out."""
    source, out = cluster.topic(), cluster.topic()
    db.execute(f"""
        CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK exact (n INT) WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once'{SHORT});
        INSERT INTO exact SELECT n FROM numbers;
    """)
    before_the_first_commit(monkeypatch, lambda: cluster.wait_until_nothing_is_open(out))
    cluster.send(source, [json.dumps({"n": n}) for n in range(20)])
    db.settle(120)
    assert sorted(json.loads(value)["n"] for value in cluster.values(out)) == list(range(20))
    assert len(cluster.records(out, committed=False)) > 20  # the first try was there, and nobody saw it
    moves = db.sql("SELECT to_state, reason FROM penstock.job_history WHERE job = 'insert_exact'").rows()
    assert {state for state, _ in moves} == {"starting", "running", "restarting"}
    (reason,) = [reason for state, reason in moves if state == "restarting"]
    assert f"topic {out} of sink exact at {cluster.address}" in reason
    assert "the transaction lasted longer than 3 s and was taken back" in reason


def test_settling_waits_until_readers_see_what_was_written(cluster: Cluster, db: penstock.Database) -> None:
    """A transaction of somebody else, which is open for a while, stands for the marks of our own that are late."""
    from confluent_kafka import Producer

    source, out = cluster.topic(), cluster.topic()
    db.execute(f"""
        CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK exact (n INT) WITH (connector = 'kafka', topic = '{out}', delivery = 'exactly_once');
        INSERT INTO exact SELECT n FROM numbers;
        CREATE STREAM written (n INT) WITH (connector = 'kafka', topic = '{out}', start = 'earliest');
        CREATE MATERIALIZED VIEW seen AS SELECT n FROM written;
    """)
    other = Producer(cluster.client(**{"transactional.id": f"other-{out}"}))
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(out, json.dumps({"n": -1}))
    assert other.flush(60) == 0
    cluster.send(source, [json.dumps({"n": n}) for n in range(20)])
    ending = threading.Timer(3, lambda: other.commit_transaction(60))
    ending.start()
    db.settle(120)
    rows = db.sql("SELECT n FROM seen ORDER BY n").rows()
    ending.join(60)
    assert rows == [(n,) for n in range(-1, 20)]


def test_what_another_writer_did_after_that_is_not_written_over(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still for longer than its transaction may last: another one has taken its place."""
    topic = cluster.topic()
    definition = sink_of_topic(cluster, topic, SHORT)
    ours, theirs = context_of(definition, tmp_path, "a"), context_of(definition, tmp_path, "b")
    writer = Transactions(ours)
    writer.write(rows_of("first"), ours, 0, 0)

    def take_over() -> None:
        cluster.wait_until_nothing_is_open(topic)
        other = Transactions(theirs)
        other.write(rows_of("theirs"), theirs, 1, 0)
        other.close()

    before_the_first_commit(monkeypatch, take_over)
    with pytest.raises(RuntimeFailure, match="another writer has taken over") as raised:
        writer.write(rows_of("ours"), ours, 1, 0)
    assert raised.value.condition == "SINK_REFUSED"
    writer.close()
    assert cluster.values(topic) == ["first", "theirs"]


def test_another_writer_before_that_time_has_taken_over(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else can have ended the transaction, whether or not the other one has written."""
    topic = cluster.topic()
    context = context_of(sink_of_topic(cluster, topic), tmp_path)
    writer = Transactions(context)
    others: list[Transactions] = []
    before_the_first_commit(monkeypatch, lambda: others.append(Transactions(context)))
    with pytest.raises(RuntimeFailure, match="another writer has taken over") as raised:
        writer.write(rows_of("ours"), context, 0, 0)
    assert not transient(raised.value)
    writer.close()
    others[0].write(rows_of("theirs"), context, 0, 0)
    others[0].close()
    assert cluster.values(topic) == ["theirs"]


def test_records_that_come_after_the_error_do_not_hide_it(cluster: Cluster, tmp_path: Path) -> None:
    """The client says of them only that it is too late, in words of its own."""
    from confluent_kafka import KafkaException

    topic = cluster.topic()
    context = context_of(sink_of_topic(cluster, topic, ", 'kafka.max.request.size' = '3000000'"), tmp_path)
    writer = Transactions(context)
    writer._producer.begin_transaction()
    writer._producer.produce(topic, b"x" * 1_500_000)
    said = ""
    while not said:
        writer._producer.poll(0.1)
        try:
            writer._producer.produce(topic, b"y")
        except KafkaException as error:
            said = error.args[0].name()
            cause = writer._cause(error.args[0])
    assert (said, cause.name()) == ("_STATE", "MSG_SIZE_TOO_LARGE")
    writer.close()


@pytest.mark.parametrize(
    ("options", "size"),
    [
        pytest.param("", 1_100_000, id="client"),
        pytest.param(", 'kafka.max.request.size' = '3000000'", 1_500_000, id="broker"),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_a_record_that_is_too_large_lasts(
    cluster: Cluster, tmp_path: Path, options: str, size: int, exact: bool
) -> None:
    topic = cluster.topic()
    context = context_of(sink_of_topic(cluster, topic, options), tmp_path)
    rows = rows_of("small", "x" * size, "small too")

    def write(context: SinkContext) -> None:
        if exact:
            Transactions(context).write(rows, context, 0, 0)
        else:
            PlainWriter(context).write(rows, context)

    with pytest.raises(RuntimeFailure, match=f"topic {topic} of sink k .* the largest has {size} bytes") as raised:
        write(context)
    assert raised.value.condition == "SINK_REFUSED"
    assert not transient(raised.value)
    assert "kafka.max.request.size" in (raised.value.hint or "")
    assert "max.message.bytes" in (raised.value.hint or "")
    if exact:  # readers of committed records do not wait for it
        cluster.wait_until_nothing_is_open(topic, seconds=20)
        assert cluster.values(topic) == []

    wide = cluster.topic(1, **{"max.message.bytes": "3000000"})
    write(context_of(sink_of_topic(cluster, wide, ", 'kafka.max.request.size' = '3000000'"), tmp_path))
    assert [len(value) for value in cluster.values(wide)] == [5, size, 9]


def test_a_record_that_is_too_large_for_the_sink_of_spark(cluster: Cluster, db: penstock.Database) -> None:
    source, out = cluster.topic(), cluster.topic()
    db.execute(f"""
        CREATE STREAM numbers (n INT) WITH (connector = 'kafka', topic = '{source}', start = 'earliest');
        CREATE SINK plain (v STRING) WITH (connector = 'kafka', topic = '{out}');
        INSERT INTO plain SELECT REPEAT('x', 1100000) FROM numbers;
    """)
    cluster.send(source, [json.dumps({"n": 1})])
    with pytest.raises(JobFailed, match=f"a record is too large for topic {out} ") as raised:
        db.settle(120)
    assert "kafka.max.request.size" in (raised.value.hint or "")
    assert db.sql("SELECT restarts FROM penstock.jobs").rows() == [(0,)]


def test_brokers_that_have_forgotten_the_ledger(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The group is deleted here: its offset goes as it does when its time is over."""
    from confluent_kafka.admin import AdminClient

    topic = cluster.topic()
    context = context_of(sink_of_topic(cluster, topic), tmp_path)

    def write(context: SinkContext, batch_id: int) -> None:
        writer = Transactions(context)
        writer.write(rows_of(f"batch {batch_id}"), context, batch_id, 0)
        writer.close()

    def forget() -> None:
        Transactions(context).close()  # which begins when the last transaction is over, with its offset
        group = f"penstock-{context.producer}-ledger"
        admin = AdminClient(cluster.client())
        admin.delete_consumer_groups([group], request_timeout=30)[group].result(30)

    doubted = replace(context, in_doubt=lambda batch_id: batch_id == 1)
    with caplog.at_level(logging.WARNING, logger="penstock"):
        write(context, 0)
        write(context, 1)
        write(doubted, 1)  # the ledger knows it
        forget()
        write(context, 2)  # nobody can have written it
        assert cluster.values(topic) == ["batch 0", "batch 1", "batch 2"]
        assert caplog.messages == []
        forget()
        write(doubted, 1)
    (told,) = caplog.messages
    assert f"which batches topic {topic} has" in told
    assert "batch 1 is written, and may be there twice" in told


def test_a_transaction_that_the_broker_does_not_let_last(cluster: Cluster, tmp_path: Path) -> None:
    options = ", 'kafka.transaction.timeout.ms' = '3600000'"
    context = context_of(sink_of_topic(cluster, cluster.topic(), options), tmp_path)
    with pytest.raises(RuntimeFailure, match="lets no transaction last 3600000 ms") as raised:
        Transactions(context)
    assert raised.value.condition == "SINK_REFUSED"
