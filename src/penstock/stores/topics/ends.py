"""The file `ends`: how far each partition counts, for readers in any process.

Each partition has two slots and the writer fills them in turn, each with a rising number and a checksum: a reader that
meets a half-written slot finds the one before it in the other. One small read answers for all partitions. The file is
not forced to disk with each append: after a crash the writer finds the end again in the segments.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Final

from penstock.frozen import frozen
from penstock.stores.private_files import PRIVATE_FILE

ENDS_FILE: Final = "ends"

_SLOT: Final = struct.Struct("<QQQQQI16x")
_CRC: Final = struct.Struct("<I")
_SLOT_BYTES: Final = 64
_PAIR_BYTES: Final = 2 * _SLOT_BYTES
_CLEAN: Final = 1

assert _SLOT.size + _CRC.size == _SLOT_BYTES


@frozen
class End:
    """What counts in a partition: the rows from `start_offset` up to `next_offset`.

    `segment` is the first offset of the segment that is written to, `segment_bytes` how much of it counts. `clean`
    says that the writer closed the topic and left nothing to repair.
    """

    number: int = 0
    next_offset: int = 0
    start_offset: int = 0
    segment: int = 0
    segment_bytes: int = 0
    clean: bool = False


class EndsFile:
    """The open file of a topic. Different threads may write the ends of different partitions."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        self._descriptor = os.open(path, flags, PRIVATE_FILE)
        if writable:
            os.fchmod(self._descriptor, PRIVATE_FILE)
        self._most = _PAIR_BYTES
        self._last_bytes = b""
        self._last: tuple[End | None, ...] = ()

    @property
    def removed(self) -> bool:
        """Whether the file is no longer in its directory."""
        return os.fstat(self._descriptor).st_nlink == 0

    def read(self) -> tuple[End | None, ...]:
        """The end of each partition; None where neither of its slots can be read."""
        data = os.pread(self._descriptor, self._most, 0)
        while len(data) == self._most:
            self._most *= 2
            data = os.pread(self._descriptor, self._most, 0)
        if data == self._last_bytes:
            return self._last
        pairs = range(0, len(data) - _PAIR_BYTES + 1, _PAIR_BYTES)
        found = tuple(_newer(data, position) for position in pairs)
        # Slots that were written to during the read can hide what an earlier read has seen.
        before = (*self._last, *[None] * (len(found) - len(self._last)))
        kept = tuple(_later(old, new) for old, new in zip(before, found, strict=False))
        self._last_bytes, self._last = data, kept
        return kept

    def write(self, partition: int, end: End) -> None:
        """Let an end count; its number says which slot it goes to."""
        head = _SLOT.pack(
            end.number, end.next_offset, end.start_offset, end.segment, end.segment_bytes, _CLEAN if end.clean else 0
        )
        place = partition * _PAIR_BYTES + end.number % 2 * _SLOT_BYTES
        os.pwrite(self._descriptor, head + _CRC.pack(zlib.crc32(head)), place)

    def fill(self, partitions: int) -> None:
        """Make room for so many partitions; those that are there stay as they are."""
        size = os.fstat(self._descriptor).st_size
        # Zeros are written, not left out, so that later writes need no space.
        os.pwrite(self._descriptor, bytes(max(0, partitions * _PAIR_BYTES - size)), size)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _newer(data: bytes, position: int) -> End | None:
    slots = [_slot(data, position), _slot(data, position + _SLOT_BYTES)]
    known = [slot for slot in slots if slot is not None]
    return max(known, key=lambda end: end.number) if known else None


def _later(old: End | None, new: End | None) -> End | None:
    if old is None or new is None:
        return old or new
    return old if old.number > new.number else new


def _slot(data: bytes, position: int) -> End | None:
    crc = zlib.crc32(data[position : position + _SLOT.size])
    if (crc,) != _CRC.unpack_from(data, position + _SLOT.size):
        return None
    number, next_offset, start_offset, segment, segment_bytes, flags = _SLOT.unpack_from(data, position)
    return End(number, next_offset, start_offset, segment, segment_bytes, bool(flags & _CLEAN))
