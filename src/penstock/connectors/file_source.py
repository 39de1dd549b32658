"""Files as a source: one that ends, or a directory or file that is tailed.

All rows are in partition 0. Their offsets count the records of all files in the order these were found; a job keeps the
list of what it has found with its checkpoint, so a batch that runs again reads the same records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from penstock.connectors.file_plan import file_set
from penstock.connectors.metadata_columns import hidden_columns
from penstock.connectors.offsets import Offset, read_offset
from penstock.connectors.reading import Scan, reading_of
from penstock.connectors.scan_frames import batch_frame, stream_frame
from penstock.errors import RuntimeFailure
from penstock.stores.files.index import FileIndex, piece_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.connectors.range_reader import RangeDataSource
    from penstock.connectors.scan_frames import Columns
    from penstock.connectors.source import ScanRequest
    from penstock.stores.files.file_set import FileSet
    from penstock.stores.topics.store import TopicStore

# The end of a source that ends, while its records are not all counted.
_NOT_YET: Final = 1 << 62
_PIECES: Final = "pieces"


class FileSource:
    """Reads files. What is in a text file is decoded by its format; Parquet has its columns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: dict[Path, tuple[FileSet, FileIndex]] = {}

    def data_source(self) -> type[RangeDataSource]:
        """What Spark reads it with."""
        from penstock.connectors.file_reader import FileDataSource

        return FileDataSource

    def typed(self, definition: SourceDefinition) -> bool:
        return definition.options.format == "parquet"

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        columns = self._columns(request, request.columns)
        return stream_frame(spark, self.data_source(), columns, self._scan(request), request.id)

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        names = request.columns  # of a query that ends, which knows what it needs
        if request.keep is not None:
            names = tuple(column.name for column in request.definition.columns if column.physical)
        columns = self._columns(request, names)
        return batch_frame(spark, self.data_source(), columns, self._scan(request, start, end))

    def partitions(self, request: ScanRequest) -> int:
        """Always one. A job that begins looks at its files first: what is not there is better told now."""
        index = self._index(request)
        if request.keep is not None:
            index.update(0)
        return 1

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        index = self._index(request)
        index.refresh()
        if reached is not None and not request.definition.bounded:
            return {0: index.rows}
        if reached is not None:  # asked with every batch: whether more comes, not how much
            return {0: index.rows + (0 if index.complete else 1)}
        with suppress(RuntimeFailure):  # the job meets the same, and tells it
            index.update()
        return {0: index.rows}

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        if not request.definition.bounded:
            return None
        index = self._index(request)
        index.refresh()
        return {0: index.rows if index.complete else _NOT_YET}

    def end_offset(self, request: ScanRequest) -> str:
        index = self._index(request)
        index.update()
        offset = Offset(0, {0: index.rows}).json()
        if request.keep is None:
            # Nobody keeps the list: it goes with the offset.
            offset[_PIECES] = [piece_values(one) for one in index.between(0, index.rows)]
        return json.dumps(offset)

    def positions(self, offset: str) -> Mapping[int, int]:
        return read_offset(offset).positions

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: files are looked for when they are read."""

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: the files are the user's, and the lists go with their jobs."""

    def _columns(self, request: ScanRequest, names: tuple[str, ...]) -> Columns:
        from penstock.connectors.file_reader import HIDDEN_TYPES

        definition = request.definition
        hidden = [(name, HIDDEN_TYPES[name]) for name in hidden_columns(definition)]
        if not self.typed(definition):
            return [("__value", HIDDEN_TYPES["__value"]), *hidden]
        wanted = [column for column in definition.columns if column.physical and column.name in names]
        return [*((column.name, column.type.spark()) for column in wanted if column.type is not None), *hidden]

    def _scan(self, request: ScanRequest, start: str | None = None, end: str | None = None) -> Scan:
        place: dict[str, object] = {"files": file_set(request).json()}
        if request.keep is not None:
            place["directory"] = str(_directory(request))
        elif end is not None:
            kept = json.loads(end)
            place[_PIECES] = kept.pop(_PIECES, [])
            end = json.dumps(kept)
        return Scan(place, reading_of(request), start, end)

    def _index(self, request: ScanRequest) -> FileIndex:
        files = file_set(request)
        if request.keep is None:
            return FileIndex(files, None)
        directory = _directory(request)
        with self._lock:
            known, index = self._opened.get(directory, (None, None))
            if index is None or known != files:
                # Jobs come and go; what was kept of those that are gone is of no use.
                self._opened = {place: held for place, held in self._opened.items() if place.exists()}
                index = FileIndex(files, directory)
                self._opened[directory] = (files, index)
            return index


def _directory(request: ScanRequest) -> Path:
    assert request.keep is not None
    return request.keep / "files" / quote(request.id, safe="")
