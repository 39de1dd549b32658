"""I22: memory streams: numbers that begin anew are never taken for those of rows that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.memory import clear_memory, memory_topics
from penstock.connectors.memory_reader import MemoryRows
from penstock.connectors.offsets import Offset, Range, read_offset
from penstock.connectors.registry import source_of
from penstock.errors import RuntimeFailure
from penstock.stores.topics import TopicStore, topic_directory
from tests.unit.connectors.declared import source

STREAM = source("CREATE STREAM m (a BIGINT) WITH (connector = 'memory', partitions = 2)")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    clear_memory(tmp_path)


def filled(home: Path, rows: int) -> MemoryRows:
    """The stream in a new life, with rows in its first partition."""
    clear_memory(home)
    source_of("memory").prepare(STREAM, home, TopicStore(home / "topics"))
    if rows:
        memory_topics(home).open("m").append(0, pa.table({"a": pa.array(range(rows), pa.int64())}))
    return MemoryRows(str(topic_directory(home / "memory", "m")), ["a"])


def test_rows_are_read_as_long_as_they_live(home: Path) -> None:
    rows = filled(home, 3)
    first = Offset(0, rows.oldest())
    end = rows.reachable(first)
    assert end.positions == {0: 3, 1: 0}
    (batch,) = rows.read(Range(0, 1, 3), end, 10)
    assert batch.column("a").to_pylist() == [1, 2]
    kept = read_offset(end.json())
    assert rows.reachable(kept) == end
    again = filled(home, 7)
    for offset in (kept, replace(kept, run=9)):
        with pytest.raises(RuntimeFailure, match="memory stream m that the job has read are gone") as raised:
            again.reachable(offset)
        assert raised.value.condition == "SOURCE_DATA_LOST"
    with pytest.raises(RuntimeFailure, match="are gone"):
        again.read(Range(0, 0, 3), kept, 10)


def test_a_job_that_has_read_nothing_goes_on(home: Path) -> None:
    rows = filled(home, 0)
    nothing = rows.reachable(Offset(0, rows.oldest()))
    assert nothing.positions == {0: 0, 1: 0}
    again = filled(home, 2)
    assert again.reachable(nothing).positions == {0: 2, 1: 0}


def test_nothing_is_left_behind(home: Path) -> None:
    filled(home, 5)
    assert (home / "memory").is_dir()
    clear_memory(home)
    assert not (home / "memory").exists()
