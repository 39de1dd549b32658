"""Sinks: topics that take a batch once, consoles, and what is not there yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.model import SinkDefinition
from penstock.connectors.registry import sink_of, source_of
from penstock.connectors.sink import SinkContext
from penstock.errors import CatalogError, NotYetError
from penstock.stores.topics import TopicStore
from tests.unit.connectors.declared import sink

ROWS = pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "b": ["x", "y", "x", None]})


@pytest.fixture
def topics(tmp_path: Path) -> Iterator[TopicStore]:
    store = TopicStore(tmp_path / "topics")
    yield store
    store.close()


def prepared(statement: str, tmp_path: Path, topics: TopicStore) -> SinkContext:
    definition = sink(statement)
    sink_of(definition.options.connector).prepare(definition, tmp_path, topics)
    return context(definition, topics)


def context(definition: SinkDefinition, topics: TopicStore, **more: Any) -> SinkContext:
    return SinkContext("j", "j.1", definition, topics, **more)


def kept(topics: TopicStore, name: str = "k") -> dict[int, list[dict[str, Any]]]:
    from penstock.stores.topics import TopicReader, topic_directory

    reader = TopicReader(topic_directory(topics.root, name))
    return {
        partition: [row for batch in reader.read(partition, 0, end) for row in batch.to_pylist()]
        for partition, end in reader.ends().items()
    }


def test_a_topic_takes_a_batch_once(tmp_path: Path, topics: TopicStore) -> None:
    """Exactly once, however often the batch is written."""
    asked = prepared("CREATE SINK k (a INT, b STRING) WITH (connector = 'topic', partitions = 3)", tmp_path, topics)
    written = sink_of("topic")
    for batch_id in (4, 4, 5):
        written.write(ROWS, asked, batch_id)
    assert {partition: [row["a"] for row in rows] for partition, rows in kept(topics).items()} == {
        0: [],
        1: [1, 2, 3, 4],
        2: [1, 2, 3, 4],
    }


CHANGES = pa.table(
    {
        "_op": ["delete", "upsert", "upsert"],
        "a": pa.array([1, 2, 9], pa.int32()),
        "b": ["x", "y", "x"],
    }
)


def test_a_topic_keeps_what_becomes_of_rows_in_a_header(tmp_path: Path, topics: TopicStore) -> None:
    """Rows of one key stay in one partition; only deletions are marked, and a topic of added rows marks nothing."""
    statement = "CREATE SINK k (a INT, b STRING) WITH (connector = 'topic', partitions = 3, primary_key = 'b', changes = 'upsert')"
    asked = prepared(statement, tmp_path, topics)
    sink_of("topic").write(CHANGES, asked, 0)
    rows = [row for rows in kept(topics).values() for row in rows]
    marked = [{"key": "_op", "value": b"delete"}]
    assert sorted((row["a"], row["b"], row["__headers"]) for row in rows) == [
        (1, "x", marked),
        (2, "y", None),
        (9, "x", None),
    ]
    assert any(
        [row["a"] for row in found] == [1, 9] or [row["a"] for row in found] == [1, 2, 9]
        for found in kept(topics).values()
    )
    written = prepared(
        "CREATE SINK e (a INT, b STRING) WITH (connector = 'topic', format = 'debezium-json')", tmp_path, topics
    )
    records = pa.array([b"one", b"two", b"three"], pa.binary())
    encoding = context(written.definition, topics, encode=lambda rows: pa.nulls(rows.num_rows, pa.binary()))
    sink_of("topic").write(CHANGES.append_column("__record", records), encoding, 0)
    assert [(row["__value"], row["__headers"]) for row in kept(topics, "e")[0]] == [
        (b"one", None), (b"two", None), (b"three", None),
    ]  # fmt: skip


def test_rows_without_a_batch_are_written_each_time(tmp_path: Path, topics: TopicStore) -> None:
    asked = prepared("CREATE SINK k (a INT, b STRING) WITH (connector = 'topic')", tmp_path, topics)
    for _ in range(2):
        sink_of("topic").write(ROWS, asked, None)
    assert len(kept(topics)[0]) == 8


def test_keys_choose_partitions_and_a_half_written_batch_is_completed(tmp_path: Path, topics: TopicStore) -> None:
    statement = "CREATE SINK k (a INT, b STRING) WITH (connector = 'topic', partitions = 4, key = 'B')"
    asked = prepared(statement, tmp_path, topics)
    keys = ["red", "green", "blue", "white", None]
    rows = pa.table({"a": pa.array(range(20), pa.int32()), "b": [keys[number % 5] for number in range(20)]})
    sink_of("topic").write(rows, asked, 0)
    first = kept(topics)
    places = {row["b"]: partition for partition, found in first.items() for row in found}
    assert [row["a"] for row in first[places["red"]] if row["b"] == "red"] == [0, 5, 10, 15]
    assert len(set(places.values())) > 1
    # The rows of a batch may come in another order when it is run again.
    sink_of("topic").write(rows.take(list(reversed(range(20)))), asked, 0)
    assert kept(topics) == first


def test_records_of_a_format_are_encoded_and_metadata_is_set(tmp_path: Path, topics: TopicStore) -> None:
    statement = """CREATE SINK k (a INT, at TIMESTAMP METADATA FROM 'timestamp', id STRING METADATA FROM 'key')
        WITH (connector = 'topic', format = 'json')"""
    definition = prepared(statement, tmp_path, topics).definition
    seen: list[list[str]] = []

    def encode(rows: pa.Table) -> pa.Array:
        seen.append(rows.column_names)
        return pa.array([b"record"] * rows.num_rows)

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rows = pa.table({"a": [1], "at": pa.array([moment], pa.timestamp("us", tz="UTC")), "id": ["me"]})
    sink_of("topic").write(rows, context(definition, topics, encode=encode), 0)
    (record,) = kept(topics)[0]
    assert seen == [["a"]]
    assert (record["__value"], record["__key"], record["__timestamp"]) == (b"record", b"me", moment)


def test_a_topic_of_unknown_columns_is_refused(tmp_path: Path, topics: TopicStore) -> None:
    definition = sink("CREATE SINK k WITH (connector = 'topic')")
    with pytest.raises(CatalogError, match="the topic of k keeps typed columns, but it has no columns"):
        sink_of("topic").prepare(definition, tmp_path, topics)


def printed(options: str, rows: pa.Table, topics: TopicStore, batch_id: int | None = 3, **more: Any) -> str:
    output = StringIO()
    definition = sink(f"CREATE SINK k (a INT, b STRING) WITH (connector = 'console'{options})")
    sink_of("console").write(rows, context(definition, topics, output=output, **more), batch_id)
    return output.getvalue()


def test_console_prints_a_table(topics: TopicStore) -> None:
    assert printed("", ROWS, topics).splitlines() == [
        "k, batch 3: 4 rows",
        "a   b",
        "────────",
        "1   x",
        "2   y",
        "3   x",
        "4   NULL",
    ]


def test_console_prints_no_more_rows_than_asked(topics: TopicStore) -> None:
    lines = printed(", rows = 1, prefix = '> '", ROWS, topics, None).splitlines()
    assert lines[0] == "> k: 4 rows"
    assert lines[-2:] == ["> 1   x", "> … and 3 more rows"]


def test_console_cuts_long_values_unless_told_not_to(topics: TopicStore) -> None:
    long = pa.table({"b": ["z" * 100]})
    assert "z" * 41 not in printed("", long, topics)
    assert "z" * 100 in printed(", truncate = false", long, topics)


def test_console_shows_no_control_characters(topics: TopicStore) -> None:
    shown = printed("", pa.table({"b": ["red\x1b[31m\nnext [bold]"]}), topics)
    assert "\x1b" not in shown
    assert "red\ufffd[31m\ufffdnext [bold]" in shown


def test_console_prints_records_of_a_format(topics: TopicStore) -> None:
    def encode(rows: pa.Table) -> pa.Array:
        return pa.array([str(row).encode() for row in rows.column("a").to_pylist()])

    assert printed(", format = 'json'", ROWS, topics, encode=encode) == "1\n2\n3\n4\n"


def test_what_sinks_promise() -> None:
    assert [sink_of(name).exactly_once for name in ("topic", "console", "blackhole")] == [True, False, True]
    assert [sink_of(name).takes_frame for name in ("topic", "console", "blackhole")] == [False, False, True]


@pytest.mark.parametrize("connector", ["postgres", "delta"])
def test_what_is_not_there_yet_is_refused_by_name(connector: str) -> None:
    for asked in (source_of, sink_of):
        with pytest.raises(NotYetError, match=f"connector '{connector}' cannot be") as refused:
            asked(connector)
        assert refused.value.condition == "CONNECTOR_NOT_YET"
