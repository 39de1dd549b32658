"""Files as a sink: a directory that grows by whole files, or one plain file that grows by whole batches.

Both take a batch once, however often it is written. Spark's tasks write the files of a directory themselves, so a
result may be larger than our own process; one plain file has one writer, which is us.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.connectors.file_plan import check_format, codec_of, local_path
from penstock.connectors.option_values import integer, text
from penstock.connectors.sink import Staged
from penstock.errors import NotYetError, OptionError
from penstock.stores.files.faults import outside
from penstock.stores.files.listing import within
from penstock.stores.files.part_writer import PLACE, RECORD, ROW_GROUP_BYTES, Part, PartPlan, joined, write_parts
from penstock.stores.files.plain_file import append_once
from penstock.stores.files.published import Publisher

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext
    from penstock.stores.topics.store import TopicStore

_EXTENSIONS: Final = {"json": ".json", "csv": ".csv", "raw": ".txt", "parquet": ".parquet"}
_PACKED: Final = {"gzip": ".gz", "zstd": ".zst", "bz2": ".bz2", "lz4": ".lz4"}
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # what other systems call the directory of NULL


class FileSink:
    """Writes files."""

    takes_frame = False
    exactly_once = True
    tells_rows = True

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing is made before there are rows; what this version cannot write is refused."""
        values, format_ = definition.options.values, check_format(definition)
        local_path(definition)
        if values.get("single_file") is True and format_ == "parquet":
            raise NotYetError(
                "QUERY_NOT_YET",
                f"{definition.name} asks for one plain Parquet file, which cannot grow batch by batch",
                hint="leave single_file out to write a directory, or use json or csv",
            )

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Nothing: what was written is the user's."""

    def check(self, context: SinkContext) -> None:
        """Refuses a path that cannot be written to, before the first row."""
        _target(context)

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        if rows.num_rows == 0:
            return
        target = _target(context)
        mark = "" if batch_id is None else context.input_hash(batch_id)
        if _plain(context.definition):
            content, header = _content(rows, context)
            packed = codec_of(context.definition) not in (None, "none")
            append_once(target, context.producer, batch_id, content, header, lines=not packed, input_hash=mark)
            return
        publisher = Publisher(target, context.producer)
        if publisher.begin(batch_id, mark):
            plan = _part_plan(context.definition, publisher.unpublished)
            parts = list(write_parts(plan, _dealt(rows, context).to_batches()))
            publisher.publish(batch_id, parts, *_names(context.definition, plan), mark)

    # what Spark's tasks write

    def stages(self, definition: SinkDefinition) -> bool:
        """Whether Spark's tasks write the files."""
        return not _plain(definition)

    def stage(self, frame: DataFrame, context: SinkContext, batch_id: int) -> Staged:
        """Let Spark write the files of a batch where nobody sees them, unless they are published already."""
        publisher = Publisher(_target(context), context.producer)
        if not publisher.begin(batch_id, context.input_hash(batch_id)):
            frame.write.format("noop").mode("overwrite").save()
            return Staged(publisher.rows_of(batch_id))
        plan = _part_plan(context.definition, publisher.unpublished)
        tasks = integer(context.definition.options.values, "sink.parallelism")
        if tasks is not None:
            frame = frame.coalesce(tasks)
        written = _shaped(frame, context).mapInArrow(
            partial(_write, plan), "name STRING, place STRING, rows BIGINT, bytes BIGINT"
        )
        parts = tuple(Part(row["name"], row["place"], row["rows"], row["bytes"]) for row in written.collect())
        return Staged(sum(part.rows for part in parts), parts)

    def publish(self, staged: Staged, context: SinkContext, batch_id: int) -> None:
        """Make the files of a batch visible, all or, after a crash, the rest of them."""
        publisher = Publisher(_target(context), context.producer)
        plan = _part_plan(context.definition, publisher.unpublished)
        mark = context.input_hash(batch_id)
        publisher.publish(batch_id, staged.parts, *_names(context.definition, plan), mark)


def _plain(definition: SinkDefinition) -> bool:
    return definition.options.values.get("single_file") is True


def _target(context: SinkContext) -> Path:
    """Where the sink writes; refused where it must not, or cannot."""
    definition = context.definition
    path = Path(local_path(definition))
    if context.roots is not None and not within(str(path), context.roots):
        raise outside(definition.name.text, str(path))
    if _plain(definition) and path.is_dir():
        raise OptionError(
            "INVALID_OPTION",
            f"{path} is a directory, and {definition.name} asks for one plain file",
            hint="name a file, or leave single_file out",
        )
    if not _plain(definition) and path.is_file():
        raise OptionError(
            "INVALID_OPTION",
            f"{path} is a file, and {definition.name} writes a directory of files",
            hint="set single_file = true to append to one plain file, or name a directory",
        )
    return path


def _part_plan(definition: SinkDefinition, directory: Path) -> PartPlan:
    values, format_ = definition.options.values, check_format(definition)
    codec = codec_of(definition)
    codec = None if codec == "none" else codec
    parquet = None
    if format_ == "parquet":
        asked = text(values, "compression") or text(values, "parquet.compression") or "snappy"
        parquet = "NONE" if asked == "none" else asked
    return PartPlan(
        directory=str(directory),
        extension=_EXTENSIONS[format_] + (_PACKED[codec] if codec is not None else ""),
        parquet=parquet,
        row_group_bytes=integer(values, "parquet.row_group_size") or ROW_GROUP_BYTES,
        codec=codec,
        header=_header(definition),
        most_rows=integer(values, "rollover_rows"),
        most_bytes=integer(values, "rollover_size"),
    )


def _names(definition: SinkDefinition, plan: PartPlan) -> tuple[str, str]:
    """The beginning and the end of the files' names."""
    values = definition.options.values
    return text(values, "filename_prefix") or "part", (text(values, "filename_suffix") or "") + plan.extension


def _header(definition: SinkDefinition) -> bytes:
    """The line with the names of the columns, where the sink asks for one."""
    values = definition.options.values
    if definition.options.format != "csv" or values.get("csv.header") is not True:
        return b""
    import csv
    import io

    delimiter = str(values.get("csv.delimiter") or ",")
    line = io.StringIO()
    writer = csv.writer(
        line,
        delimiter="\t" if delimiter == "\\t" else delimiter,
        quotechar=str(values.get("csv.quote") or '"'),
        lineterminator="\n",
    )
    writer.writerow([column.name for column in definition.columns])
    return line.getvalue().encode()


def _content(rows: pa.Table, context: SinkContext) -> tuple[bytes, bytes]:
    """The bytes of a batch, and those that stand at the beginning of the file."""
    import pyarrow as pa

    assert context.encode is not None, "a sink with a format is given its encoder"
    content, header = joined(context.encode(rows)), _header(context.definition)
    codec = codec_of(context.definition)
    if codec is None or codec == "none":
        return content, header
    packed = pa.BufferOutputStream()
    # Packed stretches one behind the other unpack to what they hold, one behind the other.
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(content)
    first = pa.BufferOutputStream()
    if header:
        with pa.CompressedOutputStream(first, codec) as stream:
            stream.write(header)
    return packed.getvalue().to_pybytes(), first.getvalue().to_pybytes() if header else b""


def _partition_columns(definition: SinkDefinition, there: Sequence[str]) -> list[str]:
    """The columns that make directories, as they are spelt in the rows."""
    asked = definition.options.values.get("partition_by")
    wanted = [str(name) for name in asked] if isinstance(asked, tuple) else list(definition.partitioned_by)
    found: list[str] = []
    for name in wanted:
        alike = next((column for column in there if column.casefold() == name.casefold()), None)
        if alike is None:
            raise OptionError(
                "INVALID_OPTION",
                f"{definition.name} has no column {name} to make directories of",
                hint=f"columns: {', '.join(there)}",
            )
        found.append(alike)
    return found


def _shaped(frame: DataFrame, context: SinkContext) -> DataFrame:
    """The frame as tasks write it: the columns, or the record of each row, and the directory it goes to."""
    from pyspark.sql import functions as f

    places = _partition_columns(context.definition, frame.columns)
    names = list(frame.columns)
    if context.definition.options.format != "parquet":
        assert context.encode_frame is not None, "a sink with a format is given its encoder"
        frame, names = context.encode_frame(frame), [RECORD]
    if not places:
        return frame.select(*[_quoted(name) for name in names])
    place = f.concat_ws("/", *[_directory(name) for name in places]).alias(PLACE)
    return frame.select(*[_quoted(name) for name in names], place).sortWithinPartitions(PLACE)


def _directory(name: str) -> Column:
    """The directory of a column's value, `name=value`, as Hive and Spark spell it."""
    from pyspark.sql import functions as f

    written = f.replace(f.url_encode(f.col(_quoted(name)).cast("string")), f.lit("+"), f.lit("%20"))
    return f.concat(f.lit(f"{name}="), f.coalesce(f.nullif(written, f.lit("")), f.lit(_NO_VALUE)))


def _dealt(rows: pa.Table, context: SinkContext) -> pa.Table:
    """The same for rows that we have ourselves: a few, that belong to no batch."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places = _partition_columns(context.definition, rows.column_names)
    parts = [_values(rows.column(name), name) for name in places]
    if places:
        order = pa.array(sorted(range(rows.num_rows), key=lambda row: [part[row] for part in parts]), pa.int64())
        rows, parts = rows.take(order), [[part[row] for row in order.to_pylist()] for part in parts]
    shown = rows
    if context.definition.options.format != "parquet":
        assert context.encode is not None
        shown = pa.table({RECORD: context.encode(rows)})
    if places:
        shown = shown.append_column(PLACE, pc.binary_join_element_wise(*map(pa.array, parts), "/"))
    return shown


def _values(column: pa.ChunkedArray, name: str) -> list[str]:
    from urllib.parse import quote

    found = [None if value is None else _text(value) for value in column.to_pylist()]
    return [f"{name}={quote(value, safe='*-._') if value else _NO_VALUE}" for value in found]


def _text(value: object) -> str:
    """A value as Spark turns it into a text."""
    from datetime import datetime

    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return (
            value.replace(tzinfo=None).isoformat(" ").rstrip("0").rstrip(".")
            if value.microsecond
            else (value.replace(tzinfo=None).isoformat(" "))
        )
    return str(value)


def _write(plan: PartPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What each of Spark's tasks does: write its rows, and tell the files."""
    import pyarrow as pa

    parts = list(write_parts(plan, batches))
    yield pa.RecordBatch.from_pydict(
        {
            "name": pa.array([part.name for part in parts], pa.string()),
            "place": pa.array([part.place for part in parts], pa.string()),
            "rows": pa.array([part.rows for part in parts], pa.int64()),
            "bytes": pa.array([part.bytes for part in parts], pa.int64()),
        }
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
