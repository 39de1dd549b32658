"""Topics of Apache Kafka as a sink.

At least once, Spark's tasks write the rows themselves; a batch that is run again is written again. Exactly once, a
batch is one transaction of one producer, and the number of the batch is committed inside it, as the offset of a
consumer group: either all of a batch is there and its number with it, or nothing. Readers with `isolation.level =
'read_committed'` see each row once. A second producer of the same job shuts the first one out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.kafka import topic_names
from penstock.connectors.kafka_access import access_of
from penstock.connectors.kafka_cluster import KafkaCluster
from penstock.connectors.kafka_records import check_record_options, record_frame, records, spreads, timestamp_column
from penstock.connectors.option_values import integer, text
from penstock.connectors.sink import Staged
from penstock.errors import OptionError, RuntimeFailure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore

_ANSWER_S: Final = 30.0
# As many records as a producer may hold before it is asked whether some have arrived.
_POLL_EVERY: Final = 10_000


class KafkaSink:
    """Writes to topics of Kafka."""

    takes_frame = False
    exactly_once = False  # unless the relation asks for it: `delivery = 'exactly_once'`

    def __init__(self) -> None:
        self._lock = Lock()
        self._writers: dict[str, Transactions] = {}
        self._widths: dict[str, int] = {}  # of the topic of each job, as its run found it

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        check_record_options(definition)

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: topics are not ours."""

    def check(self, context: SinkContext) -> None:
        """The topic is there, or is made where the relation says with how many partitions.

        A run begins: whatever the one before has left of its connections is not used again.
        """
        self._forget_writer(context.producer)
        definition = context.definition
        cluster = KafkaCluster(access_of(definition, context.state_path))
        topic, values = _topic(definition), definition.options.values
        if found := cluster.partitions([topic]):
            self._widths[context.producer] = len(found)
            return
        partitions = integer(values, "partitions")
        if partitions is None:
            raise OptionError(
                "INVALID_OPTION",
                f"there is no topic {topic} at {cluster.servers}",
                hint="create it first, or say with how many partitions: partitions = 4",
            )
        cluster.create_topic(topic, partitions, integer(values, "replication_factor"))
        self._widths[context.producer] = partitions

    def leave(self, context: SinkContext) -> None:
        """The producer of a job ends with its run."""
        self._forget_writer(context.producer)

    # at least once: Spark writes

    def stages(self, definition: SinkDefinition) -> bool:
        return not _is_exact(definition) and timestamp_column(definition) is None

    def stage(self, frame: DataFrame, context: SinkContext, batch_id: int) -> Staged:
        definition = context.definition
        access = access_of(definition, context.state_path)
        # Spark's sink runs a plan of its own, which tells no counts; and the batch must not be computed twice.
        written = record_frame(frame, context, self._width(context)).persist()
        limit = integer(definition.options.values, "sink.parallelism")
        try:
            rows = written.count()
            (
                (written if limit is None else written.coalesce(limit))
                .write.format("kafka")
                .option("kafka.bootstrap.servers", access.servers)
                .options(**{f"kafka.{key}": value for key, value in access.java().items()})
                .option("topic", _topic(definition))
                .save()
            )
        finally:
            written.unpersist()
        return Staged(rows)

    def streamed(self, frame: DataFrame, context: SinkContext) -> DataStreamWriter:
        """Real-time mode: the tasks that read write each row at once."""
        access = access_of(context.definition, context.state_path)
        return (
            record_frame(frame, context, self._width(context))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", access.servers)
            .options(**{f"kafka.{key}": value for key, value in access.java().items()})
            .option("topic", _topic(context.definition))
        )

    def publish(self, staged: Staged, context: SinkContext, batch_id: int) -> None:
        """Nothing: the rows are there."""

    # exactly once, and rows with a timestamp: we write

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        if batch_id is None or not _is_exact(context.definition):
            write_plainly(rows, context, self._width(context))
            return
        with self._lock:
            writer = self._writers.get(context.producer)
            if writer is None:
                writer = self._writers[context.producer] = Transactions(context)
        try:
            writer.write(rows, context, batch_id, self._width(context))
        except BaseException:
            self._forget_writer(context.producer)
            raise

    def _width(self, context: SinkContext) -> int:
        """How many partitions the topic has, where that matters."""
        if not spreads(context.definition):
            return 0
        return self._widths[context.producer]

    def _forget_writer(self, producer: str) -> None:
        with self._lock:
            writer = self._writers.pop(producer, None)
        if writer is not None:
            writer.close()


def write_plainly(rows: pa.Table, context: SinkContext, width: int = 0) -> None:
    """Write rows and wait until the brokers have them."""
    from confluent_kafka import KafkaException, Producer

    failed: list[str] = []

    def told(error: Any, _: Any) -> None:
        if error is not None and not failed:
            failed.append(str(error.str()))

    producer = Producer(_producer_options(context, {"enable.idempotence": True}))
    try:
        _produce(producer, records(rows, context, width), context, told)
        left = producer.flush(_ANSWER_S)
    except KafkaException as error:
        raise _unavailable(context, str(error.args[0].str())) from error
    if failed or left:
        producer.purge()
        producer.flush(1)
        raise _unavailable(context, failed[0] if failed else "it did not take all records in time")


class Transactions:
    """The transactional producer of a job, and the ledger that it keeps inside its transactions."""

    def __init__(self, context: SinkContext) -> None:
        from confluent_kafka import Consumer, KafkaException, Producer

        prefix = text(context.definition.options.values, "transactional_id_prefix") or "penstock"
        self._id = f"{prefix}-{context.producer}"
        self._topic = _topic(context.definition)
        self._producer: Any = Producer(
            _producer_options(context, {"transactional.id": self._id, "transaction.timeout.ms": 60_000})
        )
        access = access_of(context.definition, context.state_path)
        own = {"group.id": f"{self._id}-ledger", "enable.auto.commit": False}
        self._consumer = Consumer({**access.librdkafka(), **own})
        try:
            # Whoever wrote under this id before is shut out from here on, and what they left open is taken back.
            self._producer.init_transactions(_ANSWER_S)
        except KafkaException as error:
            self.close()
            raise _unavailable(context, str(error.args[0].str())) from error

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int, width: int) -> None:
        """One batch in one transaction, unless it is there already."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            if self._written(batch_id):
                return
            self._producer.begin_transaction()
            _produce(self._producer, records(rows, context, width), context, lambda *_: None)
            told = TopicPartition(self._topic, 0, batch_id + 1, str(batch_id))
            self._producer.send_offsets_to_transaction([told], self._consumer.consumer_group_metadata(), _ANSWER_S)
            self._producer.commit_transaction(_ANSWER_S)
        except KafkaException as error:
            told_error: Any = error.args[0]
            if told_error.fatal() or told_error.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
                raise RuntimeFailure(
                    "SINK_REFUSED",
                    f"another writer has taken over {self._id} at topic {self._topic}",
                    hint="one process at a time writes for a job; RESUME JOB takes it back",
                ) from error
            raise _unavailable(context, str(told_error.str())) from error

    def _written(self, batch_id: int) -> bool:
        """Whether the ledger has a batch. Only the last one can be asked for again."""
        from confluent_kafka import KafkaException, TopicPartition

        end = time.monotonic() + _ANSWER_S
        while True:
            try:
                (found,) = self._consumer.committed([TopicPartition(self._topic, 0)], timeout=_ANSWER_S)
                return bool(found.offset >= batch_id + 1)
            except KafkaException as error:
                # The first question of a group finds nobody in charge of it yet.
                if not error.args[0].retriable() and "coordinator" not in str(error).lower():
                    raise
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """Let go of the connections; an open transaction is taken back by the next start, or by its timeout."""
        self._producer.purge()
        # Its own `close` would wait for a broker that may be gone; without a reference it ends at once.
        self._producer = None
        self._consumer.close()


def _produce(producer: Any, made: Iterable[Mapping[str, Any]], context: SinkContext, told: Any) -> None:
    topic = _topic(context.definition)
    for number, record in enumerate(made):
        while True:
            try:
                producer.produce(topic, on_delivery=told, **record)
                break
            except BufferError:
                producer.poll(0.1)
        if number % _POLL_EVERY == 0:
            producer.poll(0)


def _producer_options(context: SinkContext, more: Mapping[str, object]) -> dict[str, Any]:
    given = access_of(context.definition, context.state_path)
    tuned = {
        key: given.properties[key]
        for key in ("linger.ms", "batch.size", "compression.type", "acks", "delivery.timeout.ms")
        if key in given.properties
    }
    # Java's way to choose a partition by key, so that both ways to write agree.
    return {"partitioner": "murmur2_random", "linger.ms": 5, **tuned, **given.librdkafka(), **more}


def _is_exact(definition: SinkDefinition) -> bool:
    return definition.options.values.get("delivery") == "exactly_once"


def _topic(definition: SinkDefinition) -> str:
    return topic_names(definition)[0]


def _unavailable(context: SinkContext, reason: str) -> RuntimeFailure:
    return RuntimeFailure(
        "SINK_UNAVAILABLE",
        f"topic {_topic(context.definition)} of sink {context.definition.name} cannot be written: {reason}",
        hint="the job tries again by itself; look at the broker and at bootstrap_servers",
    )
