"""Writing rows into files of their own, in whatever process has them: each is whole and on disk when it is told of."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.frozen import frozen

if TYPE_CHECKING:
    import pyarrow as pa

PLACE: Final = "__place"  # the column that names the directory of a row, where rows are dealt to directories
ROW_GROUP_BYTES: Final = 64 * 1024 * 1024
RECORD: Final = "__record"  # the column with the bytes of a row, where it has been encoded


@frozen
class PartPlan:
    """How files are written.

    directory: where they lie until they are published. extension: how their names end.
    parquet: the compression of their pages, None for files of records; codec: how those are compressed, if at all.
    row_group_bytes: so much of a Parquet file, before it is encoded, is a row group.
    header: what stands at the beginning of each file of records.
    most_rows, most_bytes: where a file ends and the next begins; bytes are looked at after each batch of rows.
    """

    directory: str
    extension: str
    parquet: str | None = None
    row_group_bytes: int = ROW_GROUP_BYTES
    codec: str | None = None
    header: bytes = b""
    most_rows: int | None = None
    most_bytes: int | None = None


@frozen
class Part:
    """A file that is written: its name among the unpublished ones, the directory it belongs to, and what is in it."""

    name: str
    place: str
    rows: int
    bytes: int


def write_parts(plan: PartPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Write all rows; those of one directory have to come one after the other."""
    writer: _Writer | None = None
    try:
        for batch in batches:
            for place, rows in _by_place(batch):
                for piece in _pieces(rows, plan.most_rows, writer.rows if writer and writer.place == place else 0):
                    if writer is not None and (writer.place != place or writer.full):
                        yield writer.close()
                        writer = None
                    if writer is None:
                        writer = _Writer(plan, place, piece.schema)
                    writer.write(piece)
        if writer is not None:
            yield writer.close()
            writer = None
    finally:
        if writer is not None:
            writer.abandon()


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each directory, in the order they come in."""
    import numpy as np

    if PLACE not in batch.schema.names:
        yield "", batch
        return
    names = batch.column(PLACE).to_numpy(zero_copy_only=False)
    rest = batch.drop_columns([PLACE])
    if not len(names):
        return
    starts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), len(names)]
    for begin, end in pairwise(starts):
        yield str(names[begin]), rest.slice(begin, end - begin)


def _pieces(rows: pa.RecordBatch, most: int | None, written: int) -> Iterator[pa.RecordBatch]:
    """Rows in pieces that end where a file is full."""
    begin = 0
    while begin < rows.num_rows:
        room = rows.num_rows if most is None else most - written if written < most else most
        yield rows.slice(begin, room)
        begin += room
        written = 0


class _Writer:
    """One file."""

    def __init__(self, plan: PartPlan, place: str, schema: pa.Schema) -> None:
        import pyarrow as pa

        self.place = place
        self.rows = 0
        self._plan = plan
        self._held: list[pa.RecordBatch] = []  # of a row group that is not full yet
        self._held_bytes = 0
        self._name = f"{uuid.uuid4().hex}{plan.extension}"
        self._path = Path(plan.directory) / self._name
        self._file = self._path.open("xb")
        self._stream: Any = pa.PythonFile(self._file, "w")
        self._parquet: Any = None
        if plan.parquet is not None:
            import pyarrow.parquet as pq

            self._parquet = pq.ParquetWriter(self._stream, schema, compression=plan.parquet)
        elif plan.codec is not None:
            self._stream = pa.CompressedOutputStream(self._stream, plan.codec)
        if plan.header:
            self._stream.write(plan.header)

    @property
    def full(self) -> bool:
        """Whether the next row belongs to the next file."""
        plan = self._plan
        if plan.most_rows is not None and self.rows >= plan.most_rows:
            return True
        if plan.most_bytes is None or self._file.tell() + self._held_bytes < plan.most_bytes:
            return False
        self._flush()
        return self._file.tell() >= plan.most_bytes

    def write(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        if self._parquet is None:
            self._stream.write(joined(rows.column(RECORD)))
            return
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= self._plan.row_group_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            import pyarrow as pa

            table = pa.Table.from_batches(self._held)
            self._parquet.write_table(table, row_group_size=max(1, table.num_rows))
            self._held, self._held_bytes = [], 0

    def close(self) -> Part:
        """Finish the file and bring it to disk."""
        if self._parquet is not None:
            self._flush()
            self._parquet.close()
        elif self._plan.codec is not None:
            self._stream.close()
        self._file.close()
        with self._path.open("rb") as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        return Part(self._name, self.place, self.rows, size)

    def abandon(self) -> None:
        """Something went wrong: the file is of no use."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def joined(records: pa.Array | pa.ChunkedArray) -> bytes:
    """Records as lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(
        records.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()), pa.scalar(b"\n", pa.large_binary())
    )
    if isinstance(lines, pa.ChunkedArray):
        return b"".join(_content(chunk) for chunk in lines.chunks)
    return _content(lines)


def _content(lines: pa.Array) -> bytes:
    """The bytes of all values of an array, one behind the other."""
    import numpy as np

    if not len(lines):
        return b""
    _, offsets, values = lines.buffers()
    places = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(values)[int(places[0]) : int(places[-1])])
