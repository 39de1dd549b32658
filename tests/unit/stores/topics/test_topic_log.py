"""Embedded topics: what is appended comes back, in order, in this process and the next."""

from __future__ import annotations

import datetime as dt
import errno
import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.stores.arrow_types import arrow_type
from penstock.stores.topics import Appended, TopicLayout, TopicReader, TopicStore, topic_directory
from penstock.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Field, SqlType
from tests.unit.stores.topics.samples import NOON_US, layout, numbers, read_all, reader_of, segment_of

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "topics"


@pytest.fixture
def store(root: Path) -> Iterator[TopicStore]:
    with TopicStore(root, clock=lambda: NOON_US) as opened:
        yield opened


EVERY_TYPE: list[tuple[SqlType, Any]] = [
    (STRING, "grün"),
    (BOOLEAN, True),
    (SqlType("TINYINT"), -128),
    (SqlType("SMALLINT"), -5),
    (INT, 2**31 - 1),
    (BIGINT, -(2**63)),
    (SqlType("UTINYINT"), 255),
    (SqlType("USMALLINT"), 65535),
    (SqlType("UINT"), 2**32 - 1),
    (SqlType("UBIGINT"), Decimal(2**64 - 1)),
    (SqlType("FLOAT"), 1.5),
    (DOUBLE, 0.1),
    (SqlType("DECIMAL", (38, 18)), Decimal("1.000000000000000001")),
    (BINARY, b"\x00\xff"),
    (DATE, dt.date(1969, 12, 31)),
    (TIMESTAMP, NOON),
    (SqlType("ARRAY", elements=(INT,)), [1, None]),
    (SqlType("MAP", elements=(STRING, DOUBLE)), [("a", 1.0), ("b", None)]),
    (SqlType("STRUCT", fields=(Field("a", INT), Field("b", TIMESTAMP))), {"a": 1, "b": NOON}),
]


def test_every_type_comes_back(store: TopicStore) -> None:
    columns = tuple((f"c{place}", type_) for place, (type_, _) in enumerate(EVERY_TYPE))
    topic = store.create("t", TopicLayout(columns))
    table = pa.table(
        {f"c{place}": pa.array([value, None], arrow_type(type_)) for place, (type_, value) in enumerate(EVERY_TYPE)}
    )
    topic.append(0, table)
    (batch,) = reader_of(store).read(0, 0, 2)
    for place, (type_, value) in enumerate(EVERY_TYPE):
        assert batch.column(f"c{place}").to_pylist() == [value, None], str(type_)
        assert batch.column(f"c{place}").type == arrow_type(type_)
    assert batch.column("__timestamp").to_pylist() == [NOON, NOON]
    assert batch.column("__key").to_pylist() == batch.column("__headers").to_pylist() == [None, None]
    assert batch.schema.names[-2:] == ["__partition", "__offset"]
    assert batch.column("__partition").to_pylist() == [0, 0]


def test_bytes_come_back_with_key_and_headers(store: TopicStore) -> None:
    topic = store.create("t", TopicLayout(None))
    early = NOON - dt.timedelta(days=1)
    headers = [[{"key": "h", "value": b"1"}], None]
    given = {"__value": [b"v", None], "__key": [b"k", None], "__headers": headers, "__timestamp": [early, NOON]}
    topic.append(0, pa.table({name: pa.array(values, topic.schema.field(name).type) for name, values in given.items()}))
    topic.append(0, pa.table({"__value": [b"w"]}))
    rows = pa.Table.from_batches(reader_of(store).read(0, 0, 3)).to_pylist()
    assert [row["__value"] for row in rows] == [b"v", None, b"w"]
    assert [row["__key"] for row in rows] == [b"k", None, None]
    assert [row["__headers"] for row in rows] == [*headers, None]
    assert [row["__timestamp"] for row in rows] == [early, NOON, NOON]


def test_partitions_count_for_themselves(store: TopicStore) -> None:
    topic = store.create("t", layout(partitions=3))
    assert topic.append(0, numbers(0, 2)) == Appended(0, 0, 2)
    assert topic.append(2, numbers(10, 3)) == Appended(2, 0, 3)
    assert topic.append(0, numbers(2, 1)) == Appended(0, 2, 1)
    reader = reader_of(store)
    assert topic.ends() == reader.ends() == {0: 3, 1: 0, 2: 3}
    assert topic.starts() == reader.starts() == {0: 0, 1: 0, 2: 0}
    assert [read_all(reader, partition) for partition in range(3)] == [[0, 1, 2], [], [10, 11, 12]]


def test_a_topic_goes_on_after_it_was_closed(root: Path) -> None:
    for first in (0, 3, 6):
        with TopicStore(root) as store:
            topic = store.create("t", layout())
            assert topic.append(0, numbers(first, 3)).first_offset == first
            assert topic.repaired == ()
    assert read_all(TopicReader(topic_directory(root, "t"))) == list(range(9))


def test_a_reader_follows_a_topic_that_grows_over_segments(store: TopicStore) -> None:
    topic = store.create("t", layout(retention_bytes=1))  # the smallest segments; nothing is let go by itself
    reader = reader_of(store)
    seen = 0
    for first in range(0, 20_000, 2_000):
        topic.append(0, numbers(first, 2_000))
        end = reader.ends()[0]
        assert [value for batch in reader.read(0, seen, end, ["n"]) for value in batch.column("n").to_pylist()] == list(
            range(seen, end)
        )
        seen = end
    assert len(list(topic.directory.glob("0/*.segment"))) > 3
    assert read_all(reader) == list(range(20_000))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (5, 6), (3, 17), (7, 30), (29, 30), (0, 30)])
@pytest.mark.parametrize("max_rows", [1, 4, 10, 1000])
def test_any_range_is_read_in_batches_of_the_size_asked_for(
    store: TopicStore, start: int, end: int, max_rows: int
) -> None:
    topic = store.create("t", layout())
    first = 0
    for count in (1, 6, 10, 1, 1, 1, 10):
        topic.append(0, numbers(first, count))
        first += count
    batches = list(reader_of(store).read(0, start, end, ["__offset", "n"], max_rows))
    assert all(batch.schema.names == ["__offset", "n", "__partition"] for batch in batches)
    assert all(0 < batch.num_rows <= max_rows for batch in batches)
    for name in ("n", "__offset"):
        assert [value for batch in batches for value in batch.column(name).to_pylist()] == list(range(start, end))


def test_offsets_alone_can_be_read(store: TopicStore) -> None:
    topic = store.create("t", layout(partitions=2))
    for first in range(3):
        topic.append(1, numbers(first, 2))
    (batch,) = reader_of(store).read(1, 1, 6, [])
    assert batch.to_pydict() == {"__partition": [1] * 5, "__offset": [1, 2, 3, 4, 5]}
    (batch,) = reader_of(store).read(1, 0, 6, ["__timestamp"])
    assert batch.column("__timestamp").to_pylist() == [NOON] * 6


def test_a_large_append_is_one(store: TopicStore) -> None:
    topic = store.create("t", layout())
    assert topic.append(0, numbers(0, 200_000)) == Appended(0, 0, 200_000)
    assert (topic.directory / "0" / f"{0:020d}.index").stat().st_size // 16 > 1
    assert read_all(reader_of(store)) == list(range(200_000))


def test_an_empty_append_is_no_append(store: TopicStore) -> None:
    topic = store.create("t", layout())
    topic.append(0, numbers(0, 2))
    assert topic.append(0, numbers(0, 0), ("j", 1)) == Appended(0, 2, 0)
    assert topic.append(0, numbers(2, 1), ("j", 1)) == Appended(0, 2, 1)


def test_columns_are_put_in_order_cast_and_filled(store: TopicStore) -> None:
    topic = store.create("t", layout())
    topic.append(0, pa.table({"word": pa.array(["a"], pa.large_string()), "n": pa.array([1], pa.int8())}))
    topic.append(0, pa.record_batch({"word": ["b"]}))
    assert read_all(reader_of(store)) == [1, None]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"n": [1], "m": [2]}, "topic t has no column m"),
        ({"n": ["one"]}, "topic t, column n"),
    ],
)
def test_rows_of_other_columns_are_refused(store: TopicStore, rows: dict[str, Any], said: str) -> None:
    topic = store.create("t", layout())
    with pytest.raises(PenstockError, match=said) as caught:
        topic.append(0, pa.table(rows))
    assert caught.value.condition == "INVALID_ROWS"
    assert topic.ends() == {0: 0}


def test_an_unknown_partition_is_refused(store: TopicStore) -> None:
    with pytest.raises(PenstockError, match="has no partition 1") as caught:
        store.create("t", layout()).append(1, numbers(0, 1))
    assert caught.value.condition == "INVALID_ROWS"


def test_a_batch_that_is_sent_again_is_kept_once(root: Path) -> None:
    with TopicStore(root) as store:
        topic = store.create("t", layout(partitions=2))
        first = topic.append(0, numbers(0, 2), ("job", 7))
        topic.append(0, numbers(2, 2), ("job", 8))
        assert topic.append(0, numbers(0, 2), ("job", 7)) == first == Appended(0, 0, 2)
        assert topic.append(1, numbers(0, 2), ("job", 7)) == Appended(1, 0, 2)
        assert topic.append(0, numbers(4, 1), ("other", 7)) == Appended(0, 4, 1)
    with TopicStore(root) as store:
        topic = store.open("t")
        assert topic.append(0, numbers(0, 2), ("job", 7)) == first
        assert topic.append(0, numbers(0, 9), ("job", 8)) == Appended(0, 2, 2)
        assert topic.append(0, numbers(5, 1), ("job", 9)) == Appended(0, 5, 1)
        assert read_all(reader_of(store)) == [0, 1, 2, 3, 4, 5]


def test_a_large_batch_is_known_as_a_whole(root: Path) -> None:
    for _ in range(2):
        with TopicStore(root) as store:
            topic = store.create("t", layout(fsync="never"))
            for _ in range(2):
                assert topic.append(0, numbers(0, 150_000), ("job", 1)) == Appended(0, 0, 150_000)
            assert topic.ends() == {0: 150_000}


def test_batches_are_known_again_over_segments(root: Path) -> None:
    with TopicStore(root) as store:
        topic = store.create("t", layout(retention_bytes=1))
        places = [topic.append(0, numbers(0, 2_000), ("job", batch)) for batch in range(8)]
        assert len(list(topic.directory.glob("0/*.segment"))) > 1
    with TopicStore(root) as store:
        topic = store.open("t")
        assert [topic.append(0, numbers(0, 2_000), ("job", batch)) for batch in range(8)] == places


def test_columns_must_stay_the_same(store: TopicStore) -> None:
    topic = store.create("t", layout())
    for columns, said in [
        ((("n", BIGINT), ("word", INT)), "column 2 is word STRING, and the definition says word INT"),
        ((("n", BIGINT), ("word", STRING), ("x", INT)), "it has no column 3, and the definition says x INT"),
        ((("n", BIGINT),), "it has a column 2, word STRING, and the definition has not"),
        (None, "it holds typed columns, and the definition asks for bytes"),
    ]:
        with pytest.raises(PenstockError, match=said) as caught:
            store.create("t", layout(columns=columns))
        assert caught.value.condition == "TOPIC_MISMATCH"
    assert store.create("t", layout()) is topic


def test_partitions_are_added_and_never_taken_away(root: Path) -> None:
    with TopicStore(root) as store:
        store.create("t", layout(partitions=1)).append(0, numbers(0, 3))
        reader = reader_of(store)
        assert reader.ends() == {0: 3}
        topic = store.create("t", layout(partitions=3))
        topic.append(2, numbers(5, 1))
        assert reader.ends() == topic.ends() == {0: 3, 1: 0, 2: 1}
        assert read_all(reader, 2) == [5]
    with TopicStore(root) as store:
        assert store.create("t", layout(partitions=2)).ends() == {0: 3, 1: 0, 2: 1}
        assert store.open("t").layout.partitions == 3


def test_topics_are_listed_and_dropped(store: TopicStore, root: Path) -> None:
    names = ("a/b", "..", "Ünder score", "z" * 300)
    for place, name in enumerate(names):
        store.create(name, layout()).append(0, numbers(place, 1))
    assert store.names() == tuple(sorted(names))
    assert all(topic_directory(root, name).parent == root for name in names)
    reader = reader_of(store, "a/b")
    store.drop("a/b")
    store.drop("never there")
    assert store.names() == tuple(sorted(names[1:]))
    for gone in (lambda: store.open("a/b"), reader.ends, lambda: TopicReader(topic_directory(root, "a/b"))):
        with pytest.raises(PenstockError) as caught:
            gone()
        assert caught.value.condition == "SOURCE_DATA_LOST"
    assert store.create("a/b", layout()).ends() == {0: 0}


def test_files_are_for_their_owner_only(store: TopicStore, root: Path) -> None:
    store.create("t", layout(partitions=2)).append(1, numbers(0, 1), ("j", 1))
    store.close()
    for path in [root, *root.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_one_process_writes_at_a_time(store: TopicStore, root: Path) -> None:
    store.create("t", layout())
    with TopicStore(root) as other:
        with pytest.raises(PenstockError) as caught:
            other.open("t")
        assert caught.value.condition == "ENGINE_ALREADY_RUNNING"
        store.close()
        assert other.open("t").ends() == {0: 0}


def test_a_closed_store_takes_nothing(store: TopicStore) -> None:
    topic = store.create("t", layout())
    store.close()
    for call in (lambda: topic.append(0, numbers(0, 1)), lambda: store.open("t")):
        with pytest.raises(PenstockError) as caught:
            call()
        assert caught.value.condition == "DATABASE_CLOSED"


@pytest.mark.parametrize(("policy", "least", "most"), [("always", 5, 5), ("interval", 0, 1), ("never", 0, 0)])
def test_rows_are_forced_to_disk_as_the_policy_says(
    store: TopicStore, monkeypatch: pytest.MonkeyPatch, policy: str, least: int, most: int
) -> None:
    forced: list[int] = []
    real = os.fdatasync

    def note(descriptor: int) -> None:
        forced.append(descriptor)
        real(descriptor)

    topic = store.create("t", layout(fsync=policy))
    monkeypatch.setattr(os, "fdatasync", note)
    for first in range(5):
        topic.append(0, numbers(first, 1))
    assert least <= len(forced) <= most
    if policy == "interval":
        deadline = time.monotonic() + 60
        while not forced and time.monotonic() < deadline:
            time.sleep(0.05)
        assert forced


def test_the_end_moves_after_the_rows_are_on_disk(store: TopicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = store.create("t", layout())
    reader = reader_of(store)
    real = os.fdatasync
    ends: list[int] = []

    def look(descriptor: int) -> None:
        real(descriptor)
        ends.append(reader.ends()[0])

    monkeypatch.setattr(os, "fdatasync", look)
    topic.append(0, numbers(0, 3))
    assert ends == [0]
    assert reader.ends() == {0: 3}


def test_a_full_disk_leaves_nothing_behind(store: TopicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = store.create("t", layout())
    topic.append(0, numbers(0, 3))
    size = segment_of(topic).stat().st_size
    real = os.pwritev

    def part(descriptor: int, views: Any, position: int) -> int:
        real(descriptor, [views[0][:40]], position)
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwritev", part)
        with pytest.raises(PenstockError) as caught:
            topic.append(0, numbers(3, 3), ("job", 1))
    assert caught.value.condition == "STORAGE_FULL"
    assert segment_of(topic).stat().st_size == size
    assert topic.append(0, numbers(3, 3), ("job", 1)) == Appended(0, 3, 3)
    assert read_all(reader_of(store)) == list(range(6))


def test_a_disk_that_cannot_keep_rows_stops_the_partition(store: TopicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = store.create("t", layout())
    topic.append(0, numbers(0, 3))

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(PenstockError):
            topic.append(0, numbers(3, 3))
    with pytest.raises(PenstockError) as caught:
        topic.append(0, numbers(3, 3))
    assert caught.value.condition == "STATE_PATH_UNUSABLE"
    assert read_all(reader_of(store)) == [0, 1, 2]


def test_writes_in_pieces_are_finished(store: TopicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = store.create("t", layout())
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda descriptor, views, place: real(descriptor, [views[0][:7]], place))
    topic.append(0, numbers(0, 50))
    assert read_all(reader_of(store)) == list(range(50))


def test_threads_append_side_by_side(store: TopicStore) -> None:
    topic = store.create("t", layout(partitions=2, fsync="never", retention_bytes=1))

    def work(worker: int) -> list[Appended]:
        return [topic.append(place % 2, numbers(worker * 1_000_000 + place * 100, 100)) for place in range(40)]

    with ThreadPoolExecutor(8) as pool:
        places = [place for done in pool.map(work, range(8)) for place in done]
    reader = reader_of(store)
    for partition in range(2):
        values = read_all(reader, partition)
        firsts = sorted(place.first_offset for place in places if place.partition == partition)
        assert firsts == list(range(0, len(values), 100))
        # Each append stands together.
        assert all(values[first : first + 100] == list(range(values[first], values[first] + 100)) for first in firsts)


def test_asking_for_the_ends_is_one_small_read(store: TopicStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("t", layout(partitions=4))
    reader = reader_of(store)
    reader.ends()
    reads: list[int] = []
    real = os.pread

    def count(descriptor: int, length: int, position: int) -> bytes:
        reads.append(length)
        return real(descriptor, length, position)

    monkeypatch.setattr(os, "pread", count)
    assert reader.ends() == {0: 0, 1: 0, 2: 0, 3: 0}
    assert len(reads) == 1
    assert reads[0] <= 1024
