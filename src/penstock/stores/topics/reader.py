"""Reading a topic from any process, while another one appends to it.

A reader takes no lock. It trusts the file `ends` and never looks at what is behind the end; frames are checked and read
in place from the mapped file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from penstock.errors import RuntimeFailure
from penstock.stores.topics.ends import ENDS_FILE, End, EndsFile
from penstock.stores.topics.faults import rows_lost, topic_damaged, topic_missing
from penstock.stores.topics.frames import HEADER_BYTES, BadFrame, Frame, check_frame, read_header
from penstock.stores.topics.layout import OFFSET, PARTITION, read_topic_file
from penstock.stores.topics.record_batches import hidden_column, read_payload
from penstock.stores.topics.segments import Positions, index_path, map_file, segment_offsets, segment_path

if TYPE_CHECKING:
    import pyarrow as pa


class _Segment:
    """A mapped segment: the offsets before `until` are in it, in its first `limit` bytes."""

    def __init__(self, directory: Path, first_offset: int, until: int, limit: int | None) -> None:
        self.path = segment_path(directory, first_offset)
        self.first_offset = first_offset
        self.until = until
        self.data = map_file(self.path, limit)
        self._positions = Positions(self.data, index_path(directory, first_offset))

    def start_of(self, offset: int) -> int | None:
        """Where the frame begins that holds an offset, or should."""
        found = self._positions.at(offset)
        if found is None or not _holds(self.data, found, offset):
            # The index may be wrong and the frames right; where they are not, reading them will tell.
            walked = Positions(self.data, None)
            again = walked.at(offset)
            if again is not None and _holds(self.data, again, offset):
                self._positions, found = walked, again
        return found


class TopicReader:
    """A topic as readers see it. Any thread of any process may use one; it follows a topic that grows."""

    def __init__(self, directory: Path) -> None:
        file = read_topic_file(directory)
        self.name = file.name
        self.schema = file.schema
        self._directory = directory
        self._lock = Lock()
        self._offsets: dict[int, list[int]] = {}
        self._segments: dict[int, _Segment] = {}
        try:
            self._ends = EndsFile(directory / ENDS_FILE, writable=False)
        except FileNotFoundError:
            raise topic_missing(directory) from None

    def ends(self) -> dict[int, int]:
        """The next offset of each partition: one small read."""
        return {partition: end.next_offset for partition, end in enumerate(self._known())}

    def starts(self) -> dict[int, int]:
        """The oldest offset that each partition keeps."""
        return {partition: end.start_offset for partition, end in enumerate(self._known())}

    def read(
        self,
        partition: int,
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
        max_rows: int = 10_000,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a partition with start <= offset < end, in batches of at most `max_rows`.

        `columns` None gives all. `__partition` and `__offset` stand at the end, or where they are asked for.
        SOURCE_DATA_LOST where some of the rows are not there, TOPIC_DAMAGED where they cannot be read.
        """
        import pyarrow as pa

        self._check_range(partition, start, end)
        shape = self._shape(columns)
        stored = pa.schema([field for field in shape if field.name not in (PARTITION, OFFSET)])
        waiting: list[pa.RecordBatch] = []
        rows, offset = 0, start
        for batch in self._slices(partition, start, end, stored, max_rows):
            if rows + batch.num_rows > max_rows:
                yield _placed(waiting, partition, offset, shape)
                waiting, rows, offset = [], 0, offset + rows
            waiting.append(batch)
            rows += batch.num_rows
        if waiting:
            yield _placed(waiting, partition, offset, shape)

    def close(self) -> None:
        """Let the files go; batches that were read stay usable."""
        with self._lock:
            self._segments.clear()
            self._ends.close()

    def _known(self) -> list[End]:
        ends = self._ends.read()
        if self._ends.removed:
            raise topic_missing(self._directory)
        known: list[End] = []
        for end in ends:
            if end is None:
                break  # a partition that is just being added
            known.append(end)
        return known

    def _check_range(self, partition: int, start: int, end: int) -> None:
        known = self._known()
        if not 0 <= partition < len(known):
            raise RuntimeFailure(
                "SOURCE_DATA_LOST",
                f"topic {self.name} has no partition {partition}",
                hint="create the job again to read what is there",
            )
        if start >= end:
            return
        place = known[partition]
        if start < place.start_offset:
            raise rows_lost(self.name, partition, start, min(end, place.start_offset), "they are no longer kept")
        if end > place.next_offset:
            first = max(start, place.next_offset)
            raise rows_lost(self.name, partition, first, end, f"the partition ends at offset {place.next_offset}")

    def _shape(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of what is read."""
        import pyarrow as pa

        added = {PARTITION: pa.int32(), OFFSET: pa.int64()}
        names = [*(self.schema.names if columns is None else columns)]
        names += [name for name in added if name not in names]
        return pa.schema([pa.field(name, added[name]) if name in added else self.schema.field(name) for name in names])

    def _slices(
        self, partition: int, start: int, end: int, stored: pa.Schema, max_rows: int
    ) -> Iterator[pa.RecordBatch]:
        offset = start
        while offset < end:
            segment = self._segment(partition, offset)
            before = offset
            for frame in _frames(segment, offset):
                if not frame.first_offset <= offset < frame.next_offset:
                    break
                batch = read_payload(segment.data, frame, frame.position + HEADER_BYTES, self.schema)
                stop = min(end, frame.next_offset)
                while offset < stop:
                    count = min(stop - offset, max_rows)
                    yield _stored(batch, frame, offset, count, stored)
                    offset += count
                if offset == end:
                    return
            if offset == before:
                raise topic_damaged(segment.path, f"the row at offset {offset} is missing")

    def _segment(self, partition: int, offset: int) -> _Segment:
        """The segment that holds an offset, mapped as far as it counts now."""
        with self._lock:
            found = self._segments.get(partition)
            if found is not None and found.first_offset <= offset < found.until:
                return found
            known = self._known()[partition]
            directory = self._directory / str(partition)
            offsets = self._offsets.get(partition, [])
            if known.segment not in offsets[-1:]:
                offsets = self._offsets[partition] = segment_offsets(directory)
            place = bisect_right(offsets, offset)
            first = offsets[place - 1] if place else known.start_offset
            until = known.next_offset if first == known.segment else offsets[place] if place < len(offsets) else offset
            try:
                found = _Segment(directory, first, until, known.segment_bytes if first == known.segment else None)
            except FileNotFoundError:
                kept = self._known()[partition].start_offset
                if offset < kept:
                    raise rows_lost(self.name, partition, offset, kept, "they are no longer kept") from None
                raise topic_damaged(segment_path(directory, first), "the file is missing") from None
            self._segments[partition] = found
            return found


def _holds(data: memoryview, position: int, offset: int) -> bool:
    try:
        frame = read_header(data, position)
    except BadFrame:
        return False
    return frame.first_offset <= offset < frame.next_offset


def _frames(segment: _Segment, offset: int) -> Iterator[Frame]:
    """The frames of a segment from the one that holds an offset on, each of them checked."""
    position = segment.start_of(offset)
    while position is not None and position < len(segment.data):
        try:
            frame = read_header(segment.data, position)
            check_frame(segment.data, frame)
        except BadFrame as error:
            raise topic_damaged(segment.path, f"{error} (byte {position}, offset {offset})") from None
        yield frame
        position, offset = frame.end, frame.next_offset


def _stored(batch: pa.RecordBatch, frame: Frame, offset: int, count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of a frame with the stored columns that are asked for."""
    import pyarrow as pa

    rows = batch if count == batch.num_rows else batch.slice(offset - frame.first_offset, count)
    names = rows.schema.names
    columns = [
        rows.column(field.name) if field.name in names else hidden_column(field.name, frame, count, field.type)
        for field in schema
    ]
    if not columns:
        # A batch without columns has no number of rows of its own.
        return rows.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _placed(batches: list[pa.RecordBatch], partition: int, offset: int, shape: pa.Schema) -> pa.RecordBatch:
    """The batches as one, with the partition and the offsets."""
    import pyarrow as pa

    rows = sum(batch.num_rows for batch in batches)
    added = {
        PARTITION: lambda: pa.repeat(pa.scalar(partition, pa.int32()), rows),
        OFFSET: lambda: pa.arange(offset, offset + rows),
    }
    whole = batches[0] if len(batches) == 1 or len(shape) == len(added) else pa.concat_batches(batches)
    columns = [added[name]() if name in added else whole.column(name) for name in shape.names]
    return pa.RecordBatch.from_arrays(columns, schema=shape)
