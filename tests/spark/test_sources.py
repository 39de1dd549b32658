"""Sources as Spark reads them: as streams over restarts, and range by range as batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.catalog.model import SourceDefinition
from penstock.connectors.metadata_columns import with_metadata
from penstock.connectors.registry import source_of
from penstock.connectors.source import ScanRequest
from penstock.stores.topics import Topic, TopicStore
from tests.unit.connectors.declared import request, source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BIDS = "CREATE STREAM bids (a BIGINT, price DECIMAL(10, 2), name STRING, ts TIMESTAMP, tags ARRAY<STRING>) WITH (partitions = 2)"


class Job:
    """A stream into a list: what each batch held, and how many tasks read it."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self.tasks: dict[int, int] = {}
        self._query = (
            frame.writeStream.foreachBatch(self._collect).option("checkpointLocation", str(checkpoint)).start()
        )

    def _collect(self, frame: DataFrame, batch_id: int) -> None:
        self.tasks[batch_id] = frame.rdd.getNumPartitions()
        self.batches[batch_id] = [row.asDict(recursive=True) for row in frame.collect()]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches.values() for row in batch]

    def until(self, reached: Callable[[], bool], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            failure = self._query.exception()
            assert failure is None, failure
            assert time.monotonic() < deadline, f"still waiting, with {len(self.rows)} rows"
            time.sleep(0.02)

    def failure(self) -> str:
        """What ends the query."""
        deadline = time.monotonic() + 60
        while self._query.exception() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return str(self._query.exception())

    def stop(self) -> None:
        """End between two batches: Spark cannot be stopped inside a callback."""
        self.until(lambda: not self._query.status["isTriggerActive"])
        self._query.stop()

    def close(self) -> None:
        """End the query, whatever it is at."""
        self._query.stop()


@contextmanager
def running(spark: SparkSession, asked: ScanRequest, checkpoint: Path) -> Iterator[Job]:
    job = Job(source_of(asked.definition.options.connector).stream(spark, asked), checkpoint)
    try:
        yield job
    finally:
        job.close()


@pytest.fixture
def topics(tmp_path: Path) -> Iterator[TopicStore]:
    store = TopicStore(tmp_path / "topics")
    yield store
    store.close()


def created(definition: SourceDefinition, state_path: Path, topics: TopicStore) -> Topic:
    source_of("topic").prepare(definition, state_path, topics)
    return topics.open(definition.name.text)


def append(topic: Topic, partition: int, numbers: range, **columns: object) -> None:
    import pyarrow as pa

    rows = [{"a": n, "price": None, "name": f"n{n}", "ts": None, "tags": [str(n)], **columns} for n in numbers]
    wanted = pa.schema([field for field in topic.schema if not field.name.startswith("__") or field.name in columns])
    topic.append(partition, pa.Table.from_pylist(rows, schema=wanted))


def places(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return sorted((row["__partition"], row["__offset"], row["a"]) for row in rows)


def test_a_topic_streams_with_places_and_types(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(3))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 3)
        append(topic, 1, range(10, 12))
        job.until(lambda: len(job.rows) == 5)
    assert [(row["__partition"], row["__offset"], row["a"], row["tags"]) for row in job.rows] == [
        (0, 0, 0, ["0"]),
        (0, 1, 1, ["1"]),
        (0, 2, 2, ["2"]),
        (1, 0, 10, ["10"]),
        (1, 1, 11, ["11"]),
    ]


def test_a_restart_reads_on_and_runs_one_batch_without_new_rows(
    spark: SparkSession, tmp_path: Path, topics: TopicStore
) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(3))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 3)
        job.stop()
    with running(spark, request(definition, tmp_path, run=2), tmp_path / "c") as again:
        again.until(lambda: len(again.batches) == 1)
        assert again.rows == []
        append(topic, 0, range(3, 5))
        append(topic, 1, range(1))
        again.until(lambda: len(again.rows) == 3)
    assert places(again.rows) == [(0, 3, 3), (0, 4, 4), (1, 0, 0)]


def test_a_job_begins_where_it_is_pinned(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(4))
    append(topic, 1, range(4))
    with running(spark, request(definition, tmp_path, first={0: 3, 1: 4}), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 1)
        append(topic, 1, range(9, 10))
        job.until(lambda: len(job.rows) == 2)
    assert places(job.rows) == [(0, 3, 3), (1, 4, 9)]


def test_a_batch_holds_no_more_rows_than_allowed_evenly_over_partitions(
    spark: SparkSession, tmp_path: Path, topics: TopicStore
) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(20))
    append(topic, 1, range(5))
    with running(spark, request(definition, tmp_path, max_rows_per_batch=8), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 25)
    sizes = [
        [sum(row["__partition"] == partition for row in batch) for partition in (0, 1)]
        for _, batch in sorted(job.batches.items())
    ]
    assert sizes == [[4, 4], [7, 1], [8, 0], [1, 0]]
    assert len(places(job.rows)) == len(set(places(job.rows)))


def test_large_batches_are_read_by_tasks_and_small_ones_are_handed_over(
    spark: SparkSession, tmp_path: Path, topics: TopicStore
) -> None:
    """Guards the way around Python workers on the installed Spark: see `range_reader`."""
    from penstock.connectors.range_reader import PREFETCHES

    assert PREFETCHES
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    for partition in (0, 1):
        append(topic, partition, range(3_000))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 6_000)
        assert job.tasks[0] == 2
        append(topic, 0, range(3_000, 3_010))
        append(topic, 1, range(3_000, 3_010))
        job.until(lambda: len(job.rows) == 6_020)
        assert set(list(job.tasks.values())[1:]) == {1}
    assert places(job.rows) == [(partition, n, n) for partition in (0, 1) for n in range(3_010)]


def test_max_parallelism_bounds_the_tasks_of_a_batch(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    """I12, T5: never more readers than max_parallelism or partitions."""
    definition = source(BIDS.replace("partitions = 2", "partitions = 4, max_parallelism = 3"))
    topic = created(definition, tmp_path, topics)
    for partition in range(4):
        append(topic, partition, range(1_000))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 4_000)
        assert job.tasks[0] == 3


def test_a_range_of_offsets_is_read_again_as_a_batch(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(3))
    append(topic, 1, range(5), __key=b"k")
    asked = request(definition, tmp_path, columns=("a",), max_rows_per_batch=4)
    with running(spark, asked, tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 8)
        job.stop()
    assert set(job.rows[0]) == {"a", "__partition", "__offset"}
    start: str | None = None
    for batch_id, end in sorted(logged(tmp_path / "c").items()):
        again = source_of("topic").between(spark, asked, start, end)
        assert {"a", "price", "name", "ts", "tags", "__timestamp", "__key", "__headers"} <= set(again.columns)
        assert places([row.asDict() for row in again.collect()]) == places(job.batches[batch_id])
        start = end
    whole = source_of("topic").between(spark, asked, None, source_of("topic").end_offset(asked)).collect()
    assert len(whole) == 8
    assert {bytes(row["__key"]) for row in whole if row["__partition"] == 1} == {b"k"}


def test_a_partition_that_is_added_is_read_from_its_first_row(
    spark: SparkSession, tmp_path: Path, topics: TopicStore
) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(2))
    with running(spark, request(definition, tmp_path, first={0: 1, 1: 0}), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 1)
        wider = created(source(BIDS.replace("partitions = 2", "partitions = 3")), tmp_path, topics)
        append(wider, 2, range(7, 9))
        job.until(lambda: len(job.rows) == 3)
    assert places(job.rows) == [(0, 1, 1), (2, 0, 7), (2, 1, 8)]


def test_several_jobs_read_one_topic(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(50))
    asked = request(definition, tmp_path)
    with running(spark, asked, tmp_path / "c1") as one, running(spark, asked, tmp_path / "c2") as other:
        append(topic, 1, range(50))
        one.until(lambda: len(one.rows) == 100)
        other.until(lambda: len(other.rows) == 100)
    assert places(one.rows) == places(other.rows)


def test_rows_that_are_gone_end_the_job_by_name(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source(BIDS)
    topic = created(definition, tmp_path, topics)
    append(topic, 0, range(5))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 5)
        job.stop()
    topics.drop("bids")
    append(created(definition, tmp_path, topics), 0, range(2))
    with running(spark, request(definition, tmp_path, run=2), tmp_path / "c") as again:
        assert "SOURCE_DATA_LOST" in again.failure()


def test_metadata_and_headers_become_columns(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    statement = """CREATE STREAM m (a BIGINT, p BIGINT METADATA FROM 'partition', o BIGINT METADATA FROM 'offset',
        at TIMESTAMP METADATA FROM 'timestamp', ms BIGINT METADATA FROM 'timestamp', k STRING METADATA FROM 'key',
        t STRING METADATA FROM 'topic', kind STRING METADATA FROM 'timestamp-type',
        every MAP<STRING, BINARY> METADATA FROM 'headers', trace STRING HEADER('trace')) WITH (partitions = 2)"""
    definition = source(statement)
    topic = created(definition, tmp_path, topics)
    import pyarrow as pa

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    headers = [{"key": "trace", "value": b"one"}, {"key": "x", "value": None}, {"key": "trace", "value": b"two"}]
    rows = [
        {"a": 1, "__timestamp": moment, "__key": b"me", "__headers": headers},
        {"a": 2, "__timestamp": moment, "__key": None, "__headers": None},
    ]
    topic.append(1, pa.Table.from_pylist(rows, schema=topic.schema))
    asked = request(definition, tmp_path)
    names = tuple(column.name for column in definition.columns)
    found = with_metadata(
        source_of("topic").between(spark, asked, None, source_of("topic").end_offset(asked)), definition, names
    )
    assert [(field.name, field.dataType.simpleString()) for field in found.select(*names).schema] == [
        ("a", "bigint"),
        ("p", "bigint"),
        ("o", "bigint"),
        ("at", "timestamp"),
        ("ms", "bigint"),
        ("k", "string"),
        ("t", "string"),
        ("kind", "string"),
        ("every", "map<string,binary>"),
        ("trace", "string"),
    ]
    first, second = sorted(found.select(*names).collect())
    ms = int(moment.timestamp() * 1000)
    assert (first.p, first.o, first.ms, first.k, first.t, first.trace) == (1, 0, ms, "me", "m", "two")
    assert {name: value and bytes(value) for name, value in first.every.items()} == {"trace": b"two", "x": None}
    assert (second.o, second.k, second.every, second.trace) == (1, None, None, None)
    with running(spark, asked, tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 2)
    assert set(job.rows[0]) == {"a", "__partition", "__offset", "__timestamp", "__key", "__headers"}


def test_bytes_come_as_values(spark: SparkSession, tmp_path: Path, topics: TopicStore) -> None:
    definition = source("CREATE STREAM j (a BIGINT) WITH (format = 'json')")
    topic = created(definition, tmp_path, topics)
    import pyarrow as pa

    topic.append(0, pa.table({"__value": pa.array([b'{"a": 1}', b"?"])}))
    assert not source_of("topic").typed(definition)
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 2)
    assert [bytes(row["__value"]) for row in job.rows] == [b'{"a": 1}', b"?"]


DATAGEN = """CREATE STREAM g (n BIGINT, price DECIMAL(10, 2), name STRING, ts TIMESTAMP, a ARRAY<INT>,
    r STRUCT<p INT, q STRING>) WITH (connector = 'datagen', number_of_rows = 5000, partitions = 2, {}
    'fields.n.kind' = 'sequence', 'fields.ts.max_past' = '3 s', 'fields.name.null_rate' = 0.1)"""


def test_a_bounded_generator_ends_and_a_range_of_it_can_be_read_again(spark: SparkSession, tmp_path: Path) -> None:
    definition = source(DATAGEN.format("max_rows_per_batch = 1500,"))
    asked = request(definition, tmp_path)
    generator = source_of("datagen")
    with running(spark, asked, tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 5_000)
        job.stop()
    offsets = logged(tmp_path / "c")
    assert generator.positions(offsets[max(offsets)]) == generator.end(asked) == {0: 2500, 1: 2500}
    assert sorted(row["n"] for row in job.rows) == list(range(5_000))
    start = None
    for batch_id, end in sorted(offsets.items()):
        again = [row.asDict(recursive=True) for row in generator.between(spark, asked, start, end).collect()]
        assert by_place(again) == by_place(job.batches[batch_id])
        start = end


def test_a_generator_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    definition = source(DATAGEN.format("rows_per_second = 2000,"))
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) > 0)
        job.stop()
    with running(spark, request(definition, tmp_path, run=2), tmp_path / "c") as again:
        again.until(lambda: len(job.rows) + len(again.rows) >= 5_000)
    assert sorted(row["n"] for row in [*job.rows, *again.rows]) == list(range(5_000))
    clock = {row["n"]: row["ts"] for row in [*job.rows, *again.rows]}
    assert max(clock.values()) - min(clock.values()) >= timedelta(seconds=2)


def test_an_impulse_streams(spark: SparkSession, tmp_path: Path) -> None:
    definition = source("CREATE STREAM i WITH (connector = 'impulse', event_rate = 50, message_count = 20)")
    with running(spark, request(definition, tmp_path), tmp_path / "c") as job:
        job.until(lambda: len(job.rows) == 20)
    assert sorted(int(row["counter"]) for row in job.rows) == list(range(20))
    moments = sorted(row["timestamp"] for row in job.rows)
    assert moments[-1] - moments[0] == timedelta(milliseconds=380)


def by_place(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["__partition"], row["__offset"]))


def logged(checkpoint: Path) -> dict[int, str]:
    """The end of each batch in Spark's offset log."""
    files = [path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()]
    return {int(path.name): path.read_text(encoding="utf-8").splitlines()[-1] for path in files}
