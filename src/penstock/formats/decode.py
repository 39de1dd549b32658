"""From the bytes of a record to the columns of its relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotYetError
from penstock.formats.avro_confluent import decode_confluent
from penstock.formats.avro_records import decode_avro
from penstock.formats.csv_records import decode_csv
from penstock.formats.debezium_records import decode_debezium
from penstock.formats.json_records import decode_json
from penstock.formats.outside import Outside
from penstock.formats.protobuf_records import decode_protobuf
from penstock.formats.raw_records import decode_raw
from penstock.formats.registry import uses_registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.catalog.model import SourceDefinition


def decode(
    frame: DataFrame, definition: SourceDefinition, columns: tuple[str, ...], outside: Outside | None = None
) -> DataFrame:
    """The frame with the wanted columns read from `__value`, and `__error`: why a record cannot be read, else NULL.

    What can be read of a bad record is there, too: a column that does not fit is NULL, and all of them are where the
    record as a whole makes no sense. With `bad_data = 'null'` that is the result and `__error` stays NULL.
    A record is looked at only as far as the wanted columns go. Of a stream, `__error` says only that a record is bad:
    the reasons would cost every good record time, and a batch over the same range tells them.
    """
    from pyspark.sql import functions as f

    named = {column.name: column for column in definition.columns}
    wanted = [named[name] for name in columns]
    format_name = definition.options.format
    if uses_registry(format_name, definition.options.values):
        return decode_confluent(frame, definition, wanted, outside or Outside())
    if format_name == "json":
        decoded = decode_json(frame, definition, wanted)
    elif format_name == "debezium-json":
        decoded = decode_debezium(frame, definition, wanted)
    elif format_name == "protobuf":
        decoded = decode_protobuf(frame, definition, wanted, outside or Outside())
    elif format_name == "csv":
        decoded = decode_csv(frame, definition, wanted)
    elif format_name == "raw":
        decoded = decode_raw(frame, definition, wanted)
    elif format_name == "avro":
        decoded = decode_avro(frame, definition, wanted, outside or Outside())
    else:
        raise NotYetError(
            "QUERY_NOT_YET",
            f"format {format_name} of {definition.name} is not read yet",
            hint="use json, csv, avro, protobuf, debezium-json or raw",
        )
    if definition.options.values.get("bad_data") == "null":
        return decoded.withColumn("__error", f.lit(None).cast("string"))
    return decoded
