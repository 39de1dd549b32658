"""Pieces of files: what one look at a file makes of it, and reading it again.

A piece of a text file is a stretch of whole records of some megabytes, with its checksum: what is read later is what
was found, or an error. A piece of a Parquet file is one of its row groups; there the size and the time of the file are
compared. Stretches of a compressed file are counted in the bytes it unpacks to.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from penstock.frozen import frozen
from penstock.stores.files.faults import changed, gone, unreadable
from penstock.stores.files.file_set import FileSet
from penstock.stores.files.listing import Found, check_roots
from penstock.stores.files.records import count_records, last_end

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES: Final = 4 * 1024 * 1024
LONGEST_RECORD: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


@frozen
class Piece:
    """Records of a file: bytes from `start` to `end`, with their checksum, or the row group `start`."""

    start: int
    end: int
    rows: int
    check: int | None = None


class NotReady(Exception):
    """The file is being written: it makes no sense yet."""


def pieces_of(files: FileSet, found: Found, start: int, *, size: int, final: bool) -> Iterator[Piece]:
    """The records of a file from a place on, in pieces, up to its size.

    `final`: nothing more comes, so the last record needs no line break. NotReady where it is not a whole file yet.
    """
    try:
        if files.kind == "parquet":
            yield from _row_groups(found.path, start)
        elif _packed(files, found):
            with _opened(files, found.path) as stream:
                yield from _stretches(files, found.path, stream, start, None, final)
        elif size > start:
            with _opened(files, found.path) as stream:
                yield from _stretches(files, found.path, stream, start, size, final)
    except FileNotFoundError:
        raise gone(files, found.path) from None


def read_pieces(files: FileSet, wanted: Iterable[tuple[Found, Piece]]) -> Iterator[bytes]:
    """The bytes of pieces of text files, in the order they are asked for; SOURCE_DATA_LOST where they are others."""
    path, stream, at = None, None, 0
    try:
        for found, piece in wanted:
            if stream is None or path != found.path or piece.start < at:
                if stream is not None:
                    stream.close()
                check_roots(files, [found.path])
                path, stream, at = found.path, _opened(files, found.path), 0
            at += _skip(stream, piece.start - at, seekable=not _packed(files, found))
            data = stream.read(piece.end - piece.start)
            at += len(data)
            if zlib.crc32(data) != piece.check:
                raise changed(files, found.path)
            yield data
    except FileNotFoundError:
        raise gone(files, path or "") from None
    except (OSError, EOFError, ValueError) as error:
        raise unreadable(files, path or "", _reason(error)) from error
    finally:
        if stream is not None:
            stream.close()


def unchanged(files: FileSet, found: Found) -> None:
    """SOURCE_DATA_LOST where a file that may not change is not the one that was found."""
    check_roots(files, [found.path])
    try:
        now = Path(found.path).stat()
    except FileNotFoundError:
        raise gone(files, found.path) from None
    if (now.st_size, now.st_mtime_ns) != (found.size, found.modified_ns):
        raise changed(files, found.path)


def _packed(files: FileSet, found: Found) -> bool:
    return files.compression_of(found.path) is not None


def _opened(files: FileSet, path: str) -> BinaryIO:
    import pyarrow as pa

    codec = files.compression_of(path)
    if codec is None:
        return Path(path).open("rb", buffering=0)
    stream: Any = pa.input_stream(path, compression=codec)
    return stream  # type: ignore[no-any-return]


def _skip(stream: BinaryIO, count: int, *, seekable: bool) -> int:
    if seekable:
        stream.seek(count, os.SEEK_CUR)
        return count
    left = count
    while left > 0 and (data := stream.read(min(left, PIECE_BYTES))):
        left -= len(data)
    return count - left


def _stretches(
    files: FileSet, path: str, stream: BinaryIO, start: int, stop: int | None, final: bool
) -> Iterator[Piece]:
    at = start
    try:
        _skip(stream, start, seekable=stop is not None)
        rest = b""
        wanted = PIECE_BYTES
        while True:
            more = wanted if stop is None else min(wanted, stop - at - len(rest))
            data = rest + (stream.read(more) if more > 0 else b"")
            ended = len(data) - len(rest) < wanted
            if at == 0 and start == 0:
                skipped = _before_records(files, path, data, ended=ended and final)
                if skipped is None:
                    if ended:
                        return
                    rest = data
                    continue
                at, data = skipped, data[skipped:]
            cut = len(data) if ended and final else last_end(data, files.quote, files.delimiter)
            if cut:
                piece = data[:cut]
                rows = count_records(piece, files.quote, files.delimiter)
                yield Piece(at, at + cut, rows, zlib.crc32(piece))
                at += cut
            elif len(data) > LONGEST_RECORD:
                raise unreadable(files, path, f"a record has more than {LONGEST_RECORD // 1024**2} MiB")
            if ended:
                return
            rest = data[cut:]
    except (OSError, EOFError, ValueError) as error:
        raise NotReady(_reason(error)) from error


def _before_records(files: FileSet, path: str, data: bytes, *, ended: bool) -> int | None:
    """How many bytes stand before the first record of a file; None where that cannot be told yet."""
    begin = len(_BOM) if data.startswith(_BOM) else 0
    if files.header is None:
        return begin
    end = data.find(b"\n", begin)
    if end < 0:
        if not ended:
            return None
        end = len(data)
    if not data[begin:end].strip() and ended:
        return min(end + 1, len(data))
    _check_header(files, path, data[begin:end])
    return min(end + 1, len(data))


def _check_header(files: FileSet, path: str, line: bytes) -> None:
    """The first line has to name the declared columns, in their order: values are told apart by place."""
    import csv

    text = line.decode("utf-8", "replace").rstrip("\r")
    names = next(csv.reader([text], delimiter=files.delimiter, quotechar=files.quote or '"'), [])
    assert files.header is not None
    if [name.strip().casefold() for name in names] != [name.casefold() for name in files.header]:
        shown = ", ".join(name.strip() for name in names)[:200]
        raise unreadable(
            files,
            path,
            f"its first line names the columns {shown}, and the relation declares {', '.join(files.header)}",
        )


def _row_groups(path: str, start: int) -> Iterator[Piece]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise NotReady(_reason(error)) from error
    for number in range(start, metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if rows:
            yield Piece(number, number + 1, rows)


def parquet_batches(found: Found, piece: Piece, columns: list[str], batch_size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a row group, with some of its columns."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(found.path) as file:
        yield from file.iter_batches(batch_size, row_groups=[piece.start], columns=columns)


def parquet_columns(found: Found) -> pa.Schema:
    """The columns of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.read_schema(found.path)


def _reason(error: BaseException) -> str:
    text = str(error).strip()
    return (text.splitlines()[0] if text else type(error).__name__)[:200]
