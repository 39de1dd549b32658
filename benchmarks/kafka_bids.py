"""The bids that benchmarks/kafka.py reads, and its queries as three systems write them."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from benchmarks.engine import QUERIES, SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEYED: Final = "keyed sum"  # its rows change: into a topic it writes upserts
MILLIS: Final = SCHEMA.replace("ts TIMESTAMP", "ts BIGINT")
# The columns of what a query finds, for Flink, which wants them declared.
RESULTS: Final = {
    "filter": "auction BIGINT, price BIGINT",
    "tumble": "auction BIGINT, began TIMESTAMP(3), n BIGINT, top BIGINT",
    "hop": "auction BIGINT, began TIMESTAMP(3), n BIGINT",
    "keyed sum": "auction BIGINT, n BIGINT, total BIGINT",
}
_WINDOWED: Final = (
    "SELECT auction, window_start, {} FROM TABLE({}(TABLE bids, DESCRIPTOR(event_at), {})) "
    "GROUP BY auction, window_start, window_end"
)
FLINK: Final = {
    "filter": QUERIES["filter"],
    "tumble": _WINDOWED.format("COUNT(*), MAX(price)", "TUMBLE", "INTERVAL '10' SECOND"),
    "hop": _WINDOWED.format("COUNT(*)", "HOP", "INTERVAL '2' SECOND, INTERVAL '10' SECOND"),
    "keyed sum": QUERIES["keyed sum"],
}


def create_topics(address: str, topics: Mapping[str, int]) -> None:
    """Make topics, each with so many partitions."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in client.create_topics([NewTopic(*one, 1) for one in topics.items()]).values():
        future.result(60)


def delete_topic(address: str, topic: str) -> None:
    """Throw a topic away."""
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in client.delete_topics([topic]).values():
        future.result(60)


def count_records(address: str, topic: str, *, committed: bool = False) -> int:
    """How many offsets a topic has; in one that was written with transactions, each of them has marks among these."""
    from penstock.connectors.kafka_access import KafkaAccess
    from penstock.connectors.kafka_cluster import KafkaCluster

    cluster = KafkaCluster(KafkaAccess(address, {}))
    return sum(cluster.ends(cluster.partitions([topic]), committed=committed).values())


def count_keys(address: str, topic: str, rows: int) -> int:
    """How many rows are left where a later record of a key takes the place of the earlier one.

    Ends the benchmark where they do not make up for all the rows that were read.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    own = {"group.id": f"count-{topic}", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": address, **own})
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        latest: dict[bytes | None, bytes | None] = {}
        open_ = len(partitions)
        while open_:
            for record in consumer.consume(10_000, 1.0):
                if record.error() is not None:
                    open_ -= 1
                else:
                    latest[record.key()] = record.value()
    finally:
        consumer.close()
    found = sum(json.loads(value or b"{}")["n"] for value in latest.values())
    if found != rows:
        raise SystemExit(f"the keys in {topic} make up {found} rows, not {rows}")
    return len(latest)


def fill(address: str, topic: str, partitions: int, rows: int, auctions: int = 2_000) -> None:
    """Bids over five minutes, a second or two out of order, the same ones each time."""
    from confluent_kafka import Producer

    create_topics(address, {topic: partitions})
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    chance = random.Random(7)  # noqa: S311
    pad, start = "x" * 60, 1_700_000_000_000
    for number in range(rows):
        at = start + number * 300_000 // rows + int(chance.random() * 2000)
        bid = (
            f'{{"auction":{int(chance.random() * auctions)},"bidder":{int(chance.random() * 100_000)},'
            f'"price":{int(chance.random() * 10_000)},"channel":"web","url":"u/{number % 997}","ts":{at},'
            f'"extra":"{pad}"}}'
        )
        while True:
            try:
                producer.produce(topic, bid, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all bids")


def by_hand(
    spark: SparkSession, address: str, name: str, *, topic: str, most: int, into: str | None, store: Path
) -> float:
    """Seconds for a query as PySpark a careful person would write: into a topic, or into a table of DuckDB.

    Batches have as many rows as ours, with `from_json` over the whole schema, Spark's watermark and a checkpoint. The
    session is ours, so the state backend and every other option are the same.
    """
    bids = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(most))
        .load()
    )
    result, mode = _result(bids, name)
    with tempfile.TemporaryDirectory() as checkpoint:
        begun = time.perf_counter()
        writer: Any = result.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
        if into is None:
            writer = writer.foreachBatch(_Table(store, name))
        else:
            key = ["CAST(auction AS STRING) AS key"] if name == KEYED else []
            writer = result.selectExpr(*key, "to_json(struct(*)) AS value").writeStream.outputMode(mode)
            writer = writer.option("checkpointLocation", checkpoint).format("kafka")
            writer = writer.option("kafka.bootstrap.servers", address).option("topic", into)
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - begun


def _result(records: DataFrame, name: str) -> tuple[DataFrame, str]:
    from pyspark.sql import functions as f

    bids = records.select(f.from_json(f.col("value").cast("string"), MILLIS).alias("r")).select("r.*")
    bids = bids.withColumn("ts", f.timestamp_millis("ts")).withWatermark("ts", "4 seconds")
    if name == "filter":
        return bids.where("price > 9000").select("auction", "price"), "append"
    if name == KEYED:
        return bids.groupBy("auction").agg(f.count("*").alias("n"), f.sum("price").alias("total")), "update"
    window = f.window("ts", "10 seconds", "2 seconds" if name == "hop" else "10 seconds")
    made = [f.count("*").alias("n"), *([f.max("price").alias("top")] if name == "tumble" else [])]
    found = bids.groupBy("auction", window.alias("w")).agg(*made)
    return found.select(
        "auction", f.col("w.start").alias("start"), *[one for one in found.columns if one in ("n", "top")]
    ), "append"


class _Table:
    """Rows of a batch into a table of DuckDB, with the number of the batch, in one transaction."""

    def __init__(self, store: Path, name: str) -> None:
        self._store = store
        self._keyed = name == KEYED

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        import duckdb

        rows = frame.toArrow()
        with duckdb.connect(str(self._store)) as connection:
            connection.register("batch", rows)
            connection.execute("BEGIN")
            connection.execute("CREATE TABLE IF NOT EXISTS result AS SELECT * FROM batch LIMIT 0")
            connection.execute("CREATE TABLE IF NOT EXISTS ledger (batch BIGINT)")
            if self._keyed:
                connection.execute("DELETE FROM result WHERE auction IN (SELECT auction FROM batch)")
            connection.execute("INSERT INTO result SELECT * FROM batch")
            connection.execute("INSERT INTO ledger VALUES (?)", [batch_id])
            connection.execute("COMMIT")


def rows_in(store: Path) -> int:
    """How many rows PySpark's table has."""
    import duckdb

    with duckdb.connect(str(store), read_only=True) as connection:
        found = connection.execute("SELECT COUNT(*) FROM result").fetchone()
        return int(found[0]) if found is not None else 0


def flink_tables(address: str, name: str, *, topic: str, into: str | None, exactly_once: bool = False) -> Sequence[str]:
    """The tables of a query in Flink SQL; without a topic to write to, its rows are thrown away."""
    source = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": address,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
    }
    sink = {"connector": "blackhole"}
    if into is not None:
        sink = {
            "connector": "kafka",
            "topic": into,
            "properties.bootstrap.servers": address,
            "format": "json",
            "sink.delivery-guarantee": "exactly-once" if exactly_once else "at-least-once",
            "sink.transactional-id-prefix": into,
            "properties.transaction.timeout.ms": "600000",
        }
    if into is not None and name == KEYED:
        sink = {
            "connector": "upsert-kafka",
            "topic": into,
            "properties.bootstrap.servers": address,
            "key.format": "json",
            "value.format": "json",
        }
    key = ", PRIMARY KEY (auction) NOT ENFORCED" if sink["connector"] == "upsert-kafka" else ""
    times = "event_at AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR event_at AS event_at - INTERVAL '4' SECOND"
    return [
        f"CREATE TABLE bids ({MILLIS}, {times}) WITH ({_options(source)})",
        f"CREATE TABLE found ({RESULTS[name]}{key}) WITH ({_options(sink)})",
    ]


def _options(values: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in values.items())
