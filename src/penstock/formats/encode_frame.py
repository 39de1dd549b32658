"""From rows to the bytes of records inside Spark, for results that are too large to pass through our own process.

The records mean the same as those of `encode_rows`; numbers may be spelt as Java spells them (`1.0E10`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import NotYetError, RuntimeFailure
from penstock.formats.avro_confluent import sink_writing
from penstock.formats.avro_records import avro_record
from penstock.formats.json_schemas import sink_front as json_front
from penstock.formats.outside import Outside
from penstock.formats.protobuf_records import protobuf_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_RECORD: Final = "__record"
_TIMES: Final = {
    "iso-8601": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "sql": "yyyy-MM-dd HH:mm:ss.SSSSSS",
}


def encode_frame(
    frame: DataFrame,
    format_name: str,
    options: Mapping[str, object],
    columns: Sequence[str] | None = None,
    outside: Outside | None = None,
) -> DataFrame:
    """The frame with `__record`: each row as the bytes of one record, of all its columns or of those named."""
    from pyspark.sql import functions as f

    written = frame if columns is None else frame.select(*[_quoted(name) for name in columns])
    if format_name == "json":
        opening = json_front(lambda: _arrow_schema(written), options, outside or Outside())
        record = _json(written, options)
        if opening:
            record = f.concat(f.lit(opening), record.cast("binary"))
    elif format_name == "debezium-json":
        record = _envelope(written, options)
    elif format_name == "csv":
        record = _csv(written, options)
    elif format_name == "raw":
        record = _raw(written, options)
    elif format_name == "protobuf":
        record = protobuf_record(written, options, outside or Outside())
    elif format_name in ("avro", "avro-confluent"):
        schema, front = sink_writing(_arrow_schema(written), format_name, options, outside or Outside())
        record = f.concat(f.lit(front), avro_record(written, schema))
    else:
        raise NotYetError(
            "QUERY_NOT_YET",
            f"records in format {format_name} are not written yet",
            hint="use json, csv, avro, protobuf, debezium-json or raw",
        )
    return frame.withColumn(_RECORD, f.coalesce(record, f.lit("")).cast("binary"))


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema, timezone="UTC")


def _json(frame: DataFrame, options: Mapping[str, object]) -> Column:
    from pyspark.sql import functions as f

    times = str(options.get("json.timestamp_format") or "iso-8601")
    columns = []
    for field in frame.schema.fields:
        value = f.col(_quoted(field.name))
        shown = _milliseconds(value, field.dataType) if times == "epoch_ms" else value
        columns.append(shown.alias(field.name))
    without_nulls = options.get("json.ignore_null_fields") is True
    return f.to_json(
        f.struct(*columns),
        {
            "timestampFormat": _TIMES.get(times, _TIMES["iso-8601"]),
            "ignoreNullFields": str(without_nulls).lower(),
        },
    )


def _envelope(frame: DataFrame, options: Mapping[str, object]) -> Column:
    """Rows that are only added, as Debezium writes them."""
    from pyspark.sql import functions as f

    family = "debezium-json"
    own = {f"json{key.removeprefix(family)}": value for key, value in options.items() if key.startswith(family)}
    record = f.concat(f.lit('{"before":null,"after":'), _json(frame, own), f.lit(',"op":"c"}'))
    if options.get(f"{family}.schema_include") is True:
        record = f.concat(f.lit('{"schema":null,"payload":'), record, f.lit("}"))
    return record


def _milliseconds(value: Column, type_: DataType) -> Column:
    """A value with all times in it as milliseconds since 1970."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(type_, t.TimestampType):
        return f.unix_millis(value)
    if isinstance(type_, t.ArrayType):
        element = type_.elementType
        return f.transform(value, lambda item: _milliseconds(item, element))
    if isinstance(type_, t.MapType):
        inner = type_.valueType
        return f.transform_values(value, lambda _, item: _milliseconds(item, inner))
    if isinstance(type_, t.StructType):
        parts = [_milliseconds(value[field.name], field.dataType).alias(field.name) for field in type_.fields]
        return f.when(value.isNotNull(), f.struct(*parts))
    return value


def _csv(frame: DataFrame, options: Mapping[str, object]) -> Column:
    from pyspark.sql import functions as f

    delimiter = str(options.get("csv.delimiter") or ",")
    delimiter = "\t" if delimiter == "\\t" else delimiter
    arrays = str(options.get("csv.array_delimiter") or ";")
    null = f.lit(str(options.get("csv.null_literal") or ""))
    texts = [_text(f.col(_quoted(field.name)), field.dataType, arrays) for field in frame.schema.fields]
    return f.concat_ws(delimiter, *[f.coalesce(_in_quotes(text, delimiter, options), null) for text in texts])


def _in_quotes(text: Column, delimiter: str, options: Mapping[str, object]) -> Column:
    """A text as it stands in a line; NULL stays NULL."""
    from pyspark.sql import functions as f

    if options.get("csv.no_quote") is True:
        message = "a value with a separator in it cannot be written as csv without quotes"
        special = _has_any(text, (delimiter, "\n", "\r"))
        return f.when(special, f.raise_error(f.lit(message)).cast("string")).otherwise(text)
    quote = str(options.get("csv.quote") or '"')
    escape = str(options.get("csv.escape") or quote)
    null = options.get("csv.null_literal")
    needed = _has_any(text, (delimiter, quote, escape, "\n", "\r")) | (text == "")
    if null is not None:
        needed = needed | (text == str(null))
    inside = text if escape == quote else f.replace(text, f.lit(escape), f.lit(escape * 2))
    written = f.concat(f.lit(quote), f.replace(inside, f.lit(quote), f.lit(escape + quote)), f.lit(quote))
    return f.when(needed, written).otherwise(text)


def _has_any(text: Column, marks: tuple[str, ...]) -> Column:
    found = text.contains(marks[0])
    for mark in marks[1:]:
        found = found | text.contains(mark)
    return found


def _text(value: Column, type_: DataType, arrays: str) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(type_, t.StringType):
        return value
    if isinstance(type_, t.TimestampType):
        return f.date_format(value, _TIMES["iso-8601"])
    if isinstance(type_, t.BinaryType):
        return f.base64(value)
    if isinstance(type_, t.ArrayType) and not isinstance(type_.elementType, t.ArrayType | t.MapType | t.StructType):
        element = type_.elementType
        return f.array_join(f.transform(value, lambda item: _text(item, element, arrays)), arrays)
    if isinstance(type_, t.ArrayType | t.MapType | t.StructType | t.VariantType):
        return f.to_json(value, {"timestampFormat": _TIMES["iso-8601"], "ignoreNullFields": "false"})
    return value.cast("string")


def _raw(frame: DataFrame, options: Mapping[str, object]) -> Column:
    from pyspark.sql import functions as f

    names: list[Any] = frame.columns
    if len(names) != 1 and "value" not in names:
        raise RuntimeFailure(
            "INVALID_ROWS", "the raw format writes one column, or the one named value", hint="select a single column"
        )
    name = names[0] if len(names) == 1 else "value"
    value = f.col(_quoted(name))
    if dict(frame.dtypes)[name] == "string":
        charset = str(options.get("raw.charset") or "UTF-8")
        return f.encode(value, charset)
    return value


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
