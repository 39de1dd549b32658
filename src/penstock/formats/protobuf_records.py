"""Protocol Buffers records on Spark: read and written by an Arrow function in Spark's workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import OptionError
from penstock.formats.avro_records import with_columns
from penstock.formats.protobuf_confluent import Unwrap, is_framed, message_path, sink_front
from penstock.formats.protobuf_messages import ReadMessages, WriteMessages, check_columns, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.formats.outside import Outside

_READ: Final = "__read"


def decode_protobuf(
    frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition], outside: Outside
) -> DataFrame:
    """The frame with the wanted columns and `__error`."""
    from pyspark.sql import functions as f

    options = definition.options.values
    descriptors, name = message_of(options, str(definition.name), outside)
    fields = check_columns(descriptors, name, [column.name for column in wanted], str(definition.name))
    read = tuple(dict.fromkeys(fields.values()))
    defaults = options.get("protobuf.read_default_values") is True
    unwrap = Unwrap(message_path(descriptors, name)) if is_framed(options) else None
    call = ReadMessages(descriptors, name, read, defaults, unwrap)
    frame = frame.withColumn(_READ, _arrow_call(call, spark_type(descriptors, name, read), f.col("__value")))
    why = f.when(f.col("__value").isNull(), f.lit("empty record")).otherwise(f.lit("malformed protobuf"))
    return with_columns(frame, wanted, {_READ: fields}, why).drop(_READ)


def protobuf_record(frame: DataFrame, options: Mapping[str, object], outside: Outside) -> Column:
    """The columns of a frame as one message."""
    from pyspark.sql import functions as f

    call = writer_of(options, frame.columns, outside)
    return _arrow_call(call, "BINARY", f.struct(*["`" + name.replace("`", "``") + "`" for name in frame.columns]))


def protobuf_rows(table: pa.Table, options: Mapping[str, object], outside: Outside) -> list[bytes]:
    """The rows of a table as messages."""
    found: list[bytes] = []
    call = writer_of(options, table.column_names, outside)
    for batch in table.to_batches():
        found += call.records(batch.to_struct_array())
    return found


def writer_of(options: Mapping[str, object], columns: Iterable[str], outside: Outside) -> WriteMessages:
    """How the rows of a sink become messages."""
    descriptors, name = message_of(options, "the sink", outside)
    check_columns(descriptors, name, columns, "the sink")
    null_text = options.get("protobuf.write_null_string_literal")
    front = sink_front(options, descriptors, name, outside)
    return WriteMessages(descriptors, name, None if null_text is None else str(null_text), front)


def message_of(options: Mapping[str, object], what: str, outside: Outside) -> tuple[bytes, str | None]:
    """The descriptor file of a relation, and the message in it that the records are."""
    found = outside.file(options, "protobuf.descriptor") or outside.file(options, "schema_location")
    if found is None:
        raise OptionError(
            "MISSING_OPTION",
            f"format protobuf of {what} needs the option protobuf.descriptor",
            hint="write the file with: protoc --include_imports --descriptor_set_out=FILE",
        )
    named = options.get("message")
    return found, None if named is None else str(named)


def _arrow_call(call: ReadMessages | WriteMessages, returns: str, column: Column) -> Column:
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    # By its constructor: the decorator wants a function with annotations of Arrow's types.
    made = UserDefinedFunction(call, returns, type(call).__name__, PythonEvalType.SQL_SCALAR_ARROW_UDF)
    return made(column)
