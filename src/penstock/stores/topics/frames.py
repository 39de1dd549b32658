"""Frames: what a segment file is made of, one after the other.

    header   64 bytes: magic, version, flags, length of the payload, rows, first offset, time of the append,
             digest of the producer, batch number, CRC-32 of the header before it and of the payload
    payload  an encapsulated Arrow IPC record batch, padded so that the next frame begins at a multiple of 64

Hidden columns that the append did not give are not in the payload: the time of all rows is the time of the append, and
the key and the headers are NULL. A large append is several frames; all but the last are marked as going on, so that
after a crash an append is there as a whole or not at all.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

MAGIC: Final = b"PSTK"
VERSION: Final = 1
HEADER_BYTES: Final = 64

NO_TIMESTAMP: Final = 1
NO_KEY: Final = 2
NO_HEADERS: Final = 4
GOES_ON: Final = 8
HAS_PRODUCER: Final = 16

# The CRC comes last, so that it covers one stretch of the header.
_FIELDS: Final = struct.Struct("<4sHHIIQq16sq4x")
_CRC: Final = struct.Struct("<I")
_CRC_AT: Final = HEADER_BYTES - _CRC.size
_NO_PRODUCER: Final = bytes(16)

assert _FIELDS.size == _CRC_AT


class BadFrame(Exception):
    """The bytes at a place are no whole frame; the text says why."""


@frozen
class Frame:
    """The header of a frame, and where it stands in its file."""

    position: int
    flags: int
    payload_bytes: int
    rows: int
    first_offset: int
    appended_us: int
    producer: bytes | None
    batch: int

    @property
    def end(self) -> int:
        """Where the next frame begins."""
        return self.position + HEADER_BYTES + padded(self.payload_bytes)

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.rows

    @property
    def goes_on(self) -> bool:
        return bool(self.flags & GOES_ON)


def padded(length: int) -> int:
    """The length, up to the next multiple of 64: Arrow reads aligned buffers in place."""
    return -(-length // 64) * 64


def frame_bytes(frame: Frame, payload: pa.Buffer) -> list[bytes | pa.Buffer]:
    """The parts of a frame, as they are written one after the other."""
    head = _FIELDS.pack(
        MAGIC,
        VERSION,
        frame.flags | (HAS_PRODUCER if frame.producer is not None else 0),
        frame.payload_bytes,
        frame.rows,
        frame.first_offset,
        frame.appended_us,
        frame.producer or _NO_PRODUCER,
        frame.batch,
    )
    crc = zlib.crc32(payload, zlib.crc32(head))
    return [head + _CRC.pack(crc), payload, bytes(padded(frame.payload_bytes) - frame.payload_bytes)]


def read_header(data: memoryview, position: int) -> Frame:
    """The header at a place, without a look at the payload."""
    if position + HEADER_BYTES > len(data):
        raise BadFrame("the file ends inside the header")
    magic, version, flags, payload_bytes, rows, first_offset, appended_us, producer, batch = _FIELDS.unpack_from(
        data, position
    )
    if magic != MAGIC:
        raise BadFrame("no frame begins here")
    if version != VERSION:
        raise BadFrame(f"frame version {version} is not known to this version")
    given = producer if flags & HAS_PRODUCER else None
    return Frame(position, flags, payload_bytes, rows, first_offset, appended_us, given, batch)


def check_frame(data: memoryview, frame: Frame) -> None:
    """Make sure that header and payload are what was written."""
    start = frame.position + HEADER_BYTES
    if frame.end > len(data):
        raise BadFrame("the file ends inside the frame")
    crc = zlib.crc32(data[frame.position : frame.position + _CRC_AT])
    crc = zlib.crc32(data[start : start + frame.payload_bytes], crc)
    if (crc,) != _CRC.unpack_from(data, frame.position + _CRC_AT):
        raise BadFrame("the checksum is wrong")


def walk_frames(data: memoryview, position: int, *, check: bool) -> Iterator[Frame]:
    """The frames from a place on, up to the end of the data; BadFrame where one is not whole."""
    while position < len(data):
        frame = read_header(data, position)
        if check:
            check_frame(data, frame)
        elif frame.end > len(data):
            raise BadFrame("the file ends inside the frame")
        yield frame
        position = frame.end


def whole_appends(data: memoryview, first_offset: int) -> tuple[Sequence[Frame], int, str | None]:
    """The frames of the whole appends at the beginning of the data, the byte after the last, and why it stops there.

    The reason is None where the data ends with a whole append.
    """
    found: list[Frame] = []
    pending: list[Frame] = []
    position, expected = 0, first_offset
    try:
        for frame in walk_frames(data, 0, check=True):
            if frame.first_offset != expected:
                return found, position, f"the frame says offset {frame.first_offset} in the place of {expected}"
            pending.append(frame)
            expected = frame.next_offset
            if not frame.goes_on:
                found += pending
                pending = []
                position = frame.end
    except BadFrame as error:
        return found, position, str(error)
    return found, position, "the last append is not complete" if pending else None
