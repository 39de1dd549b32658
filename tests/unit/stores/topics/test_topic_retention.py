"""Old rows go, whole segments at a time, and whoever asks for them is told so."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.stores.topics import TopicReader, TopicStore, topic_directory
from tests.unit.stores.topics.samples import NOON_US, layout, numbers, read_all, reader_of

HOUR_US = 3_600_000_000


class Clock:
    def __init__(self) -> None:
        self.now_us = NOON_US

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "topics"


def test_rows_go_after_their_time(root: Path) -> None:
    clock = Clock()
    with TopicStore(root, clock) as store:
        topic = store.create("t", layout(retention_us=8 * HOUR_US, partitions=2))
        for first in range(0, 100, 10):
            topic.append(0, numbers(first, 10))
            clock.now_us += HOUR_US
        reader = reader_of(store)
        assert reader.starts() == {0: 0, 1: 0}
        topic.apply_retention(clock.now_us)
        start = topic.starts()[0]
        # Rows appended at least 8 hours ago, and the segments hold one hour each.
        assert start == 30
        assert reader.starts() == topic.starts() == {0: start, 1: 0}
        assert read_all(reader) == list(range(start, 100))
        assert len(list(topic.directory.glob("0/*.segment"))) == len(list(topic.directory.glob("0/*.index"))) == 7
        for asked in (0, start - 1):
            with pytest.raises(PenstockError, match=f"from offset {asked} to {start - 1} are gone") as caught:
                list(reader.read(0, asked, 100))
            assert caught.value.condition == "SOURCE_DATA_LOST"
    with TopicStore(root, clock) as store:
        assert store.open("t").starts() == {0: start, 1: 0}


def test_an_idle_partition_empties_and_goes_on_counting(root: Path) -> None:
    clock = Clock()
    with TopicStore(root, clock) as store:
        topic = store.create("t", layout(retention_us=HOUR_US))
        topic.append(0, numbers(0, 10), ("job", 1))
        topic.apply_retention(clock.now_us + HOUR_US - 1)
        assert topic.starts() == {0: 0}
        topic.apply_retention(clock.now_us + HOUR_US)
        assert topic.starts() == topic.ends() == {0: 10}
        assert topic.append(0, numbers(10, 1)).first_offset == 10
        assert read_all(reader_of(store)) == [10]
    with TopicStore(root, clock) as store:
        # What was let go is still known to have been there.
        assert store.open("t").append(0, numbers(0, 10), ("job", 1)).first_offset == 0
        assert store.open("t").ends() == {0: 11}


def test_a_partition_keeps_so_many_bytes(root: Path) -> None:
    with TopicStore(root) as store:
        topic = store.create("t", layout(retention_bytes=300_000))
        for first in range(0, 50_000, 1_000):
            topic.append(0, numbers(first, 1_000))
        topic.apply_retention(NOON_US)
        kept = sum(path.stat().st_size for path in topic.directory.glob("0/*.segment"))
        assert 200_000 < kept <= 300_000
        assert topic.starts()[0] > 0
        assert read_all(reader_of(store)) == list(range(topic.starts()[0], 50_000))


def test_files_that_a_crash_left_are_removed(root: Path, tmp_path: Path) -> None:
    with TopicStore(root) as store:
        topic = store.create("t", layout(retention_bytes=200_000))
        for first in range(0, 40_000, 1_000):
            topic.append(0, numbers(first, 1_000))
        old = {path.name: path.read_bytes() for path in topic.directory.glob("0/*")}
        topic.apply_retention(NOON_US)
        start = topic.starts()[0]
    directory = topic_directory(root, "t") / "0"
    left = [name for name in old if name.endswith(".segment") and not (directory / name).exists()]
    for name in left:
        (directory / name).write_bytes(old[name])
    assert left
    with TopicStore(root) as store:
        assert store.open("t").starts() == {0: start}
        assert not any((directory / name).exists() for name in left)
        assert read_all(reader_of(store)) == list(range(start, 40_000))


def test_a_reader_that_is_in_the_middle_can_finish(root: Path) -> None:
    clock = Clock()
    with TopicStore(root, clock) as store:
        topic = store.create("t", layout(retention_us=HOUR_US))
        for first in range(0, 30, 10):
            topic.append(0, numbers(first, 10))
        batches = TopicReader(topic.directory).read(0, 0, 30, ["n"], max_rows=10)
        assert next(batches).column("n").to_pylist() == list(range(10))
        topic.apply_retention(clock.now_us + HOUR_US)
        assert [batch.column("n").to_pylist() for batch in batches] == [list(range(10, 20)), list(range(20, 30))]


@pytest.mark.parametrize(("start", "end"), [(0, 4), (2, 4), (7, 9)])
def test_rows_behind_the_end_are_no_rows(root: Path, start: int, end: int) -> None:
    with TopicStore(root) as store:
        store.create("t", layout()).append(0, numbers(0, 3))
        with pytest.raises(PenstockError, match="the partition ends at offset 3") as caught:
            list(reader_of(store).read(0, start, end))
        assert caught.value.condition == "SOURCE_DATA_LOST"
        with pytest.raises(PenstockError, match="has no partition 1"):
            list(reader_of(store).read(1, 0, 0))
