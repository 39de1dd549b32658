"""The Spark data source over files. Only Spark's own processes load this module, and what registers it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # noqa: TID253
import pyarrow.compute as pc  # noqa: TID253

from penstock.connectors.offsets import Offset, Range
from penstock.connectors.range_reader import NumberedRows, RangeDataSource
from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.stores.files.faults import unreadable
from penstock.stores.files.file_set import FileSet, read_file_set
from penstock.stores.files.index import FileIndex, Numbered, read_piece
from penstock.stores.files.listing import Found
from penstock.stores.files.pieces import parquet_batches, parquet_columns, read_pieces, unchanged
from penstock.stores.files.records import split_records

if TYPE_CHECKING:
    from penstock.connectors.reading import Scan

FILE_FORMAT: Final = "penstock_file"
HIDDEN_TYPES: Final = {
    "__value": "BINARY",
    "__partition": "INT",
    "__offset": "BIGINT",
    "__timestamp": "TIMESTAMP",
    "__key": "BINARY",
    "__file_path": "STRING",
    "__file_name": "STRING",
    "__file_size": "BIGINT",
    "__file_time": "TIMESTAMP",
}
# So many rows are worth a reader of their own.
_ROWS_A_TASK: Final = 250_000


@frozen
class FileRange(Range):
    """Rows with the pieces they are in: a worker then needs no list of files."""

    pieces: tuple[Numbered, ...] = ()


class FileRows:
    """The rows of files, all in one partition, numbered in the order they were found.

    `pieces` are those of a query that ends; else they are on the list in `directory`.
    """

    def __init__(
        self, files: FileSet, schema: pa.Schema, directory: str | None, pieces: Sequence[Numbered], max_rows: int
    ) -> None:
        self._files = files
        self._schema = schema
        self._directory = None if directory is None else Path(directory)
        self._pieces = tuple(pieces)
        self._max_rows = max_rows
        self._index: FileIndex | None = None
        self._look_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_index": None}

    def oldest(self) -> Mapping[int, int]:
        return {0: 0}

    def reachable(self, start: Offset) -> Offset:
        index, at = self._open(), start.position(0)
        due = time.monotonic() >= self._look_at
        index.refresh()
        if not index.complete and (due or index.rows <= at + self._max_rows):
            index.update(at + self._max_rows, look_again=due)
        if due:
            self._look_at = time.monotonic() + self._files.look_every_ms / 1_000
        if index.rows < at:
            raise RuntimeFailure(
                "SOURCE_DATA_LOST",
                f'the list of files of "{self._files.relation}" ends at {index.rows}, but the job has read up to {at}',
                hint="create the job again to read what is there",
            )
        return Offset(start.run, {0: index.rows})

    def divide(self, rows: Range, tasks: int) -> Sequence[Range]:
        wanted = min(tasks, max(os.cpu_count() or 1, -(-rows.rows // _ROWS_A_TASK)))
        share = -(-rows.rows // wanted)
        parts: list[FileRange] = []
        held: list[Numbered] = []
        for one in self._between(rows.first, rows.end):
            held.append(one)
            if one.end - max(held[0].first, rows.first) >= share:
                parts.append(_part(rows, held))
                held = []
        return [*parts, _part(rows, held)] if held else parts

    def read(self, rows: Range, end: Offset, batch_size: int) -> Iterator[pa.RecordBatch]:
        pieces = rows.pieces if isinstance(rows, FileRange) else self._between(rows.first, rows.end)
        read = self._typed if self._files.kind == "parquet" else self._records
        for one, number, batch in read(pieces, batch_size):
            low, high = max(rows.first, number), min(rows.end, number + batch.num_rows)
            if low < high:
                yield from self._shown(one, low, batch.slice(low - number, high - low), batch_size)

    def _open(self) -> FileIndex:
        if self._index is None:
            self._index = FileIndex(self._files, self._directory)
        return self._index

    def _between(self, first: int, end: int) -> Sequence[Numbered]:
        if self._pieces:
            return [one for one in self._pieces if one.first < end and one.end > first]
        index = self._open()
        index.refresh()
        return index.between(first, end)

    def _records(self, pieces: Sequence[Numbered], batch_size: int) -> Iterator[tuple[Numbered, int, pa.RecordBatch]]:
        """The records of text files as bytes, each piece with the number of its first one."""
        for one, data in zip(pieces, read_pieces(self._files, ((one.found, one.piece) for one in pieces)), strict=True):
            values = split_records(data, self._files.quote, self._files.delimiter)
            yield one, one.first, pa.RecordBatch.from_arrays([values], ["__value"])

    def _typed(self, pieces: Sequence[Numbered], batch_size: int) -> Iterator[tuple[Numbered, int, pa.RecordBatch]]:
        """The rows of Parquet files, with the columns that were asked for."""
        for one in pieces:
            unchanged(self._files, one.found)
            there = parquet_columns(one.found)
            folded = {name.casefold(): name for name in reversed(there.names)} if self._files.any_case else {}
            own = [field for field in self._schema if field.name not in HIDDEN_TYPES]
            names = [field.name if field.name in there.names else folded.get(field.name.casefold()) for field in own]
            number = one.first
            for batch in parquet_batches(one.found, one.piece, [name for name in names if name], batch_size):
                columns = [self._cast(one, batch, field, name) for field, name in zip(own, names, strict=True)]
                # A row without columns is a row all the same.
                columns.append(pa.nulls(batch.num_rows))
                yield one, number, pa.RecordBatch.from_arrays(columns, [*(field.name for field in own), "__rows"])
                number += batch.num_rows
            unchanged(self._files, one.found)  # nor was it replaced between the look at it and the reading

    def _cast(self, one: Numbered, batch: pa.RecordBatch, field: pa.Field, name: str | None) -> pa.Array:
        if name is None:
            return pa.nulls(batch.num_rows, field.type)
        column = batch.column(name)
        try:
            return column if column.type.equals(field.type) else column.cast(field.type)
        except (pa.ArrowException, ValueError) as error:
            text = str(error).splitlines()[0][:200]
            reason = f"column {name} is {column.type}, which does not fit {field.type}: {text}"
            raise unreadable(self._files, one.found.path, reason) from None

    def _shown(self, one: Numbered, first: int, batch: pa.RecordBatch, batch_size: int) -> Iterator[pa.RecordBatch]:
        """Rows with their places, in batches; a line without anything on it is no row."""
        numbers = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
        if "__value" in batch.schema.names:
            some = pc.greater(pc.binary_length(batch.column("__value")), 0)
            if not pc.all(some).as_py():
                batch, numbers = batch.filter(some), numbers.filter(some)
        for begin in range(0, batch.num_rows, batch_size):
            part, places = batch.slice(begin, batch_size), numbers.slice(begin, batch_size)
            columns = [self._column(field, one.found, part, places) for field in self._schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    @staticmethod
    def _column(field: pa.Field, found: Found, rows: pa.RecordBatch, places: pa.Array) -> pa.Array:
        if field.name in rows.schema.names:
            return rows.column(field.name).cast(field.type)
        if field.name == "__offset":
            return places
        values = {
            "__partition": 0,
            "__file_path": found.path,
            "__file_name": Path(found.path).name,
            "__file_size": found.size,
            "__file_time": found.modified_ns // 1_000,
            "__timestamp": found.modified_ns // 1_000,
        }
        return pa.repeat(pa.scalar(values.get(field.name), field.type), rows.num_rows)


def _part(rows: Range, held: Sequence[Numbered]) -> FileRange:
    return FileRange(rows.partition, max(held[0].first, rows.first), min(held[-1].end, rows.end), tuple(held))


class FileDataSource(RangeDataSource):
    """The format `penstock_file`; the place of a scan is its files, and where the list of what was found is."""

    @classmethod
    def name(cls) -> str:
        return FILE_FORMAT

    @classmethod
    def rows(cls, scan: Scan, schema: pa.Schema) -> NumberedRows:
        pieces = [read_piece(values) for values in scan.place.get("pieces", ())]
        files = read_file_set(scan.place["files"])
        return FileRows(files, schema, scan.place.get("directory"), pieces, scan.reading.max_rows)
