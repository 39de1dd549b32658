"""How Spark's connector for Kafka is asked, and what its rows are called here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.connectors.kafka_access import topic_names
from penstock.connectors.kafka_positions import skips_lost
from penstock.connectors.metadata_columns import hidden_columns
from penstock.connectors.option_values import text
from penstock.connectors.reading import reading_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.kafka_access import KafkaAccess
    from penstock.connectors.kafka_notes import KafkaNotes
    from penstock.connectors.source import ScanRequest

RECORD_TYPES: Final = {
    "__value": "BINARY",
    "__partition": "INT",
    "__offset": "BIGINT",
    "__timestamp": "TIMESTAMP",
    "__key": "BINARY",
    "__headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "__topic": "STRING",
    "__timestamp_type": "STRING",
    "__topic_partition": "INT",
}
# A broker that does not answer is told of after this time, and not after Spark's minutes.
_WAITS: Final = {
    "kafka.request.timeout.ms": "20000",
    "kafka.default.api.timeout.ms": "30000",
    "kafkaConsumer.pollTimeoutMs": "60000",
}
# A reader that has come to the end of a partition asks for more, and for where the partition begins and ends, which the
# broker answers only after it: with Kafka's half a second each task of each batch would wait that long for nothing. In
# real-time mode a reader does wait for rows.
_NO_LONG_POLL: Final = {"kafka.fetch.max.wait.ms": "5"}


def reader_options(request: ScanRequest, access: KafkaAccess) -> dict[str, str]:
    """What both readings of Spark are told: the one of a stream, and the one of a range."""
    values = request.definition.options.values
    return {
        **_WAITS,
        **({} if request.realtime else _NO_LONG_POLL),
        "kafka.max.poll.records": str(reading_of(request).batch_size),
        "kafka.isolation.level": text(values, "isolation_level") or "read_committed",
        **{f"kafka.{key}": value for key, value in access.java().items()},
        "kafka.bootstrap.servers": access.servers,
        "failOnDataLoss": str(not skips_lost(request.definition)).lower(),
        "fetchOffset.numRetries": "1",
        "includeHeaders": str("__headers" in hidden_columns(request.definition)).lower(),
    }


def subscribed(definition: SourceDefinition) -> dict[str, str]:
    """Which topics Spark follows."""
    pattern = text(definition.options.values, "topic_pattern")
    if pattern is not None:
        # Spark would take topics that match in part, too. Those of Kafka's own are never meant.
        return {"subscribePattern": f"^(?!__)(?:{pattern})$"}
    return {"subscribe": ",".join(topic_names(definition))}


def group_prefix(request: ScanRequest) -> str:
    """How the consumer groups of a reading begin, which the broker lists."""
    return text(request.definition.options.values, "group_id_prefix") or f"penstock-{request.job}"


def shaped(raw: DataFrame, columns: Sequence[str], notes: KafkaNotes) -> DataFrame:
    """The columns of records, out of those that Spark reads."""
    from pyspark.sql import functions as f

    made: dict[str, Column] = {
        "__value": f.col("value"),
        "__partition": _numbered(notes),
        "__offset": f.col("offset"),
        "__timestamp": f.col("timestamp"),
        "__key": f.col("key"),
        "__topic": f.col("topic"),
        "__topic_partition": f.col("partition"),
        "__timestamp_type": f.when(f.col("timestampType") == 1, "LogAppendTime").otherwise("CreateTime"),
    }
    if "__headers" in columns:
        made["__headers"] = f.col("headers")
    return raw.select(*[made[name].alias(name) for name in columns])


def _numbered(notes: KafkaNotes) -> Column:
    """The number of a row's partition."""
    from pyspark.sql import functions as f

    if notes.single is not None:
        return f.col("partition")
    named = [f.lit(f"{topic}/{each}") for topic, each in notes.pairs]
    parts = [part for number, name in enumerate(named) for part in (name, f.lit(number))]
    if not parts:
        return f.lit(None).cast("int")
    return f.try_element_at(f.create_map(*parts), f.concat_ws("/", f.col("topic"), f.col("partition")))


def before_ends(frame: DataFrame, ends: Mapping[int, int]) -> DataFrame:
    """The rows before the end of a source that ends; Spark itself would read on."""
    from pyspark.sql import functions as f

    parts = [part for number, last in sorted(ends.items()) for part in (f.lit(number), f.lit(last).cast("long"))]
    if not parts:
        return frame.filter(f.lit(False))
    return frame.filter(f.col("__offset") < f.try_element_at(f.create_map(*parts), f.col("__partition")))
