"""Rows of a sink as records of Kafka: key, value, headers and timestamp, inside Spark and in our own process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.kafka_keys import check_keys, key_columns
from penstock.connectors.sink import OPERATION, RECORD, record_values
from penstock.errors import OptionError
from penstock.stores.topics.partition_choice import partitions_of, whole_row_key

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import SinkDefinition
    from penstock.connectors.sink import SinkContext

_BY_KEY: Final = -1  # no partition: the client chooses it
_TIMES: Final = frozenset({"TIMESTAMP", "BIGINT"})
_HEADERS: Final = "array<struct<key: string, value: binary>>"


def check_record_options(definition: SinkDefinition) -> None:
    """Refuse what cannot be written, before the first row."""
    check_keys(definition)
    _check_once(definition)
    known = {column.name.casefold(): column.type for column in definition.columns}
    dated = timestamp_column(definition)
    if not known or dated is None:
        return
    if dated.casefold() not in known:
        raise OptionError("INVALID_OPTION", f"sink {definition.name} has no column {dated}")
    kind = known[dated.casefold()]
    if kind is not None and kind.name not in _TIMES:
        raise OptionError(
            "INVALID_OPTION",
            f"column {dated} of sink {definition.name} is {kind}, and cannot be the timestamp of a record",
            hint="make it a TIMESTAMP, or a BIGINT of milliseconds",
        )


def _check_once(definition: SinkDefinition) -> None:
    """Refuse what is said of a record twice: one of the two would count without a word."""
    for part, options in (("key", ("key.fields", "key_field")), ("timestamp", ("record_timestamp_field",))):
        columns = [column.name for column in definition.columns if column.metadata == part and not column.virtual]
        named = [option for option in options if definition.options.values.get(option) is not None][:1]
        told = [*(f"column {name}" for name in columns), *(f"option {option}" for option in named)]
        if len(told) > 1:
            raise OptionError(
                "CONFLICTING_OPTIONS",
                f"the {part} of the records of sink {definition.name} is said twice: by {' and '.join(told)}",
                hint="keep one of them",
            )


def timestamp_column(definition: SinkDefinition) -> str | None:
    """The column that dates a record; None where the clock of the producer does."""
    named = definition.options.values.get("record_timestamp_field")
    return str(named) if named is not None else _metadata(definition, "timestamp")


def spreads(definition: SinkDefinition) -> bool:
    """Whether we choose the partition of a record; else Kafka's client does, by its key."""
    return definition.options.values.get("partitioner") in ("fixed", "round-robin")


def keeps_rows_together(definition: SinkDefinition) -> bool:
    """Whether rows come and go without a key: then the partition is that of the row as a whole, so that no reader sees
    it go before it came."""
    keyed = key_columns(definition) or _metadata(definition, "key") is not None
    return definition.options.changes != "append" and not keyed and not spreads(definition)


def keeps_keyless_together(definition: SinkDefinition) -> bool:
    """Whether records without a key belong together: a key written as plain text that is NULL is none, and of the rows
    that replace each other by it no reader may see an older one last. They are in the first partition."""
    return definition.options.changes != "append" and not spreads(definition) and not keeps_rows_together(definition)


def record_frame(frame: DataFrame, context: SinkContext, width: int = 0) -> DataFrame:
    """Key, value and headers, as Spark's sink wants them; the partition, where it is ours to choose among `width`."""
    from pyspark.sql import functions as f

    definition = context.definition
    assert context.encode_frame is not None, "a sink with a format is given its encoder"
    encoded = context.encode_frame(frame, _value_columns(definition, frame.columns))
    made: dict[str, Column] = {"__written_value": f.col("__record")}
    key, headers, keys = _metadata(definition, "key"), _metadata(definition, "headers"), key_columns(definition)
    if key is not None:
        made["__written_key"] = f.col(_quoted(key)).cast("binary")
    elif keys and _plain_key(definition):
        plain = f.col(_quoted(_found(keys[0], frame.columns)))
        made["__written_key"] = (plain if _is_binary(frame, keys) else plain.cast("string")).cast("binary")
    if headers is not None:
        given = f.col(_quoted(headers))
        kind = dict(frame.dtypes)[_found(headers, frame.columns)]
        entries = f.map_entries(given) if kind.startswith("map<") else given
        made["__written_headers"] = entries.cast(_HEADERS)
    encoded = encoded.withColumns(made)
    if key is None and keys and not _plain_key(definition):
        assert context.encode_key_frame is not None, "a sink with keys is given their encoder"
        encoded = context.encode_key_frame(encoded, [_found(name, frame.columns) for name in keys])
        encoded = encoded.withColumnRenamed("__record", "__written_key")
    if spreads(definition):
        # Ids count up within a task; a task by itself keeps to one partition.
        fixed = definition.options.values["partitioner"] == "fixed"
        number = f.spark_partition_id() if fixed else f.monotonically_increasing_id()
        encoded = encoded.withColumn("__written_partition", f.pmod(number, f.lit(width)).cast("int"))
    elif keeps_keyless_together(definition) and "__written_key" in encoded.columns:
        first = f.when(f.col("__written_key").isNull(), f.lit(0))  # else NULL: the client chooses, by the key
        encoded = encoded.withColumn("__written_partition", first)
    written = [name for name in encoded.columns if name.startswith("__written_")]
    return encoded.select(*[f.col(name).alias(name.removeprefix("__written_")) for name in written])


def records(rows: pa.Table, context: SinkContext, width: int = 0) -> Iterator[dict[str, Any]]:
    """The same in our own process, as arguments of a producer; with the timestamp, which Spark's sink cannot set."""
    import pyarrow as pa

    definition = context.definition
    names = [name for name in rows.column_names if name not in (OPERATION, RECORD)]
    columns: dict[str, list[Any]] = {"value": _values(rows, context, _value_columns(definition, names))}
    key, headers, keys = _metadata(definition, "key"), _metadata(definition, "headers"), key_columns(definition)
    if key is not None:
        columns["key"] = rows.column(key).to_pylist()
    elif keys:
        parts = [_found(name, names) for name in keys]
        if _plain_key(definition):
            made = rows.column(parts[0])
            columns["key"] = (made if pa.types.is_binary(made.type) else made.cast(pa.string())).to_pylist()
        else:
            assert context.encode_key is not None, "a sink with keys is given their encoder"
            columns["key"] = context.encode_key(rows.select(parts)).to_pylist()
    if headers is not None:
        columns["headers"] = [_header_list(each) for each in rows.column(headers).to_pylist()]
    dated = timestamp_column(definition)
    if dated is not None:
        times = rows.column(_found(dated, names))
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        columns["timestamp"] = [0 if time is None else time for time in times.to_pylist()]
    if spreads(definition):
        fixed = definition.options.values["partitioner"] == "fixed"  # there is one writer
        columns["partition"] = [0 if fixed else number % width for number in range(rows.num_rows)]
    elif keeps_rows_together(definition) and OPERATION in rows.column_names:
        columns["partition"] = partitions_of(rows, width, whole_row_key(rows, names))
    elif keeps_keyless_together(definition) and None in columns.get("key", ()):
        columns["partition"] = [0 if each is None else _BY_KEY for each in columns["key"]]
    for record in zip(*columns.values(), strict=True):
        yield dict(zip(columns, record, strict=True))


def _values(rows: pa.Table, context: SinkContext, names: list[str]) -> list[bytes | None]:
    """The values of records. Where rows replace each other, a deleted one has none; else each says what it is."""
    if RECORD in rows.column_names or OPERATION not in rows.column_names:
        return list(record_values(rows if RECORD in rows.column_names else rows.select(names), context).to_pylist())
    if context.definition.options.changes != "upsert":
        return list(record_values(rows.select([OPERATION, *names]), context).to_pylist())
    made = record_values(rows.select(names), context).to_pylist()
    operations = rows.column(OPERATION).to_pylist()
    return [None if op == "delete" else record for op, record in zip(operations, made, strict=True)]


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


def _plain_key(definition: SinkDefinition) -> bool:
    """Whether the key is the text of one column."""
    return definition.options.values.get("key.format") in (None, "raw") and len(key_columns(definition)) == 1


def _is_binary(frame: DataFrame, keys: Sequence[str]) -> bool:
    return len(keys) == 1 and dict(frame.dtypes)[_found(keys[0], frame.columns)] == "binary"


def _found(name: str, names: Sequence[str]) -> str:
    return next((one for one in names if one.casefold() == name.casefold()), name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
