"""Topics of Apache Kafka as a sink.

At least once, Spark's tasks write the rows themselves; a batch that is run again is written again. Exactly once, a
batch is one transaction of one producer, and the number of the batch is committed inside it, as the offset of a
consumer group: either all of a batch is there and its number with it, or nothing. Readers with `isolation.level =
'read_committed'` see each row once. A second producer of the same job shuts the first one out.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from penstock.connectors.kafka_access import access_of
from penstock.connectors.kafka_cluster import KafkaCluster
from penstock.connectors.kafka_records import (
    check_record_options,
    keeps_rows_together,
    record_frame,
    spreads,
    timestamp_column,
)
from penstock.connectors.kafka_transactions import Transactions
from penstock.connectors.kafka_tuning import check_tuning
from penstock.connectors.kafka_writers import PlainWriter, topic_of
from penstock.connectors.option_values import integer
from penstock.connectors.sink import Staged
from penstock.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.kafka_access import KafkaAccess
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore

# Java's client would try for two minutes; half of that, unless somebody says what these must be, which belong together.
_DELIVERY_MS: Final = "60000"
_WAIT_NAMES: Final = frozenset({"delivery.timeout.ms", "request.timeout.ms", "linger.ms"})
# Records of a batch are all there at once, and the end of a task does not wait: fewer and larger requests cost the
# brokers and us less.
_TOGETHER: Final = {"kafka.linger.ms": "20", "kafka.batch.size": str(256 << 10)}


class KafkaSink:
    """Writes to topics of Kafka."""

    takes_frame = False
    exactly_once = False  # unless the relation asks for it: `delivery = 'exactly_once'`
    tells_rows = False  # Spark's sink runs a plan of its own, which tells no counts

    def __init__(self) -> None:
        self._lock = Lock()
        self._writers: dict[str, Transactions] = {}
        self._plain: dict[str, PlainWriter] = {}
        self._widths: dict[str, int] = {}  # of the topic of each job, as its run found it

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        check_record_options(definition)
        if not self.stages(definition):
            check_tuning(definition, exact=_is_exact(definition))

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: topics are not ours."""

    def check(self, context: SinkContext) -> None:
        """The topic is there, or is made where the relation says with how many partitions.

        A run begins: whatever the one before has left of its connections is not used again.
        """
        self._forget_writer(context.producer)
        definition = context.definition
        cluster = KafkaCluster(access_of(definition, context.state_path), "SINK_UNAVAILABLE")
        topic, values = topic_of(definition), definition.options.values
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

    def wait_until_seen(self, definition: SinkDefinition, state_path: Path, seconds: float) -> None:
        if _is_exact(definition):
            cluster = KafkaCluster(access_of(definition, state_path), "SINK_UNAVAILABLE")
            cluster.wait_until_seen(topic_of(definition), seconds)

    # at least once: Spark writes

    def stages(self, definition: SinkDefinition) -> bool:
        return not _is_exact(definition) and timestamp_column(definition) is None

    def stage(self, frame: DataFrame, context: SinkContext, batch_id: int) -> Staged:
        definition = context.definition
        access = access_of(definition, context.state_path)
        written = record_frame(frame, context, self._width(context))
        limit = integer(definition.options.values, "sink.parallelism")
        (
            (written if limit is None else written.coalesce(limit))
            .write.format("kafka")
            .options(**_TOGETHER)
            .options(**task_options(access))
            .option("topic", topic_of(definition))
            .save()
        )
        return Staged(None)

    def streamed(self, frame: DataFrame, context: SinkContext) -> DataStreamWriter:
        """Real-time mode: the tasks that read write each row at once."""
        access = access_of(context.definition, context.state_path)
        return (
            record_frame(frame, context, self._width(context))
            .writeStream.format("kafka")
            .options(**task_options(access))
            .option("topic", topic_of(context.definition))
        )

    def publish(self, staged: Staged, context: SinkContext, batch_id: int) -> None:
        """Nothing: the rows are there."""

    # exactly once, and rows with a timestamp: we write

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        width = self._width(context)
        if batch_id is None:  # whoever asks is not alone, and writes once
            writer = PlainWriter(context)
            try:
                writer.write(rows, context, width)
            finally:
                writer.close()
            return
        try:
            if _is_exact(context.definition):
                self._transactions(context).write(rows, context, batch_id, width)
            else:
                self._plain_writer(context).write(rows, context, width)
        except BaseException:
            self._forget_writer(context.producer)
            raise

    # A job has one thread that writes, and a broker that does not answer must hold up nobody else: no lock is held
    # while connections are made.

    def _transactions(self, context: SinkContext) -> Transactions:
        found = self._writers.get(context.producer)
        if found is None:
            found = Transactions(context)
            with self._lock:
                self._writers[context.producer] = found
        return found

    def _plain_writer(self, context: SinkContext) -> PlainWriter:
        found = self._plain.get(context.producer)
        if found is None:
            found = PlainWriter(context)
            with self._lock:
                self._plain[context.producer] = found
        return found

    def _width(self, context: SinkContext) -> int:
        """How many partitions the topic has, where that matters."""
        if not spreads(context.definition) and not keeps_rows_together(context.definition):
            return 0
        return self._widths[context.producer]

    def _forget_writer(self, producer: str) -> None:
        with self._lock:
            held = (self._writers.pop(producer, None), self._plain.pop(producer, None))
        for writer in held:
            if writer is not None:
                writer.close()


def task_options(access: KafkaAccess) -> dict[str, str]:
    """How Spark's tasks reach the brokers, and how long they wait for one that is gone."""
    given = access.java()
    waits = {} if given.keys() & _WAIT_NAMES else {"delivery.timeout.ms": _DELIVERY_MS}
    options = {**waits, **given, "bootstrap.servers": access.servers}
    return {f"kafka.{key}": value for key, value in options.items()}


def _is_exact(definition: SinkDefinition) -> bool:
    return definition.options.values.get("delivery") == "exactly_once"
