"""Segment files and the index beside each: where the frame of an offset begins.

A segment is named by its first offset. Its index has an entry of 16 bytes for each frame, the first offset and the
position, so that an offset is found by bisection. The index can be made again from the segment at any time.
"""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final

from penstock.stores.topics.frames import BadFrame, Frame, read_header, walk_frames

SEGMENT: Final = ".segment"
INDEX: Final = ".index"
ENTRY: Final = struct.Struct("<QQ")


def segment_path(directory: Path, first_offset: int) -> Path:
    """The file of the segment that begins with an offset."""
    return directory / f"{first_offset:020d}{SEGMENT}"


def index_path(directory: Path, first_offset: int) -> Path:
    """The index beside the segment that begins with an offset."""
    return directory / f"{first_offset:020d}{INDEX}"


def segment_offsets(directory: Path) -> list[int]:
    """The first offsets of the segments of a partition, in order."""
    try:
        names = os.listdir(directory)  # noqa: PTH208 (no Path for each of many names)
    except FileNotFoundError:
        return []
    return sorted(int(name.removesuffix(SEGMENT)) for name in names if name.endswith(SEGMENT))


def remove_segment(directory: Path, first_offset: int) -> None:
    """Remove a segment and its index; readers that have it open can finish."""
    segment_path(directory, first_offset).unlink(missing_ok=True)
    index_path(directory, first_offset).unlink(missing_ok=True)


def map_file(path: Path, limit: int | None = None) -> memoryview:
    """The bytes of a file, read when they are looked at; at most `limit` of them.

    What is beyond the limit may be cut off by the writer; to look at it then would end the process.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        length = size if limit is None else min(size, limit)
        if length == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, length, prot=mmap.PROT_READ))
    finally:
        os.close(descriptor)


def index_bytes(frames: Iterable[Frame]) -> bytes:
    """The entries of the index for these frames."""
    return b"".join(ENTRY.pack(frame.first_offset, frame.position) for frame in frames)


class Positions:
    """Where the frames of a mapped segment begin: by its index, or by the frames where that does not fit or is None."""

    def __init__(self, data: memoryview, index: Path | None) -> None:
        entries = _entries(index, len(data)) if index is not None else []
        if index is None or not _fits(data, entries):
            entries = _walked(data)
        self._offsets = [offset for offset, _ in entries]
        self._positions = [position for _, position in entries]

    def at(self, offset: int) -> int | None:
        """The position of the frame that holds an offset, or would; None where no frame begins so early."""
        found = bisect_right(self._offsets, offset)
        return self._positions[found - 1] if found else None

    def since(self, offset: int) -> list[int]:
        """The positions of the frames from the one that holds an offset on."""
        return self._positions[max(0, bisect_right(self._offsets, offset) - 1) :]

    @property
    def last(self) -> int | None:
        """The position of the last frame."""
        return self._positions[-1] if self._positions else None

    def __len__(self) -> int:
        return len(self._positions)


def _entries(index: Path, length: int) -> list[tuple[int, int]]:
    try:
        content = index.read_bytes()
    except FileNotFoundError:
        return []
    whole = len(content) - len(content) % ENTRY.size
    return [entry for entry in ENTRY.iter_unpack(content[:whole]) if entry[1] < length]


def _fits(data: memoryview, entries: list[tuple[int, int]]) -> bool:
    if not entries or entries[0][1] != 0:
        return not len(data)
    offset, position = entries[-1]
    try:
        last = read_header(data, position)
    except BadFrame:
        # The frame may be damaged and the index right: reading it will tell.
        return all(a < b and c < d for (a, c), (b, d) in pairwise(entries))
    return last.first_offset == offset and last.end == len(data)


def _walked(data: memoryview) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        for frame in walk_frames(data, 0, check=False):
            found.append((frame.first_offset, frame.position))  # noqa: PERF401 (what came before an error is kept)
    except BadFrame:
        pass
    return found
