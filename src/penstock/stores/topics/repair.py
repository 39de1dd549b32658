"""What the writer does when it opens a partition: find the end, and cut what a crash left behind it.

What counted is never cut: a frame before the committed end that cannot be read stays where it is, reading it is an
error that names the file, and new rows go to a new segment behind it. What did not count yet is kept up to the last
whole append; the rest is cut, and said in words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from penstock.frozen import frozen
from penstock.stores.private_files import write_private
from penstock.stores.topics.ends import End
from penstock.stores.topics.frames import BadFrame, Frame, read_header, whole_appends
from penstock.stores.topics.producers import Producers
from penstock.stores.topics.segments import (
    Positions,
    index_bytes,
    index_path,
    map_file,
    remove_segment,
    segment_offsets,
    segment_path,
)


@frozen
class OpenedPartition:
    """A partition that can be appended to: `frames` is how many its last segment has, `begun_us` when it began."""

    end: End
    producers: Producers
    frames: int
    begun_us: int | None
    repaired: tuple[str, ...]


def open_partition(directory: Path, title: str, known: End | None) -> OpenedPartition:
    """Open a partition, after a repair where one is needed. `title` names it in what is said about the repair."""
    offsets = segment_offsets(directory)
    said: list[str] = []
    if known is None:
        # Neither slot can be read. Every segment but the last is complete, for it was left when the next began.
        first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
        known = End(0, last, first, last)
        if offsets:
            said.append(f"{title}: the end was found again in the segments")
    offsets = _without_expired(directory, offsets, known)
    end = known
    if not _left_clean(directory, offsets, known):
        end = _mended(directory, title, offsets, known, said)
    producers, frames, begun_us = _remembered(directory, offsets, end)
    return OpenedPartition(replace(end, clean=False), producers, frames, begun_us, tuple(said))


def _without_expired(directory: Path, offsets: list[int], known: End) -> list[int]:
    """Remove the segments that retention let go of before it could remove their files."""
    kept = []
    for offset, following in zip(offsets, [*offsets[1:], known.next_offset], strict=False):
        if following <= known.start_offset and offset != known.segment:
            remove_segment(directory, offset)
        else:
            kept.append(offset)
    return kept


def _left_clean(directory: Path, offsets: list[int], known: End) -> bool:
    """Whether the files are as a writer that closed the topic left them."""
    if not offsets:
        return known.segment_bytes == 0
    path = segment_path(directory, known.segment)
    return known.clean and offsets[-1] == known.segment and path.stat().st_size == known.segment_bytes


def _mended(directory: Path, title: str, offsets: list[int], known: End, said: list[str]) -> End:
    """The end that the segments give, after what is behind the last whole append was cut."""
    if known.segment_bytes and known.segment not in offsets:
        said.append(f"{title}: {segment_path(directory, known.segment).name} is missing; its rows cannot be read")
        end = _behind(known)
    else:
        end = known
    rest = [offset for offset in offsets if offset >= known.segment]
    while rest:
        offset = rest.pop(0)
        if offset not in (known.segment, end.next_offset):
            said += _cut_segments(directory, title, [offset, *rest])
            return end
        end, cut = _mended_segment(directory, title, offset, known, said)
        if cut:
            said += _cut_segments(directory, title, rest)
            return end
    return end


def _mended_segment(directory: Path, title: str, offset: int, known: End, said: list[str]) -> tuple[End, bool]:
    """The end after one segment, and whether some of it was cut."""
    path = segment_path(directory, offset)
    committed = known.segment_bytes if offset == known.segment else 0
    data = map_file(path)
    size = len(data)
    frames, whole, reason = whole_appends(data, offset)
    del data
    next_offset = frames[-1].next_offset if frames else offset
    if whole < committed:
        _cut(path, min(size, committed))
        said.append(
            f"{title}: {path.name} is damaged at byte {whole} ({reason or 'the file ends there'}): rows from offset "
            f"{next_offset} to {known.next_offset - 1} may be unreadable; new rows go to a new segment"
        )
        return _behind(known), False
    if whole < size:
        said.append(
            f"{title}: {size - whole} bytes at the end of {path.name} were cut ({reason}); "
            + (f"the last whole offset is {next_offset - 1}" if next_offset else "no row was whole")
        )
    _cut(path, whole)
    _rewrite_index(index_path(directory, offset), frames)
    end = replace(known, next_offset=next_offset, segment=offset, segment_bytes=whole)
    return end, whole < size


def _behind(known: End) -> End:
    """New rows begin a new segment, and no offset that counted is given a second time."""
    return replace(known, segment=known.next_offset, segment_bytes=0)


def _cut(path: Path, length: int) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        if os.fstat(descriptor).st_size > length:
            os.ftruncate(descriptor, length)
        # What is kept counts from now on, so it must be on disk.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rewrite_index(path: Path, frames: Iterable[Frame]) -> None:
    content = index_bytes(frames)
    if not path.exists() or path.read_bytes() != content:
        write_private(path, content)


def _cut_segments(directory: Path, title: str, offsets: Iterable[int]) -> list[str]:
    said = []
    for offset in offsets:
        path = segment_path(directory, offset)
        size = path.stat().st_size
        remove_segment(directory, offset)
        if size:
            said.append(f"{title}: {path.name} with {size} bytes was removed, for the rows before it are not whole")
    return said


def _remembered(directory: Path, offsets: list[int], end: End) -> tuple[Producers, int, int | None]:
    """The producers, and the number of frames and the time of the first in the last segment."""
    producers, told = Producers.read(directory, end.next_offset)
    frames, begun_us = 0, None
    for offset, following in zip(offsets, [*offsets[1:], end.next_offset], strict=False):
        if offset != end.segment and following <= told:
            continue
        limit = end.segment_bytes if offset == end.segment else None
        path = segment_path(directory, offset)
        if offset > end.segment or not path.exists():
            continue
        data = map_file(path, limit)
        positions = Positions(data, index_path(directory, offset))
        for position in positions.since(told):
            try:
                frame = read_header(data, position)
            except BadFrame:
                continue
            if frame.first_offset >= told:
                producers.note_frame(frame)
        if offset == end.segment and len(positions):
            frames = len(positions)
            begun_us = _begun(data)
    return producers, frames, begun_us


def _begun(data: memoryview) -> int | None:
    """When a segment began; None where its first frame is damaged, which reading it will tell."""
    try:
        return read_header(data, 0).appended_us
    except BadFrame:
        return None
