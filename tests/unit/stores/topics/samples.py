"""What the tests of topics share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.stores.topics import Topic, TopicLayout, TopicReader, TopicStore, topic_directory
from penstock.types import BIGINT, STRING

COLUMNS = (("n", BIGINT), ("word", STRING))
NOON_US = 1_769_860_800_000_000


def layout(**changes: Any) -> TopicLayout:
    return TopicLayout(**{"columns": COLUMNS, **changes})


def numbers(first: int, count: int) -> pa.Table:
    values = range(first, first + count)
    return pa.table({"n": pa.array(values, pa.int64()), "word": [f"w{value}" for value in values]})


def read_all(reader: TopicReader, partition: int = 0, column: str = "n") -> list[Any]:
    start, end = reader.starts()[partition], reader.ends()[partition]
    batches = list(reader.read(partition, start, end, [column]))
    offsets = [offset for batch in batches for offset in batch.column("__offset").to_pylist()]
    assert offsets == list(range(start, end))
    return [value for batch in batches for value in batch.column(column).to_pylist()]


def crashed_copy(root: Path, copy: Path) -> Path:
    """The files as a process that was killed now would leave them."""
    shutil.copytree(root, copy)
    return copy


def reader_of(store: TopicStore, name: str = "t") -> TopicReader:
    return TopicReader(topic_directory(store.root, name))


def segment_of(topic: Topic, partition: int = 0) -> Path:
    """The segment that is written to."""
    return max((topic.directory / str(partition)).glob("*.segment"))
