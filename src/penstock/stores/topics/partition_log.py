"""The writer of one partition: appends, new segments, retention.

An append is written, forced to disk as the policy says, and only then counts: the end moves last. What fails before
that leaves nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from penstock.errors import RuntimeFailure
from penstock.failpoints import hit
from penstock.frozen import frozen
from penstock.stores.private_files import PRIVATE_FILE, sync_directory
from penstock.stores.topics.ends import End, EndsFile
from penstock.stores.topics.faults import write_failed
from penstock.stores.topics.frames import GOES_ON, Frame, frame_bytes, read_header
from penstock.stores.topics.producers import producer_digest
from penstock.stores.topics.repair import OpenedPartition
from penstock.stores.topics.segments import (
    ENTRY,
    Positions,
    index_bytes,
    index_path,
    map_file,
    remove_segment,
    segment_offsets,
    segment_path,
)

if TYPE_CHECKING:
    import pyarrow as pa

SEGMENT_BYTES: Final = 64 * 1024 * 1024
_SMALLEST_SEGMENT: Final = 64 * 1024
# Whole segments are let go, so one holds about an eighth of what is kept.
_SEGMENTS_KEPT: Final = 8
_SHORTEST_SEGMENT_US: Final = 1_000_000


@frozen
class LogPolicy:
    """How a partition is kept."""

    fsync: str = "always"
    retention_us: int | None = None
    retention_bytes: int | None = None

    @property
    def segment_bytes(self) -> int:
        if self.retention_bytes is None:
            return SEGMENT_BYTES
        return min(SEGMENT_BYTES, max(_SMALLEST_SEGMENT, self.retention_bytes // _SEGMENTS_KEPT))

    @property
    def segment_us(self) -> int | None:
        if self.retention_us is None:
            return None
        return max(_SHORTEST_SEGMENT_US, self.retention_us // _SEGMENTS_KEPT)


class PartitionLog:
    """An open partition. Any thread may append; appends take turns."""

    def __init__(self, directory: Path, partition: int, ends: EndsFile, opened: OpenedPartition) -> None:
        self.policy = LogPolicy()
        self._directory = directory
        self._partition = partition
        self._ends = ends
        self._end = opened.end
        self._producers = opened.producers
        self._frames = opened.frames
        self._begun_us = opened.begun_us
        self._lock = Lock()
        self._segment = self._index = -1
        self._unsynced = False
        self._closed = False
        self._failure: OSError | None = None

    @property
    def end(self) -> End:
        return self._end

    def append(
        self, rows: Sequence[tuple[int, pa.Buffer]], flags: int, now_us: int, producer: tuple[str, int] | None
    ) -> tuple[int, int]:
        """Append payloads as one; the first offset and the number of rows."""
        count = sum(number for number, _ in rows)
        digest, batch = (producer_digest(producer[0]), producer[1]) if producer else (None, 0)
        with self._lock:
            self._check_usable()
            known = self._producers.place(digest, batch) if digest is not None else None
            if known is not None:
                return known
            if not count:
                return self._end.next_offset, 0
            try:
                if self._segment < 0 or self._full(now_us):
                    self._begin_segment()
                first = self._end.next_offset
                self._write(rows, Frame(self._end.segment_bytes, flags, 0, 0, first, now_us, digest, batch))
            except OSError as error:
                raise write_failed(self._directory, error) from None
            return first, count

    def _write(self, rows: Sequence[tuple[int, pa.Buffer]], like: Frame) -> None:
        """Write the frames, force them to disk, let them count."""
        frames: list[Frame] = []
        position, offset = like.position, like.first_offset
        try:
            for place, (number, payload) in enumerate(rows):
                flags = like.flags | (GOES_ON if place < len(rows) - 1 else 0)
                frame = replace(
                    like,
                    position=position,
                    flags=flags,
                    payload_bytes=payload.size,
                    rows=number,
                    first_offset=offset,
                )
                _write_at(self._segment, frame_bytes(frame, payload), position)
                frames.append(frame)
                position, offset = frame.end, frame.next_offset
            _write_at(self._index, [index_bytes(frames)], self._frames * ENTRY.size)
            self._unsynced = True
            if self.policy.fsync == "always":
                self._sync()
            hit("topic.before_end")
            self._frames += len(frames)
            if self._begun_us is None:
                self._begun_us = like.appended_us
            for frame in frames:
                self._producers.note_frame(frame)
            self._commit(next_offset=offset, segment_bytes=position)
        except BaseException:
            os.ftruncate(self._segment, self._end.segment_bytes)
            raise

    def _commit(self, **changes: int) -> None:
        # The own record moves first: what is cut after an interrupt is never what readers were told of.
        self._end = replace(self._end, number=self._end.number + 1, clean=False, **changes)
        self._ends.write(self._partition, self._end)

    def _full(self, now_us: int) -> bool:
        if self._end.segment_bytes >= self.policy.segment_bytes:
            return True
        longest = self.policy.segment_us
        return longest is not None and self._begun_us is not None and now_us - self._begun_us >= longest

    def _begin_segment(self) -> None:
        """Open the segment to write to: the last one as long as there is room, else a new one."""
        new = self._segment >= 0
        first = self._end.next_offset if new else self._end.segment
        segment = os.open(segment_path(self._directory, first), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        index = os.open(index_path(self._directory, first), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        sync_directory(self._directory)
        if not new:
            self._segment, self._index = segment, index
            return
        self._producers.write(self._directory, first)
        self._leave_segment()
        self._segment, self._index = segment, index
        self._frames, self._begun_us = 0, None
        self._commit(segment=first, segment_bytes=0)
        if self.policy.fsync != "never":
            self._ends.sync()

    def _leave_segment(self) -> None:
        if self._segment >= 0:
            if self.policy.fsync != "never":
                self._sync()
                os.fsync(self._index)
            os.close(self._segment)
            os.close(self._index)
            self._segment = self._index = -1

    def sync(self) -> None:
        """Force what was appended to disk."""
        with self._lock:
            if self._segment >= 0 and not self._failure:
                try:
                    self._sync()
                except OSError as error:
                    raise write_failed(self._directory, error) from None

    def _sync(self) -> None:
        if not self._unsynced:
            return
        try:
            getattr(os, "fdatasync", os.fsync)(self._segment)
        except OSError as error:
            # The system may have dropped what it could not write: only opening anew tells what is there.
            self._failure = error
            raise
        self._unsynced = False

    def apply_retention(self, now_us: int) -> None:
        """Let whole old segments go. The end says so first, so that no reader finds a file missing without a reason."""
        with self._lock:
            self._check_usable()
            try:
                self._apply_retention(now_us)
            except OSError as error:
                raise write_failed(self._directory, error) from None

    def _apply_retention(self, now_us: int) -> None:
        kept_us, kept_bytes = self.policy.retention_us, self.policy.retention_bytes
        if kept_us is None and kept_bytes is None:
            return
        offsets = segment_offsets(self._directory)
        sizes = {offset: segment_path(self._directory, offset).stat().st_size for offset in offsets}
        total = sum(sizes.values())
        gone: list[int] = []
        for offset in offsets:
            expired = kept_us is not None and self._newest_us(offset) <= now_us - kept_us
            if not expired and (kept_bytes is None or total <= kept_bytes):
                break
            if offset == self._end.segment:
                if expired and self._end.segment_bytes:
                    if self._segment < 0:
                        self._begin_segment()
                    self._begin_segment()
                else:
                    break
            gone.append(offset)
            total -= sizes[offset]
        if gone:
            start = next((offset for offset in offsets if offset > gone[-1]), self._end.segment)
            self._commit(start_offset=start)
            for offset in gone:
                remove_segment(self._directory, offset)

    def _newest_us(self, offset: int) -> int:
        """When the last frame of a segment was appended."""
        limit = self._end.segment_bytes if offset == self._end.segment else None
        data = map_file(segment_path(self._directory, offset), limit)
        last = Positions(data, index_path(self._directory, offset)).last
        return read_header(data, last).appended_us if last is not None else 0

    def _check_usable(self) -> None:
        if self._closed:
            raise RuntimeFailure("DATABASE_CLOSED", "the topic has been closed", hint="open the database again")
        if self._failure is not None:
            raise write_failed(self._directory, self._failure)

    def close(self) -> None:
        """Force everything to disk and leave nothing to repair."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._failure is not None:
                return
            if self._segment >= 0:
                self._producers.write(self._directory, self._end.next_offset)
                self._leave_segment()
            self._end = replace(self._end, number=self._end.number + 1, clean=True)
            self._ends.write(self._partition, self._end)


def _write_at(descriptor: int, parts: Sequence[bytes | pa.Buffer], position: int) -> None:
    """Write all the parts, one after the other, also where the system takes them piecemeal."""
    views = [memoryview(part).cast("B") for part in parts if len(memoryview(part)) > 0]
    while views:
        written = os.pwritev(descriptor, views, position)
        position += written
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views and written:
            views[0] = views[0][written:]
