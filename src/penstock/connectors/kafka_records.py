"""Rows of a sink as records of Kafka: key, value, headers and timestamp, inside Spark and in our own process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext

_HEADERS: Final = "array<struct<key: string, value: binary>>"


def check_record_options(definition: SinkDefinition) -> None:
    """Refuse what cannot be written, before the first row."""
    options = definition.options
    if options.values.get("partitioner") not in (None, "default"):
        raise _not_yet(definition, "partitioner", "leave it out: records with the same key go to the same partition")
    keys = key_columns(definition)
    key_format = options.values.get("key.format")
    if key_format not in (None, "raw", "json"):
        raise _not_yet(definition, "key.format", "keys are written as text, or as JSON")
    if _json_key(definition) and options.format != "json":
        raise _not_yet(definition, "key.fields", "a key of several columns, or in JSON, needs format = 'json'")
    known = {column.name.casefold() for column in definition.columns}
    for key in (*keys, *filter(None, [timestamp_column(definition)])):
        if known and key.casefold() not in known:
            raise OptionError("INVALID_OPTION", f"sink {definition.name} has no column {key}")


def key_columns(definition: SinkDefinition) -> tuple[str, ...]:
    """The columns that the key of a record is made of."""
    values = definition.options.values
    found = values.get("key.fields")
    if isinstance(found, tuple) and found:
        return tuple(str(name) for name in found)
    single = values.get("key_field")
    return () if single is None else (str(single),)


def timestamp_column(definition: SinkDefinition) -> str | None:
    """The column that dates a record; None where the clock of the producer does."""
    named = definition.options.values.get("record_timestamp_field")
    return str(named) if named is not None else _metadata(definition, "timestamp")


def record_frame(frame: DataFrame, context: SinkContext) -> DataFrame:
    """Key, value and headers, as Spark's sink wants them."""
    from pyspark.sql import functions as f

    definition = context.definition
    assert context.encode_frame is not None, "a sink with a format is given its encoder"
    encoded = context.encode_frame(frame, _value_columns(definition, frame.columns))
    columns: list[Column] = [f.col("__record").alias("value")]
    key, headers, keys = _metadata(definition, "key"), _metadata(definition, "headers"), key_columns(definition)
    if key is not None:
        columns.append(f.col(_quoted(key)).cast("binary").alias("key"))
    elif keys:
        parts = [_quoted(_found(name, frame.columns)) for name in keys]
        as_json = f.to_json(f.struct(*parts), {"ignoreNullFields": "false"})
        made = as_json if _json_key(definition) else f.col(parts[0])
        columns.append((made if _is_binary(frame, keys) else made.cast("string")).cast("binary").alias("key"))
    if headers is not None:
        columns.append(f.col(_quoted(headers)).cast(_HEADERS).alias("headers"))
    return encoded.select(*columns)


def records(rows: pa.Table, context: SinkContext) -> Iterator[dict[str, Any]]:
    """The same in our own process, as arguments of a producer; with the timestamp, which Spark's sink cannot set."""
    import pyarrow as pa

    definition = context.definition
    assert context.encode is not None, "a sink with a format is given its encoder"
    names = rows.column_names
    values = context.encode(rows.select(_value_columns(definition, names)))
    columns: dict[str, list[Any]] = {"value": values.to_pylist()}
    key, headers, keys = _metadata(definition, "key"), _metadata(definition, "headers"), key_columns(definition)
    if key is not None:
        columns["key"] = rows.column(key).to_pylist()
    elif keys:
        parts = [_found(name, names) for name in keys]
        if _json_key(definition):
            columns["key"] = context.encode(rows.select(parts)).to_pylist()
        else:
            made = rows.column(parts[0])
            columns["key"] = (made if pa.types.is_binary(made.type) else made.cast(pa.string())).to_pylist()
    if headers is not None:
        columns["headers"] = [_header_list(each) for each in rows.column(headers).to_pylist()]
    dated = timestamp_column(definition)
    if dated is not None:
        times = rows.column(_found(dated, names))
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        columns["timestamp"] = [0 if time is None else time for time in times.to_pylist()]
    for record in zip(*columns.values(), strict=True):
        yield dict(zip(columns, record, strict=True))


def _header_list(headers: Any) -> list[tuple[str, bytes | None]]:
    """Headers of a row, a map or a list of structs, as a producer takes them."""
    if headers is None:
        return []
    pairs = [(one["key"], one["value"]) if isinstance(one, dict) else one for one in headers]
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _value_columns(definition: SinkDefinition, names: Sequence[str]) -> list[str]:
    """The columns of the record value: without metadata, and without the key where that is asked for."""
    left_out = {column.name for column in definition.columns if not column.physical}
    if definition.options.values.get("value.fields_include") == "EXCEPT_KEY":
        left_out |= {_found(name, names) for name in key_columns(definition)}
    return [name for name in names if name not in left_out]


def _metadata(definition: SinkDefinition, key: str) -> str | None:
    """The column that sets a metadata key of the record."""
    for column in definition.columns:
        if column.metadata == key and not column.virtual:
            return column.name
    return None


def _json_key(definition: SinkDefinition) -> bool:
    return definition.options.values.get("key.format") == "json" or len(key_columns(definition)) > 1


def _is_binary(frame: DataFrame, keys: Sequence[str]) -> bool:
    return len(keys) == 1 and dict(frame.dtypes)[_found(keys[0], frame.columns)] == "binary"


def _found(name: str, names: Sequence[str]) -> str:
    return next((one for one in names if one.casefold() == name.casefold()), name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _not_yet(definition: SinkDefinition, key: str, hint: str) -> OptionError:
    return OptionError("INVALID_OPTION", f"option {key} of sink {definition.name} is not there yet", hint=hint)
