"""Bytes that changed on disk in a segment that is no longer written to: told with file and place, never read as rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.connectors.offsets import Offset, Range
from penstock.connectors.topic_reader import TopicRows
from penstock.errors import PenstockError
from penstock.runtime.backoff import transient
from penstock.runtime.failures import as_failure
from penstock.stores.topics import TopicReader, TopicStore
from penstock.stores.topics.frames import HEADER_BYTES, Frame, read_header, walk_frames
from tests.unit.stores.topics.samples import NOON_US, layout, numbers

S = 1_000_000
APPENDS, ROWS = 3, 4  # appends in the older segment, rows in each


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic of two segments; the first of them is done with."""
    now = [NOON_US]
    with TopicStore(tmp_path_factory.mktemp("topics"), lambda: now[0]) as store:
        made = store.create("t", layout(retention_us=800 * S))
        for number in range(APPENDS):
            made.append(0, numbers(number * ROWS, ROWS))
        now[0] += 500 * S
        made.append(0, numbers(APPENDS * ROWS, ROWS))
        directory = made.directory
    assert len(list(directory.rglob("*.segment"))) == 2
    return directory


def rows_of(topic: Path) -> list[int]:
    reader = TopicReader(topic)
    try:
        return [n for batch in reader.read(0, 0, reader.ends()[0], ["n"]) for n in batch.column("n").to_pylist()]
    finally:
        reader.close()


def flipped_everywhere(file: Path, read: Callable[[int], None]) -> None:
    """Call `read` with each byte of a file changed, one after the other."""
    content = file.read_bytes()
    try:
        for place in range(len(content)):
            file.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
            read(place)
    finally:
        file.write_bytes(content)


def frame_at(frames: list[Frame], place: int) -> Frame:
    return next(frame for frame in frames if frame.position <= place < frame.end)


def test_every_byte_of_an_older_segment_is_checked(topic: Path) -> None:
    segment = min(topic.rglob("*.segment"))
    frames = list(walk_frames(memoryview(segment.read_bytes()), 0, check=True))
    assert len(frames) == APPENDS
    told = []

    def read(place: int) -> None:
        frame = frame_at(frames, place)
        if place >= frame.position + HEADER_BYTES + frame.payload_bytes:  # what only fills up to the next frame
            assert rows_of(topic) == list(range((APPENDS + 1) * ROWS))
            return
        with pytest.raises(PenstockError) as caught:
            rows_of(topic)
        told.append(caught.value.message)
        assert caught.value.condition == "TOPIC_DAMAGED"
        assert str(segment) in caught.value.message
        assert f"(byte {frame.position}, offset {frame.first_offset})" in caught.value.message
        assert "restore a copy" in (caught.value.hint or "")

    flipped_everywhere(segment, read)
    assert any("checksum is wrong" in message for message in told)
    assert any("no frame begins here" in message for message in told)


def test_rows_beside_the_damage_can_still_be_read(topic: Path) -> None:
    segment = min(topic.rglob("*.segment"))
    content = segment.read_bytes()
    second = list(walk_frames(memoryview(content), 0, check=True))[1]
    damaged = bytearray(content)
    damaged[second.position + HEADER_BYTES] ^= 1
    segment.write_bytes(damaged)
    try:
        reader = TopicReader(topic)
        before, behind = reader.read(0, 0, ROWS, ["n"]), reader.read(0, 2 * ROWS, 4 * ROWS, ["n"])
        assert next(before).column("n").to_pylist() == [0, 1, 2, 3]
        assert [n for batch in behind for n in batch.column("n").to_pylist()] == list(range(2 * ROWS, 4 * ROWS))
        with pytest.raises(PenstockError, match="checksum is wrong"):
            list(reader.read(0, ROWS + 1, ROWS + 2, []))
    finally:
        segment.write_bytes(content)


def test_an_index_that_changed_leads_to_the_right_rows_or_is_not_used(topic: Path) -> None:
    """It can be made again from the segment, so nothing is lost with it."""
    index = min(topic.rglob("*.index"))

    def read(place: int) -> None:
        assert rows_of(topic) == list(range((APPENDS + 1) * ROWS)), f"byte {place} of the index"
        for offset in range((APPENDS + 1) * ROWS):
            (batch,) = TopicReader(topic).read(0, offset, offset + 1, ["n"])
            assert batch.column("n").to_pylist() == [offset], f"byte {place} of the index"

    flipped_everywhere(index, read)


def test_a_job_that_meets_it_fails_with_the_file_and_the_place(topic: Path) -> None:
    """What a worker of Spark raises comes to the driver as text: the job has failed, and is not started again."""
    segment = min(topic.rglob("*.segment"))
    content = segment.read_bytes()
    frame = read_header(memoryview(content), 0)
    damaged = bytearray(content)
    damaged[HEADER_BYTES + frame.payload_bytes // 2] ^= 1
    segment.write_bytes(damaged)
    try:
        rows = TopicRows(str(topic), ["n"])
        end = rows.reachable(Offset(0, {0: 0}))
        with pytest.raises(PenstockError) as caught:
            list(rows.read(Range(0, 0, end.positions[0]), end, 100))
    finally:
        segment.write_bytes(content)
    trace = f"Traceback (most recent call last):\n  File …\npenstock.errors.RuntimeFailure: {caught.value}\n"
    failure = as_failure("job v", Exception(f"[STREAM_FAILED] Query terminated with exception: {trace}"))
    assert failure.condition == "TOPIC_DAMAGED"
    assert failure.message == f"{segment} is damaged: the checksum is wrong (byte 0, offset 0)"
    assert "restore a copy" in (failure.hint or "")
    assert not transient(failure)
