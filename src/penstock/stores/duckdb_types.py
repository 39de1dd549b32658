"""Our data types in DuckDB, and Arrow tables on their way in and out.

DuckDB keeps a TIMESTAMP without a zone, meaning UTC; Arrow tables carry timestamp[us, UTC] on both sides of the store.
An INTERVAL leaves as duration[us]: the lengths we keep (lateness) have no months. VARIANT has no place here yet.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError
from penstock.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

_NAMES: Final = {
    "STRING": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINT": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BINARY": "BLOB",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "INTERVAL": "INTERVAL",
}

_DAY_US: Final = 86_400_000_000


def quoted(name: str) -> str:
    """A name as DuckDB's text holds it.

    >>> print(quoted('5" nail'))
    "5"" nail"
    """
    return '"' + name.replace('"', '""') + '"'


def duckdb_type(sql_type: SqlType) -> str:
    """A type in DuckDB's text.

    >>> duckdb_type(SqlType("ARRAY", elements=(SqlType("BINARY"),)))
    'BLOB[]'
    """
    match sql_type.name:
        case "ARRAY":
            return f"{duckdb_type(sql_type.elements[0])}[]"
        case "MAP":
            return f"MAP({duckdb_type(sql_type.elements[0])}, {duckdb_type(sql_type.elements[1])})"
        case "STRUCT":
            inner = ", ".join(f"{quoted(field.name)} {duckdb_type(field.type)}" for field in sql_type.fields)
            return f"STRUCT({inner})"
        case "DECIMAL":
            return f"DECIMAL({sql_type.parameters[0]}, {sql_type.parameters[1]})"
        case "VARIANT":
            raise NotYetError(
                "QUERY_NOT_YET",
                "a view cannot keep a column of type VARIANT",
                hint="take the fields out of it in the query, or cast it to STRING",
            )
        case name:
            return _NAMES[name]


def to_duckdb(table: pa.Table) -> pa.Table:
    """The table as DuckDB takes it: timestamps in microseconds of UTC, without a zone, and in maps each key once, also
    inside other values."""
    import pyarrow as pa

    from penstock.stores.arrow_maps import with_keys_once

    fields = [pa.field(field.name, _zoned(field.type, None)) for field in table.schema]
    return _as(with_keys_once(table), pa.schema(fields))


def from_duckdb(table: pa.Table) -> pa.Table:
    """The table as it leaves the store: timestamps in UTC, intervals as durations, plain strings and lists."""
    import pyarrow as pa

    columns = [_durations(column) if _interval(column.type) else column for column in table.columns]
    fields = [
        pa.field(name, _zoned(column.type, "UTC")) for name, column in zip(table.column_names, columns, strict=True)
    ]
    return _as(pa.table(columns, names=table.column_names), pa.schema(fields))


def typed(table: pa.Table, columns: Iterable[tuple[str, SqlType]]) -> pa.Table:
    """A table that has left DuckDB, with exactly these columns and types."""
    return _as(table, _schema(tuple(columns)))


def out_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type in which a column leaves the store."""
    import pyarrow as pa

    from penstock.stores.arrow_types import arrow_type

    return pa.duration("us") if sql_type.name == "INTERVAL" else arrow_type(sql_type)


@cache
def _schema(columns: tuple[tuple[str, SqlType], ...]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(name, out_type(sql_type)) for name, sql_type in columns])


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with another schema of as many columns; columns of the right type are not copied."""
    import pyarrow as pa

    columns = [
        column if column.type.equals(field.type, check_metadata=True) else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _zoned(kind: pa.DataType, zone: str | None) -> pa.DataType:
    """A type with its timestamps in microseconds and the given zone, and without large and view layouts."""
    import pyarrow as pa

    of = pa.types
    if of.is_timestamp(kind):
        return pa.timestamp("us", tz=zone)
    if of.is_large_string(kind) or of.is_string_view(kind):
        return pa.string()
    if of.is_large_binary(kind) or of.is_binary_view(kind):
        return pa.binary()
    if of.is_map(kind):
        value = pa.field("value", _zoned(kind.item_type, zone))
        return pa.map_(pa.field("key", _zoned(kind.key_type, zone), nullable=False), value)
    if of.is_list(kind) or of.is_large_list(kind) or of.is_list_view(kind) or of.is_large_list_view(kind):
        return pa.list_(pa.field("element", _zoned(kind.value_type, zone)))
    if of.is_struct(kind):
        return pa.struct([pa.field(kind.field(i).name, _zoned(kind.field(i).type, zone)) for i in range(len(kind))])
    return kind


def _interval(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(kind == pa.month_day_nano_interval())


def _durations(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Intervals without months as microseconds: read out of the buffers, because Arrow has no such cast."""
    import numpy as np
    import pyarrow as pa

    layout = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    chunks = []
    for chunk in column.chunks:
        values = np.frombuffer(chunk.buffers()[1], dtype=layout)[chunk.offset : chunk.offset + len(chunk)]
        # A month has no fixed length: DuckDB counts 30 days where it must compare, and so do we.
        days = values["days"].astype(np.int64) + values["months"].astype(np.int64) * 30
        mask = chunk.is_null().to_numpy(zero_copy_only=False)
        chunks.append(pa.array(days * _DAY_US + values["nanos"] // 1000, mask=mask).cast(pa.duration("us")))
    return pa.chunked_array(chunks, type=pa.duration("us"))
