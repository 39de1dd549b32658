"""What a crash leaves of a topic: whole appends, nothing else, and a word about what was cut."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.stores.topics import Appended, TopicReader, TopicStore, topic_directory
from penstock.stores.topics.frames import HEADER_BYTES, read_header
from tests.project import ROOT
from tests.unit.stores.topics.samples import crashed_copy, layout, numbers, read_all, reader_of, segment_of


class Crash:
    """Two appends to a topic: the files after the first counted, and while the second is being written."""

    def __init__(self, root: Path) -> None:
        with TopicStore(root) as store:
            topic = store.create("t", layout())
            topic.append(0, numbers(0, 3), ("job", 1))
            self.ends_before = (topic.directory / "ends").read_bytes()
            self.before = segment_of(topic).read_bytes()
            topic.append(0, numbers(3, 3), ("job", 2))
            self.ends_after = (topic.directory / "ends").read_bytes()
            self.after = segment_of(topic).read_bytes()
            # The files as they are while the topic is open, without what closing adds.
            self.image = crashed_copy(root, root.parent / "image")

    def left(self, root: Path, segment: bytes, ends: bytes) -> Path:
        """A state directory with this segment and these ends."""
        shutil.copytree(self.image, root)
        directory = topic_directory(root, "t")
        (directory / "ends").write_bytes(ends)
        (directory / "0" / f"{0:020d}.segment").write_bytes(segment)
        return root


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory) -> Crash:
    return Crash(tmp_path_factory.mktemp("crash") / "topics")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repair")


def check_first_append_is_there(root: Path, *, said: bool) -> None:
    with TopicStore(root) as store:
        topic = store.open("t")
        assert read_all(reader_of(store)) == [0, 1, 2]
        if said:
            (words,) = topic.repaired
            assert words.startswith("topic t, partition 0: ")
            assert "the last whole offset is 2" in words
        else:
            assert topic.repaired == ()
        # The batch that was cut is not known, the one before it is.
        assert topic.append(0, numbers(0, 3), ("job", 1)) == Appended(0, 0, 3)
        assert topic.append(0, numbers(3, 3), ("job", 2)) == Appended(0, 3, 3)
        assert read_all(reader_of(store)) == list(range(6))


def test_a_tail_cut_at_any_byte_is_cut_to_the_last_whole_append(crash: Crash, tmp_path: Path) -> None:
    for length in range(len(crash.before), len(crash.after), 7):
        root = crash.left(tmp_path / str(length), crash.after[:length], crash.ends_before)
        check_first_append_is_there(root, said=length > len(crash.before))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_garbled_tail_is_cut(crash: Crash, place: Path, data: st.DataObject) -> None:
    frame = read_header(memoryview(crash.after), len(crash.before))
    # Behind the payload is padding, which nobody reads.
    at = data.draw(st.integers(frame.position, frame.position + HEADER_BYTES + frame.payload_bytes - 1))
    flipped = data.draw(st.integers(1, 255))
    garbled = bytearray(crash.after)
    garbled[at] ^= flipped
    root = place / "garbled"
    shutil.rmtree(root, ignore_errors=True)
    crash.left(root, bytes(garbled), crash.ends_before)
    check_first_append_is_there(root, said=True)


def test_a_whole_append_that_did_not_count_yet_is_kept(crash: Crash, tmp_path: Path) -> None:
    root = crash.left(tmp_path / "topics", crash.after, crash.ends_before)
    assert read_all(TopicReader(topic_directory(root, "t"))) == [0, 1, 2]
    with TopicStore(root) as store:
        topic = store.open("t")
        assert topic.repaired == ()
        assert topic.append(0, numbers(3, 3), ("job", 2)) == Appended(0, 3, 3)
        assert read_all(reader_of(store)) == list(range(6))


def test_a_reader_does_not_even_map_what_does_not_count(crash: Crash, tmp_path: Path) -> None:
    # The writer may cut it at any time, and to look at a page that was cut off ends the process.
    root = crash.left(tmp_path / "topics", crash.after, crash.ends_before)
    reader = TopicReader(topic_directory(root, "t"))
    assert read_all(reader) == [0, 1, 2]
    assert len(reader._segments[0].data) == len(crash.before)


def test_a_large_append_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    root = tmp_path / "topics"
    with TopicStore(root) as store:
        topic = store.create("t", layout())
        topic.append(0, numbers(0, 3))
        ends, size = (topic.directory / "ends").read_bytes(), segment_of(topic).stat().st_size
        topic.append(0, numbers(3, 150_000))
        image = crashed_copy(root, tmp_path / "image")
    directory = topic_directory(image, "t")
    (directory / "ends").write_bytes(ends)
    segment = directory / "0" / f"{0:020d}.segment"
    content = segment.read_bytes()
    # Cut behind the first of its frames.
    second = content.index(b"PSTK", size + 64)
    segment.write_bytes(content[:second])
    with TopicStore(image) as store:
        (words,) = store.open("t").repaired
        assert f"{second - size} bytes" in words
        assert read_all(reader_of(store)) == [0, 1, 2]


@pytest.mark.parametrize("place", ["header", "payload"])
def test_a_damaged_frame_that_counted_is_an_error_and_never_skipped(crash: Crash, tmp_path: Path, place: str) -> None:
    garbled = bytearray(crash.after)
    garbled[len(crash.before) + (8 if place == "header" else 200)] ^= 1
    root = crash.left(tmp_path / "topics", bytes(garbled), crash.ends_after)
    with TopicStore(root) as store:
        topic = store.open("t")
        (words,) = topic.repaired
        assert "damaged" in words
        assert "rows from offset 3 to 5" in words
        assert topic.ends() == {0: 6}
        assert topic.append(0, numbers(6, 2)) == Appended(0, 6, 2)
        reader = reader_of(store)
        assert next(reader.read(0, 0, 3, ["n"])).column("n").to_pylist() == [0, 1, 2]
        assert next(reader.read(0, 6, 8, ["n"])).column("n").to_pylist() == [6, 7]
        for start in (0, 3, 5):
            with pytest.raises(PenstockError, match=r"0{20}\.segment.*offset") as caught:
                list(reader.read(0, start, 8))
            assert caught.value.condition == "TOPIC_DAMAGED"
    with TopicStore(root) as store:
        assert store.open("t").repaired == ()
        assert store.open("t").ends() == {0: 8}


def test_a_reader_finds_damage_by_itself(crash: Crash, tmp_path: Path) -> None:
    garbled = bytearray(crash.after)
    garbled[100] ^= 1
    root = crash.left(tmp_path / "topics", bytes(garbled), crash.ends_after)
    reader = TopicReader(topic_directory(root, "t"))
    with pytest.raises(PenstockError, match=r"checksum is wrong \(byte 0, offset 0\)"):
        list(reader.read(0, 0, 6))
    assert next(reader.read(0, 3, 6, ["n"])).column("n").to_pylist() == [3, 4, 5]


@pytest.mark.parametrize("kept", [0, 100])
def test_rows_that_counted_and_are_missing_are_an_error(crash: Crash, tmp_path: Path, kept: int) -> None:
    root = crash.left(tmp_path / "topics", crash.after[: len(crash.before) + kept], crash.ends_after)
    with pytest.raises(PenstockError) as caught:
        list(TopicReader(topic_directory(root, "t")).read(0, 0, 6))
    assert caught.value.condition == "TOPIC_DAMAGED"
    with TopicStore(root) as store:
        topic = store.open("t")
        assert topic.append(0, numbers(6, 1)).first_offset == 6
        with pytest.raises(PenstockError) as caught:
            list(reader_of(store).read(0, 3, 7))
        assert caught.value.condition == "TOPIC_DAMAGED"


def test_a_segment_that_is_missing_is_an_error(crash: Crash, tmp_path: Path) -> None:
    root = crash.left(tmp_path / "topics", b"", crash.ends_after)
    (topic_directory(root, "t") / "0" / f"{0:020d}.segment").unlink()
    with TopicStore(root) as store:
        assert "is missing" in store.open("t").repaired[0]
        assert store.open("t").append(0, numbers(6, 1)).first_offset == 6
        with pytest.raises(PenstockError, match="the file is missing"):
            list(reader_of(store).read(0, 0, 7))


@pytest.mark.parametrize("index", [b"", b"\x07" * 9, b"\xff" * 32])
def test_an_index_that_does_not_fit_is_not_used(crash: Crash, tmp_path: Path, index: bytes) -> None:
    root = crash.left(tmp_path / "topics", crash.after, crash.ends_after)
    path = topic_directory(root, "t") / "0" / f"{0:020d}.index"
    path.write_bytes(index)
    assert read_all(TopicReader(topic_directory(root, "t"))) == list(range(6))
    with TopicStore(root) as store:
        assert store.open("t").append(0, numbers(6, 1)).first_offset == 6
        assert read_all(reader_of(store)) == list(range(7))


def test_ends_that_cannot_be_read_are_found_again(crash: Crash, tmp_path: Path) -> None:
    root = crash.left(tmp_path / "topics", crash.after + b"half a frame", bytes(128))
    with TopicStore(root) as store:
        topic = store.open("t")
        assert len(topic.repaired) == 2
        assert topic.ends() == {0: 6}
        assert read_all(reader_of(store)) == list(range(6))


@pytest.mark.parametrize("slot", [0, 1])
def test_a_torn_slot_shows_the_end_before_it(crash: Crash, tmp_path: Path, slot: int) -> None:
    ends = bytearray(crash.ends_after)
    ends[slot * 64 + 8] ^= 1
    root = crash.left(tmp_path / "topics", crash.after, bytes(ends))
    assert TopicReader(topic_directory(root, "t")).ends()[0] in (3, 6)
    with TopicStore(root) as store:
        assert store.open("t").ends() == {0: 6}


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format": 2}', b"\xff"])
def test_a_topic_file_that_cannot_be_read_is_damage(crash: Crash, tmp_path: Path, content: bytes) -> None:
    root = crash.left(tmp_path / "topics", crash.after, crash.ends_after)
    (topic_directory(root, "t") / "topic.json").write_bytes(content)
    with pytest.raises(PenstockError, match=r"topic\.json") as caught:
        TopicStore(root).open("t")
    assert caught.value.condition == "TOPIC_DAMAGED"


APPENDER = """
import sys
from pathlib import Path
from penstock.stores.topics import TopicStore
from tests.unit.stores.topics.samples import layout, numbers
topic = TopicStore(Path(sys.argv[1])).create("t", layout(retention_bytes=1))
first = topic.ends()[0]
for batch in range(1_000_000):
    topic.append(0, numbers(first, 500), ("job", first))
    first += 500
    print(first, flush=True)
"""


@pytest.mark.chaos
def test_a_writer_that_is_killed_loses_no_acknowledged_row_and_readers_see_whole_ones(tmp_path: Path) -> None:
    root = tmp_path / "topics"
    end = 0
    for kill in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(root)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert writer.stdout is not None
            acknowledged = end
            reader: TopicReader | None = None
            for _ in range(10 + 7 * kill):
                acknowledged = int(writer.stdout.readline())
                # This process reads while the other one writes.
                reader = reader or TopicReader(topic_directory(root, "t"))
                seen = reader.ends()[0]
                assert seen >= acknowledged
                assert seen % 500 == 0
                values = [n for batch in reader.read(0, end, seen, ["n"]) for n in batch.column("n").to_pylist()]
                assert values == list(range(end, seen))
                end = seen
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            assert writer.stdout is not None
            rest = writer.stdout.read().split()
            writer.stdout.close()
        acknowledged = max([acknowledged, *map(int, rest[:-1])])
        with TopicStore(root) as store:
            topic = store.open("t")
            end = topic.ends()[0]
            assert end >= acknowledged
            assert end % 500 == 0
            assert read_all(reader_of(store)) == list(range(end))
            # A batch that was sent before the crash is known.
            assert topic.append(0, numbers(0, 500), ("job", end - 500)) == Appended(0, end - 500, 500)
